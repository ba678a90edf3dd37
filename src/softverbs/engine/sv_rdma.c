/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITE, READ and atomics. The sender checks the request against the receiver's
 * MR table and copies by itself, so the receiver's process need not run.
 */
#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_shm_lock.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"

#include <errno.h>

/* A request that the receiver must deny fails its QP as well. But a receiver
 * that closed its QP and released its memory denies nothing, since it does not
 * wait for a sender that was stopped (sv_tx_is_closed). */
static int sv_tx_denied(struct sv_qp *qp, enum ibv_wc_status status)
{
    struct sv_tx *tx = &qp->tx;

    if (sv_tx_is_closed(tx)) {
        return sv_tx_ack_timeout(qp);
    }

    sv_tx_fail_remote_qp(tx->peer, tx->rem, status);
    return status;
}

/* Turns an error of process_vm_*() into a completion status. EFAULT does not
 * say which side is not mapped, and both are equally likely. The program that
 * registered pages and unmapped them is at fault. */
static int sv_tx_copy_failed(struct sv_qp *qp)
{
    static bool logged;

    if (errno == ESRCH) {
        return sv_tx_ack_timeout(qp);
    }
    if ((errno == EPERM) || (errno == ENOSYS)) {
        if (!logged) {
            logged = true;
            sv_log("RDMA between processes is impossible: process_vm_writev: "
                   "%m; a container's seccomp profile, its user namespace or "
                   "the ptrace scope of this kernel forbids it");
        }
    }
    return IBV_WC_REM_OP_ERR;
}

static int sv_tx_notice(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx   = &qp->tx;
    struct sv_rec *rec = sv_tx_room(tx, sv_rec_span(0));

    if (rec == NULL) {
        return sv_tx_no_room(tx);
    }

    wqe->sent = 0;
    sv_tx_fill_record(qp, rec, wqe, 0);
    rec->flags |= SV_REC_FIRST | SV_REC_LAST | SV_REC_WRITE;
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail += sv_rec_span(0);
    sv_tx_ring_bell(tx->peer, tx->rem);
    return 0;
}

/* Between sv_tx_enter() and sv_tx_leave(). */
static int sv_tx_write_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    bool imm         = (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
    uint64_t addr;

    if (imm && (wqe->stage == SV_STAGE_NEW)) {
        if (!sv_tx_claim(tx)) {
            return sv_tx_rnr(qp);
        }
        wqe->stage = SV_STAGE_CLAIMED;
    }

    if (wqe->total > 0) {
        addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_WRITE) ?
                       sv_mr_remote(qp->node, tx->peer, tx->rem->pdn,
                                    wqe->rdma.rkey, wqe->rdma.addr,
                                    wqe->total,
                                    IBV_ACCESS_REMOTE_WRITE) : 0;
        if (addr == 0) {
            return sv_tx_denied(qp, IBV_WC_REM_ACCESS_ERR);
        }
        if (sv_peer_write(tx->peer, addr, wqe->sge, wqe->num_sge) != 0) {
            return sv_tx_copy_failed(qp);
        }
    }
    return imm ? sv_tx_notice(qp, wqe) : 0;
}

int sv_tx_write(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, 0);

    sv_assert_held(&qp->tx.lock);
    if (ret != 0) {
        return ret;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_ack_timeout(qp);
    }

    ret = sv_tx_write_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    if ((ret == 0) && (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
        sv_cq_notify(qp->node, qp->tx.peer, qp->tx.rem_cq,
                     (wqe->flags & IBV_SEND_SOLICITED) != 0);
    }
    return ret;
}

static int sv_tx_read_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t addr;

    if (wqe->total == 0) {
        return 0;
    }

    addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_READ) ?
                   sv_mr_remote(qp->node, tx->peer, tx->rem->pdn,
                                wqe->rdma.rkey, wqe->rdma.addr,
                                wqe->total,
                                IBV_ACCESS_REMOTE_READ) : 0;
    if (addr == 0) {
        return sv_tx_denied(qp, IBV_WC_REM_ACCESS_ERR);
    }
    if (sv_peer_read(tx->peer, addr, wqe->sge, wqe->num_sge) != 0) {
        return sv_tx_copy_failed(qp);
    }
    return 0;
}

int sv_tx_read(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, IBV_ACCESS_LOCAL_WRITE);

    sv_assert_held(&qp->tx.lock);
    if (ret != 0) {
        return ret;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_ack_timeout(qp);
    }

    ret = sv_tx_read_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    return ret;
}

/* Reads, computes and writes under a lock of the target process. That makes it
 * atomic towards all other requests on this device (IBV_ATOMIC_HCA). */
static int sv_tx_atomic_locked(struct sv_qp *qp, struct sv_swqe *wqe,
                               uint64_t addr)
{
    struct sv_peer *peer = qp->tx.peer;
    uint64_t old, new;
    struct ibv_sge sge = {.addr = (uintptr_t)&old, .length = sizeof(old)};

    if (sv_peer_read(peer, addr, &sge, 1) != 0) {
        return -1;
    }

    new = old + wqe->rdma.compare_add;
    if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        new = (old == wqe->rdma.compare_add) ? wqe->rdma.swap : old;
    }
    sge.addr = (uintptr_t)&new;
    if ((new != old) && (sv_peer_write(peer, addr, &sge, 1) != 0)) {
        return -1;
    }

    return sv_peer_read(qp->node->self, (uintptr_t)&old, wqe->sge,
                        wqe->num_sge);
}

static int sv_tx_atomic_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t addr;
    int ret;

    if ((wqe->rdma.addr % sizeof(uint64_t)) != 0) {
        return sv_tx_denied(qp, IBV_WC_REM_INV_REQ_ERR);
    }

    addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_ATOMIC) ?
                   sv_mr_remote(qp->node, tx->peer, tx->rem->pdn,
                                wqe->rdma.rkey, wqe->rdma.addr,
                                sizeof(uint64_t),
                                IBV_ACCESS_REMOTE_ATOMIC) : 0;
    if (addr == 0) {
        return sv_tx_denied(qp, IBV_WC_REM_ACCESS_ERR);
    }
    if (!sv_shm_lock(qp->node, &tx->peer->head->atomic_lock)) {
        return sv_tx_wait(tx, SV_WAIT_RING);
    }

    ret = sv_tx_atomic_locked(qp, wqe, addr);
    sv_shm_unlock(&tx->peer->head->atomic_lock);
    return (ret == 0) ? 0 : sv_tx_copy_failed(qp);
}

int sv_tx_atomic(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, IBV_ACCESS_LOCAL_WRITE);

    sv_assert_held(&qp->tx.lock);
    if (ret != 0) {
        return ret;
    }
    if (wqe->total != sizeof(uint64_t)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_ack_timeout(qp);
    }

    ret = sv_tx_atomic_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    return ret;
}
