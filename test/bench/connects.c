/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How many connections a worker of UCP makes per second: connects PEERS
 *
 * Another process has PEERS workers. With one after the other of them the endpoints are
 * created, 8 bytes go each way, and the endpoints are closed. The next one begins when
 * both have closed.
 *
 * Prints connections per second. The environment says by which transport (UCX_TLS).
 */

#include "must.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>

enum {
    WARM_UP     = 2,    /* connections before those that are measured        */
    ADDRESS_MAX = 4096,
    IN_A_ROW    = 100   /* progress calls between two looks at the socket    */
};

typedef struct {
    ucp_context_h context;
    ucp_worker_h  *worker;
    char          (*peer)[ADDRESS_MAX];
    unsigned      workers, peers;
    int           fd; /* to the other process */
} side_t;


static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}


static void open_side(side_t *side)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG,
    };
    const ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    ucp_address_t *address;
    size_t length;
    unsigned i;

    side->worker = calloc(side->workers, sizeof(*side->worker));
    side->peer   = calloc(side->peers, sizeof(*side->peer));
    MUST((side->worker != NULL) && (side->peer != NULL));
    MUST(ucp_init(&params, NULL, &side->context) == UCS_OK);
    for (i = 0; i < side->workers; i++) {
        MUST(ucp_worker_create(side->context, &worker_params, &side->worker[i]) ==
             UCS_OK);
        MUST(ucp_worker_get_address(side->worker[i], &address, &length) == UCS_OK);
        MUST(length <= ADDRESS_MAX);
        MUST(write(side->fd, address, length) == (ssize_t)length);
        ucp_worker_release_address(side->worker[i], address);
    }
    for (i = 0; i < side->peers; i++) {
        MUST(read(side->fd, side->peer[i], ADDRESS_MAX) > 0);
    }
}


static void close_side(side_t *side)
{
    unsigned i;

    for (i = 0; i < side->workers; i++) {
        ucp_worker_destroy(side->worker[i]);
    }
    ucp_cleanup(side->context);
    free(side->worker);
    free(side->peer);
}


static void wait_for(ucp_worker_h worker, ucs_status_ptr_t request)
{
    if (request == NULL) {
        return;
    }
    MUST(!UCS_PTR_IS_ERR(request));
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    MUST(ucp_request_check_status(request) == UCS_OK);
    ucp_request_free(request);
}


/* Goes on with progress until the other process has come here, too: closing its
 * endpoint may need this one. */
static void meet(const side_t *side, ucp_worker_h worker)
{
    char word = 'x';
    int i;

    MUST(write(side->fd, &word, 1) == 1);
    do {
        for (i = 0; i < IN_A_ROW; i++) {
            ucp_worker_progress(worker);
        }
    } while (recv(side->fd, &word, 1, MSG_DONTWAIT) != 1);
}


static void connect_once(const side_t *side, unsigned number)
{
    ucp_worker_h worker          = side->worker[number % side->workers];
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)side->peer[number % side->peers],
    };
    const ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t recv_request, send_request;
    uint64_t sent = number, got = UINT64_MAX;
    ucp_ep_h ep;

    MUST(ucp_ep_create(worker, &params, &ep) == UCS_OK);
    recv_request = ucp_tag_recv_nbx(worker, &got, sizeof(got), number, UINT64_MAX, &none);
    send_request = ucp_tag_send_nbx(ep, &sent, sizeof(sent), number, &none);
    wait_for(worker, send_request);
    wait_for(worker, recv_request);
    MUST(got == number);
    wait_for(worker, ucp_ep_close_nbx(ep, &none));
    meet(side, worker);
}


/* Returns connections per second. */
static double measure(side_t *side, unsigned count)
{
    double begun = 0, taken;
    unsigned number;

    open_side(side);
    meet(side, side->worker[0]);
    for (number = 0; number < count; number++) {
        if (number == WARM_UP) {
            begun = now();
        }
        connect_once(side, number);
    }
    taken = now() - begun;
    close_side(side);
    return (count - WARM_UP) / taken;
}


int main(int argc, char **argv)
{
    side_t side = {.workers = 1};
    int fds[2], status;
    unsigned count;
    double rate;
    pid_t peer;

    MUST(argc == 2);
    count = (unsigned)strtoul(argv[1], NULL, 10) + WARM_UP;
    MUST(count > WARM_UP);
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    peer = fork();
    MUST(peer >= 0);
    if (peer == 0) {
        side = (side_t){.workers = count, .peers = 1, .fd = fds[1]};
        (void)measure(&side, count);
        _exit(0);
    }
    side.peers = count;
    side.fd    = fds[0];
    rate       = measure(&side, count);
    MUST((waitpid(peer, &status, 0) == peer) && (status == 0));
    printf("%.1f\n", rate);
    return 0;
}
