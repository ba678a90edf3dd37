/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers, and their table; see daqiri_peer.h.
 */
#include "base/daqiri_peer.h"

#include "base/daqiri_hooks.h"
#include "iface/daqiri_iface.h"


ucs_status_t uct_daqiri_peer_init(uct_daqiri_peer_t *peer,
                                  uct_daqiri_iface_t *iface,
                                  uct_daqiri_conn_t *conn,
                                  const dq_port_addr_t *port,
                                  const dq_iface_addr_t *addr)
{
    peer->iface   = iface;
    peer->conn    = conn;
    peer->port    = *port;
    peer->addr    = *addr;
    peer->is_self = addr->uuid == iface->config.addr.uuid;
    (void)dq_gid_text(port->gid, peer->gid_text, sizeof(peer->gid_text));
    peer->hs      = iface->hooks->hs_create(peer);
    return (peer->hs == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_daqiri_peer_cleanup(uct_daqiri_peer_t *peer)
{
    peer->iface->hooks->hs_free(peer->hs);
    uct_daqiri_hw_release(peer->hw);
}


/* The peer's address does not change while an interface lives. */
int uct_daqiri_peer_is_at(const uct_daqiri_peer_t *peer,
                          const dq_port_addr_t *port,
                          const dq_iface_addr_t *addr)
{
    return (memcmp(&peer->addr, addr, sizeof(*addr)) == 0) &&
           (memcmp(&peer->port, port, sizeof(*port)) == 0);
}


static uct_daqiri_peer_t *uct_daqiri_peer_lookup(uct_daqiri_iface_t *iface,
                                                 uint64_t uuid)
{
    khiter_t iter = kh_get(uct_daqiri_peers, &iface->peers, uuid);

    return (iter == kh_end(&iface->peers))
                   ? NULL
                   : kh_value(&iface->peers, iter);
}


uct_daqiri_peer_t *uct_daqiri_peer_find(uct_daqiri_iface_t *iface, uint64_t uuid)
{
    uct_daqiri_peer_t *peer;

    pthread_mutex_lock(&iface->mail.lock);
    peer = uct_daqiri_peer_lookup(iface, uuid);
    pthread_mutex_unlock(&iface->mail.lock);
    return peer;
}


/* Creates a conn and puts it in the table, in the place of another one for this uuid, if
 * there is one. Returns NULL if there is no memory. The caller holds the lock. */
static uct_daqiri_peer_t *uct_daqiri_peer_put(uct_daqiri_iface_t *iface,
                                              const dq_port_addr_t *port,
                                              const dq_iface_addr_t *addr)
{
    uct_daqiri_peer_t *peer = iface->hooks->conn_create(iface, port, addr);
    khiter_t iter;
    int ret;

    if (peer == NULL) {
        return NULL;
    }
    iter = kh_put(uct_daqiri_peers, &iface->peers, addr->uuid, &ret);
    if (ret < 0) {
        iface->hooks->conn_free(peer->conn);
        return NULL;
    }
    kh_value(&iface->peers, iter) = peer;
    iface->count->conns++;
    return peer;
}


ucs_status_t uct_daqiri_peer_get(uct_daqiri_iface_t *iface,
                                 const dq_port_addr_t *port,
                                 const dq_iface_addr_t *addr,
                                 uct_daqiri_peer_t **peer_p)
{
    uct_daqiri_peer_t *peer;

    pthread_mutex_lock(&iface->mail.lock);
    peer = uct_daqiri_peer_lookup(iface, addr->uuid);
    if (peer == NULL) {
        peer = uct_daqiri_peer_put(iface, port, addr);
    }
    pthread_mutex_unlock(&iface->mail.lock);
    *peer_p = peer;
    return (peer == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


ucs_status_t uct_daqiri_peer_get_addressed(uct_daqiri_iface_t *iface,
                                           const dq_port_addr_t *port,
                                           const dq_iface_addr_t *addr,
                                           uct_daqiri_peer_t **peer_p,
                                           uct_daqiri_peer_t **forged_p)
{
    uct_daqiri_peer_t *forged = NULL;
    uct_daqiri_peer_t *peer;

    uct_daqiri_assert_progress(iface);
    pthread_mutex_lock(&iface->mail.lock);
    peer = uct_daqiri_peer_lookup(iface, addr->uuid);
    if ((peer != NULL) && !peer->is_addressed &&
        !uct_daqiri_peer_is_at(peer, port, addr)) {
        forged = peer;
        peer   = NULL;
    }
    if (peer == NULL) {
        peer = uct_daqiri_peer_put(iface, port, addr);
    }
    if (peer == NULL) {
        forged = NULL; /* the table still has it */
    } else {
        peer->is_addressed = 1;
    }
    pthread_mutex_unlock(&iface->mail.lock);
    *peer_p   = peer;
    *forged_p = forged;
    return (peer == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_daqiri_peer_remove(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    khiter_t iter;

    pthread_mutex_lock(&iface->mail.lock);
    iter = kh_get(uct_daqiri_peers, &iface->peers, peer->addr.uuid);
    if ((iter != kh_end(&iface->peers)) &&
        (kh_value(&iface->peers, iter) == peer)) {
        kh_del(uct_daqiri_peers, &iface->peers, iter);
    }
    pthread_mutex_unlock(&iface->mail.lock);
}
