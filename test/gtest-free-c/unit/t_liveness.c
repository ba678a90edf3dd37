/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to a peer's process: each at its bound, not a look earlier; what counts
 * as an answer, and what does not count as silence.
 */
#include "t_unit.h"
#include "dq/dq_liveness.h"

enum {
    CALL  = 50, /* less than PAUSE: that does not outlast an answer */
    MUTE  = 1600,
    PAUSE = MUTE / DQ_LIVENESS_PROBES_MAX,
    LIVES = 300,
    LOOKS = 300,
    ALL   = DQ_LIVENESS_PROBE_DEVICE | DQ_LIVENESS_PROBE_PROCESS
};

static const dq_liveness_bounds_t usual = {CALL, MUTE};

static dq_liveness_seen_t seen;
static dq_liveness_t liveness;


static unsigned look(uint64_t elapsed)
{
    return dq_liveness_look(&liveness, &usual, &seen, elapsed);
}


/* A look after which whatever it asks for is done: the call goes out, the device
 * completes something. The peer's process says nothing. */
static unsigned look_and_do(uint64_t elapsed)
{
    unsigned what = look(elapsed);

    seen.probes  += (what & DQ_LIVENESS_PROBE_PROCESS) != 0;
    seen.retired += (what & DQ_LIVENESS_PROBE_DEVICE) != 0;
    return what;
}


/* Counters next to their wrap. */
static void begin(void)
{
    seen = (dq_liveness_seen_t){.heard = -1u, .probes = -2u, .retired = -3u,
                            .is_up = 1};
    dq_liveness_init(&liveness);
    T_NEED_EQ(look(10 * CALL), 0);
}


/* Called at the bound and once in every pause from then on; the verdict comes
 * when all that time went by after the first call. */
START_TEST(test_mute)
{
    unsigned time;

    begin();
    T_NEED_EQ(look_and_do(CALL - 1), 0);
    T_NEED_EQ(look_and_do(1), ALL);
    T_NEED_EQ(look_and_do(1), DQ_LIVENESS_PROBE_DEVICE); /* the call has gone out */
    for (time = 1; time < MUTE; time++) {
        t_at = time;
        T_NEED_EQ(look_and_do(1),
                  ((time + 1) % PAUSE == 0) ? ALL : DQ_LIVENESS_PROBE_DEVICE);
    }
    T_NEED_EQ(look_and_do(1), DQ_LIVENESS_GIVE_UP);
    T_NEED_EQ(look_and_do(1), DQ_LIVENESS_GIVE_UP);
}
END_TEST


/* However long it was: one datagram may get lost, so may some. */
START_TEST(test_few_calls)
{
    unsigned calls;

    begin();
    for (calls = 1; calls <= DQ_LIVENESS_PROBES_MIN; calls++) {
        t_at = calls;
        T_NEED_EQ(look_and_do(MUTE), ALL);
    }
    T_NEED_EQ(look_and_do(MUTE), DQ_LIVENESS_GIVE_UP);
}
END_TEST


/* Whatever the process says begins it anew, at the last moment, too. */
START_TEST(test_answer)
{
    unsigned round, calls;

    begin();
    for (round = 0; round < 3; round++) {
        for (calls = 0; calls < DQ_LIVENESS_PROBES_MIN; calls++) {
            T_NEED_EQ(look_and_do(MUTE), ALL);
        }
        seen.heard++;
        T_NEED_EQ(look_and_do(MUTE), 0);
        T_NEED_EQ(look_and_do(CALL - 1), 0);
    }
    T_NEED_EQ(look_and_do(1), ALL);
}
END_TEST


/* No call has gone out: that is no silence of the peer's. */
START_TEST(test_not_called)
{
    unsigned i;

    begin();
    for (i = 0; i < 100; i++) {
        T_NEED_EQ(look(MUTE), ALL);
        seen.retired++;
    }
    seen.probes += DQ_LIVENESS_PROBES_MIN;
    T_NEED_EQ(look(MUTE), ALL); /* they went out in this time */
    seen.retired++;
    T_NEED_EQ(look(MUTE - 1), ALL);
    seen.retired++;
    T_NEED_EQ(look(1), DQ_LIVENESS_GIVE_UP);
}
END_TEST


/* The device has not answered either: that time does not count, what came before
 * it does. */
START_TEST(test_no_device)
{
    unsigned i;

    begin();
    T_NEED_EQ(look_and_do(CALL), ALL);
    seen.probes += DQ_LIVENESS_PROBES_MIN;
    T_NEED_EQ(look_and_do(1), DQ_LIVENESS_PROBE_DEVICE);
    T_NEED_EQ(look_and_do(MUTE / 2), ALL);
    seen.retired--; /* it has not, after all */
    for (i = 0; i < 100; i++) {
        T_NEED_EQ(look(MUTE), ALL);
    }
    seen.retired++;
    T_NEED_EQ(look(MUTE / 2 - 1), ALL);
    seen.retired++;
    T_NEED_EQ(look(1), DQ_LIVENESS_GIVE_UP);
}
END_TEST


/* A conn that is not up is its recovery's; one that is again begins anew. */
START_TEST(test_not_up)
{
    begin();
    T_NEED_EQ(look_and_do(CALL), ALL);
    seen.is_up = 0;
    T_NEED_EQ(look_and_do(MUTE), 0);
    T_NEED_EQ(look_and_do(MUTE), 0);
    seen.is_up = 1;
    T_NEED_EQ(look_and_do(MUTE), 0);
    T_NEED_EQ(look_and_do(CALL - 1), 0);
    T_NEED_EQ(look_and_do(1), ALL);
}
END_TEST


START_TEST(test_never)
{
    static const dq_liveness_bounds_t never = {0, MUTE};
    unsigned i;

    begin();
    for (i = 0; i < 100; i++) {
        seen.probes++;
        seen.retired++;
        T_NEED_EQ(dq_liveness_look(&liveness, &never, &seen, MUTE), 0);
    }
}
END_TEST


/* ---- Against a model that knows only what has been seen ---- */

typedef struct {
    dq_liveness_seen_t seen[LOOKS];
    uint64_t       elapsed[LOOKS];
    unsigned       what[LOOKS];
} life_t;


/* The last look at which the process was not silent. */
static unsigned model_begin(const life_t *life, unsigned at)
{
    while ((at > 0) && life->seen[at].is_up && life->seen[at - 1].is_up &&
           (life->seen[at].heard == life->seen[at - 1].heard)) {
        at--;
    }
    return at;
}


static unsigned model(const life_t *life, unsigned at)
{
    unsigned first      = model_begin(life, at), i;
    uint64_t silent     = 0, unanswered = 0, since = UINT64_MAX;
    uint32_t had_called = life->seen[first].probes;

    for (i = first + 1; i <= at; i++) {
        silent += life->elapsed[i];
        since  += (since != UINT64_MAX) ? life->elapsed[i] : 0;
        since   = ((i < at) && (life->what[i] & DQ_LIVENESS_PROBE_PROCESS)) ? 0 : since;
        if ((life->seen[i - 1].probes != had_called) &&
            (life->seen[i].retired != life->seen[i - 1].retired)) {
            unanswered += life->elapsed[i];
        }
    }
    if ((first == at) || (silent < CALL)) {
        return 0;
    }
    if ((unanswered >= MUTE) &&
        (life->seen[at].probes - had_called >= DQ_LIVENESS_PROBES_MIN)) {
        return DQ_LIVENESS_GIVE_UP;
    }
    return (since < PAUSE) ? DQ_LIVENESS_PROBE_DEVICE : ALL;
}


/* How likely something is differs from life to life: in some all is silent. */
static void live(unsigned at, unsigned rarity, t_rng_t *rng)
{
    if (at == 0) {
        begin();
        dq_liveness_init(&liveness);
        return;
    }
    seen.heard   += t_rng_once_in(rng, rarity);
    seen.probes  += t_rng_below(rng, 3) / 2;
    seen.retired += !t_rng_once_in(rng, 3);
    seen.is_up    = !t_rng_once_in(rng, 4 * rarity);
}


START_TEST(test_model)
{
    unsigned i, at, verdicts = 0;
    life_t life;
    t_rng_t rng;

    t_rng_init(&rng, 0xca11);
    for (i = 0; i < LIVES; i++) {
        for (at = 0; at < LOOKS; at++) {
            t_at = i * LOOKS + at;
            live(at, 5 + 3 * i, &rng);
            life.seen[at]    = seen;
            life.elapsed[at] = t_rng_range(&rng, 1, PAUSE);
            life.what[at]    = look(life.elapsed[at]);
            T_NEED_EQ(life.what[at], model(&life, at));
            verdicts |= 1u << life.what[at];
        }
    }
    T_NEED_EQ(verdicts, (1u << 0) | (1u << DQ_LIVENESS_PROBE_DEVICE) | (1u << ALL) |
              (1u << DQ_LIVENESS_GIVE_UP));
}
END_TEST


static Suite *suite_call(void)
{
    return t_suite("live", "verdicts", test_mute, "verdicts", test_few_calls,
                   "verdicts", test_answer, "verdicts", test_not_called,
                   "verdicts", test_no_device, "verdicts", test_not_up,
                   "verdicts", test_never, "model", test_model, NULL);
}

T_MAIN(suite_call)
