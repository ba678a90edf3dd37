/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections as a sender sees them: the other end, and its ring.
 *
 * Each WR is executed by a function that answers
 *     0          done
 *     SV_AGAIN   not now; tx.wait says what for
 *     other      an enum ibv_wc_status: failed, the QP goes to ERR
 *
 * All functions need tx.lock. Every touch of the receiver's memory lies between
 * sv_tx_enter() and sv_tx_leave(): see `busy` in base/sv_wire.h.
 */
#ifndef SV_RC_H
#define SV_RC_H

#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_qp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SV_AGAIN    (-1)

/* How many lines, or short messages, each side of a ring prefetches ahead. 2 to
 * 6 perform alike; 8 is worse. */
#define SV_AHEAD 4

static inline void sv_tx_leave(struct sv_tx *tx)
{
    atomic_store_explicit(&tx->rem->busy, 0, memory_order_release);
}

/* False: no QP there takes packets from this one. */
static inline bool sv_tx_enter(struct sv_tx *tx)
{
    atomic_store_explicit(&tx->rem->busy, tx->lock_id,
                          memory_order_relaxed);
    sv_light_barrier(tx->peer->fence);
    if (sv_likely((atomic_load_explicit(&tx->rem->accept,
                                        memory_order_acquire) == tx->epoch) &&
                  sv_peer_answers(tx->peer))) {
        return true;
    }

    sv_tx_leave(tx);
    return false;
}

/* Call after a record was published in the ring of an entry. */
static inline void sv_tx_ring_bell(struct sv_peer *peer, struct sv_shm_qp *rem)
{
    sv_light_barrier(peer->fence);
    if (sv_unlikely(atomic_load_explicit(&rem->polled, memory_order_relaxed) ==
                    0)) {
        sv_peer_ring_bell(peer, rem - sv_peer_qp(peer, 0));
    }
}

/* Whether the receiver closed while we were inside. It waits a while for us to
 * leave, but not for ever, since we may have been stopped. Then it has taken
 * what it saw. Whether that was all of this message is unknown, so the message
 * is not acknowledged. Call after a barrier. */
static inline bool sv_tx_is_closed(const struct sv_tx *tx)
{
    return atomic_load_explicit(&tx->rem->accept, memory_order_relaxed) !=
           tx->epoch;
}

/* Prefetches for the next posts, after a record of `span` bytes.
 *
 * The lock of the next post waits until the stores of this one are done. Those
 * stores wait for lines that the receiver has read in the lap before.
 * Prefetched now, the lines are here in time.
 *
 * Of short messages, prefetch the line of a message some places ahead. The line
 * of the very next message would come too late if the CPUs are far apart. A
 * receiver that keeps up polls that line, and would take it away again. Of a
 * longer message, which others like it will follow, prefetch all lines but that
 * one. */
static inline void sv_tx_fetch_ahead(struct sv_tx *tx, uint32_t span)
{
    const uint32_t mask = tx->ring_bytes - 1;
    uint32_t at;

    atomic_store_explicit(&tx->next, tx->ring + (tx->tail & mask),
                          memory_order_relaxed);
    sv_prefetch_write(tx->ring +
                      ((tx->tail + SV_AHEAD * SV_CACHE_LINE) & mask));
    for (at = SV_CACHE_LINE; at < span; at += SV_CACHE_LINE) {
        sv_prefetch_write(tx->ring + ((tx->tail + at) & mask));
    }
}

static inline int sv_tx_wait(struct sv_tx *tx, enum sv_wait wait)
{
    tx->wait = wait;
    return SV_AGAIN;
}

/* Finds the other end if necessary, and enters. False: nobody answers. */
bool sv_tx_connect(struct sv_qp *qp);
/* No acknowledgement: retries after the timeout, retry_cnt times. */
int sv_tx_ack_timeout(struct sv_qp *qp);
/* The receiver has no RECV: retries after its RNR timer, rnr_retry times. 7
 * means for ever. */
int sv_tx_rnr(struct sv_qp *qp);
/* Claims one of the RECVs that the receiver has posted; false: there is
 * none. */
bool sv_tx_claim(struct sv_tx *tx);
/* Returns room for one record of `span` bytes in one piece. Pads to the end of
 * the ring, or goes on in a larger one, if necessary. NULL: no room now. */
struct sv_rec *sv_tx_room(struct sv_tx *tx, uint32_t span);
/* Call when sv_tx_room() returned NULL. Waits, or fails if the receiver
 * reported an impossible head. */
int sv_tx_no_room(struct sv_tx *tx);
/* Makes the owner of the entry fail its QP, for a request that it must deny or
 * for a damaged entry (struct sv_shm_qp.fault). */
void sv_tx_fail_remote_qp(struct sv_peer *peer, struct sv_shm_qp *rem,
                          uint32_t fault);

/* The longest message that fits into one record of such a ring. */
static inline uint32_t sv_ring_max_record(uint32_t bytes)
{
    return (bytes == SV_RING_BYTES) ? SV_FRAG_MAX : bytes / 4;
}

/* The same of the ring that the sender uses. */
static inline uint32_t sv_tx_max_record(const struct sv_tx *tx)
{
    return sv_ring_max_record(tx->ring_bytes);
}

/* Whether there is a larger ring to go to. */
static inline bool sv_tx_may_move(const struct sv_tx *tx)
{
    return tx->ring_room < tx->ring_bytes;
}

/* Goes on in a larger ring, for a message of so many bytes. False: there is
 * none. Between sv_tx_enter() and sv_tx_leave(). */
bool sv_tx_move(struct sv_tx *tx, uint32_t total);

/* Reads the receiver's head. An impossible value sets tx.broken. */
void sv_tx_update_head(struct sv_tx *tx);

/* The receiver's entry is damaged: both ends fail. */
int sv_tx_broken(struct sv_tx *tx);

#endif
