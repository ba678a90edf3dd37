/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a running interface, as a file that other processes read.
 *
 *   [header][entry 0 .. count-1][value 0 .. count-1][peer 0 .. peers-1]
 *
 * Every interface has one, DQ_STATS_DIR/daqiri-stats-UID.PID.SERIAL, readable
 * by its owner alone. The transport counts in the mapped page itself, so a reader
 * costs it nothing. It writes everything but counters there now and then
 * (DQ_STATS_GAUGE; the value "sampled_at_ns" says when).
 *
 * The file describes itself: a reader goes by the names of the values. A name keeps
 * its meaning, and other names may come and go. DQ_STATS_VERSION changes with the
 * layout below. A reader of another version must not read the file.
 *
 * The writer holds a lock (flock) on the file as long as it lives. So a file that
 * can be locked is left from a killed process. Whoever holds the lock may remove it.
 * Pids say nothing here, because containers may share the folder and not the pids.
 *
 * A reader maps the file, read-only, or copies it, and calls dq_stats_find() first.
 * It must copy a file that somebody else may truncate. A mapped file may change at
 * any moment. A value is one word; dq_stats_peer() reads a peer. A reader of a copy
 * compares the peer's sequence with the file's before and after. Values are 64-bit
 * words of the machine.
 *
 * Threads: any. Nothing is allocated. Returned pointers point into the map.
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

/* Written last, when everything else is there: "daqiri", and bytes that tell byte
 * orders apart. */
#define DQ_STATS_MAGIC UINT64_C(0x0102697269716164)

/* What a value is. The unit is in its name: _bytes, _ns; else it is a number. */
typedef enum {
    DQ_STATS_COUNTER, /* only grows; always current                          */
    DQ_STATS_SUM,     /* only grows; as of sampled_at_ns                     */
    DQ_STATS_GAUGE,   /* goes up and down; as of sampled_at_ns               */
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
    DQ_STATS_IDLE_CLOSED, /* no queue pair until the next send                */
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
    uint32_t owed, promised;        /* of its window, used up; and the size
                                       of its window                         */
    uint32_t losses;                /* queue pairs that died                 */
    uint64_t posted, retired;       /* work requests since the connection was
                                       made                                  */
    uint64_t oldest_ns;             /* time in which requests were under way
                                       and none completed                    */
    uint64_t stalls;
} dq_stats_peer_t;

/* The path of a file; @a size DQ_STATS_FILE_MAX is enough. Returns @a buf. */
char *dq_stats_path(char *buf, size_t size, uint32_t uid, uint32_t pid,
                    uint32_t serial);

/* Returns 1, and the numbers in it, if this is the name (without the folder) of such
 * a file of @a uid; else 0. */
int dq_stats_is_name(const char *name, uint32_t uid, uint32_t *pid,
                     uint32_t *serial);

/* Lays out a file for so many values and peers. Writes the header, except the fields
 * that describe the interface, and the magic, which dq_stats_publish() writes. */
void dq_stats_layout(dq_stats_header_t *header, uint32_t count,
                     uint32_t peers);
void dq_stats_publish(dq_stats_header_t *header);

/* The header in @a map, whatever bytes it has, if the file is complete, has our
 * version, and has all of its parts within @a length; else NULL. */
const dq_stats_header_t *dq_stats_find(const void *map, size_t length);

/* For a header that dq_stats_find() returned; index < count, or < peers. */
const dq_stats_entry_t *dq_stats_entry(const dq_stats_header_t *header,
                                       uint32_t index);
uint64_t dq_stats_value(const dq_stats_header_t *header, uint32_t index);
/* Returns 1, and a consistent copy; 0 if a number of tries gave none, or if there is
 * no peer at this place. */
int dq_stats_peer(const dq_stats_header_t *header, uint32_t index,
                  dq_stats_peer_t *peer);

/* Writes a peer; only its owner may. Its sequence is kept. */
void dq_stats_write_peer(dq_stats_peer_t *place, const dq_stats_peer_t *peer);

const char *dq_stats_state_name(dq_stats_state_t state);

#endif
