/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric: this process's node, its shared segment, its service thread, and
 * the mapped segments of its peers. Who may touch what in a segment is in
 * sv_wire.h, the order of locks in sv.h.
 */
#ifndef SV_FABRIC_H
#define SV_FABRIC_H

#include "sv_atomic.h"
#include "sv_wire.h"

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

struct sv_qp;
struct sv_cq;

/* A table of the own segment: which entries are in use. Pages are reserved
 * as they are first needed and never given back. */
struct sv_table {
    uint64_t          offset;
    uint32_t          stride;
    uint32_t          max;
    uint32_t          next;  /* where to look first */
    uint32_t          used;
    uint8_t          *taken; /* one byte an entry */
    _Atomic uint64_t *pages; /* which are reserved, in the segment's head */
};

/* Enough for any path of a segment. */
#define SV_PATH_BYTES 64

/* A mapped segment: a peer's, or our own (self). Kept while referenced. */
struct sv_peer {
    struct sv_peer     *next;
    unsigned            refs;  /* under sv_node.lock */
    uint32_t            slot;
    int                 pid;   /* as its head said when it was mapped */
    uint64_t            start_time;
    uint32_t            lock_id;
    int                 fd;
    uint8_t            *base;
    struct sv_shm_head *head;  /* == base */
    bool                self;
    bool                fence; /* see sv_light_barrier() */
    char                path[SV_PATH_BYTES];
};

/* What a key of this process means. The entry in the segment's MR table is for
 * the peers to read; we believe our own copy, which nobody else can write. */
struct sv_region {
    _Atomic uint32_t key;    /* 0: nothing here */
    uint32_t         access;
    uint32_t         pdn;
    uint64_t         iova;
    uint64_t         addr;
    uint64_t         length;
};

struct sv_node {
    char                    path[SV_PATH_BYTES];
    uint32_t                slot;
    uint32_t                lock_id;   /* who we are in cross-process locks */
    struct sv_peer         *self;
    struct sv_shm_head     *head;
    unsigned                refs;      /* contexts, under the list's mutex */

    pthread_mutex_t         lock;
    struct sv_table         qp_table;
    struct sv_table         cq_table;
    struct sv_table         srq_table;
    struct sv_table         mr_table;
    struct sv_table         small_table; /* small rings, as the QP entries */
    uint32_t                serial;    /* of the next QP number */
    uint16_t               *mr_gen;    /* generation of each MR entry's key */
    struct sv_region       *regions;   /* by index of MR entry */
    struct sv_cq          **cqs;       /* by index of CQ entry */
    struct sv_peer         *peers;
    struct sv_channel      *channels;  /* list through sv_channel.next */
    int                     wake_fd;   /* from which peers are woken */
    _Atomic uint32_t        next_pdn;

    struct sv_spin          stuck_lock;
    struct sv_qp           *stuck;     /* list through sv_tx.stuck_next */
    _Atomic uint32_t        num_stuck;

    pthread_mutex_t         objects_lock;
    struct sv_cq           *all_cqs;   /* list through sv_cq.next */
    struct sv_qp          **qps;       /* by index of QP entry */

    pthread_t               service_thread;
    clockid_t               service_clock; /* its processor time */
    _Atomic uint32_t        service_sleeps;
    atomic_bool             service_urgent;
    _Atomic uint32_t        pushes;      /* of the stuck list, by pollers */
    uint32_t                pushes_seen; /* service thread's own */
    atomic_bool             service_stop;
    struct robust_list_head robust;
};

/* Whether the process with this number and start time runs. */
bool sv_process_lives(int pid, uint64_t start_time);
/* Fields 3 (state) and 22 (start time) of /proc/<pid>/stat. 0 or -1. */
int sv_process_stat(int pid, char *state_p, uint64_t *start_time_p);
uint64_t sv_pid_namespace(void);

#define SV_SHM_DIR    "/dev/shm"

/* Unlinks the segments of this user that belong to nobody any more, and the
 * names of channels whose segment is not there. */
void sv_segment_sweep(void);
/* Takes the first free slot: fills in node->path and node->slot. Descriptor,
 * or -1 and errno. The segment stays locked until sv_segment_unlock(): its head
 * says now whose it is. */
int sv_segment_create(struct sv_node *node);
void sv_segment_unlock(int fd);
/* Takes the name away, unless it is by now another segment's: whoever could not
 * tell from its head that we live may have swept ours away. */
void sv_segment_unlink(int fd, const char *path);
uint8_t *sv_segment_map(int fd);
/* The device and the inode of the folder that this user's segments are found
 * in. */
void sv_segment_folder_id(uint64_t *device_p, uint64_t *inode_p);
/* The segment in a slot, if this user has a file of the right size there. Whose
 * it is, and whether he lives, is not looked at. Descriptor, or -1. Waits for
 * nobody. `path`, which has SV_PATH_BYTES, is where it was looked for last. */
int sv_segment_open(uint32_t slot, char *path);

/* The node of this process, made by the first caller. NULL and errno. */
struct sv_node *sv_node_get(void);
void sv_node_put(struct sv_node *node);

/* A mapped segment as a peer with one reference; takes over fd and base. */
struct sv_peer *sv_peer_new(int fd, uint8_t *base, uint32_t slot,
                            const char *path);
void sv_peer_destroy(struct sv_peer *peer);

/* The segment behind a slot, or NULL and errno: ENOENT if nobody is there, or
 * not for us; else what this process lacks, which has been logged then. */
struct sv_peer *sv_peer_get(struct sv_node *node, uint32_t slot);
/* Whether this process has what it takes to reach whoever is there: 0, also if
 * nobody is, or an errno. */
int sv_peer_check(struct sv_node *node, uint32_t slot);
void sv_peer_put(struct sv_node *node, struct sv_peer *peer);

/* False as soon as the kernel has begun to tear the process down. */
static inline bool sv_peer_alive(const struct sv_peer *peer)
{
    uint32_t life = atomic_load_explicit(&peer->head->life,
                                         memory_order_relaxed);

    return (life & (FUTEX_OWNER_DIED | SV_LIFE_CLOSED)) == 0;
}

/* Whether what is sent to a living process also reaches it. */
static inline bool sv_peer_answers(const struct sv_peer *peer)
{
    uint32_t life = atomic_load_explicit(&peer->head->life,
                                         memory_order_relaxed);

    return (life & (FUTEX_OWNER_DIED | SV_LIFE_CLOSED | SV_LIFE_LINK_DOWN)) ==
           0;
}

/* Entries of the own segment. Index, or -1 and errno: ENOMEM when the table or
 * /dev/shm is full. Callers hold sv_node.lock. */
int sv_table_take(struct sv_node *node, struct sv_table *table);
int sv_table_take_at(struct sv_node *node, struct sv_table *table,
                     uint32_t index);
void sv_table_give(struct sv_table *table, uint32_t index);

/* Makes a large ring safe to touch. 0, or -1: no room. */
int sv_ring_reserve(struct sv_peer *peer, uint32_t index);
void sv_ring_release(struct sv_node *node, uint32_t index);

static inline struct sv_shm_qp *sv_peer_qp(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_qp*)(peer->base + SV_OFF_QP) + index;
}

/* Whether a QP entry may be looked at. */
static inline bool sv_peer_has_qp(const struct sv_peer *peer, uint32_t index)
{
    return sv_entry_exists(peer->head->qp_pages, sizeof(struct sv_shm_qp),
                           index);
}

static inline bool sv_peer_has_mr(const struct sv_peer *peer, uint32_t index)
{
    return sv_entry_exists(peer->head->mr_pages, sizeof(struct sv_shm_mr),
                           index);
}

static inline struct sv_shm_cq *sv_peer_cq(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_cq*)(peer->base + SV_OFF_CQ) + index;
}

static inline struct sv_shm_srq *
sv_peer_srq(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_srq*)(peer->base + SV_OFF_SRQ) + index;
}

static inline struct sv_shm_mr *sv_peer_mr(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_mr*)(peer->base + SV_OFF_MR) + index;
}

static inline uint8_t *sv_peer_ring(struct sv_peer *peer, uint32_t index)
{
    return peer->base + SV_OFF_RING + (uint64_t)index * SV_RING_BYTES;
}

static inline uint8_t *sv_peer_small_ring(struct sv_peer *peer, uint32_t index)
{
    return peer->base + SV_OFF_SMALL + (uint64_t)index * SV_RING_SMALL;
}

/* The entries that a peer's QP entry names, or NULL: it names none that there
 * is. */
struct sv_shm_cq *sv_peer_named_cq(struct sv_peer *peer, uint32_t index);
struct sv_shm_srq *sv_peer_named_srq(struct sv_peer *peer, uint32_t index);

/* Tells a peer that there is something for a QP that it does not look at. */
void sv_peer_ring_bell(struct sv_peer *peer, uint32_t index);

/* Who a process is in locks between processes; never 0. */
uint32_t sv_lock_id(const struct sv_shm_head *head);

/* Lock between processes. False after 20 ms in which its living holder did not
 * give it back: it may be stopped. */
bool sv_shm_lock(struct sv_node *node, _Atomic uint32_t *word);
void sv_shm_unlock(_Atomic uint32_t *word);

/* Waits until the sender of a QP entry is not in the middle of something, or is
 * dead. False: it still is after limit_ns; it may be stopped. */
bool sv_busy_wait(struct sv_node *node, struct sv_shm_qp *shm,
                  uint64_t limit_ns);

/* Copies between local pieces and a peer's memory. 0, or -1 and errno:
 * ESRCH the process is gone, EFAULT one of the two sides is not mapped. */
int sv_peer_write(struct sv_peer *peer, uint64_t to, const struct ibv_sge *sge,
                  int num_sge);
int sv_peer_read(struct sv_peer *peer, uint64_t from, const struct ibv_sge *sge,
                 int num_sge);

/* ---- waking who sleeps on a channel ---- */

/* What comes behind the path of a segment and a dot. */
#define SV_WAKE_NAME       "%016" PRIx64
#define SV_WAKE_NAME_CHARS 16

/* The socket that this process wakes others from. 0, or -1 and errno. */
int sv_wake_open(struct sv_node *node);
/* The two ends of a channel: fds[0], which has the name, is read; fds[1] writes
 * to it, from inside. 0, or -1 and errno. */
int sv_wake_pair(const struct sv_node *node, int fds[2], uint64_t *name_p);
void sv_wake_unlink(const struct sv_node *node, uint64_t name);
/* Something is due on the peer's CQ at this index, whose channel has this name.
 * Never waits. */
void sv_wake_peer(const struct sv_node *node, struct sv_peer *peer,
                  uint64_t name, uint32_t index);
/* The owner of this head has something due that it has not been told of. */
void sv_wake_defer(struct sv_shm_head *head);

/* ---- service thread: the thread of the node ---- */

int sv_service_start(struct sv_node *node);
void sv_service_stop(struct sv_node *node);

/* Makes the service thread of a node look around. */
void sv_doorbell_ring(struct sv_shm_head *head);

/* There is something on the stuck list. urgent: the program is about to sleep,
 * so it will not push the list itself. */
void sv_service_wake(struct sv_node *node, bool urgent);

#endif
