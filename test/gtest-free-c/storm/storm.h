/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program for a storm of faults: some processes of this host, all to all over
 * UCP, without error handling, as an MPI would use it. What any of them sends
 * is made from the seed, so that whoever receives it knows length and bytes of
 * what comes next:
 *
 *   tag    one stream for each pair, matched in order: the n-th receive must
 *          have what was sent n-th; short, eager and rendezvous
 *   am     as many active messages; each must come once
 *   rma    put into a slot of one's own at the peer, flush, get, compare
 *   amo    fetch-and-add at the peer; what comes back must be what was there
 *          (only if asked for: an atomic operation does not survive its queue
 *          pair)
 *
 * Anything that is not as it should be is one line on stderr, and the end of
 * all processes with status 1. A hang is for the caller to end. Threads: one
 * in each process, besides UCX's own.
 */
#ifndef STORM_H
#define STORM_H

#include "t.h"

#include <ucp/api/ucp.h>
#include <sched.h>

enum {
    STORM_RANKS   = 8,
    STORM_ADDRESS = 1024,      /* bytes, the same for a packed key           */
    STORM_SLOT    = 256 << 10, /* bytes that a peer may write                */
    STORM_MAX     = 512 << 10, /* bytes of a message                         */
    STORM_POSTED  = 4,         /* receives that wait, for each sender        */
    STORM_AHEAD   = 16,        /* sends that are not complete, for each peer */
    STORM_AM_ID   = 7,
    STORM_LAST_WORDS_MS = 1500 /* after a failure                           */
};

typedef enum {
    STORM_TAG,
    STORM_AM,
    STORM_RMA,
    STORM_AMO,
    STORM_KINDS
} storm_kind_t;

/* What the command line says. */
typedef struct {
    unsigned ranks;
    uint64_t seed;
    unsigned count[STORM_KINDS]; /* for each pair                            */
    unsigned largest;            /* message                                  */
} storm_options_t;

typedef struct {
    volatile uint32_t is_here[STORM_RANKS];
    volatile uint32_t arrived;  /* at all barriers so far                    */
    size_t            address_length[STORM_RANKS], key_length[STORM_RANKS];
    uint8_t           address[STORM_RANKS][STORM_ADDRESS];
    uint8_t           key[STORM_RANKS][STORM_ADDRESS];
    uint64_t          window[STORM_RANKS]; /* where each one's memory is     */
    uint64_t          messages[STORM_RANKS], bytes[STORM_RANKS];
} storm_shared_t;

/* One request, from its start until its callback. */
typedef struct storm_op {
    struct storm_op   *next;  /* among those that are free, or to be flushed */
    struct storm_peer *peer;
    storm_kind_t      kind;
    uint32_t          number; /* in its stream                               */
    size_t            length;
    uint64_t          header;
    uint8_t           *data;
} storm_op_t;

typedef struct storm_peer {
    unsigned   rank;
    ucp_ep_h   ep;
    ucp_rkey_h key;
    uint32_t   begun[STORM_KINDS], over[STORM_KINDS]; /* by us, to it        */
    uint32_t   posted, got;      /* receives of its tagged messages          */
    uint32_t   am_got;
    uint8_t    *am_seen;         /* a byte for each                          */
    uint64_t   added;            /* by us to its counter                     */
} storm_peer_t;

typedef struct {
    storm_options_t options;
    unsigned        rank;
    uint32_t        phase;       /* barriers so far                          */
    storm_shared_t  *shared;
    ucp_context_h   context;
    ucp_worker_h    worker;
    ucp_mem_h       memory;
    uint8_t         *window;     /* a slot for each peer, then the counters  */
    storm_peer_t    peer[STORM_RANKS];
    storm_op_t      *free_ops;
    storm_op_t      *put_ops;    /* over, to be flushed                      */
    t_rng_t         rng;
    uint64_t        failed;      /* when the first thing did, in ms          */
    uint64_t        messages, bytes; /* that came in, checked                */
} storm_t;

extern storm_t storm;

static inline size_t storm_min(size_t a, size_t b)
{
    return (a < b) ? a : b;
}

#define STORM_MUST(_condition) \
    ((_condition) ? (void)0 : storm_fail(__LINE__, #_condition))

void storm_fail(int line, const char *what) __attribute__((noreturn));
void storm_check(ucs_status_t status, const char *what);
/* The same in a callback: the end comes later, that UCX may say why. */
int storm_is_ok(ucs_status_t status, const char *what);
void storm_must_start(ucs_status_ptr_t request);

/* Progress, or the way to others. */
void storm_progress(void);

/* Length and bytes of message @a number of a stream. */
size_t storm_length(storm_kind_t kind, unsigned from, unsigned to,
                    uint32_t number);
void storm_fill(void *data, size_t length, storm_kind_t kind, unsigned from,
                unsigned to, uint32_t number);
void storm_verify(const void *data, size_t length, storm_kind_t kind,
                  unsigned from, unsigned to, uint32_t number);

/* A request of ours with room for its data; over by storm_op_put(). */
storm_op_t *storm_op_get(storm_peer_t *peer, storm_kind_t kind,
                         uint32_t number, size_t length);
void storm_op_put(storm_op_t *op);

/* storm_traffic.c: what follows on puts that are complete. */
void storm_flush_puts(void);
/* All that goes to and fro between the barriers. */
void storm_traffic_init(void);
void storm_traffic(void);
void storm_traffic_cleanup(void);

#endif
