/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ucp_header: sends active messages of UCP to itself, many at once, each with the
 * longest user header that UCP says it may have, and looks at every byte of both.
 */

#include "ucp_util.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 32, LENGTH = 64 << 10, ID = 7 };

static ucp_worker_h worker;
static unsigned     arrived;
static size_t       longest; /* header */

static void must(ucs_status_t status, const char *what)
{
    ucp_util_must("ucp_header", status, what);
}

static uint8_t byte_of(unsigned message, size_t i)
{
    return (uint8_t)(message * 37 + i * 3 + (i >> 8));
}

static void fill(uint8_t *bytes, size_t length, unsigned message)
{
    size_t i;

    for (i = 0; i < length; i++) {
        bytes[i] = byte_of(message, i);
    }
}

static void look(const uint8_t *bytes, size_t length, unsigned message,
                 const char *what)
{
    size_t i;

    for (i = 0; i < length; i++) {
        if (bytes[i] != byte_of(message, i)) {
            fprintf(stderr, "ucp_header: %s of message %u: byte %zu is wrong\n",
                    what, message, i);
            exit(1);
        }
    }
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length,
                               void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    (void)arg;
    (void)param;
    if ((header_length != longest) || (length != LENGTH)) {
        fprintf(stderr, "ucp_header: %zu and %zu bytes came\n", header_length, length);
        exit(1);
    }
    look(header, header_length, arrived, "the header");
    look(data, length, arrived, "the data");
    arrived++;
    return UCS_OK;
}

static ucp_context_h start(void)
{
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id         = ID,
        .cb         = on_message,
        .flags      = UCP_AM_FLAG_WHOLE_MSG
    };
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_AM
    };
    const ucp_worker_params_t none = {0};
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    ucp_context_h context;

    must(ucp_init(&params, NULL, &context), "ucp_init");
    must(ucp_worker_create(context, &none, &worker), "ucp_worker_create");
    must(ucp_worker_query(worker, &attr), "ucp_worker_query");
    must(ucp_worker_set_am_recv_handler(worker, &handler), "the handler");
    longest = attr.max_am_header;
    printf("the longest header has %zu bytes\n", longest);
    return context;
}

static ucp_ep_h connect_self(void)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    must(ucp_worker_get_address(worker, &address, &length), "the address");
    params.address = address;
    must(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
    ucp_worker_release_address(worker, address);
    return ep;
}

static void finish(ucs_status_ptr_t request, const char *what)
{
    ucp_util_wait("ucp_header", worker, request, what);
}

int main(void)
{
    static uint8_t data[MESSAGES][LENGTH];
    ucp_request_param_t eager = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags        = UCP_AM_SEND_FLAG_EAGER};
    ucp_request_param_t none  = {0};
    ucs_status_ptr_t request[MESSAGES];
    ucp_context_h context = start();
    ucp_ep_h ep           = connect_self();
    uint8_t *header       = malloc(MESSAGES * longest);
    unsigned i;

    if (header == NULL) {
        return 1;
    }
    for (i = 0; i < MESSAGES; i++) {
        fill(header + (i * longest), longest, i);
        fill(data[i], LENGTH, i);
        request[i] = ucp_am_send_nbx(ep, ID, header + (i * longest), longest,
                                     data[i], LENGTH, &eager);
    }
    for (i = 0; i < MESSAGES; i++) {
        finish(request[i], "a message is sent");
    }
    while (arrived < MESSAGES) {
        ucp_worker_progress(worker);
    }
    finish(ucp_ep_close_nbx(ep, &none), "the endpoint is closed");
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    free(header);
    printf("%u messages have come\n", arrived);
    return 0;
}
