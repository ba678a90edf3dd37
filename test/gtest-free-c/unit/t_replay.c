/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of the requests of a lost queue pair. First the plan by example,
 * then at random: a peer that has executed any prefix of what was posted is
 * told the rest, and must end as if nothing had happened.
 */
#include "t_unit.h"
#include "dq/dq_replay.h"

#include <string.h>

enum { SLOTS = 64, ROUNDS = 100000 };

typedef struct {
    dq_op_t op;
    uint8_t filler[12]; /* a request is more than how it begins              */
} slot_t;

static slot_t slots[SLOTS];

static const dq_replay_log_t redo = {
    .slots  = (uint8_t*)slots,
    .stride = sizeof(slots[0]),
    .mask   = SLOTS - 1,
};


/* Requests as letters: Message, Grant, Write, Read, Atomic, Blank. */
static dq_op_kind_t kind_of(char letter)
{
    static const char letters[] = "MGWRAB";

    return (dq_op_kind_t)(strchr(letters, letter) - letters);
}


/* Writes them from id @a first on, the first message having number @a seq.
 * Returns the id after the last, and the number after the last one's. */
static uint32_t write_all(const char *letters, uint32_t first, uint32_t *seq_p)
{
    dq_op_t *op;

    for (; *letters != '\0'; letters++) {
        op       = dq_replay_slot(&redo, first++);
        op->kind = kind_of(*letters);
        op->seq  = *seq_p;
        *seq_p  += *letters == 'M';
    }
    return first;
}


typedef struct {
    const char *ops;
    uint32_t   delivered;                 /* of the messages in ops          */
    uint32_t   over, ahead, messages, had;
    int        unknown;
} line_t;

static const line_t lines[] = {
    /*  1 */ {"", 0, 0, 0, 0, 0, 0},
    /*  2 */ {"MMM", 0, 0, 0, 3, 0, 0},
    /*  3 */ {"MMM", 2, 2, 2, 1, 2, 0},
    /*  4 */ {"MMM", 3, 3, 3, 0, 3, 0},
    /* what lies before a message that arrived has been done */
    /*  5 */ {"WGMWGM", 1, 3, 3, 1, 1, 0},
    /*  6 */ {"WGMWGM", 2, 6, 6, 0, 2, 0},
    /* of what lies behind nothing is known */
    /*  7 */ {"WGMWG", 1, 3, 3, 0, 1, 0},
    /*  8 */ {"WWW", 0, 0, 0, 0, 0, 0},
    /* a READ has no answer, and keeps those behind it waiting */
    /*  9 */ {"MRMM", 2, 1, 3, 1, 2, 0},
    /* 10 */ {"RMM", 2, 0, 3, 0, 2, 0},
    /* an atomic is the end, wherever it lies */
    /* 11 */ {"MA", 0, 0, 0, 1, 0, 1},
    /* 12 */ {"AM", 1, 0, 2, 0, 1, 1},
    /* 13 */ {"MAM", 1, 1, 1, 1, 1, 1},
    /* a blank is nothing */
    /* 14 */ {"BMB", 1, 2, 2, 0, 1, 0},
};


/* From ids and numbers in the middle, and across both wraps. */
START_TEST(test_lines)
{
    static const uint32_t starts[] = {0, 1000, UINT32_MAX - 1};
    dq_replay_plan_t plan;
    const line_t *line;
    uint32_t id, seq, end;
    unsigned i, j;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (j = 0; j < 3; j++) {
            line = &lines[i];
            id   = starts[j];
            seq  = starts[2 - j];
            end  = write_all(line->ops, id, &seq);
            plan = dq_replay_plan(&redo, id, end, starts[2 - j] +
                                  line->delivered);
            ck_assert_msg((plan.over == id + line->over) &&
                                  (plan.ahead == id + line->ahead) &&
                                  (plan.messages == line->messages) &&
                                  (plan.had == line->had) &&
                                  (plan.unknown == line->unknown),
                          "line %u: over %u ahead %u messages %u had %u "
                          "unknown %d", i + 1, plan.over - id,
                          plan.ahead - id, plan.messages, plan.had,
                          plan.unknown);
        }
    }
}
END_TEST


START_TEST(test_acked)
{
    uint32_t seq = 10;
    uint32_t end = write_all("WRMM", 5, &seq);

    ck_assert_uint_eq(dq_replay_acked(&redo, 5, end, seq), 10);
    ck_assert_uint_eq(dq_replay_acked(&redo, 8, end, seq), 11);
    ck_assert_uint_eq(dq_replay_acked(&redo, end, end, seq), 12);
    ck_assert_uint_eq(dq_replay_acked(&redo, 5, 7, seq), 12);
}
END_TEST


START_TEST(test_verdicts)
{
    static const struct {
        char      kind;
        dq_replay_t past, ahead;
    } table[] = {
        {'M', DQ_REPLAY_DONE, DQ_REPLAY_RESEND},
        {'G', DQ_REPLAY_DONE, DQ_REPLAY_BLANK},
        {'W', DQ_REPLAY_DONE, DQ_REPLAY_RESEND},
        {'R', DQ_REPLAY_RESEND, DQ_REPLAY_RESEND},
        {'A', DQ_REPLAY_UNKNOWN, DQ_REPLAY_UNKNOWN},
        {'B', DQ_REPLAY_DONE, DQ_REPLAY_BLANK},
    };
    unsigned i;

    ck_assert_uint_eq(sizeof(table) / sizeof(table[0]), DQ_OP_LAST);
    for (i = 0; i < DQ_OP_LAST; i++) {
        ck_assert_int_eq(dq_replay_verdict(kind_of(table[i].kind), 1),
                         table[i].past);
        ck_assert_int_eq(dq_replay_verdict(kind_of(table[i].kind), 0),
                         table[i].ahead);
    }
}
END_TEST


/* The peer: memory that a WRITE puts its id into, messages that it counts. */
typedef struct {
    uint32_t first, delivered;
    uint32_t cell;      /* the last WRITE                                    */
    uint32_t seen[SLOTS]; /* by message: the cell when it came               */
    unsigned times[SLOTS];
} peer_t;


static void peer_do(peer_t *peer, uint32_t id)
{
    const dq_op_t *op = dq_replay_slot(&redo, id);
    uint32_t at;

    if (op->kind == DQ_OP_WRITE) {
        peer->cell = id;
    } else if (op->kind == DQ_OP_MSG) {
        T_NEED_EQ(op->seq, peer->delivered);
        at = op->seq - peer->first;
        peer->times[at]++;
        peer->seen[at] = peer->cell;
        peer->delivered++;
    }
}


/* Twice lost, after any prefix; the sender knows of a part of it. Each message
 * arrives once, and finds what was written before it, and nothing later. */
START_TEST(test_random)
{
    static const char letters[] = "MMMWWGRB";
    uint32_t first, seq, end, id, known, retired, cell, at;
    char ops[SLOTS + 1] = {0};
    dq_replay_plan_t plan;
    unsigned n, i, loss;
    peer_t peer;
    t_rng_t rng;

    t_rng_init(&rng, 0x5200);
    for (t_at = 0; t_at < ROUNDS; t_at++) {
        n = t_rng_below(&rng, SLOTS);
        memset(ops, 0, sizeof(ops));
        for (i = 0; i < n; i++) {
            ops[i] = letters[t_rng_below(&rng, sizeof(letters) - 1)];
        }
        first = t_rng_next(&rng);
        seq   = t_rng_next(&rng);
        memset(&peer, 0, sizeof(peer));
        peer.first = peer.delivered = seq;
        peer.cell  = first - 1;
        end        = write_all(ops, first, &seq);
        retired    = first;

        for (loss = 0; loss < 3; loss++) {
            /* what is executed of what is on its way; all, the last time */
            plan  = dq_replay_plan(&redo, retired, end, peer.delivered);
            known = (loss == 2) ? end
                                : plan.over + t_rng_below(&rng, end -
                                                          plan.over + 1);
            T_NEED_EQ(plan.unknown, 0);
            for (id = plan.over; id != known; id++) {
                if (dq_replay_verdict((dq_op_kind_t)dq_replay_slot(&redo, id)->kind,
                                      (int32_t)(id - plan.ahead) < 0) ==
                    DQ_REPLAY_RESEND) {
                    peer_do(&peer, id);
                }
            }
            retired = plan.over;
            T_NEED((int32_t)(peer.delivered -
                             dq_replay_acked(&redo, retired, end, seq)) >= 0);
        }

        T_NEED_EQ(peer.delivered, seq);
        cell = first - 1;
        for (i = 0, at = 0; i < n; i++) {
            cell = (ops[i] == 'W') ? first + i : cell;
            if (ops[i] == 'M') {
                T_NEED_EQ(peer.times[at], 1);
                T_NEED_EQ(peer.seen[at], cell);
                at++;
            }
        }
        T_NEED_EQ(peer.cell, cell);
    }
}
END_TEST


static Suite *suite_redo(void)
{
    Suite *suite = suite_create("redo");
    TCase *edges = tcase_create("edges");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_test(edges, test_lines);
    tcase_add_test(edges, test_acked);
    tcase_add_test(edges, test_verdicts);
    tcase_add_test(edges, test_random);
    suite_add_tcase(suite, edges);
    return suite;
}

T_MAIN(suite_redo)
