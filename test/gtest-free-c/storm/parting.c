/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two UCP workers of one process part in every order: which of them closes its
 * endpoint first, by flush or by force, with which messages just before, and whether
 * a worker goes as a whole before the other one has closed. None of it is an error
 * to anybody: no error handler is called, each request to close ends well. What UCX
 * says meanwhile the test that starts this looks at.
 *
 *     parting [ROUNDS]
 */
#include <ucp/api/ucp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 5, LONG = 200000 };

typedef enum {
    NOTHING,      /* is sent before                                         */
    SHORT_TO_B,   /* messages that need no answer                           */
    SHORT_TO_A,
    SHORT_BOTH,
    LONG_BOTH,    /* by rendezvous, all of it                               */
    TRAFFIC_LAST
} traffic_t;

typedef enum {
    A_THEN_B,     /* closes its endpoint                                    */
    B_THEN_A,
    AT_ONCE,
    B_GOES,       /* closes endpoint and worker; then A closes              */
    B_GOES_AT_ONCE, /* the same while A's request to close is under way     */
    ORDER_LAST
} order_t;

typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    void          *closing; /* request                                      */
    unsigned      errors;
} end_t;

static char case_name[128];
static char long_tx[LONG], long_rx[2][LONG];

static void must(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "parting: %s: not so: %s\n", case_name, what);
        _exit(1);
    }
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    end_t *end = arg;

    (void)ep;
    fprintf(stderr, "parting: %s: an endpoint is told: %s\n", case_name,
            ucs_status_string(status));
    end->errors++;
}

static void end_open(end_t *end)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA,
    };
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_config_t *config;

    memset(end, 0, sizeof(*end));
    must(ucp_config_read(NULL, NULL, &config) == UCS_OK, "there is a config");
    must(ucp_init(&params, config, &end->context) == UCS_OK, "ucp_init");
    ucp_config_release(config);
    must(ucp_worker_create(end->context, &worker_params, &end->worker) ==
                 UCS_OK,
         "a worker is made");
}

static void end_connect(end_t *from, end_t *to, ucp_err_handling_mode_t mode)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode        = mode,
        .err_handler.cb  = on_error,
        .err_handler.arg = from,
    };
    ucp_address_t *address;
    size_t length;

    must(ucp_worker_get_address(to->worker, &address, &length) == UCS_OK,
         "a worker has an address");
    params.address = address;
    must(ucp_ep_create(from->worker, &params, &from->ep) == UCS_OK,
         "an endpoint is made");
    ucp_worker_release_address(to->worker, address);
}

static void progress(end_t *a, end_t *b)
{
    if (a->worker != NULL) {
        ucp_worker_progress(a->worker);
    }
    if (b->worker != NULL) {
        ucp_worker_progress(b->worker);
    }
}

/* Works until the request is over, and frees it. */
static void await(end_t *a, end_t *b, void *request, const char *what)
{
    ucs_status_t status;

    if (request == NULL) {
        return;
    }
    must(!UCS_PTR_IS_ERR(request), what);
    do {
        progress(a, b);
        status = ucp_request_check_status(request);
    } while (status == UCS_INPROGRESS);
    ucp_request_free(request);
    must(status == UCS_OK, what);
}

static void *post_recv(end_t *end, void *buffer, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    return ucp_tag_recv_nbx(end->worker, buffer, length, TAG, (ucp_tag_t)-1,
                            &param);
}

static void *post_send(end_t *end, const void *buffer, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    return ucp_tag_send_nbx(end->ep, buffer, length, TAG, &param);
}

/* One message of that length each way, seen by both. */
static void exchange(end_t *a, end_t *b, size_t length)
{
    void *recv_a = post_recv(a, long_rx[0], length);
    void *recv_b = post_recv(b, long_rx[1], length);
    void *send_a = post_send(a, long_tx, length);
    void *send_b = post_send(b, long_tx, length);

    await(a, b, send_a, "a sends");
    await(a, b, send_b, "b sends");
    await(a, b, recv_a, "a receives");
    await(a, b, recv_b, "b receives");
}

/* So many short messages, the last things that are sent. */
static void say(end_t *from, end_t *to, unsigned count)
{
    unsigned i;
    void *recv;

    for (i = 0; i < count; i++) {
        recv = post_recv(to, long_rx[0], 8);
        await(from, to, post_send(from, long_tx, 8), "a short message is sent");
        await(from, to, recv, "a short message arrives");
    }
}

static void send_traffic(end_t *a, end_t *b, traffic_t traffic)
{
    exchange(a, b, 8); /* both are connected */
    if ((traffic == SHORT_TO_B) || (traffic == SHORT_BOTH)) {
        say(a, b, 3);
    }
    if ((traffic == SHORT_TO_A) || (traffic == SHORT_BOTH)) {
        say(b, a, 3);
    }
    if (traffic == LONG_BOTH) {
        exchange(a, b, LONG);
    }
}

static void close_begin(end_t *end, unsigned flags)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = flags,
    };

    end->closing = ucp_ep_close_nbx(end->ep, &param);
    end->ep      = NULL;
}

static void close_end(end_t *end, end_t *other)
{
    await(end, other, end->closing, "an endpoint closes well");
    end->closing = NULL;
}

static void end_go(end_t *end)
{
    ucp_worker_destroy(end->worker);
    ucp_cleanup(end->context);
    end->worker = NULL;
}

static void turns(end_t *a, end_t *b)
{
    int i;

    for (i = 0; i < 2000; i++) {
        progress(a, b);
    }
}

static void part(end_t *a, end_t *b, order_t order, unsigned flags)
{
    switch (order) {
    case A_THEN_B:
    case B_THEN_A:
        close_begin((order == A_THEN_B) ? a : b, flags);
        close_end((order == A_THEN_B) ? a : b, (order == A_THEN_B) ? b : a);
        close_begin((order == A_THEN_B) ? b : a, flags);
        close_end((order == A_THEN_B) ? b : a, (order == A_THEN_B) ? a : b);
        break;
    case AT_ONCE:
        close_begin(a, flags);
        close_begin(b, flags);
        close_end(a, b);
        close_end(b, a);
        break;
    case B_GOES:
        close_begin(b, flags);
        close_end(b, a);
        end_go(b);
        turns(a, b);
        close_begin(a, flags);
        close_end(a, b);
        break;
    default:
        close_begin(b, flags);
        close_end(b, a);
        close_begin(a, flags);
        end_go(b);
        close_end(a, b);
        break;
    }
    turns(a, b);
}

static void run(traffic_t traffic, order_t order, ucp_err_handling_mode_t mode,
                unsigned flags)
{
    end_t a, b;

    snprintf(case_name, sizeof(case_name),
             "traffic %d, order %d, error handling %d, close flags %u",
             (int)traffic, (int)order, (int)mode, flags);
    end_open(&a);
    end_open(&b);
    end_connect(&a, &b, mode);
    end_connect(&b, &a, mode);
    send_traffic(&a, &b, traffic);
    part(&a, &b, order, flags);
    must((a.errors == 0) && (b.errors == 0), "nobody is told of an error");
    end_go(&a);
    if (b.worker != NULL) {
        end_go(&b);
    }
}

int main(int argc, char **argv)
{
    int rounds = (argc > 1) ? atoi(argv[1]) : 1;
    int traffic, order, i;
    unsigned count = 0;

    for (i = 0; i < rounds; i++) {
        for (traffic = 0; traffic < TRAFFIC_LAST; traffic++) {
            for (order = 0; order < ORDER_LAST; order++) {
                run(traffic, order, UCP_ERR_HANDLING_MODE_NONE, 0);
                run(traffic, order, UCP_ERR_HANDLING_MODE_PEER, 0);
                run(traffic, order, UCP_ERR_HANDLING_MODE_PEER,
                    UCP_EP_CLOSE_FLAG_FORCE);
                count += 3;
            }
        }
    }
    printf("parting: %u times\n", count);
    return 0;
}
