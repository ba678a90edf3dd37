/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ucp_pair ADDRESS: two processes that meet by socket address, as a client and
 * a server of UCP do: the server listens on that address of IPv4, on a port that
 * it is given. Messages of several sizes go to the server and back, and every
 * byte is looked at.
 */

#include "ucp_util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIR_TAG 0x7a9

static const size_t pair_sizes[] = {1, 4096, 65536, 4u << 20};

#define PAIR_NUM_SIZES (sizeof(pair_sizes) / sizeof(pair_sizes[0]))
#define PAIR_SIZE_MAX  (4u << 20)

typedef struct pair {
    const char        *who; /* for its messages */
    ucp_context_h     context;
    ucp_worker_h      worker;
    ucp_conn_request_h asked; /* by the client */
    int               is_leaving;
    ucp_ep_h          ep;
    uint8_t           *data;
} pair_t;

static pair_t pair;

static void pair_check(ucs_status_t status, const char *what)
{
    ucp_util_must(pair.who, status, what);
}

static void pair_wait(ucs_status_ptr_t request, const char *what)
{
    ucp_util_wait(pair.who, pair.worker, request, what);
}

/* Once both have all, who closes first fails the other's endpoint. */
static void pair_on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    if (!pair.is_leaving) {
        pair_check(status, "the endpoint failed");
    }
}

static void pair_open(const char *who)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    ucp_worker_params_t worker = {0};

    pair.who  = who;
    pair.data = malloc(PAIR_SIZE_MAX);
    if (pair.data == NULL) {
        exit(1);
    }
    pair_check(ucp_init(&params, NULL, &pair.context), "ucp_init");
    pair_check(ucp_worker_create(pair.context, &worker, &pair.worker),
               "ucp_worker_create");
}

/* Has all; and waits until the other one has, without UCX, whose connection
 * manager may tell of an end before the transport has delivered. */
static void pair_leave(int fd)
{
    ucp_request_param_t param = {0};
    char byte                 = 0;

    pair_wait(ucp_worker_flush_nbx(pair.worker, &param), "the last flush");
    pair.is_leaving = 1;
    if (write(fd, &byte, 1) != 1) {
        exit(1);
    }
    while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0) {
        ucp_worker_progress(pair.worker); /* it may need this end */
    }
}

static void pair_close(void)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };

    pair_wait(ucp_ep_close_nbx(pair.ep, &param), "ucp_ep_close_nbx");
    ucp_worker_destroy(pair.worker);
    ucp_cleanup(pair.context);
    free(pair.data);
}

static uint8_t pair_byte(size_t size, size_t i)
{
    return (uint8_t)(size * 31 + i * 7 + (i >> 8));
}

static void pair_send(size_t size, uint8_t twist)
{
    ucp_request_param_t param = {0};
    size_t i;

    for (i = 0; i < size; ++i) {
        pair.data[i] = pair_byte(size, i) ^ twist;
    }
    pair_wait(ucp_tag_send_nbx(pair.ep, pair.data, size, PAIR_TAG, &param),
              "a message is sent");
}

static void pair_recv(size_t size, uint8_t twist)
{
    ucp_request_param_t param = {0};
    size_t i;

    memset(pair.data, 0, size);
    pair_wait(ucp_tag_recv_nbx(pair.worker, pair.data, size, PAIR_TAG,
                               UINT64_MAX, &param), "a message is received");
    for (i = 0; i < size; ++i) {
        if (pair.data[i] != (pair_byte(size, i) ^ twist)) {
            fprintf(stderr, "%s: byte %zu of %zu is wrong\n",
                    pair.who, i, size);
            exit(1);
        }
    }
}

/* ---- the two of them ---- */

static void pair_on_client(ucp_conn_request_h asked, void *arg)
{
    (void)arg;
    pair.asked = asked;
}

static ucp_listener_h pair_listen(struct sockaddr_in *address, int fd)
{
    ucp_listener_params_t params = {
        .field_mask       = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                            UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr.addr    = (const struct sockaddr*)address,
        .sockaddr.addrlen = sizeof(*address),
        .conn_handler.cb  = pair_on_client
    };
    ucp_listener_attr_t attr = {
        .field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR
    };
    ucp_listener_h listener;

    pair_check(ucp_listener_create(pair.worker, &params, &listener),
               "ucp_listener_create");
    pair_check(ucp_listener_query(listener, &attr), "ucp_listener_query");
    if (write(fd, &attr.sockaddr, sizeof(*address)) != sizeof(*address)) {
        exit(1);
    }
    return listener;
}

static void pair_server(struct sockaddr_in *address, int fd)
{
    ucp_ep_params_t params = {
        .field_mask     = UCP_EP_PARAM_FIELD_CONN_REQUEST |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode       = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb = pair_on_error
    };
    ucp_listener_h listener;
    size_t i;

    pair_open("ucp_pair: server");
    listener = pair_listen(address, fd);
    while (pair.asked == NULL) {
        ucp_worker_progress(pair.worker);
    }
    params.conn_request = pair.asked;
    pair_check(ucp_ep_create(pair.worker, &params, &pair.ep), "ucp_ep_create");
    for (i = 0; i < PAIR_NUM_SIZES; ++i) {
        pair_recv(pair_sizes[i], 0);
        pair_send(pair_sizes[i], 0xff);
    }
    pair_leave(fd);
    ucp_listener_destroy(listener);
    pair_close();
}

static void pair_client(const struct sockaddr_in *address, int fd)
{
    ucp_ep_params_t params = {
        .field_mask       = UCP_EP_PARAM_FIELD_FLAGS |
                            UCP_EP_PARAM_FIELD_SOCK_ADDR |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .flags            = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr.addr    = (const struct sockaddr*)address,
        .sockaddr.addrlen = sizeof(*address),
        .err_mode         = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb   = pair_on_error
    };
    size_t i;

    pair_open("ucp_pair: client");
    pair_check(ucp_ep_create(pair.worker, &params, &pair.ep), "ucp_ep_create");
    for (i = 0; i < PAIR_NUM_SIZES; ++i) {
        pair_send(pair_sizes[i], 0);
        pair_recv(pair_sizes[i], 0xff);
    }
    pair_leave(fd);
    pair_close();
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fds[2], status;
    pid_t child;

    if ((argc != 2) || (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) ||
        (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)) {
        return 2;
    }
    child = fork(); /* the caller sets UCX_VFS_ENABLE=n: see t_ucx_restart() */
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        pair_server(&address, fds[1]);
        return 0;
    }
    close(fds[1]);
    if (read(fds[0], &address, sizeof(address)) != sizeof(address)) {
        return 1;
    }
    pair_client(&address, fds[0]);
    if ((waitpid(child, &status, 0) != child) || (status != 0)) {
        return 1;
    }
    printf("both have all\n");
    return 0;
}
