/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a running interface, as a file that others read.
 *
 *   [header][entry 0 .. count-1][value 0 .. count-1][peer 0 .. peers-1]
 *
 * Every interface has one, DQ_STATS_DIR/daqiri-stats-UID.PID.SERIAL, readable
 * by its owner alone. The transport counts in the mapped page itself, so that
 * to be read costs it nothing; what is not a counter it writes there now and
 * then (DQ_STATS_GAUGE; value "sampled_at_ns" says when).
 *
 * The file describes itself: a reader goes by the names of the values and need
 * not know which there are. A name keeps its meaning; other names may come and
 * go. DQ_STATS_VERSION changes when the layout below does, and then a reader
 * of another version keeps its hands off.
 *
 * Whoever writes holds a lock (flock) on the file as long as it lives, so a
 * file that can be locked is what a killed process has left: it may be
 * removed, by who holds the lock. Pids say nothing here, for containers that
 * share the folder need not share them.
 *
 * A reader maps the file, read-only, or copies it, and asks dq_stats_find()
 * before anything else. A file that somebody else may cut must be copied. What
 * is mapped may change at any moment: a value is one word, and a peer is taken
 * with dq_stats_peer(); of a copy, its sequence is compared with the file's
 * before and after. Values are 64 bits of the machine.
 *
 * Threads: any. Nothing is allocated. What is returned points into the map.
 */
#ifndef DQ_STATS_H
#define DQ_STATS_H

#include "dq.h"

#define DQ_STATS_DIR "/dev/shm"

enum {
    DQ_STATS_VERSION  = 1,
    DQ_STATS_NAME_MAX = 40, /* of a value, with the zero that ends it        */
    DQ_STATS_HOST_MAX = 64, /* of a host or device                           */
    DQ_STATS_FILE_MAX = 96, /* of the path                                   */
    DQ_STATS_VALUES_MAX = 1024,
    DQ_STATS_PEERS_MAX  = 65536
};

/* Written last, when all else is there: "daqiri" and what tells byte orders
 * apart. */
#define DQ_STATS_MAGIC UINT64_C(0x0102697269716164)

/* What a value is. The unit is in its name: _bytes, _ns; else it is a number. */
typedef enum {
    DQ_STATS_COUNTER, /* only grows; always as it is now                     */
    DQ_STATS_SUM,     /* only grows; as it was at sampled_at_ns              */
    DQ_STATS_GAUGE,   /* goes up and down; as it was at sampled_at_ns        */
    DQ_STATS_KIND_LAST
} dq_stats_kind_t;

typedef struct {
    uint64_t magic;
    uint32_t version;
    uint32_t length;     /* of the whole file, bytes                         */
    uint32_t count;      /* of values                                        */
    uint32_t peers;      /* places for peers                                 */
    uint32_t entries_at, values_at, peers_at; /* bytes from the start        */
    uint32_t entry_size, peer_size;           /* bytes                       */
    uint32_t pid;
    uint32_t port;
    uint32_t unused;
    uint64_t uuid;       /* of the interface, as its peers know it           */
    uint64_t opened_ns;  /* CLOCK_MONOTONIC                                  */
    char     host[DQ_STATS_HOST_MAX];
    char     device[DQ_STATS_HOST_MAX];
} dq_stats_header_t;

typedef struct {
    char     name[DQ_STATS_NAME_MAX]; /* "": the value means nothing         */
    uint32_t kind;
    uint32_t unused;
} dq_stats_entry_t;

/* How a connection stands. */
typedef enum {
    DQ_STATS_NONE,       /* no connection is in this place                   */
    DQ_STATS_CONNECTING,
    DQ_STATS_UP,
    DQ_STATS_LOST,       /* another queue pair is being made                 */
    DQ_STATS_DEAD,
    DQ_STATS_STATE_LAST
} dq_stats_state_t;

/* One peer, as it was at sampled_at_ns. */
typedef struct {
    uint32_t sequence;   /* odd while it is being written; atomic            */
    uint32_t state;
    char     host[DQ_STATS_HOST_MAX];
    uint32_t pid;
    uint32_t qpn, peer_qpn;
    uint32_t in_use, depth;         /* work requests: posted and not over    */
    uint32_t credits, window;       /* messages that we may send             */
    uint32_t owed, promised;        /* messages that it may send: used up,   */
                                    /* and the size of its window            */
    uint32_t losses;                /* queue pairs that died                 */
    uint64_t posted, retired;       /* work requests, since it is there      */
    uint64_t oldest_ns;             /* how long nothing has completed, while */
                                    /* something was under way               */
    uint64_t stalls;
} dq_stats_peer_t;

/* The path of a file; @a size DQ_STATS_FILE_MAX is enough. Returns @a buf. */
char *dq_stats_path(char *buf, size_t size, uint32_t uid, uint32_t pid,
                    uint32_t serial);

/* Is this the name, without the folder, of such a file of @a uid? Then 1, and
 * its numbers. */
int dq_stats_is_name(const char *name, uint32_t uid, uint32_t *pid,
                     uint32_t *serial);

/* Lays out a file for so many values and peers: all of the header but what it
 * is about, and the magic, which dq_stats_publish() writes. */
void dq_stats_layout(dq_stats_header_t *header, uint32_t count,
                     uint32_t peers);
void dq_stats_publish(dq_stats_header_t *header);

/* What is mapped, if it can be read: complete, of our version, and with all of
 * its parts inside of @a length; else NULL. Of any bytes. */
const dq_stats_header_t *dq_stats_find(const void *map, size_t length);

/* Of a header that dq_stats_find() returned, index < count, or < peers. */
const dq_stats_entry_t *dq_stats_entry(const dq_stats_header_t *header,
                                       uint32_t index);
uint64_t dq_stats_value(const dq_stats_header_t *header, uint32_t index);
/* A copy that was not written to meanwhile: 1; or 0, if there was none in a
 * number of tries, or nobody is there. */
int dq_stats_peer(const dq_stats_header_t *header, uint32_t index,
                  dq_stats_peer_t *peer);

/* Writes a peer; only its owner may. Its sequence is kept. */
void dq_stats_write_peer(dq_stats_peer_t *place, const dq_stats_peer_t *peer);

const char *dq_stats_state_name(dq_stats_state_t state);

#endif
