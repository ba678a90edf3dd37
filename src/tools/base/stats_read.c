/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/stats_read.h"

#include "tools/base/clock.h"
#include "tools/base/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- finding them ---- */

/* No file is longer that is laid out as it should be (dq_stats_layout()). */
#define STATS_LENGTH_MAX \
    (4096 + DQ_STATS_VALUES_MAX * (sizeof(dq_stats_entry_t) + 8) + \
     DQ_STATS_PEERS_MAX * sizeof(dq_stats_peer_t))

/* Its owner writes a peer in several steps, with a number before and after. */
#define STATS_PEER_TRIES 1000

/* All of it, or less when it has become shorter. */
static size_t stats_read_at(int fd, void *bytes, size_t length, size_t offset)
{
    size_t done = 0;
    ssize_t got;

    do {
        got   = pread(fd, (char*)bytes + done, length - done,
                      (off_t)(offset + done));
        done += (got > 0) ? (size_t)got : 0;
    } while ((got > 0) && (done < length));
    return done;
}

/* Once more, until nobody has written to it meanwhile; else it is nobody. */
static void stats_read_peer(int fd, size_t offset, dq_stats_peer_t *peer)
{
    uint32_t before, after;
    int i;

    for (i = 0; i < STATS_PEER_TRIES; ++i) {
        if ((stats_read_at(fd, &before, sizeof(before), offset) !=
             sizeof(before)) ||
            (stats_read_at(fd, peer, sizeof(*peer), offset) !=
             sizeof(*peer)) ||
            (stats_read_at(fd, &after, sizeof(after), offset) !=
             sizeof(after))) {
            break;
        }
        if ((before == after) && (before % 2 == 0) &&
            (peer->sequence == before)) {
            return;
        }
    }
    memset(peer, 0, sizeof(*peer));
}

static void stats_read_peers(const daqiri_stats_file_t *file)
{
    uint32_t at            = file->header->peers_at;
    dq_stats_peer_t *peers = (dq_stats_peer_t*)((char*)file->copy + at);
    uint32_t i;

    for (i = 0; i < file->header->peers; ++i) {
        if ((peers[i].state != DQ_STATS_NONE) || (peers[i].sequence % 2 != 0)) {
            stats_read_peer(file->fd, at + i * sizeof(peers[i]), &peers[i]);
        }
    }
}

/* Returns 1, or 0 when it is none. */
static int stats_read(daqiri_stats_file_t *file, size_t length)
{
    file->copy = (length <= STATS_LENGTH_MAX) ? malloc(length) : NULL;
    if (file->copy == NULL) {
        return 0;
    }
    file->read_ns = daqiri_now_ns();
    length        = stats_read_at(file->fd, file->copy, length, 0);
    file->header  = dq_stats_find(file->copy, length);
    if (file->header == NULL) {
        free(file->copy);
        return 0;
    }
    stats_read_peers(file);
    return 1;
}

/* Returns 1 when it is read, 0 when it is no such file or cannot be read. */
static int stats_open(daqiri_stats_file_t *file, const char *path,
                      uint32_t uid)
{
    struct stat st;

    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file->fd < 0) {
        return 0;
    }
    if ((fstat(file->fd, &st) == 0) && S_ISREG(st.st_mode) &&
        (st.st_uid == uid) && (st.st_size > 0) &&
        stats_read(file, (size_t)st.st_size)) {
        return 1;
    }
    close(file->fd);
    return 0;
}

static int stats_add(daqiri_stats_files_t *files,
                     const daqiri_stats_file_t *file)
{
    daqiri_stats_file_t *list = realloc(files->list, (files->count + 1) *
                                        sizeof(*files->list));

    if (list == NULL) {
        return ENOMEM;
    }
    files->list                 = list;
    files->list[files->count++] = *file;
    return 0;
}

static int stats_compare(const void *a, const void *b)
{
    const daqiri_stats_file_t *x = a, *y = b;

    if (x->pid != y->pid) {
        return (x->pid > y->pid) ? 1 : -1;
    }
    return (x->serial > y->serial) - (x->serial < y->serial);
}

static void stats_close(daqiri_stats_file_t *file)
{
    free(file->copy);
    free(file->before);
    close(file->fd);
}

/* The name says whose it is; one that lies about it is left alone. */
static int stats_take(daqiri_stats_files_t *files, const char *name,
                      uint32_t uid, uint32_t pid, daqiri_stats_rest_t *rest)
{
    daqiri_stats_file_t file = {0};
    char path[DQ_STATS_FILE_MAX + sizeof(DQ_STATS_DIR) + 1];
    struct stat st;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", DQ_STATS_DIR, name) >=
        sizeof(path)) {
        return 0;
    }
    if ((lstat(path, &st) != 0) ||
        !dq_stats_is_name(name, st.st_uid, &file.pid, &file.serial) ||
        ((pid != 0) && (pid != file.pid))) {
        return 0;
    }
    if (st.st_uid != uid) {
        ++rest->foreign;
        rest->foreign_uid = st.st_uid;
        return 0;
    }
    if (!stats_open(&file, path, uid)) {
        ++rest->unreadable;
        return 0;
    }
    if (stats_add(files, &file) != 0) {
        stats_close(&file);
        return ENOMEM;
    }
    return 0;
}

int daqiri_stats_find_all(uint32_t uid, uint32_t pid,
                          daqiri_stats_files_t *files,
                          daqiri_stats_rest_t *rest)
{
    DIR *folder = opendir(DQ_STATS_DIR);
    struct dirent *entry;
    int error = 0;

    files->list  = NULL;
    files->count = 0;
    *rest        = (daqiri_stats_rest_t){0};
    if (folder == NULL) {
        return errno;
    }
    while ((error == 0) && ((entry = readdir(folder)) != NULL)) {
        error = stats_take(files, entry->d_name, uid, pid, rest);
    }
    closedir(folder);
    if (files->count > 0) {
        qsort(files->list, files->count, sizeof(*files->list), stats_compare);
    }
    return error;
}

void daqiri_stats_close_all(daqiri_stats_files_t *files)
{
    size_t i;

    for (i = 0; i < files->count; ++i) {
        stats_close(&files->list[i]);
    }
    free(files->list);
    files->list  = NULL;
    files->count = 0;
}

int daqiri_stats_is_denied(const char *speaker, uint32_t uid)
{
    if ((geteuid() == 0) || (uid == geteuid())) {
        return 0;
    }
    fprintf(stderr, "%s: --user %u: only root sees the counters of another "
            "user\n", speaker, uid);
    return 1;
}

const char *daqiri_stats_explain(char *text, size_t size, uint32_t uid, uint32_t pid,
                                 int error, const daqiri_stats_rest_t *rest)
{
    if (error != 0) {
        snprintf(text, size, "%s: %s", DQ_STATS_DIR, strerror(error));
    } else if (rest->unreadable > 0) {
        snprintf(text, size, "there are counters, but they cannot be read: they "
                 "are of another version, or spoiled");
    } else if ((pid != 0) && (rest->foreign > 0)) {
        snprintf(text, size, "process %u has counters, but they are another "
                 "user's: root sees them with --user %u", pid, rest->foreign_uid);
    } else if (pid != 0) {
        snprintf(text, size, "process %u has no counters: it does not run "
                 "daqiri, or runs it with UCX_DAQIRI_STATS=n", pid);
    } else if (rest->foreign > 0) {
        snprintf(text, size, "no process of user %u runs daqiri with counters; "
                 "there are some of other users, as %u (--user)", uid,
                 rest->foreign_uid);
    } else {
        snprintf(text, size, "no process of user %u runs daqiri with counters",
                 uid);
    }
    return text;
}

/* Its owner holds an exclusive lock as long as it lives. */
int daqiri_stats_is_alive(const daqiri_stats_file_t *file)
{
    struct stat st;

    if ((fstat(file->fd, &st) == 0) && (st.st_nlink == 0)) {
        return 0;
    }
    if (flock(file->fd, LOCK_SH | LOCK_NB) == 0) {
        flock(file->fd, LOCK_UN);
        return 0;
    }
    return 1;
}

/* ---- what is in them ---- */

/* Values that are zero as long as the promise holds that they are about. */
static const struct {
    const char *name;
    const char *note;
} stats_promises[] = {
    {"posts_refused", "the device refused requests that the ledger had let "
                      "through"},
    {"posts_enomem", "the device had no room for requests that the ledger had "
                     "let through"},
    {"recvs_refused", "the device refused receive buffers that fit its queue"},
    {"stray_completions", "completions came that belong to no request"},
    {"rx_overcommit", "peers were promised more messages than there are "
                      "receive buffers: memory is short"},
    {"rx_overrun", "messages came that nothing had been promised for"},
    {"rx_duplicates", "the device delivered messages twice, which were handed "
                      "up once"},
    {"rx_out_of_order", "messages came out of order, and were not handed up"},
    {"qp_failures", "queue pairs died; see recoveries"},
    {"stuck", "requests stood still for long"}
};

/* dq_stats_find() has seen that the text ends; what is in it is for people. */
static const char *stats_name(const dq_stats_entry_t *entry, char *name)
{
    char *c;

    snprintf(name, DQ_STATS_NAME_MAX, "%.*s", DQ_STATS_NAME_MAX - 1,
             entry->name);
    for (c = name; *c != '\0'; ++c) {
        *c = ((*c >= ' ') && (*c <= '~')) ? *c : '?';
    }
    return name;
}

static void stats_note(json_t *notes, const char *name, uint64_t value)
{
    char text[256];
    size_t i;

    for (i = 0; i < sizeof(stats_promises) / sizeof(stats_promises[0]); ++i) {
        if ((value > 0) && (strcmp(name, stats_promises[i].name) == 0)) {
            snprintf(text, sizeof(text), "%s %llu: %s", name,
                     (unsigned long long)value, stats_promises[i].note);
            json_array_append_new(notes, json_string(text));
        }
    }
    if ((value > 0) && (strncmp(name, "rx_dropped_", 11) == 0)) {
        snprintf(text, sizeof(text), "%s %llu: messages came that make no "
                 "sense", name, (unsigned long long)value);
        json_array_append_new(notes, json_string(text));
    }
}

static void stats_rate(json_t *row, const daqiri_stats_file_t *file,
                       uint32_t index, uint64_t value, uint64_t now_ns)
{
    const dq_stats_entry_t *entry = dq_stats_entry(file->header, index);
    double seconds = (double)(now_ns - file->before_ns) / 1e9;

    if ((file->before == NULL) || (entry->kind == DQ_STATS_GAUGE) ||
        (seconds <= 0) || (value < file->before[index])) {
        daqiri_report_set(row, "per_s", json_null());
    } else {
        daqiri_report_real(row, "per_s",
                           (double)(value - file->before[index]) / seconds);
    }
}

static void stats_values(daqiri_stats_file_t *file, json_t *report, int is_all)
{
    static const char *const kinds[] = {"counter", "sum", "gauge"};
    const dq_stats_header_t *header = file->header;
    json_t *values  = daqiri_report_array(report, "values");
    json_t *notes   = daqiri_report_array(report, "notes");
    uint64_t *now   = calloc(header->count + 1, sizeof(*now));
    uint64_t now_ns = daqiri_now_ns();
    const dq_stats_entry_t *entry;
    char name[DQ_STATS_NAME_MAX];
    json_t *row;
    uint32_t i;

    for (i = 0; (now != NULL) && (i < header->count); ++i) {
        entry  = dq_stats_entry(header, i);
        now[i] = dq_stats_value(header, i);
        if ((entry->name[0] == '\0') || (entry->kind >= DQ_STATS_KIND_LAST)) {
            continue;
        }
        stats_name(entry, name);
        stats_note(notes, name, now[i]);
        if (strcmp(name, "sampled_at_ns") == 0) {
            daqiri_report_real(report, "looked_s_ago", (now[i] == 0) ? 0 :
                               ((double)now_ns - (double)now[i]) / 1e9);
            continue;
        }
        if (!is_all && (now[i] == 0)) {
            continue;
        }
        row = daqiri_report_row(values);
        daqiri_report_text(row, "name", name);
        daqiri_report_text(row, "kind", kinds[entry->kind]);
        daqiri_report_int(row, "value", (long long)now[i]);
        stats_rate(row, file, i, now[i], now_ns);
    }
    free(file->before);
    file->before    = now;
    file->before_ns = now_ns;
}

static void stats_peers(const daqiri_stats_file_t *file, json_t *report)
{
    json_t *rows = daqiri_report_array(report, "peers");
    dq_stats_peer_t peer;
    char host[DQ_STATS_HOST_MAX];
    json_t *row;
    uint32_t i;

    for (i = 0; i < file->header->peers; ++i) {
        if (!dq_stats_peer(file->header, i, &peer) ||
            (peer.state == DQ_STATS_NONE) ||
            (peer.state >= DQ_STATS_STATE_LAST)) {
            continue;
        }
        snprintf(host, sizeof(host), "%.*s", DQ_STATS_HOST_MAX - 1, peer.host);
        row = daqiri_report_row(rows);
        daqiri_report_text(row, "host", host);
        daqiri_report_int(row, "pid", peer.pid);
        daqiri_report_text(row, "state",
                           dq_stats_state_name((dq_stats_state_t)peer.state));
        daqiri_report_int(row, "qpn", peer.qpn);
        daqiri_report_int(row, "peer_qpn", peer.peer_qpn);
        daqiri_report_int(row, "in_use", peer.in_use);
        daqiri_report_int(row, "depth", peer.depth);
        daqiri_report_int(row, "credits", peer.credits);
        daqiri_report_int(row, "window", peer.window);
        daqiri_report_int(row, "owed", peer.owed);
        daqiri_report_int(row, "promised", peer.promised);
        daqiri_report_int(row, "posted", (long long)peer.posted);
        daqiri_report_int(row, "retired", (long long)peer.retired);
        daqiri_report_int(row, "qp_failures", peer.losses);
        daqiri_report_int(row, "stalls", (long long)peer.stalls);
        daqiri_report_real(row, "oldest_us", (double)peer.oldest_ns / 1e3);
    }
}

json_t *daqiri_stats_report(daqiri_stats_file_t *file, int is_all)
{
    const dq_stats_header_t *header = file->header;
    json_t *report = json_object();
    char text[DQ_STATS_HOST_MAX];
    uint64_t now_ns = daqiri_now_ns();

    daqiri_report_int(report, "pid", file->pid);
    daqiri_report_int(report, "serial", file->serial);
    daqiri_report_bool(report, "alive", daqiri_stats_is_alive(file));
    snprintf(text, sizeof(text), "%.*s", DQ_STATS_HOST_MAX - 1, header->host);
    daqiri_report_text(report, "host", text);
    snprintf(text, sizeof(text), "%.*s", DQ_STATS_HOST_MAX - 1,
             header->device);
    daqiri_report_text(report, "device", text);
    daqiri_report_int(report, "port", header->port);
    daqiri_report_real(report, "age_s",
                       ((double)now_ns - (double)header->opened_ns) / 1e9);
    daqiri_report_real(report, "looked_s_ago", 0);
    stats_values(file, report, is_all);
    stats_peers(file, report);
    return report;
}
