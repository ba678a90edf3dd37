/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: each happens once, on the value that was there, and fetches it; of
 * many from several processes none is lost. One that was under way when its queue
 * pair died ends the endpoint, with the sentence that says so, for nobody knows
 * whether it has happened; those before it have, once.
 */
#include "t_uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 256, WORDS = 8, REFUSED = 4 };

/* Numbers that a team shares: an address, the packed key. */
enum { ADDRESS, KEY };

typedef struct {
    t_end_t         *a, *b;
    t_link_t        *link;
    uint64_t        *word; /* [WORDS], registered at b                       */
    uct_mem_h       memh;
    uint8_t         packed[KEY_MAX];
    uct_rkey_bundle_t key;
} pair_t;


static void words_open(pair_t *pair)
{
    pair->word = aligned_alloc(64, WORDS * sizeof(uint64_t));
    ck_assert_ptr_nonnull(pair->word);
    memset(pair->word, 0, WORDS * sizeof(uint64_t));
    ck_assert_int_eq(uct_md_mem_reg(pair->b->md, pair->word,
                                    WORDS * sizeof(uint64_t),
                                    UCT_MD_MEM_ACCESS_ALL, &pair->memh),
                     UCS_OK);
    ck_assert_int_eq(uct_md_mkey_pack(pair->b->md, pair->memh, pair->packed),
                     UCS_OK);
}


static void words_close(pair_t *pair)
{
    ck_assert_int_eq(uct_md_mem_dereg(pair->b->md, pair->memh), UCS_OK);
    free(pair->word);
}


static void need_atomics(const t_end_t *end)
{
    const uint64_t fetches = UCS_BIT(UCT_ATOMIC_OP_ADD) |
                             UCS_BIT(UCT_ATOMIC_OP_CSWAP);

    ck_assert(end->attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_DEVICE);
    ck_assert_uint_eq(end->attr.cap.atomic64.op_flags,
                      UCS_BIT(UCT_ATOMIC_OP_ADD));
    ck_assert_uint_eq(end->attr.cap.atomic64.fop_flags, fetches);
    ck_assert_uint_eq(end->attr.cap.atomic32.op_flags, 0);
    ck_assert_uint_eq(end->attr.cap.atomic32.fop_flags, 0);
}


static void pair_open(pair_t *pair, const char *options, int is_loop)
{
    t_only_daqiri("offers these");
    *pair   = (pair_t){0};
    pair->a = t_end_open(options);
    pair->b = is_loop ? pair->a : t_end_open(options);
    need_atomics(pair->a);
    pair->link = t_link_open(pair->a, &pair->b->address, 1);
    words_open(pair);
    ck_assert_int_eq(uct_rkey_unpack(pair->a->component, pair->packed,
                                     &pair->key), UCS_OK);
}


static void pair_close(pair_t *pair)
{
    ck_assert_int_eq(t_ep_flush(pair->link), UCS_OK);
    ck_assert_int_eq(uct_rkey_release(pair->a->component, &pair->key), UCS_OK);
    words_close(pair);
}


static uint64_t remote(const pair_t *pair, unsigned word)
{
    return (uintptr_t)&pair->word[word];
}


/* Tries until it goes. */
#define UNTIL_IT_GOES(_status, _call) \
    while (((_status) = (_call)) == UCS_ERR_NO_RESOURCE) { \
        t_progress_or_yield(); \
    }


static uint64_t fetch_add(pair_t *pair, unsigned word, uint64_t value)
{
    uint64_t result = 0xabad1dea;
    ucs_status_t status;
    t_comp_t comp;

    t_comp_init(&comp);
    UNTIL_IT_GOES(status, uct_ep_atomic64_fetch(
            pair->link->ep, UCT_ATOMIC_OP_ADD, value, &result,
            remote(pair, word), pair->key.rkey, &comp.super));
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    return result;
}


static uint64_t compare_swap(pair_t *pair, unsigned word, uint64_t compare,
                             uint64_t swap)
{
    uint64_t result = 0xabad1dea;
    ucs_status_t status;
    t_comp_t comp;

    t_comp_init(&comp);
    UNTIL_IT_GOES(status, uct_ep_atomic_cswap64(
            pair->link->ep, compare, swap, remote(pair, word),
            pair->key.rkey, &result, &comp.super));
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    return result;
}


static void post_add(pair_t *pair, unsigned word, uint64_t value)
{
    ucs_status_t status;

    UNTIL_IT_GOES(status, uct_ep_atomic64_post(
            pair->link->ep, UCT_ATOMIC_OP_ADD, value, remote(pair, word),
            pair->key.rkey));
    ck_assert_int_eq(status, UCS_OK);
}


START_TEST(test_values)
{
    const uint64_t big = 0x0123456789abcdefull;
    pair_t pair;

    pair_open(&pair, "", _i);
    pair.word[1] = big;
    ck_assert_uint_eq(fetch_add(&pair, 1, 1), big);
    ck_assert_uint_eq(pair.word[1], big + 1);
    ck_assert_uint_eq(fetch_add(&pair, 1, UINT64_MAX), big + 1);
    ck_assert_uint_eq(pair.word[1], big);

    ck_assert_uint_eq(compare_swap(&pair, 1, big, 7), big);
    ck_assert_uint_eq(pair.word[1], 7);
    ck_assert_uint_eq(compare_swap(&pair, 1, big, 8), 7);
    ck_assert_uint_eq(pair.word[1], 7);

    post_add(&pair, 1, 35);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_uint_eq(pair.word[1], 42);

    ck_assert_uint_eq(pair.word[0], 0);
    ck_assert_uint_eq(pair.word[2], 0);
    pair_close(&pair);
}
END_TEST


/* What devices that are opened from now on do wrong. */
static void plan(const char *text)
{
    const char *bed = getenv("T_BED");

    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


/* Many under way, in queues of any size, and one in three refused at first; the
 * sum tells if one was lost. */
START_TEST(test_many)
{
    static const char *const options[] = {
        "", "SQ_DEPTH=8 CQ_LEN=8", "TX_BUFFERS=64 SQ_DEPTH=512",
        "TX_BATCH=on SQ_DEPTH=64", "SQ_DEPTH=16"
    };
    const unsigned count = t_some(10000);
    uint64_t sum         = 0;
    pair_t pair;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xa700 + _i);
    if (_i == REFUSED) {
        plan("post qp=rc p=0.3");
        t_expect_refused_posts();
    }
    pair_open(&pair, options[_i], 0);
    for (i = 0; i < count; i++) {
        sum += i;
        if (t_rng_once_in(&rng, 20)) {
            ck_assert_uint_eq(fetch_add(&pair, 3, i), sum - i);
        } else {
            post_add(&pair, 3, i);
        }
    }
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_uint_eq(pair.word[3], sum);
    pair_close(&pair);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_int_eq(t_stats_sum("retries_posted") > 0, _i == REFUSED);
}
END_TEST


/* A queue pair dies with an atomic under way: nobody can know whether it was
 * executed, so the endpoint fails and says that; its completion comes once. */
START_TEST(test_unknown_fate)
{
    uint64_t result;
    t_comp_t comp;
    pair_t pair;

    t_no_idle_closes("it counts the requests of a queue pair");
    plan((_i == 0) ? "lose-ack qp=rc op=atomic n=3 times=1"
                   : "qp-error qp=rc op=atomic n=3 times=1");
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log("whether it was executed cannot be known, and it must not be "
                 "executed twice");
    pair_open(&pair, "TIMEOUT=8ms RETRY_COUNT=2 CONN_RETRY=5ms", 0);
    (void)fetch_add(&pair, 2, 1);
    (void)fetch_add(&pair, 2, 1);
    t_comp_init(&comp);
    ck_assert_int_eq(uct_ep_atomic64_fetch(pair.link->ep, UCT_ATOMIC_OP_ADD, 1,
                                           &result, remote(&pair, 2),
                                           pair.key.rkey, &comp.super),
                     UCS_INPROGRESS);
    T_WAIT(pair.a->errors == 1);
    ck_assert_uint_eq(comp.calls, 1);
    ck_assert_int_ne(comp.super.status, UCS_OK);
    ck_assert_uint_eq(pair.word[2], (_i == 0) ? 3 : 2);
    ck_assert_uint_eq(t_log_count("whether it was executed cannot be known"),
                      1);
    ck_assert_int_eq(uct_rkey_release(pair.a->component, &pair.key), UCS_OK);
    t_link_close(pair.link);
    words_close(&pair);
}
END_TEST


START_TEST(test_refused)
{
    uint64_t result;
    pair_t pair;

    pair_open(&pair, "", 0);
    t_expect_log("not a multiple of 8");
    ck_assert_int_eq(uct_ep_atomic64_post(pair.link->ep, UCT_ATOMIC_OP_ADD, 1,
                                          remote(&pair, 1) + 4,
                                          pair.key.rkey),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_int_eq(uct_ep_atomic64_post(pair.link->ep, UCT_ATOMIC_OP_XOR, 1,
                                          remote(&pair, 1), pair.key.rkey),
                     UCS_ERR_UNSUPPORTED);
    ck_assert_int_eq(uct_ep_atomic64_fetch(pair.link->ep, UCT_ATOMIC_OP_SWAP,
                                           1, &result, remote(&pair, 1),
                                           pair.key.rkey, NULL),
                     UCS_ERR_UNSUPPORTED);
    ck_assert_uint_eq(pair.word[1], 0);
    pair_close(&pair);
}
END_TEST


/* Everybody counts in the memory of rank 0, who counts too. */
static void all_count(t_team_t *team)
{
    const unsigned each = t_some(5000);
    uint64_t seen       = 0;
    uint64_t last;
    pair_t pair = {0};
    unsigned i;

    pair.a = pair.b = t_end_open("");
    t_team_put_address(team, pair.a);
    if (team->rank == 0) {
        words_open(&pair);
        memcpy((void*)&team->shared->number[KEY], pair.packed, 8);
        team->shared->number[ADDRESS] = (uintptr_t)pair.word;
    }
    t_team_barrier(team);

    pair.link = t_link_open(pair.a, t_team_get_address(team, 0), 1);
    memcpy(pair.packed, (const void*)&team->shared->number[KEY], 8);
    ck_assert_int_eq(uct_rkey_unpack(pair.a->component, pair.packed,
                                     &pair.key), UCS_OK);
    if (team->rank != 0) {
        pair.word = (uint64_t*)(uintptr_t)team->shared->number[ADDRESS];
    }
    for (i = 0; i < each; i++) {
        if (i % 4 != 0) {
            post_add(&pair, 5, 1);
            continue;
        }
        last = fetch_add(&pair, 5, 1);
        ck_assert((i == 0) || (last > seen));
        seen = last;
    }
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    t_team_barrier(team);

    ck_assert_int_eq(uct_rkey_release(pair.a->component, &pair.key), UCS_OK);
    if (team->rank == 0) {
        ck_assert_uint_eq(pair.word[5], (uint64_t)each * team->size);
        words_close(&pair);
    }
}

START_TEST(test_all_count)
{
    t_only_daqiri("offers these");
    t_team_run(4, 0, all_count);
}
END_TEST


/* ---- Queue pairs that die ---- */

static void plan_set(const char *plan)
{
    const char *bed = getenv("T_BED");

    t_only_daqiri("knows what it does not know");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", plan, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 0), 0);
}


static const struct {
    const char *plan;
    uint64_t   has_happened; /* the one that is hit                          */
} fates[] = {
    {"qp-error qp=rc op=atomic", 0},
    {"qp-error qp=rc op=atomic event=no", 0},
    {"complete qp=rc op=atomic status=RETRY_EXC_ERR", 0},
    {"complete qp=rc op=atomic status=WR_FLUSH_ERR", 0},
    {"lose-ack qp=rc op=atomic", 1},
};

enum { FATES = sizeof(fates) / sizeof(fates[0]), BEHIND = 3 };


/* The one that is hit, and some behind it, all under way together. */
static void fetch_in_vain(pair_t *pair)
{
    uint64_t result[1 + BEHIND];
    t_comp_t comp[1 + BEHIND];
    ucs_status_t status;
    unsigned i;

    for (i = 0; i <= BEHIND; i++) {
        t_comp_init(&comp[i]);
        UNTIL_IT_GOES(status, uct_ep_atomic64_fetch(
                pair->link->ep, UCT_ATOMIC_OP_ADD, 1, &result[i],
                remote(pair, 3), pair->key.rkey, &comp[i].super));
        ck_assert_int_eq(status, UCS_INPROGRESS);
    }
    for (i = 0; i <= BEHIND; i++) {
        T_WAIT(comp[i].calls == 1);
        ck_assert_int_ne(comp[i].super.status, UCS_OK);
    }
}


START_TEST(test_fate_unknown)
{
    const char *words = "a queue pair died while an atomic operation was under "
                        "way: whether it was executed cannot be known";
    unsigned hit, i;
    char plan[128];
    pair_t pair;
    t_rng_t rng;

    t_no_idle_closes("it counts the requests of a queue pair");
    t_rng_init(&rng, 0xfa7e + _i);
    hit = t_rng_range(&rng, 1, 50);
    snprintf(plan, sizeof(plan), "%s n=%u times=1", fates[_i].plan, hit);
    plan_set(plan);
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(words);
    pair_open(&pair, "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms", 0);
    for (i = 1; i < hit; i++) {
        ck_assert_uint_eq(fetch_add(&pair, 3, 1), i - 1);
    }
    fetch_in_vain(&pair);
    T_WAIT(pair.a->errors == 1);
    ck_assert_uint_eq(t_log_count(words), 1);
    ck_assert_uint_eq(pair.word[3], hit - 1 + fates[_i].has_happened);

    t_link_close(pair.link);
    ck_assert_int_eq(uct_rkey_release(pair.a->component, &pair.key), UCS_OK);
    words_close(&pair);
}
END_TEST


/* Queue pairs die of messages, and no atomic is under way then: so few that
 * the other end has no need to grant. */
START_TEST(test_fate_known)
{
    enum { ROUNDS = 60, EACH = 10 };
    t_stream_t stream;
    pair_t pair;
    unsigned i;

    t_no_idle_closes("it counts the requests of a queue pair");
    plan_set("qp-error qp=rc op=send n=10 every=10");
    t_expect_losses_of_qps();
    pair_open(&pair, "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms", 0);
    t_stream_open(&stream, pair.b, 1);
    for (i = 0; i < ROUNDS; i++) {
        ck_assert_uint_eq(fetch_add(&pair, 3, 1), i);
        t_send(pair.link, T_BCOPY, 100);
        T_WAIT(stream.got == i + 1);
    }
    pair_close(&pair);
    ck_assert_uint_eq(pair.a->errors, 0);
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("recoveries"), ROUNDS / EACH - 1);
    ck_assert_uint_eq(t_stats_sum("atomics"), ROUNDS);
}
END_TEST


static Suite *suite_amo(void)
{
    Suite *suite = suite_create("amo");
    TCase *fate  = t_uct_case("fate");
    TCase *one   = t_uct_case("one");
    TCase *many  = t_uct_case("many");

    tcase_add_loop_test(one, test_values, 0, 2);
    tcase_add_test(one, test_refused);
    suite_add_tcase(suite, one);

    tcase_add_loop_test(many, test_many, 0, REFUSED + 1);
    tcase_add_loop_test(many, test_unknown_fate, 0, 2);
    tcase_add_test(many, test_all_count);
    suite_add_tcase(suite, many);

    tcase_add_loop_test(fate, test_fate_unknown, 0, FATES);
    tcase_add_test(fate, test_fate_known);
    suite_add_tcase(suite, fate);
    return suite;
}

T_UCT_MAIN(suite_amo)
