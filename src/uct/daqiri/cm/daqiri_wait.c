/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/daqiri_wait.h"

#include "base/daqiri_assert.h"

enum {
    UCT_DAQIRI_WAIT_PLACES = 32,   /* peers that are asked at a time         */
    UCT_DAQIRI_WAIT_LEAST  = 16,   /* questions that the backlog begins with */
    UCT_DAQIRI_WAIT_KEPT   = 256,  /* an empty backlog with more is freed    */
    UCT_DAQIRI_WAIT_MOST   = 4096
};


void uct_daqiri_wait_init(uct_daqiri_wait_t *wait, uint64_t secret)
{
    *wait = (uct_daqiri_wait_t){.random = secret, .secret = secret};
    dq_pace_init(&wait->pace, UCT_DAQIRI_WAIT_PLACES);
    dq_backlog_init(&wait->backlog);
    ucs_list_head_init(&wait->line);
    ucs_list_head_init(&wait->owing);
}


static void uct_daqiri_wait_free(uct_daqiri_wait_t *wait)
{
    ucs_free(wait->backlog.entry);
    ucs_free(wait->asked);
    wait->asked = NULL;
    dq_backlog_init(&wait->backlog);
}


void uct_daqiri_wait_cleanup(uct_daqiri_wait_t *wait)
{
    uct_daqiri_wait_free(wait);
}


/* Steps of the golden ratio, mixed: neighbours have nothing in common. */
uint32_t uct_daqiri_wait_draw(uct_daqiri_wait_t *wait)
{
    uint64_t mixed;

    wait->random += UINT64_C(0x9e3779b97f4a7c15);
    mixed         = (wait->random ^ (wait->random >> 30)) *
                    UINT64_C(0xbf58476d1ce4e5b9);
    mixed         = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed >> 32;
}


/* ---- The line ---- */

void uct_daqiri_wait_in_line(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                             dq_conn_event_t wanted)
{
    if (dq_pace_want(&turn->pace)) {
        turn->wanted = wanted;
        ucs_list_add_tail(&wait->line, &turn->line_link);
    }
}


uct_daqiri_turn_t *uct_daqiri_wait_first(uct_daqiri_wait_t *wait)
{
    return ucs_list_is_empty(&wait->line)
                   ? NULL
                   : ucs_list_head(&wait->line, uct_daqiri_turn_t, line_link);
}


void uct_daqiri_wait_begin(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn)
{
    ucs_list_del(&turn->line_link);
    dq_pace_begin(&wait->pace, &turn->pace, ucs_get_time());
}


void uct_daqiri_wait_end(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                         int is_answered)
{
    int was_in_line = is_answered
                              ? dq_pace_answered(&wait->pace, &turn->pace,
                                                 ucs_get_time())
                              : dq_pace_end(&wait->pace, &turn->pace);

    if (was_in_line) {
        ucs_list_del(&turn->line_link);
    }
}


/* ---- Frames that are owed ---- */

void uct_daqiri_wait_owe(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                         dq_frame_kind_t kind)
{
    turn->owed = kind;
    if (!turn->is_owing) {
        turn->is_owing = 1;
        ucs_list_add_tail(&wait->owing, &turn->owing_link);
    }
}


uct_daqiri_turn_t *uct_daqiri_wait_owed(uct_daqiri_wait_t *wait)
{
    return ucs_list_is_empty(&wait->owing)
                   ? NULL
                   : ucs_list_head(&wait->owing, uct_daqiri_turn_t, owing_link);
}


void uct_daqiri_wait_paid(uct_daqiri_turn_t *turn)
{
    if (turn->is_owing) {
        turn->is_owing = 0;
        ucs_list_del(&turn->owing_link);
    }
}


void uct_daqiri_wait_leave(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn)
{
    uct_daqiri_wait_end(wait, turn, 0);
    uct_daqiri_wait_paid(turn);
}


/* ---- The backlog ---- */

/* Makes room for twice as many. Returns zero if there is none, or no memory. */
static int uct_daqiri_wait_grow(uct_daqiri_wait_t *wait)
{
    uint32_t before = wait->backlog.size;
    uint32_t size   = ucs_max(before * 2, (uint32_t)UCT_DAQIRI_WAIT_LEAST);
    dq_backlog_entry_t *entry;
    dq_frame_t *asked;

    if (size > UCT_DAQIRI_WAIT_MOST) {
        return 0;
    }
    entry = ucs_calloc(size, sizeof(*entry), "daqiri_backlog");
    asked = ucs_calloc(size, sizeof(*asked), "daqiri_asked");
    if ((entry == NULL) || (asked == NULL)) {
        ucs_free(entry);
        ucs_free(asked);
        return 0;
    }
    if (before > 0) {
        memcpy(entry, wait->backlog.entry, before * sizeof(*entry));
        memcpy(asked, wait->asked, before * sizeof(*asked));
    }
    ucs_free(wait->backlog.entry);
    ucs_free(wait->asked);
    wait->asked = asked;
    dq_backlog_grow(&wait->backlog, entry, size);
    return 1;
}


/* The name of an attempt. Only the peer and this interface know the mark. So nobody else
 * can put another question in the place of the peer's, or take it away. The secret keeps
 * names apart that somebody has made alike. */
static uint64_t uct_daqiri_wait_key(const uct_daqiri_wait_t *wait,
                                    const dq_frame_t *frame)
{
    uint64_t key = (frame->mark ^ frame->src.uuid ^ frame->epoch) *
                   (wait->secret | 1);

    return key ^ (key >> 32);
}


int uct_daqiri_wait_note(uct_daqiri_wait_t *wait, const dq_frame_t *request)
{
    const uint64_t key = uct_daqiri_wait_key(wait, request);
    uint32_t index     = dq_backlog_put(&wait->backlog, key);

    if ((index == DQ_BACKLOG_NONE) && uct_daqiri_wait_grow(wait)) {
        index = dq_backlog_put(&wait->backlog, key);
    }
    if (index == DQ_BACKLOG_NONE) {
        return 0;
    }
    wait->asked[index] = *request;
    return 1;
}


int uct_daqiri_wait_take(uct_daqiri_wait_t *wait, dq_frame_t *request)
{
    uint32_t index = dq_backlog_take(&wait->backlog);

    if (index == DQ_BACKLOG_NONE) {
        return 0;
    }
    *request = wait->asked[index];
    if ((wait->backlog.count == 0) && (wait->backlog.size > UCT_DAQIRI_WAIT_KEPT)) {
        uct_daqiri_wait_free(wait);
    }
    return 1;
}


void uct_daqiri_wait_forget(uct_daqiri_wait_t *wait, const dq_frame_t *gone)
{
    dq_backlog_remove(&wait->backlog, uct_daqiri_wait_key(wait, gone));
}
