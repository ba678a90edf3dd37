/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a checked conversation over UCP, for a wire on which faults are
 * made. Two of these send each other numbered messages, of sizes and contents
 * that both know, all at once and as fast as they go:
 *
 *     wt_stream RANK IN OUT [-n COUNT] [-m SIZE] [-s SECONDS]
 *
 *   RANK   0 or 1
 *   IN     a file or FIFO to read the other end's address from,
 *   OUT    and one to write ours to; nothing else goes that way but, at the
 *          very end, one byte each, so that nobody leaves while the other's
 *          last message may have to be sent again
 *   -n     messages to send; without it, until SIGUSR1 at either end, and
 *          then a few more
 *   -m     the largest message (262144); sizes are even over powers of two
 *   -s     seconds without any progress after which this is a stall (120)
 *
 * UCP's error handling is none, as with both MPIs: an error of the transport
 * ends the process, by SIGABRT, after the transport has said why. If a request
 * fails and this does not follow, that is "failed".
 *
 * stdout: "flowing" when messages have come in, then "done", "failed",
 * "stalled" or "wrong", with counts. Exit status: wt_exit_t.
 */

#include "tools/base/pattern.h"

#include <ucp/api/ucp.h>

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef enum {
    WT_DONE    = 0,
    WT_SETUP   = 1, /* nothing was tried                                     */
    WT_FAILED  = 3, /* a request did, and nothing was said about it          */
    WT_STALLED = 4, /* neither progress nor an error                         */
    WT_WRONG   = 5, /* a message was not what was sent                       */
    WT_ENDED   = 6  /* UCX ended the process                                 */
} wt_exit_t;

enum {
    WT_WINDOW  = 16, /* messages under way, each way                         */
    WT_FLOWING = 64, /* messages that prove that there is traffic            */
    WT_TAIL    = 64, /* messages after the signal to stop                    */
    WT_GRACE   = 10, /* seconds from a failed request to the process's end   */
    WT_NAP_US  = 2000,
    WT_TAG     = 1,
    WT_TAG_FIN = 2   /* how many there were                                  */
};

typedef struct {
    char     *buffer;
    void     *request; /* NULL: idle                                         */
    uint64_t number;
} wt_slot_t;

typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    unsigned      rank;
    const char    *in_path, *out_path;
    FILE          *in, *out;
    size_t        max;
    double        patience; /* seconds                                       */
    uint64_t      limit;    /* to send                                       */
    uint64_t      sent, sent_done;
    uint64_t      posted, got;
    uint64_t      expected; /* by the other end's word                       */
    uint64_t      fin_tx, fin_rx;
    wt_slot_t     tx[WT_WINDOW], rx[WT_WINDOW], fin[2];
    ucs_status_t  status;   /* of a request that failed                      */
    double        moved_at; /* when a request last ended                     */
} wt_t;

/* Seconds without progress after which the processor is left to who has use
 * for it: on a wire that is down there is nothing to win by asking again. */
static const double wt_idle = 0.1;

static volatile sig_atomic_t wt_is_stopped;


static void wt_on_signal(int number)
{
    (void)number;
    wt_is_stopped = 1;
}


static void wt_on_abort(int number)
{
    (void)number;
    _exit(WT_ENDED);
}


static double wt_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}


/* The last line, and the end. What UCX holds goes with the process. */
__attribute__((noreturn))
static void wt_exit(const wt_t *wt, wt_exit_t code, const char *what,
                    const char *detail)
{
    printf("rank %u %s%s%s: sent %" PRIu64 " of which done %" PRIu64
           ", received %" PRIu64 "\n", wt->rank, what,
           (*detail != '\0') ? " " : "", detail, wt->sent, wt->sent_done,
           wt->got);
    fflush(stdout);
    _exit(code);
}


static void wt_need(const wt_t *wt, ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "rank %u: %s: %s\n", wt->rank, what,
                ucs_status_string(status));
        exit(WT_SETUP);
    }
}


static void *wt_alloc(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        exit(WT_SETUP);
    }
    return memory;
}


/* ---- Messages that both ends know ---- */

static uint64_t wt_key(unsigned sender, uint64_t number, size_t size)
{
    const daqiri_pattern_id_t id = {
        .serial   = number,
        .size     = size,
        .sender   = sender,
        .receiver = !sender,
    };

    return daqiri_pattern_key(&id);
}


static size_t wt_size(const wt_t *wt, unsigned sender, uint64_t number)
{
    uint64_t draw = wt_key(sender, number, 0);
    size_t most   = (size_t)1 << (draw % 32);

    while (most > wt->max) {
        draw = draw / 32 + 1;
        most = (size_t)1 << (draw % 32);
    }
    return 1 + (draw >> 16) % most;
}


static void wt_check(const wt_t *wt, const wt_slot_t *slot, size_t length)
{
    size_t size  = wt_size(wt, !wt->rank, slot->number);
    size_t wrong = daqiri_pattern_check(slot->buffer, size,
                                        wt_key(!wt->rank, slot->number, size));

    if ((length != size) || (wrong != size)) {
        fprintf(stderr, "rank %u: message %" PRIu64 " has %zu bytes, of %zu, "
                "and the byte at %zu is wrong\n", wt->rank, slot->number,
                length, size, wrong);
        wt_exit(wt, WT_WRONG, "wrong", "");
    }
}


/* ---- Set-up ---- */

static int wt_parse(wt_t *wt, int argc, char **argv)
{
    int letter;

    while ((letter = getopt(argc, argv, "n:m:s:")) != -1) {
        switch (letter) {
        case 'n':
            wt->limit = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            wt->max = strtoull(optarg, NULL, 10);
            break;
        case 's':
            wt->patience = atof(optarg);
            break;
        default:
            return 0;
        }
    }
    if ((argc - optind != 3) || (wt->max < 2)) {
        return 0;
    }
    wt->rank     = atoi(argv[optind]) != 0;
    wt->in_path  = argv[optind + 1];
    wt->out_path = argv[optind + 2];
    return 1;
}


static void wt_open_ucp(wt_t *wt)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG,
    };
    const ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };

    wt_need(wt, ucp_init(&params, NULL, &wt->context), "ucp_init");
    wt_need(wt, ucp_worker_create(wt->context, &worker_params, &wt->worker),
            "ucp_worker_create");
}


/* FIFOs open when both ends are there, so both ends open them in one order. */
static void wt_open_files(wt_t *wt)
{
    if (wt->rank == 0) {
        wt->in  = fopen(wt->in_path, "r");
        wt->out = fopen(wt->out_path, "w");
    } else {
        wt->out = fopen(wt->out_path, "w");
        wt->in  = fopen(wt->in_path, "r");
    }
    wt_need(wt, ((wt->in != NULL) && (wt->out != NULL)) ? UCS_OK
                                                        : UCS_ERR_IO_ERROR,
            "cannot open IN and OUT");
}


static void wt_tell(wt_t *wt, const void *data, size_t size)
{
    wt_need(wt, ((fwrite(data, size, 1, wt->out) == 1) &&
                 (fflush(wt->out) == 0)) ? UCS_OK : UCS_ERR_IO_ERROR,
            "cannot write to OUT");
}


static void wt_hear(wt_t *wt, void *data, size_t size)
{
    wt_need(wt, (fread(data, size, 1, wt->in) == 1) ? UCS_OK
                                                    : UCS_ERR_CONNECTION_RESET,
            "cannot read from IN");
}


static void wt_connect(wt_t *wt)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
    };
    ucp_address_t *mine;
    uint64_t length;
    size_t size;
    void *other;

    wt_need(wt, ucp_worker_get_address(wt->worker, &mine, &size),
            "ucp_worker_get_address");
    length = size;
    wt_tell(wt, &length, sizeof(length));
    wt_tell(wt, mine, size);
    ucp_worker_release_address(wt->worker, mine);

    wt_hear(wt, &length, sizeof(length));
    other = wt_alloc(length);
    wt_hear(wt, other, length);

    params.address = other;
    wt_need(wt, ucp_ep_create(wt->worker, &params, &wt->ep), "ucp_ep_create");
    free(other);
}


/* ---- Traffic ---- */

/* Takes what a nonblocking call of UCP returned. */
static void wt_start(wt_t *wt, wt_slot_t *slot, ucs_status_ptr_t request)
{
    slot->request = request;
    if (UCS_PTR_IS_ERR(request)) {
        slot->request = NULL;
        wt->status    = UCS_PTR_STATUS(request);
    }
}


static void wt_receive(wt_t *wt, wt_slot_t *slot)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    };

    slot->number = wt->posted++;
    wt_start(wt, slot, ucp_tag_recv_nbx(wt->worker, slot->buffer, wt->max,
                                        WT_TAG, UINT64_MAX, &param));
}


static void wt_send(wt_t *wt, wt_slot_t *slot)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    };
    size_t size;

    slot->number = wt->sent++;
    size         = wt_size(wt, wt->rank, slot->number);
    daqiri_pattern_fill(slot->buffer, size,
                        wt_key(wt->rank, slot->number, size));
    wt_start(wt, slot, ucp_tag_send_nbx(wt->ep, slot->buffer, size, WT_TAG,
                                        &param));
}


static void wt_send_fin(wt_t *wt)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    };

    wt->fin_tx = wt->limit;
    wt_start(wt, &wt->fin[0], ucp_tag_send_nbx(wt->ep, &wt->fin_tx,
                                               sizeof(wt->fin_tx), WT_TAG_FIN,
                                               &param));
}


static void wt_begin(wt_t *wt)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    };
    unsigned i;

    for (i = 0; i < WT_WINDOW; i++) {
        wt->tx[i].buffer = wt_alloc(wt->max);
        wt->rx[i].buffer = wt_alloc(wt->max);
        wt_receive(wt, &wt->rx[i]);
    }
    wt_start(wt, &wt->fin[1],
             ucp_tag_recv_nbx(wt->worker, &wt->fin_rx, sizeof(wt->fin_rx),
                              WT_TAG_FIN, UINT64_MAX, &param));
}


/* Non-zero when the slot's request has just ended; then it is idle. */
static int wt_ended(wt_t *wt, wt_slot_t *slot, ucp_tag_recv_info_t *info)
{
    ucs_status_t status;

    if (slot->request == NULL) {
        return 0;
    }
    status = (info == NULL) ? ucp_request_check_status(slot->request)
                            : ucp_tag_recv_request_test(slot->request, info);
    if (status == UCS_INPROGRESS) {
        return 0;
    }
    ucp_request_free(slot->request);
    slot->request = NULL;
    wt->moved_at  = wt_now();
    if (status != UCS_OK) {
        wt->status = status;
        return 0;
    }
    return 1;
}


static void wt_work_rx(wt_t *wt)
{
    ucp_tag_recv_info_t info;
    unsigned i;

    for (i = 0; i < WT_WINDOW; i++) {
        if (!wt_ended(wt, &wt->rx[i], &info)) {
            continue;
        }
        wt_check(wt, &wt->rx[i], info.length);
        wt_receive(wt, &wt->rx[i]);
        if (++wt->got == WT_FLOWING) {
            printf("flowing\n");
            fflush(stdout);
        }
    }
    if (wt_ended(wt, &wt->fin[1], &info)) {
        wt->expected  = wt->fin_rx;
        wt_is_stopped = 1;
    }
}


static void wt_work_tx(wt_t *wt)
{
    unsigned i;

    if (wt_is_stopped && (wt->limit == UINT64_MAX)) {
        wt->limit = wt->sent + WT_TAIL;
    }
    for (i = 0; i < WT_WINDOW; i++) {
        wt->sent_done += wt_ended(wt, &wt->tx[i], NULL);
        if ((wt->tx[i].request == NULL) && (wt->sent < wt->limit) &&
            (wt->status == UCS_OK)) {
            wt_send(wt, &wt->tx[i]);
        }
    }
    (void)wt_ended(wt, &wt->fin[0], NULL);
    if ((wt->sent == wt->limit) && (wt->fin_tx == UINT64_MAX)) {
        wt_send_fin(wt);
    }
}


static int wt_is_over(const wt_t *wt)
{
    return (wt->got == wt->expected) && (wt->sent_done == wt->limit) &&
           (wt->fin[0].request == NULL);
}


static void wt_progress(wt_t *wt)
{
    double idle;

    if (ucp_worker_progress(wt->worker) > 0) {
        return;
    }
    sched_yield();
    idle = wt_now() - wt->moved_at;
    if (idle > wt_idle) {
        usleep(WT_NAP_US);
    }
    if ((wt->status != UCS_OK) && (idle > WT_GRACE)) {
        wt_exit(wt, WT_FAILED, "failed", ucs_status_string(wt->status));
    }
    if (idle > wt->patience) {
        wt_exit(wt, WT_STALLED, "stalled", "");
    }
}


/* ---- The end ---- */

static void wt_flush(wt_t *wt)
{
    static const ucp_request_param_t param;
    wt_slot_t flush = {0};

    wt_start(wt, &flush, ucp_ep_flush_nbx(wt->ep, &param));
    while ((flush.request != NULL) && !wt_ended(wt, &flush, NULL)) {
        wt_progress(wt);
    }
}


static void wt_close(wt_t *wt)
{
    static const ucp_request_param_t param;
    wt_slot_t close = {0};
    unsigned i;

    for (i = 0; i < WT_WINDOW; i++) {
        if (wt->rx[i].request != NULL) {
            ucp_request_cancel(wt->worker, wt->rx[i].request);
            ucp_request_free(wt->rx[i].request);
        }
    }
    wt_start(wt, &close, ucp_ep_close_nbx(wt->ep, &param));
    while ((close.request != NULL) && !wt_ended(wt, &close, NULL)) {
        wt_progress(wt);
    }
    ucp_worker_destroy(wt->worker);
    ucp_cleanup(wt->context);
}


int main(int argc, char **argv)
{
    wt_t wt = {
        .max      = 262144,
        .patience = 120,
        .limit    = UINT64_MAX,
        .expected = UINT64_MAX,
        .fin_tx   = UINT64_MAX,
    };
    char bye = 0;

    /* UCX's log goes there, too, and is waited for */
    setvbuf(stdout, NULL, _IOLBF, 0);

    if (!wt_parse(&wt, argc, argv)) {
        fprintf(stderr, "usage: wt_stream RANK IN OUT [-n COUNT] [-m SIZE] "
                "[-s SECONDS]\n");
        return WT_SETUP;
    }
    signal(SIGUSR1, wt_on_signal);
    signal(SIGABRT, wt_on_abort);
    signal(SIGPIPE, SIG_IGN);
    wt_open_ucp(&wt);
    wt_open_files(&wt);
    wt_connect(&wt);

    wt.moved_at = wt_now();
    wt_begin(&wt);
    while (!wt_is_over(&wt)) {
        wt_work_rx(&wt);
        wt_work_tx(&wt);
        wt_progress(&wt);
    }
    wt_flush(&wt);
    wt_tell(&wt, &bye, sizeof(bye));
    wt_hear(&wt, &bye, sizeof(bye));
    wt_close(&wt);
    wt_exit(&wt, WT_DONE, "done", "");
}
