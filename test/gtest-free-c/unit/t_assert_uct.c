/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assertions of the plugin: each ends a process that breaks it, and lets one
 * pass that does not.
 */
#include "base/daqiri_mem.h"
#include "base/daqiri_peer.h"
#include "base/daqiri_pool.h"
#include "cm/daqiri_hs.h"
#include "cm/daqiri_ud.h"
#include "conn/daqiri_conn.h"
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

static struct ibv_qp verbs   = {.qp_num = 9};
static uct_daqiri_hs_t hs;
static uct_daqiri_conn_t conn;

/* A conn that is up, with a request that waits and a command under way. */
static void make_conn(void)
{
    static ucs_queue_elem_t waiting;

    pthread_mutex_init(&iface.mail.lock, NULL);
    ucs_list_head_init(&iface.mail.commands);
    ucs_list_head_init(&iface.mail.events);
    iface.cm.unproven = 1;
    ucs_queue_head_init(&conn.pending.queue);
    ucs_queue_push(&conn.pending.queue, &waiting);
    conn.pending.is_on    = 1;
    conn.iface         = &iface;
    conn.state         = DQ_LIFE_UP;
    conn.sq.gate       = DQ_GATE_UP;
    conn.qp            = (uct_daqiri_qp_t){.verbs = &verbs, .state = DQ_QP_READY};
    conn.peer.iface    = &iface;
    conn.peer.conn     = &conn;
    conn.peer.hs       = &hs;
    conn.peer.mail.commands = UCT_DAQIRI_CMD_OPEN;
    ucs_list_add_tail(&iface.mail.commands, &conn.peer.mail.cmd_link);
    hs = (uct_daqiri_hs_t){.owner = &conn.peer, .qp = &verbs, .qpn = 9, .window = 8,
                           .promised = 8, .interval = 1, .is_timed = 1,
                           .is_unproven = 1};
}

static void check_conn(void)
{
    uct_daqiri_conn_check(&conn);
    uct_daqiri_hs_check(&hs);
    pthread_mutex_lock(&iface.mail.lock);
    uct_daqiri_mail_check(&conn.peer);
    pthread_mutex_unlock(&iface.mail.lock);
}

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

static void peer_of_another_conn(void)
{
    conn.peer.conn = NULL;
    check_conn();
}

static void peer_of_another_interface(void)
{
    conn.peer.iface = NULL;
    uct_daqiri_conn_check(&conn);
}

static void gate_of_another_state(void)
{
    conn.sq.gate = DQ_GATE_DEAD;
    check_conn();
}

static void more_ops_than_slots(void)
{
    conn.ops.count = 2;
    check_conn();
}

static void up_without_ready_qp(void)
{
    conn.qp.state = DQ_QP_CONNECTING;
    check_conn();
}

static void failed_with_ready_qp(void)
{
    conn.state   = DQ_LIFE_FAILED;
    conn.sq.gate = dq_life_gate(conn.state);
    check_conn();
}

static void grant_of_closed_conn(void)
{
    conn.state     = DQ_LIFE_CLOSED;
    conn.sq.gate   = dq_life_gate(conn.state);
    conn.qp        = (uct_daqiri_qp_t){.state = DQ_QP_DESTROYING};
    conn.grant.due = UCT_DAQIRI_GRANT_NEW;
    check_conn();
}

static void retry_of_nothing(void)
{
    conn.retry.is_on = 1;
    check_conn();
}

static void waits_on_no_list(void)
{
    conn.pending.is_on = 0;
    check_conn();
}

static void ready_without_verbs(void)
{
    conn.qp.verbs = NULL;
    check_conn();
}

static void drains_outside_err(void)
{
    conn.state    = DQ_LIFE_RECOVERING;
    conn.sq.gate  = dq_life_gate(conn.state);
    conn.qp.state = DQ_QP_DRAINING;
    check_conn();
}

static void marker_without_send_end(void)
{
    conn.qp.has_marker = 1;
    check_conn();
}

static void taken_by_no_call(void)
{
    conn.qp.drain.taken = 1;
    check_conn();
}

static void handshake_of_another(void)
{
    conn.peer.hs = NULL;
    uct_daqiri_hs_check(&hs);
}

static void number_of_another_qp(void)
{
    hs.qpn = 8;
    check_conn();
}

static void promise_beyond_window(void)
{
    hs.promised = 9;
    check_conn();
}

static void told_a_peer_that_never_spoke(void)
{
    hs.is_told = 1;
    check_conn();
}

static void timer_without_interval(void)
{
    hs.interval = 0;
    check_conn();
}

static void unproven_and_not_counted(void)
{
    iface.cm.unproven = 0;
    check_conn();
}

static void mail_without_lock(void)
{
    uct_daqiri_mail_check(&conn.peer);
}

static void event_among_commands(void)
{
    conn.peer.mail.commands |= UCT_DAQIRI_EVT_QP;
    check_conn();
}

static void command_among_events(void)
{
    conn.peer.mail.events = UCT_DAQIRI_CMD_OPEN;
    ucs_list_add_tail(&iface.mail.events, &conn.peer.mail.evt_link);
    check_conn();
}

static void commands_on_no_list(void)
{
    ucs_list_del(&conn.peer.mail.cmd_link);
    check_conn();
}

static void events_on_no_list(void)
{
    conn.peer.mail.events   = UCT_DAQIRI_EVT_UP;
    conn.peer.mail.evt_link = iface.mail.events;
    check_conn();
}

START_TEST(test_conn)
{
    static void (*const breaches[])(void) = {
        peer_of_another_conn, peer_of_another_interface, gate_of_another_state,
        more_ops_than_slots, up_without_ready_qp, failed_with_ready_qp,
        grant_of_closed_conn, retry_of_nothing, waits_on_no_list, ready_without_verbs,
        drains_outside_err, marker_without_send_end, taken_by_no_call,
        handshake_of_another, number_of_another_qp, promise_beyond_window,
        told_a_peer_that_never_spoke, timer_without_interval,
        unproven_and_not_counted, mail_without_lock, event_among_commands,
        command_among_events, commands_on_no_list, events_on_no_list,
    };
    unsigned i;

    make_conn();
    ck_assert(!t_aborts(check_conn));
    for (i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
        ck_assert_msg(t_aborts(breaches[i]), "breach %u", i);
    }
}
END_TEST

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

START_TEST(test_conn)
{
    t_skip("this flavour is built without DQ_DEBUG, which has no assertions");
}
END_TEST

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
    return t_suite("assert_uct", "sides", test_sides, "objects", test_objects,
                   "conn", test_conn, NULL);
}

T_MAIN(suite_assert_uct)
