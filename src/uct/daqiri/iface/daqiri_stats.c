/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of an interface, in a file that others may map (dq_stats.h). Being read
 * costs the interface nothing. They are also written as text when it closes.
 *
 * A process locks its file and keeps the lock until it ends, however it ends. A process
 * that can take the lock of a file has found one that a killed process left, and removes
 * it.
 *
 * Threads: open, close and sample are progress. Each counter is written by its owner.
 */
#include "iface/daqiri_stats.h"

#include "base/daqiri_pool.h"
#include "conn/daqiri_conn.h"
#include "iface/daqiri_iface.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/random.h>

enum {
    UCT_DAQIRI_STATS_VALUES = sizeof(uct_daqiri_values_t) / sizeof(uint64_t),
    UCT_DAQIRI_STATS_PEERS  = 64,
    UCT_DAQIRI_STATS_TRIES  = 16
};

DQ_STATIC_ASSERT((int)UCT_DAQIRI_STATS_VALUES <= (int)DQ_STATS_VALUES_MAX,
                 "values");

typedef struct {
    const char *name;
    size_t     offset;
    int        kind;
} uct_daqiri_value_t;

#define COUNTER(_name) \
    {#_name, offsetof(uct_daqiri_values_t, count._name), DQ_STATS_COUNTER}
#define SUM(_name) \
    {#_name, offsetof(uct_daqiri_values_t, gauge._name), DQ_STATS_SUM}
#define GAUGE(_name) \
    {#_name, offsetof(uct_daqiri_values_t, gauge._name), DQ_STATS_GAUGE}

static const uct_daqiri_value_t uct_daqiri_values[] = {
    COUNTER(am_tx_bytes),
    COUNTER(am_short),
    COUNTER(am_bcopy),
    COUNTER(am_zcopy),
    COUNTER(put_short),
    COUNTER(put_bcopy),
    COUNTER(put_zcopy),
    COUNTER(get_bcopy),
    COUNTER(get_zcopy),
    COUNTER(rma_bytes),
    COUNTER(atomics),
    COUNTER(preconnect),
    COUNTER(am_rx),
    COUNTER(am_rx_bytes),
    COUNTER(am_unhandled),
    COUNTER(conns),
    COUNTER(conns_up),
    COUNTER(conns_closed),
    COUNTER(credit_frames_tx),
    COUNTER(credit_frames_rx),
    COUNTER(windows_widened),
    COUNTER(windows_recalled),
    COUNTER(credits_returned),
    COUNTER(idle_closes),
    COUNTER(idle_reopens),
    COUNTER(idle_unanswered),
    COUNTER(qp_waits),
    COUNTER(qps_refused),
    COUNTER(slots_grown),
    COUNTER(refused_no_buffer),
    COUNTER(rx_duplicates),
    COUNTER(rx_out_of_order),
    COUNTER(tx_errors),
    COUNTER(tx_flushed),
    COUNTER(rx_flushed),
    COUNTER(recvs_refused),
    COUNTER(stray_completions),
    COUNTER(posts_refused),
    COUNTER(posts_enomem),
    COUNTER(retries_kept),
    COUNTER(retries_posted),
    COUNTER(batches),
    COUNTER(batched),
    COUNTER(batches_late),
    COUNTER(qp_failures),
    COUNTER(recoveries),
    COUNTER(replayed),
    COUNTER(replay_delivered),
    COUNTER(stalls),
    COUNTER(stuck),
    COUNTER(markers),
    COUNTER(probes),
    COUNTER(liveness_probes),
    COUNTER(unresponsive),
    COUNTER(events),
    COUNTER(frames_tx),
    COUNTER(frames_rx),
    COUNTER(frames_dup),
    COUNTER(frames_unknown),
    COUNTER(frames_crowded),
    COUNTER(frames_unheard),
    COUNTER(frames_delayed),
    COUNTER(frames_flooded),
    COUNTER(frames_repeated),
    COUNTER(conns_forged),
    COUNTER(ud_remade),
    COUNTER(ud_refused),
    SUM(sampled_at_ns),
    SUM(posted),
    SUM(retired),
    GAUGE(sq_in_use),
    GAUGE(cq_len),
    GAUGE(credits),
    GAUGE(oldest_ns),
    GAUGE(rx_total),
    GAUGE(rx_free),
    GAUGE(rx_posted),
    GAUGE(rx_taken),
    GAUGE(rx_held),
    GAUGE(rx_promised),
    SUM(rx_overcommit),
    SUM(rx_overrun),
    GAUGE(tx_buffers),
    GAUGE(tx_buffers_out),
    GAUGE(conns_open),
    GAUGE(rnr_timer_ns),
    GAUGE(ack_timeout_ns),
};

static const char *uct_daqiri_admit_name(int index)
{
    return dq_admit_name((dq_admit_t)index);
}


static const char *uct_daqiri_wire_name(int index)
{
    return dq_wire_status_name((dq_wire_status_t)index);
}


/* One counter for each answer of admission, with its name. */
static const struct {
    const char *prefix;
    size_t     offset;
    int        count;
    const char *(*name)(int index);
} uct_daqiri_families[] = {
    {"refused_", offsetof(uct_daqiri_values_t, count.refused), DQ_ADMIT_LAST,
     uct_daqiri_admit_name},
    {"rx_dropped_", offsetof(uct_daqiri_values_t, count.rx_dropped),
     DQ_WIRE_LAST, uct_daqiri_wire_name},
    {"frames_dropped_", offsetof(uct_daqiri_values_t, count.frames_dropped),
     DQ_WIRE_LAST, uct_daqiri_wire_name},
};

/* Interfaces of this process that have a file. */
static pthread_mutex_t uct_daqiri_stats_lock = PTHREAD_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(uct_daqiri_stats_files);


/* ---- What is in the file ---- */

static dq_stats_entry_t *uct_daqiri_stats_entry(dq_stats_header_t *map,
                                                size_t offset)
{
    dq_stats_entry_t *entries = UCS_PTR_BYTE_OFFSET(map, map->entries_at);

    return &entries[offset / sizeof(uint64_t)];
}


static void uct_daqiri_stats_name_all(dq_stats_header_t *map)
{
    dq_stats_entry_t *entry;
    unsigned i;
    int j;

    for (i = 0; i < ucs_static_array_size(uct_daqiri_values); i++) {
        entry = uct_daqiri_stats_entry(map, uct_daqiri_values[i].offset);
        ucs_strncpy_zero(entry->name, uct_daqiri_values[i].name,
                         sizeof(entry->name));
        entry->kind = uct_daqiri_values[i].kind;
    }
    for (i = 0; i < ucs_static_array_size(uct_daqiri_families); i++) {
        for (j = 1; j < uct_daqiri_families[i].count; j++) { /* 0 is success */
            entry = uct_daqiri_stats_entry(map, uct_daqiri_families[i].offset +
                                           j * sizeof(uint64_t));
            snprintf(entry->name, sizeof(entry->name), "%s%s",
                     uct_daqiri_families[i].prefix,
                     uct_daqiri_families[i].name(j));
        }
    }
}


static uint64_t uct_daqiri_stats_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}


/* ---- The file ---- */

/* Other users may have taken the first names. This name they cannot guess. */
static uint32_t uct_daqiri_stats_far_serial(void)
{
    uint32_t serial;

    if (getrandom(&serial, sizeof(serial), GRND_NONBLOCK) != sizeof(serial)) {
        serial = uct_daqiri_stats_now();
    }
    return serial | UCS_BIT(31);
}


/* Numbers the names of files in DQ_STATS_DIR, and those of text. */
static uint32_t uct_daqiri_stats_next(uint32_t *serial, int tried)
{
    return (tried < UCT_DAQIRI_STATS_TRIES) ?
                   __atomic_fetch_add(serial, 1, __ATOMIC_RELAXED) :
                   uct_daqiri_stats_far_serial();
}


/* Logs that a name was taken, most likely by another user. Logs once, because many names
 * may be taken. */
static void uct_daqiri_stats_log_taken(int *is_logged, const char *taken,
                                       uid_t uid, const char *instead)
{
    if (__atomic_exchange_n(is_logged, 1, __ATOMIC_RELAXED) == 0) {
        ucs_warn("daqiri: %s is there already, as user %u's: the counters are "
                 "in %s", taken, (unsigned)uid, instead);
    }
}


/* Whether the open file is a regular file of this user's, with no other name. */
static int uct_daqiri_stats_is_ours(int fd)
{
    struct stat st;

    return (fstat(fd, &st) == 0) && S_ISREG(st.st_mode) &&
           (st.st_uid == geteuid()) && (st.st_nlink <= 1);
}


/* Whether the open file still has this name. */
static int uct_daqiri_stats_is_named(int fd, const char *path)
{
    struct stat ours, named;

    return (fstat(fd, &ours) == 0) && (lstat(path, &named) == 0) &&
           (ours.st_ino == named.st_ino) && (ours.st_dev == named.st_dev);
}


/* Removes the file if its owner has ended. */
static void uct_daqiri_stats_sweep_one(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return;
    }
    if (uct_daqiri_stats_is_ours(fd) &&
        (flock(fd, LOCK_EX | LOCK_NB) == 0) &&
        uct_daqiri_stats_is_named(fd, path)) {
        unlink(path);
    }
    close(fd);
}


/* Whether the folder should be looked through now. A process that opens a thousand
 * interfaces would look at a thousand files each time. */
static int uct_daqiri_stats_may_sweep(void)
{
    static ucs_time_t sweep_at = 0;
    ucs_time_t now             = ucs_get_time();
    ucs_time_t due             = __atomic_load_n(&sweep_at, __ATOMIC_RELAXED);

    return (now >= due) &&
           __atomic_compare_exchange_n(&sweep_at, &due, now + ucs_time_from_sec(1), 0,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}


static void uct_daqiri_stats_sweep(void)
{
    DIR *dir = opendir(DQ_STATS_DIR);
    char path[DQ_STATS_FILE_MAX];
    const struct dirent *entry;
    uint32_t pid, serial;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (dq_stats_is_name(entry->d_name, geteuid(), &pid, &serial)) {
            uct_daqiri_stats_sweep_one(dq_stats_path(path, sizeof(path),
                                                     geteuid(), pid, serial));
        }
    }
    closedir(dir);
}


/* Returns a locked file of this process, or -1 with errno. Before the lock is taken
 * another process may remove the file as a leftover. Then another file is made. */
static int uct_daqiri_stats_create(char *path)
{
    static uint32_t serial = 0;
    static int is_logged   = 0;
    char taken[DQ_STATS_FILE_MAX];
    struct stat st = {.st_uid = geteuid()}, other;
    int fd, i;

    for (i = 0; i < 2 * UCT_DAQIRI_STATS_TRIES; i++) {
        dq_stats_path(path, DQ_STATS_FILE_MAX, geteuid(), getpid(),
                      uct_daqiri_stats_next(&serial, i));
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  S_IRUSR | S_IWUSR);
        if ((fd < 0) && (errno != EEXIST)) {
            return -1;
        }
        if (fd < 0) { /* the same pid in another container, or another user */
            if ((lstat(path, &other) == 0) && (other.st_uid != geteuid())) {
                ucs_strncpy_zero(taken, path, sizeof(taken));
                st = other;
            }
            continue;
        }
        if ((flock(fd, LOCK_EX | LOCK_NB) == 0) &&
            uct_daqiri_stats_is_named(fd, path)) {
            if (st.st_uid != geteuid()) {
                uct_daqiri_stats_log_taken(&is_logged, taken, st.st_uid,
                                           path);
            }
            return fd;
        }
        close(fd);
    }
    return -1;
}


/* Allocates all memory of the file first. A full folder then fails this call, and raises
 * no signal later. */
static void *uct_daqiri_stats_map_file(uct_daqiri_stats_t *stats,
                                       size_t length)
{
    void *map = MAP_FAILED;
    int ret;

    if (uct_daqiri_stats_may_sweep()) {
        uct_daqiri_stats_sweep();
    }
    stats->fd = uct_daqiri_stats_create(stats->path);
    if (stats->fd < 0) {
        ucs_debug("daqiri: no file of counters in %s: %m", DQ_STATS_DIR);
        return MAP_FAILED;
    }
    do { /* many kernels end it at a signal */
        ret = posix_fallocate(stats->fd, 0, length);
    } while (ret == EINTR);
    if (ret == 0) {
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED,
                   stats->fd, 0);
    }
    if (map == MAP_FAILED) {
        ucs_debug("daqiri: no room for counters in %s: %s", stats->path,
                  strerror((ret != 0) ? ret : errno));
        unlink(stats->path);
        close(stats->fd);
        stats->fd = -1;
    }
    return map;
}


static void uct_daqiri_stats_release_peer(uct_daqiri_stats_t *stats)
{
    if ((stats->fd >= 0) && (stats->owner == getpid())) {
        unlink(stats->path);
    }
}


/* Removes the files of a process that ends with open interfaces. */
static void __attribute__((destructor)) uct_daqiri_stats_at_exit(void)
{
    uct_daqiri_stats_t *stats;

    ucs_list_for_each(stats, &uct_daqiri_stats_files, link) {
        uct_daqiri_stats_release_peer(stats);
    }
}


ucs_status_t uct_daqiri_stats_open(uct_daqiri_iface_t *iface, int is_wanted)
{
    uct_daqiri_stats_t *stats = &iface->stats;
    dq_stats_header_t layout;
    uct_daqiri_values_t *values;
    void *map = MAP_FAILED;

    dq_stats_layout(&layout, UCT_DAQIRI_STATS_VALUES, UCT_DAQIRI_STATS_PEERS);
    stats->fd    = -1;
    stats->owner = getpid();
    if (is_wanted) {
        map = uct_daqiri_stats_map_file(stats, layout.length);
    }
    if (map == MAP_FAILED) {
        map = mmap(NULL, layout.length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (map == MAP_FAILED) {
        return UCS_ERR_NO_MEMORY;
    }

    stats->map   = map;
    *stats->map  = layout;
    values       = UCS_PTR_BYTE_OFFSET(map, layout.values_at);
    iface->count = &values->count;
    iface->gauge = &values->gauge;
    uct_daqiri_stats_name_all(stats->map);
    pthread_mutex_lock(&uct_daqiri_stats_lock);
    ucs_list_add_tail(&uct_daqiri_stats_files, &stats->link);
    pthread_mutex_unlock(&uct_daqiri_stats_lock);
    return UCS_OK;
}


void uct_daqiri_stats_publish(uct_daqiri_iface_t *iface)
{
    struct ibv_context *context = uct_daqiri_iface_md(iface)->context;
    dq_stats_header_t *map      = iface->stats.map;

    map->pid       = iface->config.pid;
    map->port      = iface->config.port_num;
    map->uuid      = iface->config.addr.uuid;
    map->opened_ns = uct_daqiri_stats_now();
    ucs_strncpy_zero(map->host, iface->config.host, sizeof(map->host));
    ucs_strncpy_zero(map->device, ibv_get_device_name(context->device),
                     sizeof(map->device));
    uct_daqiri_stats_sample(iface);
    dq_stats_publish(map);
}


void uct_daqiri_stats_close(uct_daqiri_iface_t *iface)
{
    uct_daqiri_stats_t *stats = &iface->stats;
    int fd                    = stats->fd;

    pthread_mutex_lock(&uct_daqiri_stats_lock);
    ucs_list_del(&stats->link);
    pthread_mutex_unlock(&uct_daqiri_stats_lock);
    uct_daqiri_stats_release_peer(stats);
    stats->fd = -1;
    munmap(stats->map, stats->map->length);
    if (fd >= 0) {
        close(fd);
    }
}


/* ---- Gauges ---- */

static void uct_daqiri_stats_sample_rx(uct_daqiri_iface_t *iface)
{
    const dq_rx_t *rx          = &iface->rx.ledger;
    uct_daqiri_gauges_t *gauge = iface->gauge;

    gauge->rx_total      = rx->total;
    gauge->rx_free       = rx->free;
    gauge->rx_posted     = rx->posted;
    gauge->rx_taken      = rx->taken;
    gauge->rx_held       = rx->held;
    gauge->rx_promised   = rx->reserved - rx->owed;
    gauge->rx_overcommit = rx->overcommit;
    gauge->rx_overrun    = rx->overrun;
}


/* ---- Peers ---- */

static dq_stats_peer_t *uct_daqiri_stats_place(uct_daqiri_conn_t *conn)
{
    dq_stats_header_t *map = conn->iface->stats.map;
    dq_stats_peer_t *peers = UCS_PTR_BYTE_OFFSET(map, map->peers_at);

    return (conn->watchdog.place == 0) ? NULL : &peers[conn->watchdog.place - 1];
}


void uct_daqiri_stats_add_conn(uct_daqiri_conn_t *conn)
{
    uct_daqiri_stats_t *stats = &conn->iface->stats;

    uct_daqiri_assert_progress(conn->iface);
    if (stats->taken != UINT64_MAX) {
        conn->watchdog.place = ucs_ffs64(~stats->taken) + 1;
        stats->taken      |= UCS_BIT(conn->watchdog.place - 1);
    }
}


/* Extends ids, which wrap, to the number of requests, which does not. */
static void uct_daqiri_stats_sum(uct_daqiri_conn_t *conn)
{
    conn->watchdog.all_posted  += conn->sq.posted - conn->watchdog.posted;
    conn->watchdog.all_retired += conn->sq.retired - conn->watchdog.retired;
    conn->watchdog.posted       = conn->sq.posted;
    conn->watchdog.retired      = conn->sq.retired;
}


void uct_daqiri_stats_remove_conn(uct_daqiri_conn_t *conn)
{
    const dq_stats_peer_t none = {.state = DQ_STATS_NONE};
    uct_daqiri_stats_t *stats  = &conn->iface->stats;
    dq_stats_peer_t *place     = uct_daqiri_stats_place(conn);

    uct_daqiri_assert_progress(conn->iface);
    uct_daqiri_stats_sum(conn);
    stats->posted  += conn->watchdog.all_posted;
    stats->retired += conn->watchdog.all_retired;
    if (place != NULL) {
        dq_stats_write_peer(place, &none);
        stats->taken      &= ~UCS_BIT(conn->watchdog.place - 1);
        conn->watchdog.place = 0;
    }
}


static dq_stats_state_t uct_daqiri_stats_state(const uct_daqiri_conn_t *conn)
{
    switch (conn->state) {
    case DQ_LIFE_UNCONNECTED:
    case DQ_LIFE_CONNECTING:
        return DQ_STATS_CONNECTING;
    case DQ_LIFE_UP:
    case DQ_LIFE_CLOSING:
        return DQ_STATS_UP;
    case DQ_LIFE_IDLE_CLOSED:
        return DQ_STATS_IDLE_CLOSED;
    case DQ_LIFE_RECOVERING:
        return DQ_STATS_LOST;
    default:
        return DQ_STATS_DEAD;
    }
}


static void uct_daqiri_stats_sample_conn(uct_daqiri_conn_t *conn)
{
    dq_stats_peer_t *place = uct_daqiri_stats_place(conn);
    dq_stats_peer_t peer   = {
        .state     = uct_daqiri_stats_state(conn),
        .qpn       = uct_daqiri_qp_num(&conn->qp),
        .in_use    = dq_sq_in_use(&conn->sq),
        .depth     = conn->slots.most,
        .credits   = dq_sq_credits(&conn->sq),
        .window    = conn->sq.window,
        .owed      = conn->window.owed,
        .promised  = conn->window.size,
        .losses    = conn->watchdog.losses,
        .posted    = conn->watchdog.all_posted,
        .retired   = conn->watchdog.all_retired,
        .oldest_ns = ucs_time_to_nsec(conn->watchdog.state.still),
        .stalls    = conn->watchdog.stalls,
    };

    if (place == NULL) {
        return;
    }
    if (conn->qp.is_used) {
        peer.pid      = conn->peer.mail.news.peer.pid;
        peer.peer_qpn = conn->peer.mail.news.peer.qpn;
        ucs_strncpy_zero(peer.host, conn->peer.mail.news.peer.host, sizeof(peer.host));
    }
    dq_stats_write_peer(place, &peer);
}


static void uct_daqiri_stats_sample_conns(uct_daqiri_iface_t *iface)
{
    uct_daqiri_gauges_t *gauge = iface->gauge;
    uint64_t posted            = iface->stats.posted;
    uint64_t retired           = iface->stats.retired;
    uint64_t credits = 0, oldest = 0, open = 0;
    uct_daqiri_conn_t *conn;

    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_stats_sum(conn);
        uct_daqiri_stats_sample_conn(conn);
        posted  += conn->watchdog.all_posted;
        retired += conn->watchdog.all_retired;
        credits += dq_sq_credits(&conn->sq);
        oldest   = ucs_max(oldest, conn->watchdog.state.still);
        open++;
    }
    gauge->posted     = posted;
    gauge->retired    = retired;
    gauge->credits    = credits;
    gauge->oldest_ns  = ucs_time_to_nsec(oldest);
    gauge->conns_open = open;
}


void uct_daqiri_stats_sample(uct_daqiri_iface_t *iface)
{
    uct_daqiri_gauges_t *gauge   = iface->gauge;
    const uct_daqiri_pool_t *pool = &iface->tx.pool;

    uct_daqiri_assert_progress(iface);
    uct_daqiri_stats_sample_rx(iface);
    uct_daqiri_stats_sample_conns(iface);
    gauge->sq_in_use      = dq_cq_in_use(&iface->tx.ledger);
    gauge->cq_len         = iface->tx.ledger.depth;
    gauge->tx_buffers     = pool->count;
    gauge->tx_buffers_out = pool->count - pool->free_count;
    gauge->sampled_at_ns  = uct_daqiri_stats_now();
}


/* ---- Text ---- */

/* Messages to this interface itself: each has had its number. */
static uint64_t uct_daqiri_self_tx(uct_daqiri_iface_t *iface)
{
    const uct_daqiri_peer_t *self = uct_daqiri_peer_find(iface,
                                                         iface->config.addr.uuid);

    return (self == NULL) ? 0 : self->conn->tx_seq;
}


static uint64_t uct_daqiri_stats_add(const uint64_t *values, int count)
{
    uint64_t sum = 0;
    int i;

    for (i = 1; i < count; i++) {
        sum += values[i];
    }
    return sum;
}


/* Values that are not in the file but follow from it. */
static void uct_daqiri_stats_print_sums(uct_daqiri_iface_t *iface, FILE *file)
{
    const uct_daqiri_counters_t *count = iface->count;
    const struct {
        const char *key;
        uint64_t   value;
    } rows[] = {
        {"pid", iface->config.pid},
        {"am_tx", count->am_short + count->am_bcopy + count->am_zcopy},
        {"am_self_tx", uct_daqiri_self_tx(iface)},
        {"rx_buffers", iface->rx.ledger.total},
        {"rx_dropped", uct_daqiri_stats_add(count->rx_dropped, DQ_WIRE_LAST)},
        {"frames_dropped",
         uct_daqiri_stats_add(count->frames_dropped, DQ_WIRE_LAST)},
        {"sq_in_use_at_close", dq_cq_in_use(&iface->tx.ledger)},
        {"rx_held_at_close", iface->rx.ledger.held},
        {"tx_buffers_out_at_close",
         iface->tx.pool.count - iface->tx.pool.free_count},
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(rows); i++) {
        fprintf(file, "%s %" PRIu64 "\n", rows[i].key, rows[i].value);
    }
}


static void uct_daqiri_stats_print(uct_daqiri_iface_t *iface, FILE *file)
{
    const dq_stats_header_t *map = iface->stats.map;
    const char *name;
    uint32_t i;

    fprintf(file, "device %s\n",
            ibv_get_device_name(uct_daqiri_iface_md(iface)->context->device));
    uct_daqiri_stats_print_sums(iface, file);
    for (i = 0; i < map->count; i++) {
        name = dq_stats_entry(map, i)->name;
        if (name[0] != '\0') {
            fprintf(file, "%s %" PRIu64 "\n", name, dq_stats_value(map, i));
        }
    }
}


/* Returns a file to be written from its start, or -1 with errno. Others may have put
 * something into the folder. It follows no link, waits for no FIFO and truncates no file
 * that is not ours. */
static int uct_daqiri_stats_open_text(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
                  O_NONBLOCK, 0666);

    if (fd < 0) {
        return -1;
    }
    if (!uct_daqiri_stats_is_ours(fd) || (ftruncate(fd, 0) != 0)) {
        close(fd);
        errno = EEXIST;
        return -1;
    }
    return fd;
}


/* The path is that of the file, or of the last one that could not be opened. */
static FILE *uct_daqiri_stats_text(const char *dir, unsigned pid, char *path)
{
    static uint32_t serial = 0;
    static int is_logged   = 0;
    char taken[PATH_MAX]   = "";
    struct stat st         = {.st_uid = geteuid()}, other;
    int error, fd, i;

    for (i = 0; i < 2 * UCT_DAQIRI_STATS_TRIES; i++) {
        snprintf(path, PATH_MAX, "%s/daqiri.%u.%u", dir, pid,
                 uct_daqiri_stats_next(&serial, i));
        fd    = uct_daqiri_stats_open_text(path);
        error = errno;
        if (fd >= 0) {
            if (taken[0] != '\0') {
                uct_daqiri_stats_log_taken(&is_logged, taken, st.st_uid,
                                           path);
            }
            return fdopen(fd, "w");
        }
        if (lstat(path, &other) != 0) {
            errno = error;
            break; /* no such folder, or no permission */
        }
        ucs_strncpy_zero(taken, path, sizeof(taken));
        st    = other;
        errno = EEXIST;
    }
    return NULL;
}


void uct_daqiri_stats_write(uct_daqiri_iface_t *iface)
{
    const char *dir = getenv("DAQIRI_STATS_DIR");
    char path[PATH_MAX];
    FILE *file;

    uct_daqiri_stats_sample(iface);
    if ((dir == NULL) || (*dir == '\0')) {
        return;
    }

    file = uct_daqiri_stats_text(dir, iface->config.pid, path);
    if (file == NULL) {
        ucs_warn("cannot write the counters to %s: %m", path);
        return;
    }
    uct_daqiri_stats_print(iface, file);
    if (fclose(file) != 0) {
        ucs_warn("cannot write the counters to %s: %m", path);
    }
}
