/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake turns what happened into an event of dq_conn, and performs the actions
 * that dq_conn answers. All of it runs on UCX's async thread. So a program that computes
 * for a minute still answers its peers, and verbs that may block (address handles,
 * INIT -> RTR) block no other thread.
 *
 * In a large job many ask at once, and are asked. What this thread cannot do now waits in
 * order (daqiri_wait.h). uct_daqiri_hs_work() does it bit by bit.
 */
#include "cm/daqiri_hs.h"

#include "base/daqiri_hw.h"
#include "base/daqiri_log.h"
#include "base/daqiri_hooks.h"
#include "base/daqiri_mail.h"
#include "base/daqiri_peer.h"
#include "base/daqiri_port.h"
#include "base/daqiri_rc.h"
#include "cm/daqiri_async.h"
#include "cm/daqiri_link.h"
#include "cm/daqiri_ud.h"
#include "dq/dq_retry.h"
#include "iface/daqiri_iface.h"

#include <sys/timerfd.h>

enum {
    UCT_DAQIRI_BACKOFF_MAX  = 1, /* seconds                                  */
    UCT_DAQIRI_TICK_MS      = 5,
    /* if ticks are so far apart, the process stood still between them */
    UCT_DAQIRI_STOOD_MS     = 200,
    UCT_DAQIRI_LONG_WAIT_MS = 100,
    /* after so many refusals, and so long, the reason is not a busy device */
    UCT_DAQIRI_HS_REFUSALS   = 7,
    UCT_DAQIRI_HS_REFUSED_MS = 1000,
    /* A peer proves itself within one round trip, so few are unproven at a time. Each
     * has a QP and its slots until CONN_TIMEOUT. Further peers must take another round
     * trip first. */
    UCT_DAQIRI_UNPROVEN_MAX  = 64,
    UCT_DAQIRI_HS_BATCH      = 16 /* questions and answers in a row            */
};


uct_daqiri_hs_t *uct_daqiri_hs_create(uct_daqiri_peer_t *peer)
{
    uct_daqiri_hs_t *hs = ucs_calloc(1, sizeof(*hs), "daqiri_hs");

    if (hs != NULL) {
        hs->owner = peer;
        dq_conn_init(&hs->machine, peer->iface->config.addr.uuid,
                     peer->addr.uuid);
    }
    return hs;
}


void uct_daqiri_hs_free(uct_daqiri_hs_t *hs)
{
    ucs_free(hs);
}


static uint32_t uct_daqiri_hs_epoch(uct_daqiri_iface_t *iface)
{
    iface->cm.epoch++;
    if (iface->cm.epoch == 0) {
        iface->cm.epoch = 1; /* 0 is "none" */
    }
    return iface->cm.epoch;
}


/* ---- Timer: one for all conns, which ticks while one of them waits ---- */

/* The peer that may be asked now, or NULL. If the carrier has failed, nobody can be
 * asked, and all in line must know. */
static uct_daqiri_turn_t *uct_daqiri_hs_next_turn(uct_daqiri_iface_t *iface)
{
    if (!dq_pace_is_free(&iface->cm.wait.pace) && !iface->cm.ud.is_failed) {
        return NULL;
    }
    return uct_daqiri_wait_first(&iface->cm.wait);
}


static int uct_daqiri_hs_has_work(uct_daqiri_iface_t *iface)
{
    return (iface->cm.wait.backlog.count > 0) ||
           (uct_daqiri_hs_next_turn(iface) != NULL);
}


static void uct_daqiri_hs_tick_set(uct_daqiri_iface_t *iface)
{
    int has_work  = uct_daqiri_hs_has_work(iface);
    int is_needed = !ucs_list_is_empty(&iface->cm.timed) ||
                    uct_daqiri_ud_is_hurt(&iface->cm.ud) || has_work;
    long ns       = is_needed ? UCT_DAQIRI_TICK_MS * 1000000L : 0;
    const struct itimerspec tick = {
        .it_value.tv_nsec    = has_work ? 1 : ns,
        .it_interval.tv_nsec = ns,
    };

    char more[UCT_DAQIRI_MORE_MAX];

    if ((is_needed == iface->cm.is_ticking) && !has_work) {
        return;
    }
    if (!iface->cm.is_ticking) {
        iface->cm.ticked_at = ucs_get_time();
    }
    iface->cm.is_ticking = is_needed;
    if ((timerfd_settime(iface->cm.timer_fd, 0, &tick, NULL) != 0) &&
        uct_daqiri_may_log(&iface->log_limit.tick, more)) {
        ucs_warn("timerfd_settime() failed: %m%s", more);
    }
}


/* How long an attempt may take. */
static ucs_time_t uct_daqiri_hs_limit(const uct_daqiri_peer_t *peer)
{
    const dq_conn_t *machine = &peer->hs->machine;
    int is_first             = (machine->peer_last == 0) ||
                               (machine->epoch == machine->first);

    return is_first ? peer->iface->config.conn_timeout
                    : peer->iface->config.recovery_timeout;
}


/* The longest wait from one frame to the next. Several must fit into the time limit,
 * which counts from the last answer of a peer that drains. */
static ucs_time_t uct_daqiri_hs_longest_wait(const uct_daqiri_peer_t *peer)
{
    ucs_time_t most = ucs_min(ucs_time_from_sec(UCT_DAQIRI_BACKOFF_MAX),
                              uct_daqiri_hs_limit(peer) / 4);

    return ucs_max(most, peer->iface->config.conn_retry);
}


/* How long to wait at first. A peer that many ask needs longer for an answer. */
static ucs_time_t uct_daqiri_hs_first_wait(const uct_daqiri_peer_t *peer,
                                           ucs_time_t most)
{
    ucs_time_t least = peer->iface->config.conn_retry;

    return (peer->hs->machine.state == DQ_CONN_REQ_SENT)
                   ? dq_pace_wait(&peer->iface->cm.wait.pace, least, most) : least;
}


static void uct_daqiri_hs_timer_arm(uct_daqiri_peer_t *peer)
{
    uct_daqiri_iface_t *iface = peer->iface;
    ucs_time_t now            = ucs_get_time();
    ucs_time_t most           = uct_daqiri_hs_longest_wait(peer);

    if (peer->hs->is_timed) {
        peer->hs->interval = dq_retry_longer(peer->hs->interval, most);
    } else {
        ucs_list_add_tail(&iface->cm.timed, &peer->hs->timer_link);
        uct_daqiri_hs_tick_set(iface);
        peer->hs->is_timed = 1;
        peer->hs->started  = now;
        peer->hs->interval = uct_daqiri_hs_first_wait(peer, most);
    }
    peer->hs->next_try = now + dq_retry_spread(peer->hs->interval,
                                               uct_daqiri_wait_draw(&iface->cm.wait));
}


static void uct_daqiri_hs_timer_stop(uct_daqiri_peer_t *peer)
{
    if (!peer->hs->is_timed) {
        return;
    }
    ucs_list_del(&peer->hs->timer_link);
    peer->hs->is_timed = 0;
    uct_daqiri_hs_tick_set(peer->iface);
}


/* ---- Frames ---- */

/* The fields that are the same for every peer. */
static dq_frame_t uct_daqiri_hs_frame_to(const uct_daqiri_iface_t *iface,
                                         dq_frame_kind_t kind, uint64_t cookie)
{
    dq_frame_t frame = {
        .kind       = kind,
        .dst_cookie = cookie,
        .src        = iface->config.addr,
        .port       = iface->config.port_addr,
        .rd_atomic  = iface->config.rd_atomic,
        .pid        = iface->config.pid,
    };

    memcpy(frame.host, iface->config.host, sizeof(frame.host));
    return frame;
}


static dq_frame_t uct_daqiri_hs_frame(uct_daqiri_peer_t *peer,
                                      dq_frame_kind_t kind)
{
    dq_frame_t frame = uct_daqiri_hs_frame_to(peer->iface, kind,
                                              peer->addr.cookie);

    frame.epoch      = peer->hs->machine.epoch;
    frame.first      = peer->hs->machine.first;
    frame.mark       = peer->hs->machine.mark;
    frame.peer_epoch = peer->hs->machine.peer_epoch;
    frame.peer_mark  = peer->hs->machine.peer_mark;
    frame.psn        = peer->hs->psn;
    frame.credits    = peer->hs->window;
    frame.delivered  = peer->hs->resume.delivered;
    frame.acked      = peer->hs->resume.acked;
    frame.done       = peer->hs->resume.done;
    frame.promised   = peer->hs->resume.promised;
    if (kind == DQ_FRAME_REQ) {
        /* a REQ is no answer: it names the attempt that was lost, if any */
        frame.peer_epoch = peer->hs->machine.peer_last;
    }
    if (frame.epoch == 0) {
        frame.epoch = uct_daqiri_hs_epoch(peer->iface);
    }
    if (peer->hs->qp != NULL) {
        frame.qpn = peer->hs->qp->qp_num;
    }
    return frame;
}


/* Counts refusals in a row, because a single one may be an accident. */
static void uct_daqiri_hs_note_refusal(uct_daqiri_peer_t *peer,
                                       ucs_status_t status, int error)
{
    if (status == UCS_OK) {
        peer->hs->refusals = 0;
    } else if (status == UCS_ERR_IO_ERROR) {
        peer->hs->refused = error;
        if (peer->hs->refusals++ == 0) {
            peer->hs->refused_at = ucs_get_time();
        }
    }
}


/* Whether the device will hardly take a frame of this conn again: it refuses them though
 * no queue is full. The peer cannot answer a frame that was never sent. */
static int uct_daqiri_hs_is_refused(const uct_daqiri_peer_t *peer,
                                    ucs_time_t now)
{
    return (peer->hs->refusals >= UCT_DAQIRI_HS_REFUSALS) &&
           (now - peer->hs->refused_at >=
            ucs_time_from_msec(UCT_DAQIRI_HS_REFUSED_MS));
}


/* Whether a frame can reach the peer. It cannot if the peer is this interface itself, or
 * cannot be addressed now; the handshake then asks again. */
static int uct_daqiri_hs_is_addressed(uct_daqiri_peer_t *peer)
{
    return !peer->is_self && (uct_daqiri_link_address(peer) == UCS_OK);
}


/* Sends a frame to a peer that has an address handle. */
static ucs_status_t uct_daqiri_hs_post(uct_daqiri_peer_t *peer,
                                       const dq_frame_t *frame)
{
    ucs_status_t status = uct_daqiri_ud_send(peer->iface, peer->hs->ah,
                                             peer->addr.ud_qpn, frame);

    uct_daqiri_hs_note_refusal(peer, status, errno);
    return status;
}


static ucs_status_t uct_daqiri_hs_try_send(uct_daqiri_peer_t *peer,
                                           dq_frame_kind_t kind)
{
    dq_frame_t frame;

    if (!uct_daqiri_hs_is_addressed(peer)) {
        return UCS_ERR_UNREACHABLE;
    }
    frame = uct_daqiri_hs_frame(peer, kind);
    return uct_daqiri_hs_post(peer, &frame);
}


/* Sends a REQ, REP or RTU. If all send slots are busy, it waits for one. */
static void uct_daqiri_hs_send(uct_daqiri_peer_t *peer, dq_frame_kind_t kind)
{
    uct_daqiri_wait_t *wait = &peer->iface->cm.wait;

    if ((uct_daqiri_wait_owed(wait) != NULL) ||
        (uct_daqiri_hs_try_send(peer, kind) == UCS_ERR_NO_RESOURCE)) {
        peer->iface->count->frames_delayed++;
        uct_daqiri_wait_owe(wait, &peer->hs->turn, kind);
    }
}


static uct_daqiri_hs_t *uct_daqiri_hs_of_turn(uct_daqiri_turn_t *turn)
{
    return ucs_container_of(turn, uct_daqiri_hs_t, turn);
}


/* Whether the peer still waits for the frame that it is owed. */
static int uct_daqiri_hs_is_owed(const uct_daqiri_hs_t *hs)
{
    switch (hs->turn.owed) {
    case DQ_FRAME_REQ:
        return hs->machine.state == DQ_CONN_REQ_SENT;
    case DQ_FRAME_REP:
        return hs->machine.state == DQ_CONN_REP_SENT;
    default:
        return hs->machine.state == DQ_CONN_UP;
    }
}


static void uct_daqiri_hs_send_owed(uct_daqiri_iface_t *iface)
{
    uct_daqiri_turn_t *turn;
    uct_daqiri_hs_t *hs;

    while ((turn = uct_daqiri_wait_owed(&iface->cm.wait)) != NULL) {
        hs = uct_daqiri_hs_of_turn(turn);
        if (uct_daqiri_hs_is_owed(hs) &&
            (uct_daqiri_hs_try_send(hs->owner, turn->owed) == UCS_ERR_NO_RESOURCE)) {
            break;
        }
        uct_daqiri_wait_paid(turn);
    }
}


/* Tells the peer that the connection has ended here, because of @a cause. */
static void uct_daqiri_hs_send_gone(uct_daqiri_peer_t *peer, dq_cause_t cause)
{
    dq_frame_t frame;

    if (!uct_daqiri_hs_is_addressed(peer)) {
        return;
    }
    frame        = uct_daqiri_hs_frame(peer, DQ_FRAME_GONE);
    frame.reason = dq_triage_is_parting(cause) ? DQ_CAUSE_NONE : cause;
    dq_conn_name_ended(&peer->hs->machine, &frame);
    (void)uct_daqiri_hs_post(peer, &frame);
}


/* Answers the attempt of @a request by an AGAIN, a REFUSE, a HEARD, or the GONE of an
 * interface that closes. Our machine may have dropped that attempt, or never taken it
 * up. */
static void uct_daqiri_hs_answer(uct_daqiri_peer_t *peer, dq_frame_kind_t kind,
                                 const dq_frame_t *request)
{
    dq_frame_t frame;

    if (!uct_daqiri_hs_is_addressed(peer)) {
        return;
    }
    frame            = uct_daqiri_hs_frame(peer, kind);
    frame.peer_epoch = request->epoch;
    frame.peer_mark  = request->mark;
    (void)uct_daqiri_hs_post(peer, &frame);
}


/*
 * A device may ask the network who is at an address, and wait a second for an answer that
 * does not come. Such waits must take at most half of this thread's time. So after a long
 * wait this thread hears only known peers, for as long. Returns NULL if there is no way
 * to the address now.
 */
static struct ibv_ah *uct_daqiri_hs_address(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            uint8_t *gid_index_p)
{
    ucs_time_t begin  = ucs_get_time();
    struct ibv_ah *ah = uct_daqiri_link_address_once(iface, port, gid_index_p);
    ucs_time_t end    = ucs_get_time();

    if (end - begin > ucs_time_from_msec(UCT_DAQIRI_LONG_WAIT_MS)) {
        iface->cm.unknown_peers_at = end + (end - begin);
    }
    return ah;
}


/* Answers an unknown peer, and keeps nothing of it but the datagram under way. So no
 * number of unknown peers costs memory. The peer asks again if the answer is lost, or
 * cannot be sent now. */
static void uct_daqiri_hs_answer_unknown(uct_daqiri_iface_t *iface,
                                         dq_frame_kind_t kind,
                                         const dq_frame_t *request)
{
    dq_frame_t frame = uct_daqiri_hs_frame_to(iface, kind,
                                              request->src.cookie);
    struct ibv_ah *ah;
    uint8_t gid_index;

    ah = uct_daqiri_hs_address(iface, &request->port, &gid_index);
    if (ah == NULL) {
        return;
    }
    /* the peer accepts an answer only from the attempt that its frame names */
    frame.epoch      = (request->peer_epoch != 0) ? request->peer_epoch
                                                  : uct_daqiri_hs_epoch(iface);
    frame.first      = frame.epoch;
    frame.mark       = (kind == DQ_FRAME_AGAIN) ? iface->config.ticket : 0;
    frame.peer_epoch = request->epoch;
    frame.peer_mark  = request->mark;
    (void)uct_daqiri_ud_send_once(iface, ah, request->src.ud_qpn, &frame);
}


/* Includes conns that have failed here: their peers may not know it yet. */
void uct_daqiri_hs_send_all_gone(uct_daqiri_peer_t *peer)
{
    if ((peer->hs->machine.state == DQ_CONN_IDLE) || (peer->hs->ah == NULL) ||
        peer->is_self || peer->hs->is_heard) {
        return;
    }
    if (peer->hs->has_peer && !peer->hs->is_told &&
        !peer->iface->cm.ud.is_failed) {
        peer->hs->is_told = 1;
        peer->iface->cm.silent++;
    }
    uct_daqiri_hs_send_gone(peer, peer->death);
}


/* ---- Unproven conns: the first REQ has been answered, and no more ---- */

/* Anybody can send a REQ in any name. The RTU must have the mark of our REP, which shows
 * that the REP has arrived at the address of the REQ. */
static void uct_daqiri_hs_prove(uct_daqiri_peer_t *peer)
{
    peer->iface->cm.unproven -= peer->hs->is_unproven;
    peer->hs->is_unproven      = 0;
}


/*
 * Creates a conn for a peer that asks. Returns NULL if too many conns are unproven, if
 * there is no memory, no queue pair, or no way to the address of the REQ. The peer then
 * asks again.
 *
 * If too many are unproven, an AGAIN tells the peer this interface's mark, and the peer
 * asks at once. A REQ with that mark shows that its sender hears us. So senders of forged
 * REQs do not take the places of peers.
 */
static uct_daqiri_peer_t *uct_daqiri_hs_take_up(uct_daqiri_iface_t *iface,
                                                const dq_frame_t *request)
{
    int is_unproven   = request->peer_mark != iface->config.ticket;
    struct ibv_qp *qp = NULL;
    uct_daqiri_peer_t *peer;
    struct ibv_ah *ah;
    uint8_t gid_index;

    if (is_unproven && (iface->cm.unproven >= UCT_DAQIRI_UNPROVEN_MAX)) {
        iface->count->frames_crowded++;
        uct_daqiri_hs_answer_unknown(iface, DQ_FRAME_AGAIN, request);
        return NULL;
    }
    ah = uct_daqiri_hs_address(iface, &request->port, &gid_index);
    if (ah == NULL) {
        return NULL;
    }
    if (uct_daqiri_link_create_qp(iface, 0, &qp) == UCS_ERR_NO_RESOURCE) {
        ibv_destroy_ah(ah);
        uct_daqiri_mail_post_refused(iface);
        return NULL;
    }
    if (uct_daqiri_peer_get(iface, &request->port, &request->src, &peer) !=
        UCS_OK) {
        uct_daqiri_link_discard(ah, qp);
        return NULL;
    }
    uct_daqiri_link_give(peer, ah, gid_index, qp);
    /* An endpoint may have created it just now: its CMD_OPEN is still to come. */
    peer->hs->is_unproven = is_unproven;
    iface->cm.unproven  += is_unproven;
    return peer;
}


/* ---- The machine ---- */

/* A conn to this interface itself needs no answer, and so no carrier. */
static int uct_daqiri_hs_has_carrier_failed(const uct_daqiri_peer_t *peer)
{
    return peer->iface->cm.ud.is_failed && !peer->is_self;
}


static dq_cause_t uct_daqiri_hs_cause(const uct_daqiri_peer_t *peer,
                                      dq_conn_event_t event,
                                      const dq_frame_t *frame)
{
    switch (event) {
    case DQ_EV_VERB_FAIL:
        return uct_daqiri_hs_has_carrier_failed(peer) ? DQ_CAUSE_CARRIER : DQ_CAUSE_VERB;
    case DQ_EV_EXPIRE:
        return DQ_CAUSE_NO_ANSWER;
    case DQ_EV_REFUSE:
        return DQ_CAUSE_REFUSED;
    case DQ_EV_GONE:
        return (frame->reason == DQ_CAUSE_NONE) ? DQ_CAUSE_PEER_GONE
                                                : DQ_CAUSE_PEER_FAILED;
    case DQ_EV_FORGOT:
        return DQ_CAUSE_PEER_FORGOT;
    default:
        return DQ_CAUSE_VERB;
    }
}


/* Tells progress of an event, with all that progress may have to know. */
static void uct_daqiri_hs_post_event(uct_daqiri_peer_t *peer, uint32_t event)
{
    const uct_daqiri_news_t news = {
        .qp       = peer->hs->qp,
        .recvs    = peer->hs->recvs,
        .window   = peer->hs->window,
        .promised = peer->hs->promised,
        .peer     = peer->hs->peer,
        .cause    = peer->hs->cause,
        .ah_error = peer->hs->ah_error,
        .refused  = (peer->hs->refusals > 0) ? peer->hs->refused : 0,
    };

    uct_daqiri_mail_post_event(peer, event, &news);
}


static ucs_status_t uct_daqiri_hs_make_qp(uct_daqiri_peer_t *peer)
{
    ucs_status_t status;

    peer->hs->has_no_qp = 0;
    status             = uct_daqiri_link_open(peer);
    if (status == UCS_OK) {
        uct_daqiri_hs_post_event(peer, UCT_DAQIRI_EVT_QP);
    }
    return status;
}


/* Performs one action. Only the creation and the connection of a QP can fail. */
static ucs_status_t uct_daqiri_hs_act(uct_daqiri_peer_t *peer, uint32_t action,
                                      const dq_frame_t *frame)
{
    switch (action) {
    case DQ_ACT_QP_CLOSE:
        uct_daqiri_link_close_qp(peer);
        break;
    case DQ_ACT_QP_CREATE:
        return uct_daqiri_hs_make_qp(peer);
    case DQ_ACT_QP_CONNECT:
        peer->hs->peer     = *frame;
        peer->hs->has_peer = 1;
        return uct_daqiri_rc_connect(peer->iface, peer->hs->qp, peer->hs->psn,
                                     frame);
    case DQ_ACT_SEND_REQ:
        uct_daqiri_hs_send(peer, DQ_FRAME_REQ);
        break;
    case DQ_ACT_SEND_REP:
        uct_daqiri_hs_send(peer, DQ_FRAME_REP);
        break;
    case DQ_ACT_SEND_RTU:
        uct_daqiri_hs_send(peer, DQ_FRAME_RTU);
        break;
    case DQ_ACT_SEND_AGAIN:
        uct_daqiri_hs_answer(peer, DQ_FRAME_AGAIN, frame);
        break;
    case DQ_ACT_REFUSE:
        uct_daqiri_hs_answer(peer, DQ_FRAME_REFUSE, frame);
        break;
    case DQ_ACT_TIMER_ARM:
        uct_daqiri_hs_timer_arm(peer);
        break;
    case DQ_ACT_TIMER_RENEW:
        peer->hs->started = ucs_get_time();
        __atomic_store_n(&peer->liveness.is_put_off, 1, __ATOMIC_RELAXED);
        break;
    case DQ_ACT_TIMER_STOP:
        uct_daqiri_hs_timer_stop(peer);
        break;
    case DQ_ACT_POST_UP:
        uct_daqiri_hs_prove(peer);
        if (peer->hw == NULL) {
            peer->hw = uct_daqiri_port_share_hw(peer->iface);
        }
        /* the event first: the peer may answer held requests before this returns */
        uct_daqiri_hs_post_event(peer, UCT_DAQIRI_EVT_UP);
        peer->iface->hooks->preconnect_post(peer->conn, peer->hs->qp);
        break;
    case DQ_ACT_POST_LOST:
        uct_daqiri_hs_post_event(peer, peer->hs->has_no_qp ? UCT_DAQIRI_EVT_NO_QP
                                                        : UCT_DAQIRI_EVT_LOST);
        break;
    case DQ_ACT_POST_DEAD:
        uct_daqiri_hs_post_event(peer, UCT_DAQIRI_EVT_DEAD);
        break;
    case DQ_ACT_COUNT_DUP:
        peer->iface->count->frames_dup++;
        break;
    }
    return UCS_OK;
}


/* Whether the event begins an attempt, which asks the peer. */
static int uct_daqiri_hs_is_attempt(const uct_daqiri_peer_t *peer,
                                    dq_conn_event_t event)
{
    return dq_conn_cell(peer->hs->machine.state, event).actions &
           DQ_ACT_QP_CREATE;
}


/* After a step: whoever is not asked any more needs no place, and puts nobody off.
 * Whoever need not be asked any more leaves the line. */
static void uct_daqiri_hs_end_turn(uct_daqiri_peer_t *peer, dq_conn_state_t before,
                                   int is_answer)
{
    uct_daqiri_hs_t *hs = peer->hs;
    int is_asked        = hs->machine.state == DQ_CONN_REQ_SENT;
    int is_over         = (before == DQ_CONN_REQ_SENT) && !is_asked;
    int is_needless     = (hs->turn.pace.state == DQ_PACE_WAITING) &&
                          !uct_daqiri_hs_is_attempt(peer, hs->turn.wanted);

    if (is_over) {
        __atomic_store_n(&peer->liveness.is_put_off, 0, __ATOMIC_RELAXED);
    }
    if (is_over || is_needless) {
        uct_daqiri_wait_end(&peer->iface->cm.wait, &hs->turn, is_answer);
    }
    uct_daqiri_assert(is_asked || (hs->turn.pace.state == DQ_PACE_REST) ||
                      (hs->turn.pace.state == DQ_PACE_WAITING));
}


static void uct_daqiri_hs_step(uct_daqiri_peer_t *peer, dq_conn_event_t event,
                               const dq_frame_t *frame)
{
    dq_conn_state_t before = peer->hs->machine.state;
    uint32_t actions, action;
    ucs_status_t status;

    uct_daqiri_assert_async(peer->iface);
    uct_daqiri_hs_check(peer->hs);
    if (before != DQ_CONN_DEAD) {
        peer->hs->cause = uct_daqiri_hs_cause(peer, event, frame);
    }
    actions = dq_conn_step(&peer->hs->machine, event, frame,
                           uct_daqiri_hs_epoch(peer->iface));
    ucs_debug("conn %p: %s -> %s (%s)", peer->conn, dq_conn_state_name(before),
              dq_conn_state_name(peer->hs->machine.state),
              dq_conn_event_name(event));
    uct_daqiri_hs_end_turn(peer, before, frame != NULL);

    for (action = 1; action < DQ_ACT_LAST_BIT; action <<= 1) {
        if (!(actions & action)) {
            continue;
        }
        status = uct_daqiri_hs_act(peer, action, frame);
        if (status != UCS_OK) {
            peer->hs->has_no_qp = status == UCS_ERR_NO_RESOURCE;
            uct_daqiri_hs_step(peer, peer->hs->has_no_qp ? DQ_EV_NO_QP
                                                        : DQ_EV_VERB_FAIL,
                               NULL);
            return;
        }
    }
}


/* An attempt from rest begins with a QP, or does not begin: the machine stays where it
 * is, so that the next attempt finds all as it was. */
static int uct_daqiri_hs_may_begin(uct_daqiri_peer_t *peer, dq_conn_event_t event)
{
    ucs_status_t status;

    if (!uct_daqiri_hs_is_attempt(peer, event) ||
        (peer->hs->machine.state == DQ_CONN_LOST)) {
        return 1;
    }
    status = uct_daqiri_link_reserve(peer);
    if (status == UCS_ERR_NO_RESOURCE) {
        uct_daqiri_hs_post_event(peer, UCT_DAQIRI_EVT_NO_QP);
    } else if (status != UCS_OK) {
        uct_daqiri_hs_step(peer, DQ_EV_VERB_FAIL, NULL);
    }
    return status == UCS_OK;
}


/* Connects this interface to itself: the QP is its own peer, and no frame is sent. */
static void uct_daqiri_hs_open_self(uct_daqiri_peer_t *peer,
                                    dq_conn_event_t event)
{
    dq_frame_t frame;

    if (!uct_daqiri_hs_may_begin(peer, event)) {
        return;
    }
    uct_daqiri_hs_step(peer, event, NULL);
    if (peer->hs->machine.state == DQ_CONN_REQ_SENT) {
        frame = uct_daqiri_hs_frame(peer, DQ_FRAME_REP);
        uct_daqiri_hs_step(peer, DQ_EV_REP, &frame);
    }
}


/* Tells the peer that the conn ends here. Once is enough: a peer that misses it finds out
 * by its own time limits when it sends something. */
static void uct_daqiri_hs_notify_end(uct_daqiri_peer_t *peer, dq_cause_t cause)
{
    if ((peer->hs->machine.state != DQ_CONN_IDLE) &&
        (peer->hs->machine.state != DQ_CONN_DEAD) && (peer->hs->ah != NULL)) {
        uct_daqiri_hs_send_gone(peer, cause);
    }
}


static void uct_daqiri_hs_give_up(uct_daqiri_peer_t *peer)
{
    uct_daqiri_hs_notify_end(peer, DQ_CAUSE_CARRIER);
    uct_daqiri_hs_step(peer, DQ_EV_VERB_FAIL, NULL);
}


static void uct_daqiri_hs_open(uct_daqiri_peer_t *peer, dq_conn_event_t event)
{
    if (peer->is_self) {
        uct_daqiri_hs_open_self(peer, event);
    } else if (uct_daqiri_hs_has_carrier_failed(peer) &&
               uct_daqiri_hs_is_attempt(peer, event)) {
        uct_daqiri_hs_give_up(peer);
    } else if (uct_daqiri_hs_is_attempt(peer, event)) {
        uct_daqiri_wait_in_line(&peer->iface->cm.wait, &peer->hs->turn, event);
    } else {
        uct_daqiri_hs_step(peer, event, NULL);
    }
}


/* A CQ that is broken has lost completions: the counts are wrong, and no QP of that CQ
 * works. The event of the CQ may not have been read yet, so this reads the events. */
static void uct_daqiri_hs_resume(uct_daqiri_peer_t *peer, dq_conn_event_t event)
{
    if (uct_daqiri_async_is_sound(peer->iface)) {
        peer->hs->resume = peer->resume;
        uct_daqiri_hs_open(peer, event);
    }
}


/* Repeats our REP. A peer that is up answers with an RTU, on its async thread, whatever
 * its program does. So a probe needs no frame of its own. */
static void uct_daqiri_hs_probe_peer(uct_daqiri_peer_t *peer)
{
    if ((peer->hs->machine.state == DQ_CONN_UP) &&
        !uct_daqiri_hs_has_carrier_failed(peer) &&
        (uct_daqiri_hs_try_send(peer, DQ_FRAME_REP) == UCS_OK)) {
        peer->iface->count->liveness_probes++;
        __atomic_fetch_add(&peer->liveness.probes, 1, __ATOMIC_RELAXED);
    }
}


/*
 * Whether data on the QP counts as an RTU. A peer that sends data has heard our REP. But
 * data shows no mark. To get a packet into our QP, a forger needs its number, which
 * devices count up, and the PSN, which the forged REQ has named. So data does not count
 * on an unproven conn. The REP is repeated until the RTU comes.
 */
static int uct_daqiri_hs_heeds_data(const uct_daqiri_peer_t *peer)
{
    return (peer->hs->machine.state == DQ_CONN_REP_SENT) &&
           !peer->hs->is_unproven;
}


/* Progress has given the conn up. One that is still in line for its first attempt has no
 * QP that could fail. */
static void uct_daqiri_hs_fail(uct_daqiri_peer_t *peer)
{
    int is_in_line = peer->hs->turn.pace.state == DQ_PACE_WAITING;

    uct_daqiri_hs_step(peer, is_in_line ? DQ_EV_VERB_FAIL : DQ_EV_QP_ERROR, NULL);
}


void uct_daqiri_hs_on_command(uct_daqiri_peer_t *peer, uint32_t commands)
{
    uct_daqiri_assert_async(peer->iface);
    uct_daqiri_hs_check(peer->hs);
    if (commands & UCT_DAQIRI_CMD_RELEASE) {
        if (commands & UCT_DAQIRI_CMD_FAIL) {
            /* both came while this thread was busy: the peer has not been told */
            uct_daqiri_hs_notify_end(peer, peer->death);
        }
        uct_daqiri_hs_prove(peer);
        uct_daqiri_hs_timer_stop(peer);
        uct_daqiri_wait_leave(&peer->iface->cm.wait, &peer->hs->turn);
        uct_daqiri_link_close(peer);
        uct_daqiri_mail_post_event(peer, UCT_DAQIRI_EVT_RELEASED, NULL);
        return;
    }
    if (commands & UCT_DAQIRI_CMD_REST) {
        uct_daqiri_hs_resume(peer, DQ_EV_REST);
    }
    if (commands & UCT_DAQIRI_CMD_OPEN) { /* behind CMD_REST: it ends the rest */
        uct_daqiri_hs_prove(peer); /* an endpoint uses it */
        uct_daqiri_hs_open(peer, DQ_EV_OPEN);
    }
    if ((commands & UCT_DAQIRI_CMD_READY) && uct_daqiri_hs_heeds_data(peer)) {
        uct_daqiri_hs_step(peer, DQ_EV_RTU, NULL);
    }
    if (commands & UCT_DAQIRI_CMD_LOSE) {
        uct_daqiri_hs_step(peer, DQ_EV_LOSE, NULL);
    }
    if (commands & UCT_DAQIRI_CMD_FAIL) {
        uct_daqiri_hs_notify_end(peer, peer->death); /* final by now */
        uct_daqiri_hs_fail(peer);
    }
    if (commands & UCT_DAQIRI_CMD_CLOSE) {
        DQ_ASSERT((peer->hs->machine.state == DQ_CONN_LOST) ||
                  (peer->hs->machine.state == DQ_CONN_DEAD));
        uct_daqiri_link_destroy_qp(peer);
        uct_daqiri_mail_post_event(peer, UCT_DAQIRI_EVT_CLOSED, NULL);
    }
    if (commands & UCT_DAQIRI_CMD_DRAINED) {
        uct_daqiri_hs_resume(peer, DQ_EV_DRAINED);
    }
    if (commands & UCT_DAQIRI_CMD_PROBE) {
        uct_daqiri_hs_probe_peer(peer);
    }
}


/* ---- What arrives ---- */

/* Logs a peer of another version. It gets no answer, because its format is unknown. */
static void uct_daqiri_hs_on_other_version(uct_daqiri_iface_t *iface,
                                           const void *payload, size_t length)
{
    unsigned version = dq_frame_version(payload, length,
                                        iface->config.addr.cookie);
    char more[UCT_DAQIRI_MORE_MAX];

    if ((version != DQ_WIRE_VERSION) &&
        uct_daqiri_may_log(&iface->log_limit.version, more)) {
        uct_daqiri_log_version(iface->config.port_name, version, more);
    }
}


static int uct_daqiri_hs_parse(uct_daqiri_iface_t *iface, const void *payload,
                               size_t length, dq_frame_t *frame)
{
    dq_wire_status_t parsed;

    iface->count->frames_rx++;
    parsed = dq_frame_parse(payload, length, iface->config.addr.cookie, frame);
    if (parsed != DQ_WIRE_OK) {
        iface->count->frames_dropped[parsed]++;
    }
    if (parsed == DQ_WIRE_BAD_VERSION) {
        uct_daqiri_hs_on_other_version(iface, payload, length);
    }
    return parsed == DQ_WIRE_OK;
}


/* Returns the conn of the sender. NULL if the sender is unknown, or is not that peer. */
static uct_daqiri_peer_t *uct_daqiri_hs_sender(uct_daqiri_iface_t *iface,
                                               const dq_frame_t *frame,
                                               uct_daqiri_peer_t *peer)
{
    if ((peer == NULL) || peer->is_self) {
        iface->count->frames_dup++;
        return NULL;
    }
    if (!uct_daqiri_peer_is_at(peer, &frame->port, &frame->src)) {
        /* the frame has not the peer's addresses: its sender is not the peer */
        iface->count->frames_dropped[DQ_WIRE_BAD_COOKIE]++;
        return NULL;
    }
    if (dq_conn_is_forged(&peer->hs->machine, frame)) {
        iface->count->frames_dropped[DQ_WIRE_BAD_MARK]++;
        return NULL;
    }
    __atomic_fetch_add(&peer->liveness.heard, 1, __ATOMIC_RELAXED);
    return peer;
}


/* Whether the frame shows that the peer knows the end (HEARD), or has itself ended the
 * connection (GONE). The peer is then not told any more. */
static int uct_daqiri_hs_is_farewell(const uct_daqiri_peer_t *peer,
                                     const dq_frame_t *frame)
{
    const dq_conn_t *machine = &peer->hs->machine;

    return ((frame->kind == DQ_FRAME_GONE) &&
            dq_conn_is_ended_by(machine, frame)) ||
           ((frame->kind == DQ_FRAME_HEARD) &&
            (frame->peer_epoch == machine->epoch));
}


/* Answers every GONE, even one about an earlier connection: its sender may still wait for
 * the answer. */
static void uct_daqiri_hs_on_farewell(uct_daqiri_peer_t *peer,
                                      const dq_frame_t *frame)
{
    if (frame->kind == DQ_FRAME_GONE) {
        uct_daqiri_hs_answer(peer, DQ_FRAME_HEARD, frame);
    }
    if (!peer->hs->is_heard && uct_daqiri_hs_is_farewell(peer, frame)) {
        peer->hs->is_heard       = 1;
        peer->iface->cm.silent -= peer->hs->is_told;
    }
}


/* A peer that asks is there, and waits: its turn in our line is now, without a place. */
static void uct_daqiri_hs_call_up(uct_daqiri_peer_t *peer, const dq_frame_t *frame)
{
    if ((frame->kind == DQ_FRAME_REQ) &&
        (peer->hs->turn.pace.state == DQ_PACE_WAITING) &&
        (peer->hs->machine.state == DQ_CONN_LOST)) {
        uct_daqiri_wait_end(&peer->iface->cm.wait, &peer->hs->turn, 0);
        uct_daqiri_hs_step(peer, peer->hs->turn.wanted, NULL);
    }
}


static void uct_daqiri_hs_on_peer(uct_daqiri_iface_t *iface,
                                  uct_daqiri_peer_t *found,
                                  const dq_frame_t *frame)
{
    uct_daqiri_peer_t *peer = uct_daqiri_hs_sender(iface, frame, found);
    dq_conn_event_t event;

    if (peer == NULL) {
        return;
    }
    uct_daqiri_hs_on_farewell(peer, frame);
    uct_daqiri_hs_call_up(peer, frame);
    event = dq_conn_classify(&peer->hs->machine, frame);
    if (uct_daqiri_hs_may_begin(peer, event)) {
        uct_daqiri_hs_step(peer, event, frame);
    }
}


/* Whether an unknown peer, which is not this interface itself, waits for an answer. An
 * unknown peer sends a REP if the connection that asked for it has ended here. */
static int uct_daqiri_hs_is_first_word(const uct_daqiri_iface_t *iface,
                                       const uct_daqiri_peer_t *peer,
                                       const dq_frame_t *frame)
{
    return (peer == NULL) &&
           ((frame->kind == DQ_FRAME_REQ) || (frame->kind == DQ_FRAME_REP)) &&
           (frame->src.uuid != iface->config.addr.uuid);
}


static void uct_daqiri_hs_accept_unknown(uct_daqiri_iface_t *iface,
                                         const dq_frame_t *frame)
{
    uct_daqiri_peer_t *peer;

    if (frame->peer_epoch != 0) {
        /* it wants to resume a connection that is not known here, or no longer */
        iface->count->frames_unknown++;
        uct_daqiri_hs_answer_unknown(iface, DQ_FRAME_REFUSE, frame);
        return;
    }
    peer = uct_daqiri_hs_take_up(iface, frame);
    if (peer != NULL) {
        uct_daqiri_hs_on_peer(iface, peer, frame);
    }
}


static void uct_daqiri_hs_on_unknown(uct_daqiri_iface_t *iface,
                                     const dq_frame_t *frame)
{
    if (ucs_get_time() < iface->cm.unknown_peers_at) {
        iface->count->frames_unheard++;
    } else {
        uct_daqiri_hs_accept_unknown(iface, frame);
    }
}


static void uct_daqiri_hs_handle(uct_daqiri_iface_t *iface, const dq_frame_t *frame)
{
    uct_daqiri_peer_t *peer = uct_daqiri_peer_find(iface, frame->src.uuid);

    if (uct_daqiri_hs_is_first_word(iface, peer, frame)) {
        uct_daqiri_hs_on_unknown(iface, frame);
    } else {
        uct_daqiri_hs_on_peer(iface, peer, frame);
    }
}


/* Nothing takes room in the backlog that will be dropped anyway. */
static void uct_daqiri_hs_note(uct_daqiri_iface_t *iface, const dq_frame_t *request)
{
    uct_daqiri_peer_t *peer = uct_daqiri_peer_find(iface, request->src.uuid);

    if (uct_daqiri_hs_is_first_word(iface, peer, request) ||
        (uct_daqiri_hs_sender(iface, request, peer) != NULL)) {
        iface->count->frames_flooded += !uct_daqiri_wait_note(&iface->cm.wait, request);
    }
}


/* Handles one datagram, without its GRH. Drops and counts one that is malformed. A REQ is
 * only noted: to answer it may take a QP, and further datagrams may wait. */
static void uct_daqiri_hs_on_frame(uct_daqiri_iface_t *iface, const void *payload,
                                   size_t length)
{
    dq_frame_t frame;

    if (!uct_daqiri_hs_parse(iface, payload, length, &frame)) {
        return;
    }
    if (frame.kind == DQ_FRAME_REQ) {
        uct_daqiri_hs_note(iface, &frame);
        return;
    }
    if (frame.kind == DQ_FRAME_GONE) {
        uct_daqiri_wait_forget(&iface->cm.wait, &frame);
    }
    uct_daqiri_hs_handle(iface, &frame);
}


static void uct_daqiri_hs_handle_last(uct_daqiri_iface_t *iface,
                                      const dq_frame_t *frame)
{
    uct_daqiri_peer_t *peer = uct_daqiri_peer_find(iface, frame->src.uuid);

    if (uct_daqiri_hs_is_first_word(iface, peer, frame)) {
        uct_daqiri_hs_answer_unknown(iface, (frame->peer_epoch == 0)
                                                     ? DQ_FRAME_GONE
                                                     : DQ_FRAME_REFUSE, frame);
        return;
    }
    peer = uct_daqiri_hs_sender(iface, frame, peer);
    if (peer == NULL) {
        return;
    }
    uct_daqiri_hs_on_farewell(peer, frame);
    if (frame->kind == DQ_FRAME_REQ) {
        uct_daqiri_hs_answer(peer, DQ_FRAME_GONE, frame);
    }
}


/* Without an answer, a peer that asks now would ask until CONN_TIMEOUT. */
void uct_daqiri_hs_on_last_frame(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length)
{
    dq_frame_t frame;

    if (uct_daqiri_hs_parse(iface, payload, length, &frame)) {
        uct_daqiri_hs_handle_last(iface, &frame);
    }
}


void uct_daqiri_hs_answer_last(uct_daqiri_iface_t *iface)
{
    dq_frame_t frame;

    while (uct_daqiri_wait_take(&iface->cm.wait, &frame)) {
        uct_daqiri_hs_handle_last(iface, &frame);
        uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_last_frame);
    }
}


/* ---- What waits ---- */

static void uct_daqiri_hs_take_turn(uct_daqiri_turn_t *turn)
{
    uct_daqiri_hs_t *hs     = uct_daqiri_hs_of_turn(turn);
    uct_daqiri_wait_t *wait = &hs->owner->iface->cm.wait;

    if (uct_daqiri_hs_has_carrier_failed(hs->owner)) {
        uct_daqiri_wait_end(wait, turn, 0);
        uct_daqiri_hs_give_up(hs->owner);
    } else if (!uct_daqiri_hs_may_begin(hs->owner, turn->wanted)) {
        uct_daqiri_wait_end(wait, turn, 0);
    } else {
        uct_daqiri_wait_begin(wait, turn);
        uct_daqiri_hs_step(hs->owner, turn->wanted, NULL);
    }
}


/* Returns zero if there is nothing to do. Answers come first: each ends the wait of two
 * interfaces. */
static int uct_daqiri_hs_do_next(uct_daqiri_iface_t *iface)
{
    uct_daqiri_turn_t *turn;
    dq_frame_t request;

    if (uct_daqiri_wait_take(&iface->cm.wait, &request)) {
        uct_daqiri_hs_handle(iface, &request);
        return 1;
    }
    turn = uct_daqiri_hs_next_turn(iface);
    if (turn == NULL) {
        return 0;
    }
    uct_daqiri_hs_take_turn(turn);
    return 1;
}


void uct_daqiri_hs_work(uct_daqiri_iface_t *iface)
{
    unsigned left = UCT_DAQIRI_HS_BATCH;

    uct_daqiri_hs_send_owed(iface);
    while ((left-- > 0) && uct_daqiri_hs_do_next(iface)) {
        uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_frame);
        uct_daqiri_hs_send_owed(iface);
    }
    uct_daqiri_hs_tick_set(iface);
}


/* ---- The timer ---- */

void uct_daqiri_hs_retry_now(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_hs_t *hs;

    ucs_list_for_each(hs, &iface->cm.timed, timer_link) {
        hs->next_try = now;
        hs->interval = iface->config.conn_retry / 2; /* the timer doubles it */
    }
}


/* Logs the failure at once. Perhaps only a peer wants a connection from now on, and that
 * peer gets no answer. */
void uct_daqiri_hs_fail_carrier(uct_daqiri_iface_t *iface)
{
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_CARRIER,
        .subject = UCT_DAQIRI_NAME,
        .detail  = iface->config.port_name,
    };

    if (!iface->cm.ud.is_failed) {
        iface->cm.ud.is_failed = 1;
        uct_daqiri_log(UCS_LOG_LEVEL_WARN, &facts);
        uct_daqiri_hs_retry_now(iface);
    }
}


static dq_conn_event_t uct_daqiri_hs_due(uct_daqiri_peer_t *peer,
                                         ucs_time_t now)
{
    uct_daqiri_iface_t *iface = peer->iface;

    if (uct_daqiri_hs_has_carrier_failed(peer) || uct_daqiri_hs_is_refused(peer, now)) {
        return DQ_EV_VERB_FAIL;
    }
    if (now - peer->hs->started > uct_daqiri_hs_limit(peer)) {
        return DQ_EV_EXPIRE;
    }
    /* An address that is gone may come back. A device hardly does. */
    return (uct_daqiri_port_find_gid(iface) == UCS_ERR_IO_ERROR)
                   ? DQ_EV_VERB_FAIL : DQ_EV_TICK;
}


/* A process that stood still has not asked, and has heard no answer. So that time is
 * none of the attempts'. */
static void uct_daqiri_hs_add_stop(uct_daqiri_iface_t *iface, ucs_time_t now)
{
    ucs_time_t elapsed = now - iface->cm.ticked_at;
    uct_daqiri_hs_t *hs;

    iface->cm.ticked_at = now;
    if (elapsed < ucs_time_from_msec(UCT_DAQIRI_STOOD_MS)) {
        return;
    }
    ucs_list_for_each(hs, &iface->cm.timed, timer_link) {
        hs->started = ucs_min(hs->started + elapsed, now); /* it may have begun since */
    }
}


/* Resets the carrier if its QP has failed. The timer ticks until that has succeeded. */
static void uct_daqiri_hs_reset_carrier(uct_daqiri_iface_t *iface)
{
    if (uct_daqiri_ud_reset(iface)) {
        uct_daqiri_hs_retry_now(iface); /* their frames were lost with the QP */
    }
    uct_daqiri_hs_tick_set(iface);
}


void uct_daqiri_hs_on_datagram(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_poll(iface, uct_daqiri_hs_on_frame);
    uct_daqiri_hs_reset_carrier(iface);
    uct_daqiri_hs_work(iface);
}


void uct_daqiri_hs_on_tick(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_hs_t *hs, *next;
    dq_conn_event_t event;

    uct_daqiri_hs_add_stop(iface, now);
    uct_daqiri_hs_reset_carrier(iface);
    ucs_list_for_each_safe(hs, next, &iface->cm.timed, timer_link) {
        if (now < hs->next_try) {
            continue;
        }
        event = uct_daqiri_hs_due(hs->owner, now);
        if (event == DQ_EV_VERB_FAIL) {
            uct_daqiri_hs_give_up(hs->owner);
        } else {
            iface->count->frames_repeated += event == DQ_EV_TICK;
            dq_pace_late(&iface->cm.wait.pace, &hs->turn.pace, now);
            uct_daqiri_hs_step(hs->owner, event, NULL);
        }
    }
    uct_daqiri_hs_work(iface);
}
