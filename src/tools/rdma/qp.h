/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One connected queue pair on raw verbs with the memory and the completion
 * queue that it needs: what `daqiri-flow` measures and `probe` tries. Each step
 * is a function that may refuse, with a class and a sentence; daqiri_qp_close()
 * gives back whatever there is, after any of them.
 *
 * One thread at a time. daqiri_qp_post_* and daqiri_qp_wait allocate nothing
 * and make no system call of their own.
 */

#ifndef DAQIRI_QP_H
#define DAQIRI_QP_H

#include "tools/base/failure.h"
#include "tools/peer/peer.h"
#include "tools/rdma/gids.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* What the other end has to know. */
typedef struct daqiri_qp_addr {
    uint16_t lid;
    uint32_t qpn;
    uint32_t psn;
    uint8_t  mtu;        /* enum ibv_mtu */
    uint8_t  is_global;  /* it is reached by its GID */
    int      gid_index;  /* its own; for messages only */
    union ibv_gid gid;
} daqiri_qp_addr_t;

/* As a frame of kind INFO, and back. */
void daqiri_qp_addr_pack(const daqiri_qp_addr_t *addr,
                         daqiri_peer_frame_t *frame);
void daqiri_qp_addr_take(const daqiri_peer_frame_t *frame,
                         daqiri_qp_addr_t *addr);

typedef struct daqiri_qp_opts {
    const char *device;
    unsigned   port;        /* 0: the first that is active */
    int        gid_index;   /* -1: chosen */
    size_t     size;        /* bytes of a buffer; there are two */
    unsigned   depth;       /* requests of each kind */
    unsigned   max_inline;
    unsigned   max_sge;
    unsigned   mtu;         /* bytes; 0: the port's */
    uint8_t    traffic_class; /* other than 0: of packets with a GRH */
    int        is_uc;
    int        has_events;  /* a completion channel */
    uint8_t    timeout;     /* code, 4.096 us * 2^timeout */
    uint8_t    retry;
    uint8_t    rnr_retry;
    uint8_t    rnr_timer;   /* code */
} daqiri_qp_opts_t;

typedef struct daqiri_qp {
    daqiri_qp_opts_t        opts;
    struct ibv_context      *context;
    struct ibv_device_attr  device;
    struct ibv_port_attr    port;
    daqiri_gids_t           gids;
    unsigned                port_num;
    struct ibv_pd           *pd;
    struct ibv_mr           *mr;
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_qp           *qp;
    uint8_t                 *memory; /* 2 buffers: sent, received */
    size_t                  length;
    struct ibv_qp_cap       cap;     /* as granted */
    daqiri_qp_addr_t        local;
} daqiri_qp_t;

/* Everything at its default but the device's name and the size. */
void daqiri_qp_opts_init(daqiri_qp_opts_t *opts, const char *device,
                         size_t size);

/* In this order; each returns 0, or -1 and a failure. */
int daqiri_qp_open(daqiri_qp_t *qp, const daqiri_qp_opts_t *opts,
                   daqiri_failure_t *failure);  /* device, port, GID */
int daqiri_qp_create_pd(daqiri_qp_t *qp, daqiri_failure_t *failure);
int daqiri_qp_create_mr(daqiri_qp_t *qp, daqiri_failure_t *failure);
int daqiri_qp_create_cq(daqiri_qp_t *qp, daqiri_failure_t *failure);
int daqiri_qp_create_qp(daqiri_qp_t *qp, daqiri_failure_t *failure);
int daqiri_qp_init(daqiri_qp_t *qp, daqiri_failure_t *failure);
/* Refuses a peer that the software device does not reach. */
int daqiri_qp_rtr(daqiri_qp_t *qp, const daqiri_qp_addr_t *remote,
                  daqiri_failure_t *failure);
int daqiri_qp_rts(daqiri_qp_t *qp, daqiri_failure_t *failure);
/* PD, MR, CQ, QP and INIT at once. */
int daqiri_qp_create(daqiri_qp_t *qp, daqiri_failure_t *failure);
void daqiri_qp_close(daqiri_qp_t *qp);

/* The address handle's part of a connection to there. */
void daqiri_qp_ah(const daqiri_qp_t *qp, const daqiri_qp_addr_t *remote,
                  struct ibv_ah_attr *attr);

static inline uint8_t *daqiri_qp_send_buffer(daqiri_qp_t *qp)
{
    return qp->memory;
}
static inline uint8_t *daqiri_qp_recv_buffer(daqiri_qp_t *qp)
{
    return qp->memory + qp->length / 2;
}

/* Return 0 or an errno. */
int daqiri_qp_post_recv(daqiri_qp_t *qp, uint64_t id);
int daqiri_qp_post_send(daqiri_qp_t *qp, uint64_t id, size_t length,
                        unsigned flags);

/* Waits for a completion until then (daqiri_now_ns()). Returns 1, 0 when there
 * was none in time, or -1 and a failure, also when the completion is one. */
int daqiri_qp_wait(daqiri_qp_t *qp, struct ibv_wc *wc, uint64_t deadline_ns,
                   daqiri_failure_t *failure);

/* A completion that failed. Returns -1. */
int daqiri_qp_fail_completion(const daqiri_qp_t *qp, const struct ibv_wc *wc,
                              daqiri_failure_t *failure);

#endif
