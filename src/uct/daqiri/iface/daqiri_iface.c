/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface: one port of one device, its queues and its progress.
 */
#include "iface/daqiri_iface.h"

#include "base/daqiri_config.h"
#include "base/daqiri_log.h"
#include "base/daqiri_md.h"
#include "base/daqiri_pool.h"
#include "base/daqiri_draw.h"
#include "base/daqiri_port.h"
#include "base/daqiri_rc.h"
#include "cm/daqiri_async.h"
#include "cm/daqiri_cm.h"
#include "cm/daqiri_hs.h"
#include "cm/daqiri_link.h"
#include "cm/daqiri_ud.h"
#include "conn/daqiri_batch.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_preconnect.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_tx.h"
#include "dq/dq_time.h"
#include "ep/daqiri_ep.h"
#include "ep/daqiri_pending.h"
#include "iface/daqiri_event.h"
#include "iface/daqiri_send_cq.h"
#include "iface/daqiri_stats.h"
#include "iface/daqiri_watchdog.h"

#include <sched.h>


/* Posts a probe behind requests that would not complete by themselves. */
static void uct_daqiri_conn_post_marker(uct_daqiri_conn_t *conn)
{
    if (dq_sq_tail_is_silent(&conn->sq) &&
        (dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, DQ_WR_RMA) ==
         DQ_ADMIT_OK)) {
        (void)uct_daqiri_tx_post_probe(conn, NULL, NULL);
    }
}


/* Whether a grant is under way. One that is due waits for the next progress call. One
 * that is stuck may wait for credits for ever, so a flush does not wait for it. */
static int uct_daqiri_iface_is_granting(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn;

    ucs_list_for_each(conn, &iface->rx.grants_due, grant.link) {
        if (conn->grant.due != UCT_DAQIRI_GRANT_STUCK) {
            return 1;
        }
    }
    return 0;
}


/* Whether endpoints are still to be told that their connection has failed. It drains
 * before that, perhaps with nothing under way. */
static int uct_daqiri_iface_is_telling(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn;

    ucs_list_for_each(conn, &iface->draining, drain_link) {
        if (dq_life_is_over(conn->state)) {
            return 1;
        }
    }
    return 0;
}


ucs_status_t uct_daqiri_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);
    /* To the caller a pending request is sent: UCP does not count it itself. */
    int is_flushed             = ucs_list_is_empty(&iface->tx.pending) &&
                                 !uct_daqiri_iface_is_granting(iface) &&
                                 !uct_daqiri_iface_is_telling(iface) &&
                                 (dq_cq_in_use(&iface->tx.ledger) == 0);
    uct_daqiri_conn_t *conn;

    (void)flags;
    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (is_flushed) {
        return UCS_OK;
    }
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_conn_post_marker(conn);
    }
    return UCS_INPROGRESS;
}


/* ---- Birth ---- */

/*
 * The MPI may unpack fragments of UCP by whole elements of their type. MPICH does, and
 * fails where a fragment ends within an element. UCP takes its headers off the length of
 * a message. The header of rendezvous data has 16 bytes. So if messages hold a multiple
 * of 16 bytes, rendezvous fragments do, too. The headers of eager fragments have 24 and
 * 16 bytes (UCP 1.13), which leaves multiples of 8, whatever the length.
 */
static size_t uct_daqiri_iface_seg_size(uct_daqiri_iface_t *iface,
                                        const uct_daqiri_iface_config_t *config)
{
    size_t size = config->seg_size;

    if (size == UCS_MEMUNITS_AUTO) {
        size = uct_daqiri_port_seg_size(
                uct_daqiri_iface_md(iface)->context->device);
    }
    return ucs_align_down_pow2(size - sizeof(dq_msg_hdr_t),
                               UCT_DAQIRI_FRAG_ALIGN) + sizeof(dq_msg_hdr_t);
}


enum {
    UCT_DAQIRI_RANKS_MAX = 65536, /* more on a host are a mistake           */
    UCT_DAQIRI_QPS_LEAST = 16     /* "auto" gives no less                   */
};

/* The ranks of this job on this host, as its starter tells: Open MPI and PRRTE, hydra. */
static unsigned long uct_daqiri_iface_local_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    const char *value;
    long ranks;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(names); i++) {
        value = getenv(names[i]);
        ranks = (value != NULL) ? strtol(value, NULL, 10) : 0;
        if ((ranks > 0) && (ranks <= UCT_DAQIRI_RANKS_MAX)) {
            return ranks;
        }
    }
    return 1;
}


/* How many queue pairs the interface may have. An eighth of the device's is for others,
 * and for queue pairs that peers ask for. A device in user space has as many in each
 * process. One that says nonsense is believed when it refuses one
 * (uct_daqiri_budget_on_no_qp()). */
static uint32_t uct_daqiri_iface_max_qps(uct_daqiri_iface_t *iface,
                                         const uct_daqiri_iface_config_t *config)
{
    const uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    unsigned long ranks       = uct_daqiri_port_is_in_user_space(md->context->device)
                                        ? 1 : uct_daqiri_iface_local_ranks();
    int has                   = md->attr.max_qp;
    unsigned long share;

    if (!config->recovery || (config->max_qps == UCS_ULUNITS_INF)) {
        return UINT32_MAX;
    }
    if (config->max_qps != UCS_ULUNITS_AUTO) {
        if ((has > 0) && (config->max_qps > (unsigned long)has)) {
            ucs_warn("daqiri: %s has %d queue pairs: UCX_DAQIRI_MAX_QPS=%lu is taken as "
                     "that", iface->config.port_name, has, config->max_qps);
            return has;
        }
        return config->max_qps;
    }
    if (has <= 0) {
        return UINT32_MAX;
    }
    share = ((unsigned long)has - has / 8) / ranks;
    return ucs_max(share, (unsigned long)UCT_DAQIRI_QPS_LEAST);
}


static void uct_daqiri_iface_configure(uct_daqiri_iface_t *iface,
                                       const uct_daqiri_iface_config_t *config,
                                       const uct_iface_params_t *params)
{
    const struct ibv_device_attr *device = &uct_daqiri_iface_md(iface)->attr;

    /* The attributes of the device are a hint: some devices claim more than they give. */
    iface->config.sq_depth      = ucs_min(config->sq_depth,
                                          (unsigned)device->max_qp_wr);
    iface->config.max_sge       = ucs_min(config->max_sge,
                                          (unsigned)device->max_sge);
    iface->config.signal_every  = config->signal_every;
    iface->config.rx_window     = config->rx_window;
    iface->config.rx_window_start = config->rx_window_start;
    iface->idle.most            = uct_daqiri_iface_max_qps(iface, config);
    iface->idle.max             = iface->idle.most;
    iface->idle.timeout         = ucs_time_from_sec(config->idle_timeout);
    /* The slack is two batches. This bound leaves the larger part to windows. */
    iface->poll_batch           = ucs_min(config->poll_batch,
                                          config->rx_buffers / 8);
    iface->config.max_inline    = config->max_inline;
    iface->config.seg_size      = uct_daqiri_iface_seg_size(iface, config);
    iface->config.fetch_offset  =
            uct_daqiri_fetch_offset_in(iface->config.seg_size);
    iface->config.max_hdr       = ucs_min(iface->config.seg_size / 2,
                                          (size_t)UCT_DAQIRI_HDR_MAX);
    iface->config.ack_timeout   = dq_ack_timeout_code(config->ack_timeout);
    iface->config.retry_count   = config->retry_count;
    iface->config.rnr_timer     = dq_rnr_timer_code(config->rnr_timeout);
    iface->config.rd_atomic     = ucs_min(
            ucs_min(device->max_qp_rd_atom, device->max_qp_init_rd_atom),
            UINT8_MAX);
    iface->config.traffic_class = config->traffic_class;
    iface->config.service_level = config->service_level;
    iface->config.conn_timeout  = ucs_time_from_sec(config->conn_timeout);
    iface->config.conn_retry    = ucs_time_from_sec(config->conn_retry);
    iface->config.recovery      = config->recovery;
    iface->config.recovery_timeout =
            ucs_time_from_sec(config->recovery_timeout);
    uct_daqiri_watchdog_configure(iface, config);
    iface->config.pid           = getpid();
    iface->config.headroom      =
            (params->field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM)
                    ? params->rx_headroom : 0;
    iface->config.addr.uuid     = ucs_generate_uuid((uintptr_t)iface);
    dq_wire_host(iface->config.host, ucs_get_host_name());
}


/* The cookie tells peers from strangers, so it must be unpredictable from everything that
 * peers are told. A ticket of 0 means none. */
static ucs_status_t uct_daqiri_iface_draw_secrets(uct_daqiri_iface_t *iface)
{
    struct {
        uint64_t cookie, ticket;
    } drawn;
    ucs_status_t status;

    status = uct_daqiri_draw(&iface->log_limit.draw, &drawn, sizeof(drawn));
    if (status == UCS_OK) {
        iface->config.addr.cookie = drawn.cookie;
        iface->config.ticket      = (drawn.ticket != 0) ? drawn.ticket : 1;
    }
    return status;
}


static ucs_status_t uct_daqiri_iface_failed(uct_daqiri_iface_t *iface,
                                            const char *verb)
{
    struct ibv_context *context = uct_daqiri_iface_md(iface)->context;

    uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR,
                        ibv_get_device_name(context->device), verb, errno);
    return UCS_ERR_IO_ERROR;
}


static ucs_status_t
uct_daqiri_iface_open_queues(uct_daqiri_iface_t *iface,
                             const uct_daqiri_iface_config_t *config)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    uint32_t rx_buffers = ucs_min(config->rx_buffers,
                                  ucs_min((unsigned)md->attr.max_srq_wr,
                                          (unsigned)md->attr.max_cqe));
    struct ibv_srq_init_attr srq_attr = {
        .attr = {.max_wr = rx_buffers, .max_sge = uct_daqiri_recv_pieces(iface)},
    };
    const dq_facts_t no_srq = {
        .cause   = DQ_CAUSE_NO_SRQ,
        .subject = ibv_get_device_name(md->context->device),
    };

    if (md->attr.max_srq == 0) {
        uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &no_srq);
        return UCS_ERR_UNSUPPORTED;
    }

    if (uct_daqiri_send_cq_open(iface, config) != 0) {
        return uct_daqiri_iface_failed(iface, "ibv_create_cq");
    }
    iface->rx.cq = ibv_create_cq(md->context, rx_buffers, NULL,
                                 iface->event.channel, 0);
    if (iface->rx.cq == NULL) {
        return uct_daqiri_iface_failed(iface, "ibv_create_cq");
    }
    iface->rx.srq = ibv_create_srq(md->pd, &srq_attr);
    if (iface->rx.srq == NULL) {
        return uct_daqiri_iface_failed(iface, "ibv_create_srq");
    }
    dq_rx_init(&iface->rx.ledger, rx_buffers, iface->poll_batch);
    return UCS_OK;
}


/* The alignment that UCP wants for its data. The offset, which covers UCP's own header,
 * may exceed the alignment. */
static ucs_status_t
uct_daqiri_iface_alignment(const uct_daqiri_iface_t *iface,
                           const uct_iface_params_t *params, size_t *align_p,
                           size_t *offset_p)
{
    size_t align  = 1;
    size_t offset = 0;

    if (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT) {
        align = params->am_alignment;
    }
    if (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET) {
        offset = params->am_align_offset;
    }
    if (!ucs_is_pow2(align) || (offset >= iface->config.seg_size) ||
        ((params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET) &&
         !(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT))) {
        ucs_error("daqiri: data cannot be aligned to %zu bytes at an offset "
                  "of %zu", align, offset);
        return UCS_ERR_INVALID_PARAM;
    }
    *align_p  = align;
    *offset_p = offset % align;
    return UCS_OK;
}


/*
 * Where the alignment leaves a choice, data begins in the cache line of its header. With
 * each message, the device's processor has to take each line from ours, and ours has to
 * take it back. Data without an alignment lies at a multiple of 8 bytes, because a
 * program may read numbers in place.
 */
static void uct_daqiri_iface_share_line(size_t *align, size_t *offset)
{
    size_t wish = ucs_max(*align, sizeof(uint64_t));
    size_t least;

    *align  = ucs_max(wish, UCS_SYS_CACHE_LINE_SIZE);
    least   = ucs_align_up_pow2(sizeof(dq_msg_hdr_t) + *offset, wish) - *offset;
    *offset = ucs_padding(least, *align);
}


static ucs_status_t
uct_daqiri_iface_open_pools(uct_daqiri_iface_t *iface,
                            const uct_daqiri_iface_config_t *config,
                            const uct_iface_params_t *params)
{
    const uct_daqiri_pool_params_t tx_params = {
        .name   = "daqiri_tx",
        .pd     = uct_daqiri_iface_md(iface)->pd,
        .limit  = config->tx_buffers,
        .lead   = sizeof(dq_msg_hdr_t),
        .length = iface->config.seg_size,
        .align  = UCS_SYS_CACHE_LINE_SIZE,
    };
    size_t align, offset;
    ucs_status_t status;

    status = uct_daqiri_iface_alignment(iface, params, &align, &offset);
    if (status != UCS_OK) {
        return status;
    }
    uct_daqiri_iface_share_line(&align, &offset);

    status = uct_daqiri_recv_open_pool(iface, align, offset);
    if (status != UCS_OK) {
        return status;
    }
    iface->rx.recvs = ucs_calloc(iface->rx.ledger.limit,
                                 sizeof(*iface->rx.recvs), "daqiri_recvs");
    if (iface->rx.recvs == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    return uct_daqiri_pool_init(&iface->tx.pool, &tx_params);
}


/* UCP tries the short send before it considers a registration. So a length that UCP would
 * rather register than copy, by its formula (ucp_ep.c), is no short send, unless it goes
 * inline. */
static size_t uct_daqiri_iface_max_short(uct_daqiri_iface_t *iface)
{
    const ucs_linear_func_t *cost = &uct_daqiri_iface_md(iface)->reg_cost;
    double saved   = 1 / UCT_DAQIRI_COPY_BW - cost->m -
                     1 / uct_daqiri_port_bandwidth(iface); /* s per byte */
    size_t longest = ucs_min((size_t)UCT_DAQIRI_SHORT_MAX,
                             iface->config.seg_size - sizeof(dq_msg_hdr_t));
    size_t inlined = (iface->config.max_inline < sizeof(dq_msg_hdr_t))
                             ? 0
                             : iface->config.max_inline - sizeof(dq_msg_hdr_t);

    if ((saved > 0) && (cost->c < longest * saved)) {
        longest = ucs_min(longest, ucs_max(inlined, (size_t)(cost->c / saved)));
    }
    return longest;
}


/* A device reports only with a QP how much it sends inline. */
static ucs_status_t uct_daqiri_iface_learn_inline(uct_daqiri_iface_t *iface)
{
    ucs_status_t status;
    struct ibv_qp *qp;
    uint32_t max_inline;

    status = uct_daqiri_rc_create(iface, UCS_LOG_LEVEL_ERROR, &qp,
                                  &max_inline);
    if (status != UCS_OK) {
        return status;
    }
    ibv_destroy_qp(qp);

    iface->config.max_inline = max_inline;
    iface->config.max_short  = uct_daqiri_iface_max_short(iface);
    iface->config.max_inline_am =
            ucs_min(max_inline,
                    iface->config.max_short + sizeof(dq_msg_hdr_t));
    iface->max_token_payload =
            iface->config.max_inline_am -
            ucs_min(iface->config.max_inline_am, UCT_DAQIRI_SHORT_HDR);
    return UCS_OK;
}


/* Posts RECVs that no window promises: they cover arrivals while other messages are
 * handled. */
static ucs_status_t uct_daqiri_iface_post_slack(uct_daqiri_iface_t *iface)
{
    ucs_status_t status;

    status = uct_daqiri_recv_add(iface, iface->rx.ledger.slack);
    if (status == UCS_OK) {
        uct_daqiri_recv_refill(iface);
    }
    return status;
}


static void uct_daqiri_iface_close_queues(uct_daqiri_iface_t *iface)
{
    uct_daqiri_pool_cleanup(&iface->tx.pool);
    uct_daqiri_pool_cleanup(&iface->rx.pool);
    ucs_free(iface->rx.recvs);
    if (iface->rx.srq != NULL) {
        ibv_destroy_srq(iface->rx.srq);
    }
    if (iface->rx.cq != NULL) {
        ibv_destroy_cq(iface->rx.cq);
    }
    if (iface->tx.cq != NULL) {
        ibv_destroy_cq(iface->tx.cq);
    }
    uct_daqiri_event_cleanup(iface);
    uct_daqiri_port_cleanup(iface);
}


/* The handler for ids without one. UCX's own logs four lines and a stack for each
 * message, so any connected peer could fill the log. */
static ucs_status_t uct_daqiri_iface_on_unhandled(void *arg, void *data,
                                                  size_t length, unsigned flags)
{
    const uct_daqiri_am_id_t *am_id = arg;
    uct_daqiri_iface_t *iface       = am_id->iface;
    char more[UCT_DAQIRI_MORE_MAX];

    (void)data;
    (void)flags;
    iface->count->am_unhandled++;
    if (uct_daqiri_may_log(&iface->log_limit.handler, more)) {
        ucs_warn("daqiri: a message of %zu bytes has come with active message "
                 "id %u, for which there is no handler: it is dropped%s",
                 length, am_id->id, more);
    }
    return UCS_OK;
}


static ucs_status_t uct_daqiri_iface_set_unhandled(uct_daqiri_iface_t *iface)
{
    ucs_status_t status;
    uint8_t id;

    for (id = 0; id < UCT_AM_ID_MAX; id++) {
        iface->am_ids[id] = (uct_daqiri_am_id_t){.iface = iface, .id = id};
        status = uct_iface_set_am_handler(&iface->super.super, id,
                                          uct_daqiri_iface_on_unhandled,
                                          &iface->am_ids[id],
                                          UCT_CB_FLAG_ASYNC);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}


static ucs_status_t
uct_daqiri_iface_open(uct_daqiri_iface_t *iface,
                      const uct_daqiri_iface_config_t *config,
                      const uct_iface_params_t *params)
{
    const dq_facts_t forked = {
        .cause   = DQ_CAUSE_FORKED,
        .subject = params->mode.device.dev_name,
    };
    ucs_status_t status;

    if (!uct_daqiri_compat_async_runs()) {
        uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &forked);
        return UCS_ERR_UNSUPPORTED;
    }
    status = uct_daqiri_port_init(iface, params->mode.device.dev_name,
                                  config->gid_index);
    if (status != UCS_OK) {
        return status;
    }
    iface->config.latency       = (config->latency < 0)
                                          ? uct_daqiri_port_latency(iface)
                                          : config->latency;
    iface->config.rdma_overhead = (config->rdma_overhead < 0)
                                          ? uct_daqiri_port_rdma_overhead(iface)
                                          : config->rdma_overhead;
    status = uct_daqiri_event_init(iface);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_open_queues(iface, config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_open_pools(iface, config, params);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_learn_inline(iface);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_post_slack(iface);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_set_unhandled(iface);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_batch_init(iface, config);
    if (status != UCS_OK) {
        return status;
    }
    return uct_daqiri_cm_init(iface);
}


/* ---- Death ---- */

static void uct_daqiri_iface_end_conns(uct_daqiri_iface_t *iface)
{
    uct_daqiri_peer_t *peer;
    uct_daqiri_conn_t *conn;

    kh_foreach_value(&iface->peers, peer, {
        conn = peer->conn;
        uct_daqiri_conn_step(conn, DQ_LIFE_EV_FAIL);
        uct_daqiri_conn_to_err(conn);
        if (!uct_daqiri_conn_is_flushing(conn)) {
            uct_daqiri_preconnect_drop(conn);
            uct_daqiri_tx_purge(conn);
        }
    });
}


/* One after another: the UD QP takes only a few frames at a time. */
static void uct_daqiri_iface_send_gone(uct_daqiri_iface_t *iface)
{
    uct_daqiri_peer_t *peer;

    kh_foreach_value(&iface->peers, peer, {
        uct_daqiri_hs_send_all_gone(peer);
        uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_last_frame);
    });
}


/* Waits, within a bound, until the NIC has finished and the peers know that we close. A
 * peer that misses the frame would try to reach us until its own time limits. */
static void uct_daqiri_iface_drain(uct_daqiri_iface_t *iface)
{
    ucs_time_t now      = ucs_get_time();
    ucs_time_t until    = now + ucs_time_from_sec(1.0);
    ucs_time_t interval = iface->config.conn_retry;
    ucs_time_t again    = now + interval;

    uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_last_frame);
    uct_daqiri_hs_answer_last(iface);
    uct_daqiri_iface_send_gone(iface);
    uct_daqiri_iface_end_conns(iface);
    while (((dq_cq_in_use(&iface->tx.ledger) > 0) || (iface->cm.silent > 0) ||
            uct_daqiri_ud_is_sending(&iface->cm.ud)) && (now < until)) {
        uct_daqiri_tx_poll(iface);
        uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_last_frame);
        (void)uct_daqiri_ud_reset(iface);
        now = ucs_get_time();
        if (now >= again) {
            uct_daqiri_iface_send_gone(iface);
            interval *= 2;
            again     = now + interval;
        }
        sched_yield(); /* the peer may share this CPU */
    }
    if (iface->cm.silent > 0) {
        ucs_debug("%u peers have not answered that this interface closes",
                  iface->cm.silent);
    }
}


static void uct_daqiri_iface_free_conns(uct_daqiri_iface_t *iface)
{
    uct_daqiri_peer_t *peer;
    uint32_t commands;
    unsigned i;

    /* Conns that are being released are in the mail only. */
    while ((peer = uct_daqiri_mail_next_command(iface, &commands)) != NULL) {
        if (commands & UCT_DAQIRI_CMD_RELEASE) {
            uct_daqiri_link_close(peer);
            uct_daqiri_conn_free(peer->conn);
        }
    }
    kh_foreach_value(&iface->peers, peer, {
        uct_daqiri_link_close(peer);
        uct_daqiri_conn_free(peer->conn);
    });
    for (i = 0; i < UCT_DAQIRI_QPN_ROOT; i++) {
        ucs_free(iface->qpns[i]);
    }
}


static void uct_daqiri_iface_close(uct_daqiri_iface_t *self)
{
    uct_daqiri_cm_stop(self);
    uct_daqiri_batch_close(self);
    uct_daqiri_conn_absorb(self);
    uct_daqiri_iface_drain(self);
    uct_daqiri_stats_write(self);
    uct_daqiri_iface_free_conns(self);
    uct_daqiri_cm_cleanup(self);
    uct_daqiri_iface_close_queues(self);
    uct_daqiri_stats_close(self);
}


/* ---- The class ---- */

static const uct_daqiri_hooks_t uct_daqiri_iface_hooks = {
    .conn_create       = uct_daqiri_conn_create,
    .conn_free         = uct_daqiri_conn_free,
    .conn_peer         = uct_daqiri_conn_peer,
    .preconnect_post   = uct_daqiri_preconnect_post,
    .hs_create         = uct_daqiri_hs_create,
    .hs_free           = uct_daqiri_hs_free,
    .pending_finish    = uct_daqiri_pending_finish,
    .stats_add_conn    = uct_daqiri_stats_add_conn,
    .stats_remove_conn = uct_daqiri_stats_remove_conn,
};


/* With UCX's statistics on, a node without a parent cannot be made. */
static ucs_stats_node_t *
uct_daqiri_iface_stats(const uct_iface_params_t *params)
{
    return (params->field_mask & UCT_IFACE_PARAM_FIELD_STATS_ROOT)
                   ? params->stats_root : NULL;
}


static UCS_CLASS_INIT_FUNC(uct_daqiri_iface_t, uct_md_h md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_daqiri_iface_config_t *config =
            ucs_derived_of(tl_config, uct_daqiri_iface_config_t);
    ucs_status_t status;

    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error("daqiri: only UCT_IFACE_OPEN_MODE_DEVICE is supported");
        return UCS_ERR_UNSUPPORTED;
    }
    status = uct_daqiri_config_check(config);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_daqiri_iface_ops,
                              uct_daqiri_iface_internal_ops, md, worker,
                              params, tl_config, uct_daqiri_iface_stats(params),
                              UCT_DAQIRI_NAME);
    if (!uct_daqiri_ucx_is_sound(&self->super, md, worker)) {
        ucs_error("daqiri: this UCX keeps an interface in another way than the "
                  "version that it says it is");
        return UCS_ERR_UNSUPPORTED;
    }

    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    self->progress_epoch = 1; /* a new conn has last_post_epoch 0 */
    ucs_list_head_init(&self->tx.pending);
    ucs_list_head_init(&self->tx.retry);
    ucs_list_head_init(&self->rx.grants_due);
    ucs_list_head_init(&self->conns);
    ucs_list_head_init(&self->draining);
    ucs_list_head_init(&self->idle.waiting);
    ucs_list_head_init(&self->idle.closing);
    self->hooks          = &uct_daqiri_iface_hooks;
    self->rx.release.cb  = uct_daqiri_recv_release_desc;
    self->event.epoll_fd = -1;
    self->event.wake_fd  = -1;
    uct_daqiri_iface_configure(self, config, params);
    status = uct_daqiri_iface_draw_secrets(self);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_daqiri_stats_open(self, config->stats);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_iface_open(self, config, params);
    if (status != UCS_OK) {
        uct_daqiri_batch_close(self);
        uct_daqiri_iface_close_queues(self);
        uct_daqiri_stats_close(self);
        return status;
    }
    uct_daqiri_stats_publish(self);
    status = uct_daqiri_watchdog_open(self);
    if (status != UCS_OK) {
        uct_daqiri_iface_close(self);
        return status;
    }
    status = uct_daqiri_async_subscribe(self);
    if (status != UCS_OK) {
        uct_daqiri_watchdog_close(self);
        uct_daqiri_iface_close(self);
    }
    return status;
}


static UCS_CLASS_CLEANUP_FUNC(uct_daqiri_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_daqiri_async_unsubscribe(self);
    uct_daqiri_watchdog_close(self);
    uct_daqiri_iface_close(self);
}


UCS_CLASS_DEFINE(uct_daqiri_iface_t, uct_base_iface_t);
UCS_CLASS_DEFINE_NEW_FUNC(uct_daqiri_iface_t, uct_iface_t, uct_md_h,
                          uct_worker_h, const uct_iface_params_t*,
                          const uct_iface_config_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_daqiri_iface_t, uct_iface_t);
