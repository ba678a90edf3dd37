/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixture for tests of a transport through the public UCT API.
 *
 * An *end* is an interface with its worker and memory domain; its name for
 * others is a t_address_t. A *link* is an endpoint, together with the stream
 * of messages sent on it: message n of a stream is made from the stream's
 * active message id, n and the length, so that whoever receives the stream
 * can check every byte, the order and that nothing is missing. A *stream* is
 * the receiving side of that.
 *
 * A test case that uses this is built by t_uct_case(). After each test its
 * teardown closes what is open and then looks for what may have gone wrong
 * behind the test's back:
 *   - a warning or an error in UCX's log that the test did not announce;
 *   - in the counters that the plugin leaves behind, a work request or a
 *     receive buffer that is not accounted for, a message that did not arrive.
 *
 * T_DEVICES="rxe0:1 rxe1:1" spreads the ends over devices, so that what they
 * send travels on the wire between them.
 *
 * T_TL names the transport (daqiri). On another one (ud_verbs, tcp, self) the
 * counters are not there, all else is the same: a test of the tests.
 *
 * A *team* is a number of processes, forked before any of them touches UCX.
 * They share one page: addresses, a barrier, numbers.
 */
#ifndef T_UCT_H
#define T_UCT_H

#include "t.h"

#include <uct/api/uct.h>
#include <sched.h>

enum {
    T_TEAM_MAX    = 16,
    T_ADDRESS_MAX = 256,
    T_NUMBERS     = 64,
    T_KEY_MAX     = 256,
    T_LENGTH_MAX  = 2 << 20 /* of a message                                  */
};

typedef struct {
    size_t  dev_length, iface_length;
    uint8_t dev[T_ADDRESS_MAX], iface[T_ADDRESS_MAX];
} t_address_t;

typedef struct t_held {
    void          *data;
    size_t        length;
    uint64_t      number;
    struct t_held *next;
} t_held_t;

/* What arrives with one active message id. */
typedef struct t_stream {
    uint8_t  id;
    uint64_t got;     /* messages, each checked                              */
    uint64_t bytes;
    int      keep;    /* hold each buffer that may be held                   */
    unsigned kept;
    t_held_t *held;
} t_stream_t;

typedef struct t_end {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_component_h     component;
    uct_md_h            md;
    uct_iface_h         iface;
    uct_md_attr_t       md_attr;
    uct_iface_attr_t    attr;
    t_address_t         address;
    unsigned            errors;     /* endpoints reported as failed          */
    ucs_status_t        error;      /* the last one's status                 */
    uct_ep_h            error_ep;
    int                 is_stopped; /* t_progress() leaves it out            */
    int                 is_rude;    /* closes without a flush                */
    struct t_end        *next;
} t_end_t;

/* How a message is sent. */
typedef enum {
    T_SHORT,
    T_SHORT_IOV,
    T_BCOPY,
    T_ZCOPY,
    T_HOW_LAST
} t_how_t;

typedef struct t_link {
    t_end_t       *end;
    uct_ep_h      ep;
    uint8_t       id;
    uint64_t      sent;
    uint64_t      bytes;
    unsigned      header;    /* of zcopy: bytes of it                        */
    unsigned      pieces;    /* of zcopy and short_iov: iov entries          */
    unsigned      zcopies;   /* completions still to come                    */
    uint64_t      zcopies_sent;
    ucs_status_t  zcopy_status; /* of the last completion                    */
    struct t_link *next;
} t_link_t;

/* Memory that an end has registered, and the key to it as its peers have it. */
typedef struct {
    t_end_t           *end;
    uint8_t           *mem;
    size_t            length;
    int               is_given; /* the memory is the caller's                */
    uct_mem_h         memh;
    uint8_t           packed[T_KEY_MAX];
    uct_rkey_bundle_t key;
} t_region_t;

/* Counts its calls; more than one is a failure. */
typedef struct {
    uct_completion_t super;
    unsigned         calls;
} t_comp_t;

/* One process of a team, and what all of them share. */
typedef struct {
    volatile uint64_t number[T_NUMBERS]; /* free to use; zero at first       */
    volatile uint32_t has_address[T_TEAM_MAX];
    volatile uint32_t arrived;
    t_address_t       address[T_TEAM_MAX];
    pid_t             pid[T_TEAM_MAX];
} t_shared_t;

typedef struct {
    unsigned   rank, size;
    uint32_t   phase;
    t_shared_t *shared;
} t_team_t;

/* ---- Suites ---- */

/* A test case with this fixture. */
TCase *t_uct_case(const char *name);

/* For main() of a program that uses this: UCX reads its environment before
 * main() runs, so the program starts itself once more with a good one. */
int t_uct_main(char **argv, const t_suite_func_t *suites, size_t count);

#define T_UCT_MAIN(...) \
    int main(int argc, char **argv) \
    { \
        const t_suite_func_t suites[] = {__VA_ARGS__}; \
        (void)argc; \
        return t_uct_main(argv, suites, sizeof(suites) / sizeof(suites[0])); \
    }

const char *t_tl(void);
/* How much of something that takes @a count where nothing is in the way: less
 * where every access is watched, or every message passes an emulated kernel. */
unsigned t_some(unsigned count);
/* Of a clock that nobody sets. */
double t_seconds(void);
/* Of the clock by which UCX and the transport measure time. */
double t_ucx_seconds(void);
/* Skips the test on another transport; @a why completes "only daqiri ...". */
void t_only_daqiri(const char *why);

/* Have all interfaces a budget of queue pairs (t_budgeted.bats)? Then some are closed
 * because they are idle. */
int t_has_idle_closes(void);

/* Skips the test there; @a why says what it needs. */
void t_no_idle_closes(const char *why);

/* Other transports have no statistics of ours. */
int t_is_daqiri(void);

/* The device does this from now on. By a count of requests it could be too soon,
 * for nobody knows how many are asked for while the ends meet. */
void t_plan_by_command(const char *rule);

/* This test may cause log lines that contain @a words. */
void t_expect_log(const char *words);
/* How many lines of the log, so far, contain @a words. */
unsigned t_log_count(const char *words);
/* Sum of the numbers that stand before @a words in the log so far. */
uint64_t t_log_sum(const char *words);
/* Queue pairs die in this test, and nothing may be lost by it. */
void t_expect_losses_of_qps(void);
/* The device refuses requests in this test. */
void t_expect_refused_posts(void);
/* Messages that no peer sends arrive in this test. */
void t_expect_bad_messages(void);
/* Messages may be lost in this test (a peer dies); the rest must add up. */
void t_expect_loss(void);

/* Sum of one counter over the interfaces closed so far, or its largest. */
uint64_t t_stats_sum(const char *key);
uint64_t t_stats_max(const char *key);

/* Sum of one value over the interfaces of this process that are open now. */
uint64_t t_live_sum(const char *key);

/* ---- Ends ---- */

/* @a options: "NAME=VALUE NAME=VALUE ..." without the prefix, or "". */
t_end_t *t_end_open(const char *options);
/* The same with parameters of its own, which may be NULL; it may fail. */
ucs_status_t t_end_try_open(const uct_iface_params_t *more,
                            const char *options, t_end_t **end_p);
/* Flushes and closes it, and the links that leave from it. */
void t_end_close(t_end_t *end);
/* The same without a flush: it leaves with what it has under way. */
void t_end_leave(t_end_t *end);
/* All of them, after flushing all: a peer that closes takes away completions
 * that others have not seen yet. */
void t_end_close_all(void);

/* Lets every end of this process work. Returns how much was done. */
unsigned t_progress(void);

/* Works until the condition holds. What bounds it is the test's time. */
#define T_WAIT(_cond) \
    do { \
        while (!(_cond)) { \
            t_progress_or_yield(); \
        } \
    } while (0)

void t_progress_or_yield(void);

/* So many times: long enough for what must not happen. */
void t_progress_turns(unsigned turns);

/* The thread that reads events does nothing else until it is let go. */
typedef struct {
    int fd;
    int is_held, may_go; /* atomic                                           */
} t_hold_t;

/* From some moment on; from now on. */
void t_hold_ask(t_hold_t *hold);
void t_hold_begin(t_hold_t *hold);
/* Lets it do what it was asked for so far, and holds it again. Nobody works
 * meanwhile. */
void t_hold_next(t_hold_t *next, t_hold_t *hold);
void t_hold_end(t_hold_t *hold);

/* ---- Links and streams ---- */

t_link_t *t_link_open(t_end_t *from, const t_address_t *to, uint8_t id);
void t_link_close(t_link_t *link);

/* The same in two steps: a link that leads nowhere, and is then connected to the
 * endpoint of another. Returns what UCT says. */
t_link_t *t_link_make(t_end_t *from, uint8_t id);
ucs_status_t t_link_connect(t_link_t *link, const t_link_t *to);

/* One message. UCS_OK, or why not; zcopy's UCS_INPROGRESS counts as OK. */
ucs_status_t t_try_send(t_link_t *link, t_how_t how, size_t length);
/* The same, working until it goes. */
void t_send(t_link_t *link, t_how_t how, size_t length);
/* Can a message of this length be sent so? */
int t_can_send(const t_link_t *link, t_how_t how, size_t length);
/* Some way to send that this link has, and some length that it takes so: up to
 * 8000 bytes once in @a long_every times, else up to 100. */
t_how_t t_some_how(const t_link_t *link, t_rng_t *rng);
size_t t_some_length(const t_link_t *link, t_how_t how, unsigned long_every,
                     t_rng_t *rng);
/* Tries to send some message, mostly short, some way. It goes, or there is no
 * room for it now. */
void t_try_some(t_link_t *link, t_rng_t *rng);
const char *t_how_name(t_how_t how);

/* From now on @a end takes messages of @a id. The stream is the caller's and
 * outlives the end. */
void t_stream_open(t_stream_t *stream, t_end_t *end, uint8_t id);
/* Checks the buffers that the stream holds once more and gives all of them,
 * or only every second one, back, in the order of @a rng. */
void t_stream_release(t_stream_t *stream, t_rng_t *rng, int only_half);

/* A link between two ends, or of one with itself, whose first message, a short
 * one, has arrived in @a stream, which this opens. Nothing is flushed: the sender
 * may not know it yet. */
t_link_t *t_link_up(t_end_t *from, t_end_t *to, uint8_t id, t_stream_t *stream);

void t_comp_init(t_comp_t *comp);
/* Flushes; UCS_OK, or how it failed. Checks that its completion, if it was
 * promised one, came once. */
ucs_status_t t_ep_flush(t_link_t *link);
void t_iface_flush(t_end_t *end);

/* A request that waits for its turn. */
typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
    t_comp_t          comp;
    unsigned          is_done;
    ucs_status_t      status;  /* of the last try                            */
} t_wait_t;

/* What it does, for super.func: a flush. */
ucs_status_t t_wait_flush(uct_pending_req_t *self);

/* ---- Memory ---- */

/* @a mem: NULL for memory of the region's own, which begins as zeros and ends as
 * something else, should anybody still use it. */
void t_region_open(t_region_t *region, t_end_t *end, void *mem, size_t length);
void t_region_close(t_region_t *region);

/* ---- Teams ---- */

/* Runs @a body in @a size processes and waits for them; each must end well,
 * except those whose rank is in the bitmap @a may_die. */
void t_team_run(unsigned size, uint32_t may_die, void (*body)(t_team_t *team));
/* Everybody has to come, working meanwhile. */
void t_team_barrier(t_team_t *team);
void t_team_put_address(t_team_t *team, const t_end_t *end);
const t_address_t *t_team_get_address(t_team_t *team, unsigned rank);

#endif
