/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who asks, in order: edges by number, then random questions beside a model that is a
 * plain array, with names that share a bucket.
 */
#include "t_unit.h"
#include "dq/dq_backlog.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZE  = 64,
    NAMES = 100,
    STEPS = 40000,
    RUNS  = 8
};

typedef struct {
    uint64_t key[SIZE];
    unsigned count;
} model_t;


/* More room, in other memory: the old one must not be read any more. */
static void grow(dq_backlog_t *backlog, uint32_t size)
{
    dq_backlog_entry_t *entry = malloc(size * sizeof(*entry));

    ck_assert_ptr_nonnull(entry);
    memset(entry, 0xa5, size * sizeof(*entry));
    if (backlog->size > 0) {
        memcpy(entry, backlog->entry, backlog->size * sizeof(*entry));
        memset(backlog->entry, 0xa5, backlog->size * sizeof(*entry));
        free(backlog->entry);
    }
    dq_backlog_grow(backlog, entry, size);
}


/* ---- Edges ---- */

START_TEST(test_no_room)
{
    dq_backlog_t backlog;

    dq_backlog_init(&backlog);
    T_NEED_EQ(backlog.count, 0);
    T_NEED_EQ(dq_backlog_find(&backlog, 7), DQ_BACKLOG_NONE);
    T_NEED_EQ(dq_backlog_take(&backlog), DQ_BACKLOG_NONE);
    T_NEED_EQ(dq_backlog_put(&backlog, 7), DQ_BACKLOG_NONE);
    dq_backlog_remove(&backlog, 7);
    T_NEED_EQ(backlog.count, 0);
}
END_TEST


/* 1, size, size + 1; then one more room for each that goes. */
START_TEST(test_full)
{
    dq_backlog_t backlog;
    unsigned i;

    dq_backlog_init(&backlog);
    grow(&backlog, 4);
    for (i = 0; i < 4; i++) {
        T_NEED_EQ(dq_backlog_put(&backlog, 10 + i), i); /* low indices first */
        T_NEED_EQ(backlog.count, i + 1);
    }
    T_NEED_EQ(dq_backlog_put(&backlog, 14), DQ_BACKLOG_NONE);
    T_NEED_EQ(dq_backlog_put(&backlog, 12), 2); /* it is there already */
    T_NEED_EQ(backlog.count, 4);

    T_NEED_EQ(dq_backlog_take(&backlog), 0);
    T_NEED_EQ(dq_backlog_put(&backlog, 14), 0);
    T_NEED_EQ(dq_backlog_put(&backlog, 15), DQ_BACKLOG_NONE);

    grow(&backlog, 8);
    for (i = 11; i < 15; i++) {
        T_NEED(dq_backlog_find(&backlog, i) != DQ_BACKLOG_NONE);
    }
    T_NEED_EQ(dq_backlog_put(&backlog, 15), 4);
    for (i = 1; i < 4; i++) {
        T_NEED_EQ(dq_backlog_take(&backlog), i);
    }
    T_NEED_EQ(dq_backlog_take(&backlog), 0);
    T_NEED_EQ(dq_backlog_take(&backlog), 4);
    T_NEED_EQ(dq_backlog_take(&backlog), DQ_BACKLOG_NONE);
    free(backlog.entry);
}
END_TEST


/* Who asks again keeps the place. Who has left begins at the end. */
START_TEST(test_place)
{
    dq_backlog_t backlog;
    uint32_t index;

    dq_backlog_init(&backlog);
    grow(&backlog, 4);
    (void)dq_backlog_put(&backlog, 1);
    (void)dq_backlog_put(&backlog, 2);
    (void)dq_backlog_put(&backlog, 3);
    (void)dq_backlog_put(&backlog, 1);
    index = dq_backlog_take(&backlog);
    T_NEED_EQ(backlog.entry[index].key, 1);
    (void)dq_backlog_put(&backlog, 1);
    index = dq_backlog_take(&backlog);
    T_NEED_EQ(backlog.entry[index].key, 2);
    free(backlog.entry);
}
END_TEST


/* The first, the middle one, the last, the only one; one that is not there. */
START_TEST(test_remove)
{
    static const uint64_t gone[] = {1, 3, 5};
    dq_backlog_t backlog;
    unsigned i;

    dq_backlog_init(&backlog);
    grow(&backlog, 8);
    for (i = 1; i <= 5; i++) {
        (void)dq_backlog_put(&backlog, i);
    }
    dq_backlog_remove(&backlog, 9);
    for (i = 0; i < 3; i++) {
        dq_backlog_remove(&backlog, gone[i]);
        T_NEED_EQ(dq_backlog_find(&backlog, gone[i]), DQ_BACKLOG_NONE);
    }
    T_NEED_EQ(backlog.count, 2);
    T_NEED_EQ(backlog.entry[dq_backlog_take(&backlog)].key, 2);
    (void)dq_backlog_put(&backlog, 6);
    T_NEED_EQ(backlog.entry[dq_backlog_take(&backlog)].key, 4);
    dq_backlog_remove(&backlog, 6);
    T_NEED_EQ(dq_backlog_take(&backlog), DQ_BACKLOG_NONE);
    (void)dq_backlog_put(&backlog, 7);
    T_NEED_EQ(backlog.entry[dq_backlog_take(&backlog)].key, 7);
    free(backlog.entry);
}
END_TEST


/* ---- Random ---- */

static unsigned model_find(const model_t *model, uint64_t key)
{
    unsigned i;

    for (i = 0; (i < model->count) && (model->key[i] != key); i++) {
    }
    return i;
}


static void model_remove(model_t *model, unsigned at)
{
    if (at < model->count) {
        model->count--;
        memmove(&model->key[at], &model->key[at + 1],
                (model->count - at) * sizeof(model->key[0]));
    }
}


/* All of the same order, from both ends, and each is found. */
static void check_same(const dq_backlog_t *backlog, const model_t *model)
{
    uint32_t index = backlog->oldest;
    uint32_t older = DQ_BACKLOG_NONE;
    unsigned i;

    T_NEED_EQ(backlog->count, model->count);
    for (i = 0; i < model->count; i++) {
        T_NEED(index < backlog->size);
        T_NEED_EQ(backlog->entry[index].key, model->key[i]);
        T_NEED_EQ(backlog->entry[index].older, older);
        T_NEED_EQ(dq_backlog_find(backlog, model->key[i]), index);
        older = index;
        index = backlog->entry[index].newer;
    }
    T_NEED_EQ(index, DQ_BACKLOG_NONE);
    T_NEED_EQ(backlog->newest, older);
}


static void random_step(dq_backlog_t *backlog, model_t *model, t_rng_t *rng)
{
    /* every other name has its bucket in common with others */
    uint64_t name = t_rng_below(rng, NAMES);
    uint64_t key  = (name % 2) ? name * SIZE * 4 + 3 : name * 0x9e3779b97f4a7c15;
    unsigned at   = model_find(model, key);
    uint32_t index;

    switch (t_rng_below(rng, 8)) {
    case 0:
    case 1:
        index = dq_backlog_take(backlog);
        T_NEED_EQ(index == DQ_BACKLOG_NONE, model->count == 0);
        T_NEED((model->count == 0) || (backlog->entry[index].key == model->key[0]));
        model_remove(model, 0);
        break;
    case 2:
        dq_backlog_remove(backlog, key);
        model_remove(model, at);
        T_NEED_EQ(dq_backlog_find(backlog, key), DQ_BACKLOG_NONE);
        break;
    case 3:
        if ((backlog->size < SIZE) && (t_rng_below(rng, 100) == 0)) {
            grow(backlog, backlog->size * 2);
        }
        break;
    default:
        index = dq_backlog_put(backlog, key);
        T_NEED_EQ(index == DQ_BACKLOG_NONE,
                  (at == model->count) && (model->count == backlog->size));
        if ((index != DQ_BACKLOG_NONE) && (at == model->count)) {
            model->key[model->count++] = key;
        }
        break;
    }
}


START_TEST(test_random)
{
    model_t model = {{0}};
    dq_backlog_t backlog;
    t_rng_t rng;

    t_rng_init(&rng, 0xbac1 + _i);
    dq_backlog_init(&backlog);
    grow(&backlog, 1);
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(&backlog, &model, &rng);
        check_same(&backlog, &model);
    }
    T_NEED_EQ(backlog.size, SIZE);
    free(backlog.entry);
}
END_TEST


static Suite *suite_backlog(void)
{
    Suite *suite  = suite_create("backlog");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_add_test(edges, test_no_room);
    tcase_add_test(edges, test_full);
    tcase_add_test(edges, test_place);
    tcase_add_test(edges, test_remove);
    suite_add_tcase(suite, edges);

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_backlog)
