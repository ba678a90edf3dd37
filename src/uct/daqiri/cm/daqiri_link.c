/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of the device that a connected conn has: a QP, an address handle for the
 * peer's handshake, and the RECVs behind its window. The async thread makes and destroys
 * them, because both may block.
 */
#include "cm/daqiri_link.h"

#include "base/daqiri_draw.h"
#include "base/daqiri_log.h"
#include "base/daqiri_peer.h"
#include "base/daqiri_port.h"
#include "base/daqiri_rc.h"
#include "base/daqiri_recv.h"
#include "cm/daqiri_hs.h"
#include "iface/daqiri_iface.h"

enum {
    /* The largest part of all buffers that one peer gets. */
    UCT_DAQIRI_WINDOW_SHARE = 4
};


/* ---- RECVs behind what is promised to a new peer ---- */

/* The largest window that the peer ever gets. */
static uint32_t uct_daqiri_link_window(const uct_daqiri_iface_t *iface)
{
    return ucs_min(ucs_max(iface->rx.pool.limit / UCT_DAQIRI_WINDOW_SHARE,
                           UCT_DAQIRI_WINDOW_LEAST),
                   iface->config.rx_window);
}


/* What a new peer is promised. Where few buffers are left, that is the least. */
static uint32_t uct_daqiri_link_promise(uct_daqiri_iface_t *iface, uint32_t window)
{
    uint32_t start = ucs_min(iface->config.rx_window_start, window);

    return uct_daqiri_recv_are_few(iface) ? ucs_min(start, UCT_DAQIRI_WINDOW_LEAST)
                                          : start;
}


static ucs_status_t uct_daqiri_link_back_window(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    uint32_t index[UCT_DAQIRI_POLL_MAX];
    uint32_t count  = peer->hs->promised;
    uint32_t posted = 0;
    uint32_t first, done, n, i;
    ucs_status_t status;

    if (uct_daqiri_recv_take_spare(iface, count)) {
        peer->hs->recvs.reused = count;
        return UCS_OK;
    }
    status = uct_daqiri_recv_make(iface, count, &first);
    if (status == UCS_ERR_NO_RESOURCE) {
        return UCS_OK; /* the memory limit: the window has no RECVs of its own */
    }
    if (status != UCS_OK) {
        return status;
    }

    for (done = 0; (done < count) && (posted == done); done += n) {
        n = ucs_min(count - done, UCT_DAQIRI_POLL_MAX);
        for (i = 0; i < n; i++) {
            index[i] = first + done + i;
        }
        posted += uct_daqiri_recv_post(iface, index, n);
    }
    peer->hs->recvs.first  = first;
    peer->hs->recvs.count  = count;
    peer->hs->recvs.posted = posted; /* progress has the rest */
    return UCS_OK;
}


/* ---- QP ---- */

static ucs_status_t uct_daqiri_link_add_qpn(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    uint32_t qpn              = peer->hs->qp->qp_num;
    uct_daqiri_conn_t ***root = &iface->qpns[qpn >> UCT_DAQIRI_QPN_LOW];
    uct_daqiri_conn_t **leaf  = *root;

    if (leaf == NULL) {
        leaf = ucs_calloc(UCT_DAQIRI_QPN_LEAF, sizeof(*leaf), "daqiri_qpns");
        if (leaf == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        __atomic_store_n(root, leaf, __ATOMIC_RELEASE);
    }
    peer->hs->qpn = qpn;
    __atomic_store_n(&leaf[qpn & (UCT_DAQIRI_QPN_LEAF - 1)], peer->conn,
                     __ATOMIC_RELEASE);
    return UCS_OK;
}


/* Keeps the entry if the device has given the number to another conn's QP since. */
static void uct_daqiri_link_remove_qpn(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    uct_daqiri_conn_t **leaf  = iface->qpns[peer->hs->qpn >> UCT_DAQIRI_QPN_LOW];
    uct_daqiri_conn_t **entry;

    if (peer->hs->qpn == 0) {
        return;
    }
    entry        = &leaf[peer->hs->qpn & (UCT_DAQIRI_QPN_LEAF - 1)];
    peer->hs->qpn = 0;
    if (__atomic_load_n(entry, __ATOMIC_RELAXED) == peer->conn) {
        __atomic_store_n(entry, NULL, __ATOMIC_RELEASE);
    }
}


static void uct_daqiri_link_destroy_ah(uct_daqiri_peer_t *peer)
{
    if (peer->hs->ah != NULL) {
        ibv_destroy_ah(peer->hs->ah);
        peer->hs->ah = NULL;
    }
}


/* Returns NULL and sets errno if it fails. *gid_index_p is the index of our GID. */
static struct ibv_ah *uct_daqiri_link_make_ah(uct_daqiri_iface_t *iface,
                                              const dq_port_addr_t *port,
                                              uint8_t *gid_index_p)
{
    struct ibv_ah_attr attr;

    *gid_index_p = uct_daqiri_iface_gid_index(iface);
    uct_daqiri_port_ah_attr(iface, port, &attr);
    return ibv_create_ah(uct_daqiri_iface_md(iface)->pd, &attr);
}


/* Whether a retry may succeed. Logs if not. */
static int uct_daqiri_link_ah_may_come(uct_daqiri_iface_t *iface,
                                       uint8_t gid_index, int error)
{
    if (uct_daqiri_port_may_come_back(error) ||
        uct_daqiri_port_has_gid_left(iface, gid_index)) {
        return 1;
    }
    uct_daqiri_log_verb_rarely(&iface->log_limit.ah, UCS_LOG_LEVEL_ERROR,
                               "handshake", "ibv_create_ah", error);
    return 0;
}


static ucs_status_t uct_daqiri_link_create_ah(uct_daqiri_peer_t *peer)
{
    peer->hs->ah = uct_daqiri_link_make_ah(peer->iface, &peer->port,
                                           &peer->hs->ah_gid_index);
    if (peer->hs->ah != NULL) {
        peer->hs->ah_error = 0;
        return UCS_OK;
    }

    peer->hs->ah_error = errno;
    return uct_daqiri_link_ah_may_come(peer->iface, peer->hs->ah_gid_index,
                                       peer->hs->ah_error)
                   ? UCS_ERR_UNREACHABLE : UCS_ERR_IO_ERROR;
}


/* An address handle does not work any more if the GID has left and come back at another
 * index. It is replaced when no send is under way, because a send may still use it. */
ucs_status_t uct_daqiri_link_address(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    ucs_status_t status;

    uct_daqiri_assert_async(iface);
    status = uct_daqiri_port_find_gid(iface);
    if (status != UCS_OK) {
        return status; /* no answer could reach us */
    }
    if (peer->is_self) {
        return UCS_OK;
    }
    if ((peer->hs->ah_gid_index != uct_daqiri_iface_gid_index(iface)) &&
        (iface->cm.ud.send_busy == 0)) {
        uct_daqiri_link_destroy_ah(peer);
    }
    return (peer->hs->ah != NULL) ? UCS_OK : uct_daqiri_link_create_ah(peer);
}


struct ibv_ah *uct_daqiri_link_address_once(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            uint8_t *gid_index_p)
{
    struct ibv_ah *ah;

    if (uct_daqiri_port_find_gid(iface) != UCS_OK) {
        return NULL;
    }
    ah = uct_daqiri_link_make_ah(iface, port, gid_index_p);
    if (ah == NULL) {
        (void)uct_daqiri_link_ah_may_come(iface, *gid_index_p, errno);
    }
    return ah;
}


void uct_daqiri_link_give(uct_daqiri_peer_t *peer, struct ibv_ah *ah, uint8_t gid_index,
                          struct ibv_qp *qp)
{
    uct_daqiri_assert(peer->hs->qp == NULL);
    uct_daqiri_link_destroy_ah(peer);
    peer->hs->ah           = ah;
    peer->hs->ah_gid_index = gid_index;
    peer->hs->qp           = qp;
}


void uct_daqiri_link_discard(struct ibv_ah *ah, struct ibv_qp *qp)
{
    ibv_destroy_ah(ah);
    if (qp != NULL) {
        ibv_destroy_qp(qp);
    }
}


/* Draws the mark of this attempt, which only the peer may know. 0 means no mark. */
static ucs_status_t uct_daqiri_link_draw(uct_daqiri_peer_t *peer)
{
    struct {
        uint64_t mark, psn;
    } drawn;
    ucs_status_t status;

    status = uct_daqiri_draw(&peer->iface->log_limit.draw, &drawn, sizeof(drawn));
    if (status != UCS_OK) {
        return status;
    }
    peer->hs->machine.mark = (drawn.mark != 0) ? drawn.mark : 1;
    peer->hs->psn          = drawn.psn & UCS_MASK(24);
    return UCS_OK;
}


ucs_status_t uct_daqiri_link_create_qp(uct_daqiri_iface_t *iface, int is_another,
                                       struct ibv_qp **qp_p)
{
    ucs_status_t status;

    uct_daqiri_assert_async(iface);
    status = uct_daqiri_rc_create(iface, is_another ? UCS_LOG_LEVEL_DEBUG
                                                    : UCS_LOG_LEVEL_ERROR, qp_p, NULL);
    iface->count->qps_refused += status == UCS_ERR_NO_RESOURCE;
    return status;
}


ucs_status_t uct_daqiri_link_reserve(uct_daqiri_peer_t *peer)
{
    return (peer->hs->qp != NULL)
                   ? UCS_OK
                   : uct_daqiri_link_create_qp(peer->iface, peer->hs->window != 0,
                                               &peer->hs->qp);
}


ucs_status_t uct_daqiri_link_open(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    int is_another            = peer->hs->window != 0;
    ucs_status_t status;

    uct_daqiri_assert_async(iface);
    status = uct_daqiri_link_address(peer);
    if ((status != UCS_OK) && (status != UCS_ERR_UNREACHABLE)) {
        return status;
    }
    status = uct_daqiri_link_draw(peer);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_daqiri_link_reserve(peer);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_daqiri_link_add_qpn(peer);
    if (status != UCS_OK) {
        return status;
    }
    if (!is_another) {
        peer->hs->window           = uct_daqiri_link_window(iface);
        peer->hs->promised         = uct_daqiri_link_promise(iface,
                                                             peer->hs->window);
        peer->hs->resume.promised  = peer->hs->promised;
        status                    = uct_daqiri_link_back_window(peer);
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}


void uct_daqiri_link_destroy_qp(uct_daqiri_peer_t *peer)
{
    char more[UCT_DAQIRI_MORE_MAX];
    int ret;

    uct_daqiri_assert_async(peer->iface);
    if (peer->hs->qp == NULL) {
        return;
    }
    ret = ibv_destroy_qp(peer->hs->qp);
    if ((ret != 0) && uct_daqiri_may_log(&peer->iface->log_limit.destroy, more)) {
        ucs_warn("qp 0x%x: ibv_destroy_qp() failed: %s%s", peer->hs->qpn,
                 strerror(ret), more);
    }
    peer->hs->qp = NULL;
}


void uct_daqiri_link_close_qp(uct_daqiri_peer_t *peer)
{
    uct_daqiri_link_destroy_qp(peer);
    uct_daqiri_link_remove_qpn(peer);
}


void uct_daqiri_link_close(uct_daqiri_peer_t *peer)
{
    uct_daqiri_link_close_qp(peer);
    peer->hs->window = 0;
    uct_daqiri_link_destroy_ah(peer);
}
