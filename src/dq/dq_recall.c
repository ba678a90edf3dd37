/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_recall.h"

/* Rows: states. Columns: events. */
static const struct {
    uint8_t is_legal;
    uint8_t next;
} dq_recall_table[DQ_RECALL_STATE_LAST][DQ_RECALL_EV_LAST] = {
    [DQ_RECALL_REST] = {
        [DQ_RECALL_EV_WANT] = {1, DQ_RECALL_DUE},
        [DQ_RECALL_EV_LOST] = {1, DQ_RECALL_REST},
    },
    [DQ_RECALL_DUE] = {
        [DQ_RECALL_EV_SENT] = {1, DQ_RECALL_ASKED},
        [DQ_RECALL_EV_LOST] = {1, DQ_RECALL_REST},
    },
    [DQ_RECALL_ASKED] = {
        [DQ_RECALL_EV_BACK] = {1, DQ_RECALL_REST},
        [DQ_RECALL_EV_LOST] = {1, DQ_RECALL_REST},
    },
};


dq_recall_cell_t dq_recall_cell(dq_recall_state_t state, dq_recall_event_t event)
{
    return (dq_recall_cell_t){
        .is_legal = dq_recall_table[state][event].is_legal,
        .next     = (dq_recall_state_t)dq_recall_table[state][event].next,
    };
}


static void dq_recall_step(dq_recall_t *recall, dq_recall_event_t event)
{
    dq_recall_cell_t cell = dq_recall_cell(recall->state, event);

    DQ_ASSERT(cell.is_legal);
    if (cell.is_legal) {
        recall->state = cell.next;
    }
}


uint32_t dq_recall_want(dq_recall_t *recall, dq_rx_t *rx, dq_rx_window_t *window,
                        uint32_t least)
{
    uint32_t cut;

    if ((recall->state != DQ_RECALL_REST) || !window->backed ||
        (window->size <= least)) {
        return 0;
    }
    cut = dq_rx_cut(rx, window, least);
    if (window->size > least) {
        recall->count = window->size - least;
        dq_recall_step(recall, DQ_RECALL_EV_WANT);
    }
    return cut;
}


void dq_recall_sent(dq_recall_t *recall)
{
    dq_recall_step(recall, DQ_RECALL_EV_SENT);
}


int dq_recall_back(dq_recall_t *recall, dq_rx_t *rx, dq_rx_window_t *window,
                   uint32_t count)
{
    if ((recall->state != DQ_RECALL_ASKED) || (count > recall->count) ||
        (count > window->size - window->owed)) {
        return -1;
    }
    dq_recall_step(recall, DQ_RECALL_EV_BACK);
    dq_rx_give_back(rx, window, count);
    return 0;
}


void dq_recall_lost(dq_recall_t *recall)
{
    dq_recall_step(recall, DQ_RECALL_EV_LOST);
}


const char *dq_recall_state_name(dq_recall_state_t state)
{
    static const char *const names[DQ_RECALL_STATE_LAST] = {
        [DQ_RECALL_REST]  = "REST",
        [DQ_RECALL_DUE]   = "DUE",
        [DQ_RECALL_ASKED] = "ASKED",
    };

    return (state < DQ_RECALL_STATE_LAST) ? names[state] : "?";
}


const char *dq_recall_event_name(dq_recall_event_t event)
{
    static const char *const names[DQ_RECALL_EV_LAST] = {
        [DQ_RECALL_EV_WANT] = "WANT",
        [DQ_RECALL_EV_SENT] = "SENT",
        [DQ_RECALL_EV_BACK] = "BACK",
        [DQ_RECALL_EV_LOST] = "LOST",
    };

    return (event < DQ_RECALL_EV_LAST) ? names[event] : "?";
}
