/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a room calls of a room that it may not use. iface/ names the functions
 * (daqiri_iface.c), and iface->hooks leads to them.
 */
#ifndef UCT_DAQIRI_HOOKS_H
#define UCT_DAQIRI_HOOKS_H

#include "daqiri.h"
#include "dq/dq_wire.h"

typedef struct {
    /* conn/, of the threads that their headers name */
    uct_daqiri_peer_t *(*conn_create)(uct_daqiri_iface_t *iface,
                                      const dq_port_addr_t *port,
                                      const dq_iface_addr_t *addr);
    void (*conn_free)(uct_daqiri_conn_t *conn);
    uct_daqiri_peer_t *(*conn_peer)(uct_daqiri_conn_t *conn);
    void (*preconnect_post)(uct_daqiri_conn_t *conn, struct ibv_qp *qp);
    /* cm/ */
    uct_daqiri_hs_t *(*hs_create)(uct_daqiri_peer_t *peer);
    void (*hs_free)(uct_daqiri_hs_t *hs);
    /* ep/ */
    void (*pending_finish)(uct_daqiri_conn_t *conn);
    /* iface/ */
    void (*stats_add_conn)(uct_daqiri_conn_t *conn);
    void (*stats_remove_conn)(uct_daqiri_conn_t *conn);
} uct_daqiri_hooks_t;

#endif
