/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assertions of the plugin: each ends a process that breaks it, and lets one
 * pass that does not.
 */
#include "base/daqiri_mem.h"
#include "base/daqiri_pool.h"
#include "cm/daqiri_ud.h"
#include "iface/daqiri_iface.h"

#include "t.h"

#if DQ_DEBUG

static uct_daqiri_iface_t iface;

static void *async_side(void *arg)
{
    uct_daqiri_enter_async();
    uct_daqiri_assert_async(&iface);
    ((void (*)(void))arg)();
    uct_daqiri_leave_async();
    return NULL;
}

static void on_async(void (*function)(void))
{
    pthread_t thread;

    pthread_create(&thread, NULL, async_side, (void*)function);
    pthread_join(thread, NULL);
}

static void nothing(void)
{
}

static void need_progress(void)
{
    uct_daqiri_assert_progress(&iface);
}

static void need_async(void)
{
    uct_daqiri_assert_async(&iface);
}

/* A handler on one thread does not make this one async. */
static void both_sides(void)
{
    on_async(need_async);
    need_progress();
}

static void progress_by_handler(void)
{
    on_async(need_progress);
}

/* After its handler a thread of UCX's may progress an interface. */
static void progress_after_handler(void)
{
    async_side((void*)nothing);
    need_progress();
}

static void async_after_handler(void)
{
    async_side((void*)nothing);
    need_async();
}

static void handler_in_handler(void)
{
    uct_daqiri_enter_async();
    uct_daqiri_enter_async();
}

static void leave_what_was_not_entered(void)
{
    uct_daqiri_leave_async();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void hold_mutex(void)
{
    pthread_mutex_lock(&mutex);
    uct_daqiri_assert_held(&mutex);
}

static void need_free_mutex(void)
{
    uct_daqiri_assert_held(&mutex);
}

START_TEST(test_sides)
{
    uct_daqiri_set_open(&iface, 1);
    ck_assert(!t_aborts(need_progress));
    ck_assert(!t_aborts(both_sides));
    ck_assert(!t_aborts(progress_after_handler));
    ck_assert(t_aborts(progress_by_handler));
    ck_assert(t_aborts(need_async));
    ck_assert(t_aborts(async_after_handler));
    ck_assert(t_aborts(handler_in_handler));
    ck_assert(t_aborts(leave_what_was_not_entered));
    uct_daqiri_set_open(&iface, 0); /* one thread plays both */
    ck_assert(!t_aborts(need_async));
    ck_assert(!t_aborts(progress_by_handler));
    ck_assert(!t_aborts(hold_mutex));
    ck_assert(t_aborts(need_free_mutex));
}
END_TEST

/* Objects in order, which the tests below spoil in one place each. */
static char memory[4096];
static uct_daqiri_buf_t bufs[4] = {{.buf = &memory[64]}, {.buf = &memory[1088]}};
static uint32_t free_stack[4];
static uct_daqiri_chunk_t chunks[2] = {{.memory = memory, .length = sizeof(memory)}};
static uct_daqiri_pool_t pool = {
    .stride = 1024, .lead = 64, .limit = 4, .count = 2, .bufs = bufs,
    .free_stack = free_stack, .chunks = chunks, .chunk_count = 1,
    .lock = PTHREAD_MUTEX_INITIALIZER
};
static struct ibv_mr mr      = {.lkey = 7, .rkey = 8};
static uct_daqiri_mem_t mem  = {.mr = &mr, .lkey = 7, .rkey = 8};
static uct_daqiri_ud_t ud    = {.idle = {255, 3}, .idle_count = 2, .send_busy = 2};

static void check_all(void)
{
    pthread_mutex_lock(&pool.lock);
    uct_daqiri_pool_check(&pool);
    uct_daqiri_pool_put(&pool, 1);
    uct_daqiri_mem_check(&mem);
    uct_daqiri_ud_check(&ud);
    uct_daqiri_port_check(&iface);
}

static void pool_without_lock(void)
{
    uct_daqiri_pool_check(&pool);
}

static void more_buffers_than_limit(void)
{
    pool.count = 5;
    check_all();
}

static void buffers_without_chunk(void)
{
    pool.chunk_count = 0;
    check_all();
}

static void more_chunks_than_buffers(void)
{
    pool.chunk_count = 3;
    check_all();
}

static void buffer_before_chunk(void)
{
    bufs[1].buf = &memory[63];
    check_all();
}

static void buffer_behind_chunk(void)
{
    bufs[1].buf = &memory[4096 - 1024 + 64 + 1];
    check_all();
}

static void buffer_of_no_pool(void)
{
    uct_daqiri_pool_put(&pool, 4);
}

static void buffer_put_too_often(void)
{
    pool.free_count = 4;
    check_all();
}

static void memory_without_mr(void)
{
    mem.mr = NULL;
    check_all();
}

static void other_lkey(void)
{
    mem.lkey = 8;
    check_all();
}

static void other_rkey(void)
{
    mem.rkey = 7;
    check_all();
}

static void slot_of_no_ud(void)
{
    ud.idle[1] = 256;
    check_all();
}

static void more_slots_than_there_are(void)
{
    ud.idle_count = 257;
    check_all();
}

static void handle_of_free_slot(void)
{
    ud.once[2] = (struct ibv_ah*)&ud;
    check_all();
}

static void no_port(void)
{
    iface.config.port_num = 0;
    check_all();
}

static void gid_beyond_table(void)
{
    iface.config.gid_index = 3;
    check_all();
}

static void unknown_mtu(void)
{
    iface.config.mtu = 6;
    check_all();
}

static void address_of_another_gid(void)
{
    iface.config.port_addr.gid[0] = 1;
    check_all();
}

START_TEST(test_objects)
{
    static void (*const breaches[])(void) = {
        pool_without_lock, more_buffers_than_limit, buffers_without_chunk,
        more_chunks_than_buffers, buffer_before_chunk, buffer_behind_chunk,
        buffer_of_no_pool, buffer_put_too_often, memory_without_mr, other_lkey,
        other_rkey, slot_of_no_ud, more_slots_than_there_are, handle_of_free_slot,
        no_port, gid_beyond_table, unknown_mtu, address_of_another_gid,
    };
    unsigned i;

    iface.config.port_num         = 1;
    iface.config.mtu              = IBV_MTU_1024;
    iface.config.port.gid_tbl_len = 3;
    ck_assert(!t_aborts(check_all));
    for (i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
        ck_assert_msg(t_aborts(breaches[i]), "breach %u", i);
    }
}
END_TEST

#else

START_TEST(test_sides)
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

static Suite *suite_assert_uct(void)
{
    return t_suite("assert_uct", "sides", test_sides, "objects", test_objects, NULL);
}

T_MAIN(suite_assert_uct)
