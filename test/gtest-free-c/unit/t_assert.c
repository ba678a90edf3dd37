/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assertions of softverbs: each ends a process that breaks it, and lets one
 * pass that does not.
 */
#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_atomic.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_srq.h"

#include "t.h"

#if DQ_DEBUG

static struct sv_spin lock;

static void lock_and_unlock(void)
{
    sv_spin_lock(&lock);
    sv_assert_held(&lock);
    sv_spin_unlock(&lock);
}

static void need_free_lock(void)
{
    sv_assert_held(&lock);
}

static void unlock_free_lock(void)
{
    sv_spin_unlock(&lock);
}

static void *unlock_of_another(void *arg)
{
    sv_spin_unlock(arg);
    return NULL;
}

static void unlock_in_another_thread(void)
{
    pthread_t thread;

    sv_spin_lock(&lock);
    pthread_create(&thread, NULL, unlock_of_another, &lock);
    pthread_join(thread, NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void hold_mutex(void)
{
    pthread_mutex_lock(&mutex);
    sv_assert_mutex_held(&mutex);
}

static void need_free_mutex(void)
{
    sv_assert_mutex_held(&mutex);
}

START_TEST(test_locks)
{
    ck_assert(!t_aborts(lock_and_unlock));
    ck_assert(t_aborts(need_free_lock));
    ck_assert(t_aborts(unlock_free_lock));
    ck_assert(t_aborts(unlock_in_another_thread));
    ck_assert(!t_aborts(hold_mutex));
    ck_assert(t_aborts(need_free_mutex));
}
END_TEST

/* Objects in order, which the tests below spoil in one place each. */
static struct sv_scan scans[1];
static struct sv_cq cq = {
    .mask = 3, .size = 4, .scan = scans, .num_scan = 1, .scan_room = 1
};
static struct sv_qp qp = {
    .base.recv_cq = &cq.base,
    .tx           = {.depth = 4, .posted = 2, .done = 1, .freed = UINT32_MAX}
};
static struct sv_shm_srq shm;
static struct sv_srq srq = {
    .shm = &shm, .rq = {.depth = 4, .shm_posted = &shm.posted}
};

static void check_all(void)
{
    scans[0].qp = &qp;
    sv_spin_lock(&cq.rx_lock);
    sv_spin_lock(&qp.tx.lock);
    sv_spin_lock(&srq.rq.post_lock);
    sv_spin_lock(&cq.lock);
    sv_qp_check(&qp);
    sv_cq_check(&cq);
    sv_rq_check(&srq.rq);
    sv_srq_check(&srq);
}

static void send_queue_too_full(void)
{
    qp.tx.posted = qp.tx.freed + qp.tx.depth + 1;
    check_all();
}

static void done_before_posted(void)
{
    qp.tx.done = qp.tx.posted + 1;
    check_all();
}

static void reached_without_peer(void)
{
    qp.tx.epoch = 1;
    check_all();
}

static void scan_of_another(void)
{
    qp.rx.scan = 1;
    check_all();
}

static void more_active_than_members(void)
{
    cq.num_active = 2;
    check_all();
}

static void more_completions_than_room(void)
{
    cq.tail = 5;
    check_all();
}

static void taken_before_posted(void)
{
    srq.rq.taken = 1;
    check_all();
}

static void limit_above_depth(void)
{
    srq.limit = 5;
    check_all();
}

START_TEST(test_objects)
{
    ck_assert(!t_aborts(check_all));
    ck_assert(t_aborts(send_queue_too_full));
    ck_assert(t_aborts(done_before_posted));
    ck_assert(t_aborts(reached_without_peer));
    ck_assert(t_aborts(scan_of_another));
    ck_assert(t_aborts(more_active_than_members));
    ck_assert(t_aborts(more_completions_than_room));
    ck_assert(t_aborts(taken_before_posted));
    ck_assert(t_aborts(limit_above_depth));
}
END_TEST

#else

START_TEST(test_locks)
{
    t_skip("this flavour is built without DQ_DEBUG, which has no assertions");
}
END_TEST

START_TEST(test_objects)
{
    t_skip("this flavour is built without DQ_DEBUG, which has no assertions");
}
END_TEST

#endif

static Suite *suite_assert(void)
{
    return t_suite("assert", "locks", test_locks, "objects", test_objects, NULL);
}

T_MAIN(suite_assert)
