/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Death and arrest at any instant. Two processes do everything that there is to
 * do to each other, and one of them is killed, or stopped, at a random moment:
 * while it opens the device, connects, sends, receives, copies, or holds one of
 * the device's locks. The other must get the error that a device gives whose
 * partner fell silent, and nothing else; what arrived before must be whole; and
 * what the two shared must work for those who are left.
 *
 * T_KILLS says how many rounds there are (contrib/check --long kills: 1000).
 */
#include "t_device.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WINDOW    = 8,     /* requests under way */
    RECVS     = 16,
    LONGEST   = 20000, /* more than one record of the device */
    DATAGRAM  = 1000,
    MARK      = 0xee,  /* in datagrams to oneself */
    /* where what is in an end's buffer */
    AT_WORDS  = 0,     /* what the other side adds to and swaps */
    AT_TARGET = 64,    /* what it writes to and reads from */
    AT_OUT    = AT_TARGET + LONGEST,
    AT_IN     = AT_OUT + WINDOW * LONGEST,
    BYTES     = AT_IN + RECVS * LONGEST
};

/* 1 ms, three times */
static const struct t_link mortal = {.timeout = 8, .retry_cnt = 2,
                                     .rnr_retry = 7};

/* What a victim has done, in memory that outlives it. */
struct deeds {
    _Atomic uint64_t done;
    _Atomic uint64_t adds_posted, adds_done;
    _Atomic uint64_t swaps_posted, swaps_done;
};

/* What a process likes to do. Who does but one thing is in the middle of it
 * when it is killed, perhaps with a lock. */
struct mood {
    unsigned           window;    /* requests under way */
    unsigned           datagrams; /* under way */
    unsigned           count;
    enum ibv_wr_opcode opcodes[8];
};

static const struct mood moods[] = {
    {WINDOW, WINDOW, 8,
     {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
      IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
      IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}},
    {WINDOW, 0, 2, {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}},
    {1, WINDOW, 1, {IBV_WR_SEND}},
    {WINDOW, 0, 2, {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}},
    {WINDOW, 0, 2, {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM}}
};

enum { MOODS = sizeof(moods) / sizeof(moods[0]) };

struct player {
    struct t_end     rc, ud;
    struct t_address rc_to, ud_to, own_ud;
    struct ibv_ah   *ah;
    struct deeds    *deeds;
    t_rng_t          rng;
    bool             sleeps;
    const struct mood *mood;
    uint64_t         posted, done; /* requests on rc */
    uint64_t         sent, got;    /* messages, numbered */
    uint64_t         guess;        /* what the word that is swapped holds */
    uint64_t         guessed[WINDOW];
    enum ibv_wr_opcode opcode[WINDOW];
    unsigned         flying;       /* datagrams under way */
    uint64_t         marks;        /* received */
    bool             failed;
};

/* ---- one side at work ---- */

/* The message that is the number-th. */
static void fill_message(uint8_t *at, uint64_t number, size_t length)
{
    memcpy(at, &number, sizeof(number));
    memset(at + sizeof(number), (uint8_t)(number * 7),
           length - sizeof(number));
}

static void check_message(const uint8_t *at, uint64_t number, size_t length)
{
    uint64_t found;

    memcpy(&found, at, sizeof(found));
    ck_assert_uint_eq(found, number);
    ck_assert_uint_eq(at[sizeof(number)], (uint8_t)(number * 7));
    ck_assert_mem_eq(at + sizeof(number), at + sizeof(number) + 1,
                     length - sizeof(number) - 1);
}

static void fill_request(struct player *p, struct ibv_send_wr *wr,
                         struct ibv_sge *sge)
{
    p->guessed[p->posted % WINDOW] = p->guess;
    switch (wr->opcode) {
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        sge->length                = 8;
        wr->wr.atomic.remote_addr  = p->rc_to.buf + AT_WORDS;
        wr->wr.atomic.rkey         = p->rc_to.rkey;
        wr->wr.atomic.compare_add  = 1;
        ++p->deeds->adds_posted;
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        sge->length                = 8;
        wr->wr.atomic.remote_addr  = p->rc_to.buf + AT_WORDS + 8;
        wr->wr.atomic.rkey         = p->rc_to.rkey;
        wr->wr.atomic.compare_add  = p->guess;
        wr->wr.atomic.swap         = p->guess + 1;
        ++p->deeds->swaps_posted;
        break;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        fill_message((uint8_t*)(uintptr_t)sge->addr, p->sent++, sge->length);
        break;
    default:
        wr->wr.rdma.remote_addr = p->rc_to.buf + AT_TARGET;
        wr->wr.rdma.rkey        = p->rc_to.rkey;
        break;
    }
}

static void post_request(struct player *p)
{
    unsigned slot         = p->posted % WINDOW;
    struct ibv_sge sge    = {
        .addr   = (uintptr_t)p->rc.buf + AT_OUT + slot * LONGEST,
        .length = t_rng_range(&p->rng, 16,
                              t_rng_once_in(&p->rng, 4) ? LONGEST : 300),
        .lkey   = p->rc.mr->lkey
    };
    struct ibv_send_wr wr = {
        .wr_id      = p->posted,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = p->mood->opcodes[t_rng_below(&p->rng,
                                                   p->mood->count)],
        .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad;

    fill_request(p, &wr, &sge);
    p->opcode[slot] = wr.opcode;
    ++p->posted;
    ck_assert_int_eq(ibv_post_send(p->rc.qp, &wr, &bad), 0);
}

static void note_deed(struct player *p, unsigned slot)
{
    uint64_t found;
    bool swapped;

    memcpy(&found, p->rc.buf + AT_OUT + slot * LONGEST, sizeof(found));
    if (p->opcode[slot] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        ++p->deeds->adds_done;
    } else if (p->opcode[slot] == IBV_WR_ATOMIC_CMP_AND_SWP) {
        swapped               = (found == p->guessed[slot]);
        p->guess              = found + swapped;
        p->deeds->swaps_done += swapped;
    }
}

/* Before the first failure all succeed, in order; it is RETRY_EXC, and after it
 * all are flushed. */
static bool poll_requests(struct player *p)
{
    struct ibv_wc wc;

    if (ibv_poll_cq(p->rc.send_cq, 1, &wc) == 0) {
        return false;
    }

    ck_assert_uint_eq(wc.wr_id, p->done);
    if (p->failed) {
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    } else if (wc.status != IBV_WC_SUCCESS) {
        ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
        p->failed = true;
    } else {
        note_deed(p, p->done % WINDOW);
        ++p->deeds->done;
    }
    ++p->done;
    return true;
}

static bool poll_messages(struct player *p)
{
    struct ibv_wc wc;
    size_t at;

    if (ibv_poll_cq(p->rc.recv_cq, 1, &wc) == 0) {
        return false;
    }
    if (wc.status != IBV_WC_SUCCESS) {
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
        return true;
    }

    at = AT_IN + wc.wr_id * LONGEST;
    if (wc.opcode == IBV_WC_RECV) {
        check_message(p->rc.buf + at, p->got++, wc.byte_len);
    }
    ck_assert_int_eq(t_post_recv(&p->rc, wc.wr_id, at, LONGEST), 0);
    return true;
}

/* To the other side and to oneself, which take the same lock. */
static void post_datagram(struct player *p)
{
    bool own = t_rng_once_in(&p->rng, 2);

    ++p->flying;
    ck_assert_int_eq(t_post_datagram(&p->ud, p->ah,
                                     own ? p->own_ud.qpn : p->ud_to.qpn,
                                     T_QKEY, 0, own ? AT_OUT : AT_TARGET,
                                     DATAGRAM), 0);
}

static bool poll_datagrams(struct player *p)
{
    const uint8_t *at;
    struct ibv_wc wc;
    bool busy = false;

    if (ibv_poll_cq(p->ud.send_cq, 1, &wc) == 1) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        --p->flying;
        busy = true;
    }
    if (ibv_poll_cq(p->ud.recv_cq, 1, &wc) == 1) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.byte_len, DATAGRAM + 40);
        at        = p->ud.buf + AT_IN + wc.wr_id * LONGEST + 40;
        p->marks += (at[0] == MARK);
        ck_assert_mem_eq(at, at + 1, DATAGRAM - 1);
        ck_assert_int_eq(t_post_recv(&p->ud, wc.wr_id,
                                     AT_IN + wc.wr_id * LONGEST, LONGEST), 0);
        busy = true;
    }
    return busy;
}

/* False: there is nothing to do now. */
static bool step(struct player *p)
{
    bool busy;

    if (!p->failed && (p->posted - p->done < p->mood->window)) {
        post_request(p);
    }
    if (p->flying < p->mood->datagrams) {
        post_datagram(p);
    }
    busy  = poll_requests(p);
    busy |= poll_messages(p);
    busy |= poll_datagrams(p);
    return busy;
}

/* Sleeps on the channel of rc until something comes, or for a millisecond
 * unless it is `certain` that something will. */
static void doze(struct player *p, bool certain)
{
    struct pollfd pfd = {.events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    ck_assert_int_eq(ibv_req_notify_cq(p->rc.send_cq, 0), 0);
    ck_assert_int_eq(ibv_req_notify_cq(p->rc.recv_cq, 0), 0);
    if (step(p)) {
        return;
    }

    pfd.fd = p->rc.channel->fd;
    while (poll(&pfd, 1, certain ? -1 : 1) == 1) {
        ck_assert_int_eq(ibv_get_cq_event(p->rc.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        certain = false;
        if (poll(&pfd, 1, 0) == 0) {
            return;
        }
    }
}

static void work(struct player *p, bool certain)
{
    if (!step(p) && p->sleeps) {
        doze(p, certain && !p->failed && (p->done < p->posted));
    }
}

/* ---- coming and going ---- */

static void open_player(struct player *p, struct deeds *deeds, uint64_t salt)
{
    struct t_make make = {.size = BYTES, .depth = RECVS};

    memset(p, 0, sizeof(*p));
    t_rng_init(&p->rng, salt);
    p->deeds     = deeds;
    p->mood      = &moods[t_rng_below(&p->rng, MOODS)];
    p->sleeps    = t_rng_once_in(&p->rng, 2);
    make.channel = p->sleeps;
    make.srq     = t_rng_once_in(&p->rng, 2);
    t_end_open(&p->rc, &make);
    make = (struct t_make){.size = BYTES, .depth = RECVS,
                           .type = IBV_QPT_UD};
    t_end_open(&p->ud, &make);
    memset(p->ud.buf + AT_OUT, MARK, DATAGRAM);
    p->own_ud = t_end_address(&p->ud);
}

static void bring_up(struct player *p)
{
    int i;

    t_end_up(&p->rc, &p->rc_to, &mortal);
    t_end_up(&p->ud, &p->ud_to, NULL);
    p->ah = t_create_ah(&p->ud, &p->ud_to);
    for (i = 0; i < RECVS; ++i) {
        ck_assert_int_eq(t_post_recv(&p->rc, i, AT_IN + i * LONGEST, LONGEST),
                         0);
        ck_assert_int_eq(t_post_recv(&p->ud, i, AT_IN + i * LONGEST, LONGEST),
                         0);
    }
}

static void close_player(struct player *p)
{
    if (p->ah != NULL) {
        ck_assert_int_eq(ibv_destroy_ah(p->ah), 0);
    }
    t_end_close(&p->rc);
    t_end_close(&p->ud);
}

struct hello {
    struct t_address rc, ud;
};

/* Works until it is killed, or until the other side is gone. */
static void victim(int fd, struct deeds *deeds, uint64_t salt)
{
    struct player p;
    struct hello hello;

    open_player(&p, deeds, salt);
    hello = (struct hello){t_end_address(&p.rc), t_end_address(&p.ud)};
    t_tell(fd, &hello, sizeof(hello));
    t_hear(fd, &hello, sizeof(hello));
    p.rc_to = hello.rc;
    p.ud_to = hello.ud;
    bring_up(&p);
    t_meet(fd);
    while (!p.failed || (p.done < p.posted)) {
        work(&p, false);
    }
    close_player(&p);
}

/* ---- the one who stays ---- */

enum fate {
    FATE_BORN,      /* killed on its way to work */
    FATE_KILLED,
    FATE_STOPPED,   /* stopped, and killed then */
    FATE_CONTINUED, /* stopped for a while; killed in the end */
    FATE_LEFT,      /* stopped while we leave; goes on to find us gone */
    FATES
};

struct round {
    struct player p;
    enum fate     fate;
    pid_t         pid;
    int           fd;
    uint64_t      due; /* when the victim's hour comes */
    bool          killed;
};

static void kill_when_due(struct round *r)
{
    if (!r->killed && (t_now_ns() >= r->due)) {
        ck_assert_int_eq(kill(r->pid, SIGKILL), 0);
        r->killed = true;
    }
}

/* False: the victim is dead. */
static bool hear_from(struct round *r, void *data, size_t length)
{
    ssize_t n;

    for (;;) {
        n = recv(r->fd, data, length, MSG_PEEK | MSG_DONTWAIT);
        if (n == (ssize_t)length) {
            return recv(r->fd, data, length, 0) == n;
        }
        if ((n == 0) || ((n < 0) && (errno != EAGAIN))) {
            return false;
        }
        kill_when_due(r);
        sched_yield();
    }
}

static bool tell_to(struct round *r, const void *data, size_t length)
{
    return send(r->fd, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool meet_victim(struct round *r)
{
    struct hello own = {t_end_address(&r->p.rc), t_end_address(&r->p.ud)};
    struct hello hello;
    char c = 'm';

    if (!tell_to(r, &own, sizeof(own)) ||
        !hear_from(r, &hello, sizeof(hello))) {
        return false;
    }
    r->p.rc_to = hello.rc;
    r->p.ud_to = hello.ud;
    bring_up(&r->p);
    return tell_to(r, &c, 1) && hear_from(r, &c, 1);
}

static void work_until(struct round *r, uint64_t when)
{
    while (t_now_ns() < when) {
        work(&r->p, false);
        ck_assert(!r->p.failed);
    }
}

static void stop_victim(struct round *r)
{
    int status;

    ck_assert_int_eq(kill(r->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(r->pid, &status, WUNTRACED), r->pid);
    ck_assert_msg(WIFSTOPPED(status), "the victim ended with status %#x",
                  status);
}

static uint64_t soon(struct round *r)
{
    return t_now_ns() + t_rng_below(&r->p.rng, 3000000);
}

/* A process that was stopped was slow, no more. */
static void let_continue(struct round *r, const struct deeds *theirs)
{
    uint64_t done, theirs_done;

    work_until(r, soon(r));
    ck_assert_int_eq(kill(r->pid, SIGCONT), 0);
    done        = r->p.done + 20;
    theirs_done = theirs->done + 20;
    while ((r->p.done < done) || (theirs->done < theirs_done)) {
        work(&r->p, false);
        ck_assert(!r->p.failed);
    }
}

/* While the victim is stopped: it may be in the middle of something that it
 * does to our memory, which then is not free yet. */
static void leave(struct round *r)
{
    int ret, status;

    ck_assert_int_eq(ibv_destroy_qp(r->p.rc.qp), 0);
    r->p.rc.qp = NULL;
    ret = ibv_dereg_mr(r->p.rc.mr);
    ck_assert((ret == 0) || (ret == EBUSY));
    ck_assert_int_eq(kill(r->pid, SIGCONT), 0);
    while (ret == EBUSY) {
        ret = ibv_dereg_mr(r->p.rc.mr);
    }
    ck_assert_int_eq(ret, 0);
    r->p.rc.mr = NULL;
    ck_assert_int_eq(waitpid(r->pid, &status, 0), r->pid);
    ck_assert_msg(status == 0, "the victim ended with status %#x", status);
    r->pid = 0;
}

/* What is shared works for the living: the lock of the datagrams' ring, the
 * lock of the atomics. */
static void check_locks(struct player *p, struct t_end *self)
{
    const struct t_address own = t_end_address(self);
    uint64_t *word             = (uint64_t*)self->buf;
    uint64_t before            = *word;
    uint64_t marks             = p->marks;

    ck_assert_int_eq(t_post_atomic(self, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 64,
                                   &own, 0, 3, 0), 0);
    t_poll_is(self->send_cq, 7, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*word, before + 3);
    while (p->marks == marks) {
        if (p->flying < WINDOW) {
            post_datagram(p);
        }
        poll_datagrams(p);
    }
}

static void check_deeds(const struct player *p, const struct deeds *deeds)
{
    const uint64_t *word = (uint64_t*)(p->rc.buf + AT_WORDS);

    ck_assert_uint_ge(word[0], deeds->adds_done);
    ck_assert_uint_le(word[0], deeds->adds_posted);
    ck_assert_uint_ge(word[1], deeds->swaps_done);
    ck_assert_uint_le(word[1], deeds->swaps_posted);
}

static void see_it_die(struct round *r)
{
    if (!r->killed) {
        ck_assert_int_eq(kill(r->pid, SIGKILL), 0);
        r->killed = true;
    }
    while (!r->p.failed || (r->p.done < r->p.posted)) {
        work(&r->p, true);
    }
}

static void work_with_victim(struct round *r, const struct deeds *theirs,
                             struct t_end *self)
{
    /* A victim that was killed on its way to work may have said all its
     * words before. */
    if (!r->killed) {
        work_until(r, soon(r));
    }
    switch (r->fate) {
    case FATE_STOPPED:
        stop_victim(r);
        work_until(r, soon(r));
        break;
    case FATE_CONTINUED:
        stop_victim(r);
        let_continue(r, theirs);
        break;
    case FATE_LEFT:
        stop_victim(r);
        leave(r);
        check_locks(&r->p, self);
        return;
    default:
        break;
    }
    see_it_die(r);
    check_locks(&r->p, self);
    ck_assert_int_eq(waitpid(r->pid, NULL, 0), r->pid);
    r->pid = 0;
    check_deeds(&r->p, theirs);
}

static void one_round(struct deeds deeds[2], struct t_end *self, unsigned i)
{
    struct round r = {.fate = i % FATES, .due = UINT64_MAX};
    int fds[2];

    memset(deeds, 0, 2 * sizeof(*deeds));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
                                fds), 0);
    r.pid = fork();
    ck_assert_int_ge(r.pid, 0);
    if (r.pid == 0) {
        close(fds[0]);
        t_unmarked = 1;
        victim(fds[1], &deeds[0], 2 * i);
        exit(0);
    }

    close(fds[1]);
    r.fd = fds[0];
    open_player(&r.p, &deeds[1], 2 * i + 1);
    if (r.fate == FATE_BORN) {
        r.due = soon(&r);
    }
    if (meet_victim(&r)) {
        work_with_victim(&r, &deeds[0], self);
    }
    if (r.pid != 0) {
        ck_assert(r.killed);
        ck_assert_int_eq(waitpid(r.pid, NULL, 0), r.pid);
    }
    close(r.fd);
    close_player(&r.p);
}

static unsigned rounds_wanted(void)
{
    const char *text = getenv("T_KILLS");

    return (text != NULL) ? strtoul(text, NULL, 0) : t_times(50);
}

START_TEST(test_kill)
{
    struct t_address own;
    struct t_end self;
    void *deeds;
    unsigned i;

#ifdef __SANITIZE_THREAD__
    t_skip("the thread sanitizer ends what starts threads after a fork");
#endif
    deeds = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(deeds, MAP_FAILED);
    t_end_open(&self, NULL);
    own = t_end_address(&self);
    t_end_up(&self, &own, NULL);
    for (i = 0; i < rounds_wanted(); ++i) {
        one_round(deeds, &self, i);
    }
    t_end_close(&self);
    ck_assert_int_eq(munmap(deeds, 4096), 0);
}
END_TEST

static Suite *suite_kill(void)
{
    Suite *suite = suite_create("kill");
    TCase *tcase = tcase_create("kill");

    /* 50 rounds take a second, 1000 twenty */
    tcase_set_timeout(tcase, T_TIMEOUT + rounds_wanted());
    tcase_add_test(tcase, test_kill);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_kill)
