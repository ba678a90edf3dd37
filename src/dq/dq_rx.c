/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_rx.h"


/* Computed when windows change, because every message compares with these. */
static void dq_rx_set_marks(dq_rx_t *rx)
{
    uint32_t wanted = rx->reserved + rx->slack;

    rx->low  = wanted - rx->batch;
    rx->keep = (wanted < rx->limit) ? (rx->limit - wanted) : 0;
}


/* The window has changed. A quarter that is owed already is reported with the next
 * message. */
static void dq_rx_set_mark(dq_rx_window_t *window)
{
    window->mark = dq_rx_may_piggyback(window) ? (window->owed + 1)
                                               : ((window->size + 3) / 4);
}


/* The next mark is the half. Beyond it, only a message without a credit is worth a
 * look. */
int dq_rx_pass_mark(dq_rx_t *rx, dq_rx_window_t *window)
{
    int is_overrun = window->owed > window->size;

    if (is_overrun) {
        window->owed--;
        rx->owed -= (window->backed != 0);
        rx->overrun++;
    }
    window->mark = dq_rx_grant_is_due(window) ? (window->size + 1)
                                              : ((window->size + 1) / 2);
    return !is_overrun;
}


void dq_rx_init(dq_rx_t *rx, uint32_t limit, uint32_t batch)
{
    DQ_ASSERT((batch >= 1) && (limit >= 2 * batch));
    *rx = (dq_rx_t){.limit = limit, .slack = 2 * batch, .batch = batch};
    dq_rx_set_marks(rx);
}


void dq_rx_grow(dq_rx_t *rx, uint32_t count)
{
    DQ_ASSERT(count <= dq_rx_room(rx));
    rx->total += count;
    rx->free  += count;
}


void dq_rx_grow_posted(dq_rx_t *rx, uint32_t count)
{
    dq_rx_grow(rx, count);
    dq_rx_posted(rx, count);
}


/* Could all backed windows be renewed in full, and @a more? */
static int dq_rx_can_renew(const dq_rx_t *rx, uint32_t more)
{
    uint32_t usable = rx->total - rx->held;

    return usable >= rx->reserved + more;
}


int dq_rx_open(dq_rx_t *rx, dq_rx_window_t *window, uint32_t size,
               uint32_t most)
{
    uint32_t standing = rx->posted + rx->owed;

    DQ_ASSERT((size >= DQ_WINDOW_MIN) && (most >= size));
    *window        = (dq_rx_window_t){.size = size, .most = most};
    window->backed = (standing >= rx->reserved + size) &&
                     dq_rx_can_renew(rx, size);
    dq_rx_set_mark(window);
    if (window->backed) {
        rx->reserved += size;
        dq_rx_set_marks(rx);
    } else {
        rx->overcommit += size;
    }
    return window->backed;
}


int dq_rx_widen(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count)
{
    DQ_ASSERT(window->backed && (count <= window->most - window->size));
    window->wear = 0;
    if (!dq_rx_can_renew(rx, count)) {
        return 0;
    }
    window->size += count;
    window->owed += count;
    rx->reserved += count;
    rx->owed     += count;
    dq_rx_set_mark(window);
    dq_rx_set_marks(rx);
    return 1;
}


uint32_t dq_rx_cut(dq_rx_t *rx, dq_rx_window_t *window, uint32_t least)
{
    uint32_t cut = dq_min(window->size - least, window->owed);

    DQ_ASSERT(window->backed && (window->size >= least));
    window->owed -= cut;
    rx->owed     -= cut;
    dq_rx_give_back(rx, window, cut);
    return cut;
}


void dq_rx_give_back(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count)
{
    DQ_ASSERT(window->backed && (count <= window->size - window->owed));
    DQ_ASSERT(window->size - count >= DQ_WINDOW_MIN);
    window->size -= count;
    window->wear  = 0;
    rx->reserved -= count;
    dq_rx_set_mark(window);
    dq_rx_set_marks(rx);
}


void dq_rx_close(dq_rx_t *rx, dq_rx_window_t *window)
{
    if (window->backed) {
        rx->reserved -= window->size;
        rx->owed     -= window->owed;
        dq_rx_set_marks(rx);
    }
    *window = (dq_rx_window_t){0};
}


uint32_t dq_rx_grantable(const dq_rx_t *rx, const dq_rx_window_t *window)
{
    uint32_t standing = rx->posted + rx->owed;

    if (!window->backed) {
        return window->owed;
    }
    return (standing > rx->reserved)
                   ? dq_min(standing - rx->reserved, window->owed)
                   : 0;
}


void dq_rx_grant(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count)
{
    DQ_ASSERT(count <= dq_rx_grantable(rx, window));
    window->wear += dq_rx_grant_is_urgent(window) ? DQ_RX_WEAR_MAX : 1;
    window->owed -= count;
    if (window->backed) {
        rx->owed -= count;
    } else {
        rx->overcommit += count;
    }
    dq_rx_set_mark(window);
}


int dq_rx_check(const dq_rx_t *rx)
{
    int is_promise_kept = (rx->reserved - rx->owed <= rx->posted) ||
                          (rx->overcommit > 0) || (rx->overrun > 0);

    return (rx->free + rx->posted + rx->taken + rx->held == rx->total) &&
           (rx->total <= rx->limit) && (rx->reserved <= rx->limit) &&
           (rx->owed <= rx->reserved) && is_promise_kept;
}
