/* SPDX-License-Identifier: BSD-3-Clause */
#include "storm.h"

#include <stdlib.h>
#include <string.h>


/* ---- Receiving ---- */

static void storm_on_tag(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *arg);


static void storm_post_receive(storm_peer_t *peer)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv      = storm_on_tag,
    };
    size_t length = storm_length(STORM_TAG, peer->rank, storm.rank,
                                 peer->posted);
    ucp_request_param_t with = param;
    ucs_status_ptr_t request;
    storm_op_t *op;

    op             = storm_op_get(peer, STORM_TAG, peer->posted, length);
    with.user_data = op;
    peer->posted++;
    request = ucp_tag_recv_nbx(storm.worker, op->data, length, peer->rank,
                               UINT64_MAX, &with);
    storm_must_start(request);
}


static void storm_on_tag(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *arg)
{
    storm_op_t *op     = arg;
    storm_peer_t *peer = op->peer;

    if (!storm_is_ok(status, "a tagged message is received")) {
        return;
    }
    STORM_MUST(info->length == op->length);
    storm_verify(op->data, op->length, STORM_TAG, peer->rank, storm.rank,
                 op->number);
    peer->got++;
    storm_op_put(op);
    ucp_request_free(request);
    if (peer->posted < storm.options.count[STORM_TAG]) {
        storm_post_receive(peer);
    }
}


static void storm_am_arrived(storm_peer_t *peer, uint32_t number,
                             const void *data, size_t length)
{
    STORM_MUST(number < storm.options.count[STORM_AM]);
    STORM_MUST(length == storm_length(STORM_AM, peer->rank, storm.rank,
                                      number));
    STORM_MUST(!peer->am_seen[number]); /* else it has come twice */
    storm_verify(data, length, STORM_AM, peer->rank, storm.rank, number);
    peer->am_seen[number] = 1;
    peer->am_got++;
}


static void storm_on_am_data(void *request, ucs_status_t status,
                             size_t length, void *arg)
{
    storm_op_t *op = arg;

    if (!storm_is_ok(status, "the data of an active message is fetched")) {
        return;
    }
    storm_am_arrived(op->peer, op->number, op->data, length);
    storm_op_put(op);
    ucp_request_free(request);
}


static ucs_status_t storm_on_am(void *arg, const void *header,
                                size_t header_length, void *data,
                                size_t length,
                                const ucp_am_recv_param_t *param)
{
    ucp_request_param_t with = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am   = storm_on_am_data,
    };
    storm_peer_t *peer;
    ucs_status_ptr_t request;
    uint64_t word;

    (void)arg;
    STORM_MUST(header_length == sizeof(word));
    memcpy(&word, header, sizeof(word));
    STORM_MUST((word >> 32) < storm.options.ranks);
    peer = &storm.peer[word >> 32];
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        storm_am_arrived(peer, (uint32_t)word, data, length);
        return UCS_OK;
    }
    with.user_data = storm_op_get(peer, STORM_AM, (uint32_t)word, length);
    request        = ucp_am_recv_data_nbx(storm.worker, data,
                                          ((storm_op_t*)with.user_data)->data,
                                          length, &with);
    storm_must_start(request);
    return UCS_INPROGRESS;
}


/* ---- Sending ---- */

static void storm_on_sent(void *request, ucs_status_t status, void *arg)
{
    storm_op_t *op = arg;

    if (!storm_is_ok(status, "a message is sent")) {
        return;
    }
    op->peer->over[op->kind]++;
    storm_op_put(op);
    ucp_request_free(request);
}


/* Bytes are what is meant without a datatype, too; but UCP 1.16 then takes a put for
 * one of none, and ends it well. */
static ucp_request_param_t storm_send_param(ucp_send_nbx_callback_t done,
                                            storm_op_t *op)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .datatype     = ucp_dt_make_contig(1),
        .cb.send      = done,
        .user_data    = op,
    };
}


static void storm_send(storm_peer_t *peer, storm_kind_t kind)
{
    uint32_t number = peer->begun[kind]++;
    size_t length   = storm_length(kind, storm.rank, peer->rank, number);
    storm_op_t *op  = storm_op_get(peer, kind, number, length);
    ucp_request_param_t param = storm_send_param(storm_on_sent, op);
    ucs_status_ptr_t request;

    storm_fill(op->data, length, kind, storm.rank, peer->rank, number);
    if (kind == STORM_TAG) {
        request = ucp_tag_send_nbx(peer->ep, op->data, length, storm.rank,
                                   &param);
    } else {
        op->header = ((uint64_t)storm.rank << 32) | number;
        request    = ucp_am_send_nbx(peer->ep, STORM_AM_ID, &op->header,
                                     sizeof(op->header), op->data, length,
                                     &param);
    }
    storm_must_start(request);
}


/* ---- One-sided ---- */

/* Ours alone at the peer: it looks at it only when all is over. */
static uint64_t storm_slot(const storm_peer_t *peer)
{
    return storm.shared->window[peer->rank] + (size_t)storm.rank * STORM_SLOT;
}


static void storm_on_get(void *request, ucs_status_t status, void *arg)
{
    storm_op_t *op = arg;

    if (!storm_is_ok(status, "a get is complete")) {
        return;
    }
    storm_verify(op->data, op->length, STORM_RMA, storm.rank, op->peer->rank,
                 op->number);
    op->peer->over[STORM_RMA]++;
    storm_op_put(op);
    ucp_request_free(request);
}


static void storm_get_back(storm_op_t *op)
{
    ucp_request_param_t param = storm_send_param(storm_on_get, op);

    memset(op->data, 0xdb, op->length);
    storm_must_start(ucp_get_nbx(op->peer->ep, op->data, op->length,
                                 storm_slot(op->peer), op->peer->key, &param));
}


static void storm_on_flushed(void *request, ucs_status_t status, void *arg)
{
    if (!storm_is_ok(status, "a flush is complete")) {
        return;
    }
    ucp_request_free(request);
    storm_get_back(arg);
}


static void storm_on_put(void *request, ucs_status_t status, void *arg)
{
    storm_op_t *op = arg;

    if (!storm_is_ok(status, "a put is complete")) {
        return;
    }
    ucp_request_free(request);
    op->next      = storm.put_ops;
    storm.put_ops = op;
}


/* Not in a callback: UCP 1.18 asserts that none flushes while it sends what had to
 * wait for the connection. */
void storm_flush_puts(void)
{
    ucp_request_param_t param;
    ucs_status_ptr_t flush;
    storm_op_t *op;

    while ((op = storm.put_ops) != NULL) {
        storm.put_ops = op->next;
        param         = storm_send_param(storm_on_flushed, op);
        flush         = ucp_ep_flush_nbx(op->peer->ep, &param);
        if (flush == NULL) { /* there was nothing to wait for */
            storm_get_back(op);
        } else {
            storm_must_start(flush);
        }
    }
}


static void storm_rma(storm_peer_t *peer)
{
    uint32_t number = peer->begun[STORM_RMA]++;
    size_t length   = storm_length(STORM_RMA, storm.rank, peer->rank, number);
    storm_op_t *op  = storm_op_get(peer, STORM_RMA, number, length);
    ucp_request_param_t param = storm_send_param(storm_on_put, op);

    storm_fill(op->data, length, STORM_RMA, storm.rank, peer->rank, number);
    storm_must_start(ucp_put_nbx(peer->ep, op->data, length, storm_slot(peer),
                                 peer->key, &param));
}


static void storm_on_amo(void *request, ucs_status_t status, void *arg)
{
    storm_op_t *op     = arg;
    storm_peer_t *peer = op->peer;
    uint64_t before;

    if (!storm_is_ok(status, "an atomic operation is complete")) {
        return;
    }
    memcpy(&before, op->data, sizeof(before));
    STORM_MUST(before == peer->added);
    peer->added += op->header;
    peer->over[STORM_AMO]++;
    storm_op_put(op);
    ucp_request_free(request);
}


static void storm_amo(storm_peer_t *peer)
{
    uint32_t number = peer->begun[STORM_AMO]++;
    uint64_t where  = storm.shared->window[peer->rank] +
                      STORM_RANKS * STORM_SLOT + storm.rank * sizeof(uint64_t);
    storm_op_t *op  = storm_op_get(peer, STORM_AMO, number, sizeof(uint64_t));
    ucp_request_param_t param = storm_send_param(storm_on_amo, op);

    op->header          = number + 1;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE |
                          UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype      = ucp_dt_make_contig(sizeof(uint64_t));
    param.reply_buffer  = op->data;
    storm_must_start(ucp_atomic_op_nbx(peer->ep, UCP_ATOMIC_OP_ADD,
                                       &op->header, 1, where, peer->key,
                                       &param));
}


/* ---- All of it ---- */

/* A slot and a counter take one at a time; messages go ahead. */
static int storm_may_begin(const storm_peer_t *peer, storm_kind_t kind)
{
    uint32_t under_way = peer->begun[kind] - peer->over[kind];

    return (peer->begun[kind] < storm.options.count[kind]) &&
           (under_way < ((kind <= STORM_AM) ? STORM_AHEAD : 1));
}


static void storm_begin(storm_peer_t *peer, storm_kind_t kind)
{
    switch (kind) {
    case STORM_RMA:
        storm_rma(peer);
        break;
    case STORM_AMO:
        storm_amo(peer);
        break;
    default:
        storm_send(peer, kind);
        break;
    }
}


static int storm_is_over(void)
{
    const unsigned *count = storm.options.count;
    const storm_peer_t *peer;
    unsigned kind;

    for (peer = storm.peer; peer < &storm.peer[storm.options.ranks]; peer++) {
        for (kind = 0; kind < STORM_KINDS; kind++) {
            if (peer->over[kind] < count[kind]) {
                return 0;
            }
        }
        if ((peer->got < count[STORM_TAG]) ||
            (peer->am_got < count[STORM_AM])) {
            return 0;
        }
    }
    return 1;
}


void storm_traffic_init(void)
{
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = STORM_AM_ID,
        .cb         = storm_on_am,
    };
    storm_peer_t *peer;

    storm_check(ucp_worker_set_am_recv_handler(storm.worker, &handler),
                "ucp_worker_set_am_recv_handler");
    for (peer = storm.peer; peer < &storm.peer[STORM_RANKS]; peer++) {
        peer->rank    = peer - storm.peer;
        peer->am_seen = calloc(storm.options.count[STORM_AM] + 1, 1);
        STORM_MUST(peer->am_seen != NULL);
    }
}


void storm_traffic(void)
{
    unsigned ranks = storm.options.ranks;
    storm_peer_t *peer;
    storm_kind_t kind;

    for (peer = storm.peer; peer < &storm.peer[ranks]; peer++) {
        while (peer->posted < storm_min(storm.options.count[STORM_TAG],
                                        STORM_POSTED)) {
            storm_post_receive(peer);
        }
    }
    while (!storm_is_over()) {
        peer = &storm.peer[t_rng_below(&storm.rng, ranks)];
        kind = t_rng_below(&storm.rng, STORM_KINDS);
        if (storm_may_begin(peer, kind)) {
            storm_begin(peer, kind);
            if (t_rng_once_in(&storm.rng, 2)) {
                continue; /* more than one in a row */
            }
        }
        storm_progress();
    }
}


void storm_traffic_cleanup(void)
{
    storm_peer_t *peer;

    for (peer = storm.peer; peer < &storm.peer[STORM_RANKS]; peer++) {
        free(peer->am_seen);
    }
}
