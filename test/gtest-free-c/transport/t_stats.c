/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of counters of a running interface (dq_stats.h): it is there while
 * the interface is, says what has happened the moment that it has happened, to
 * another process as well, and goes with its process, however that ends.
 */
#include "t_uct.h"
#include "dq/dq_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucs/vfs/base/vfs_obj.h>
#include <unistd.h>

enum { MESSAGES = 500, FILES_MAX = 8 };


/* ---- Files ---- */

/* The serials of this process's files, in no order. */
static unsigned find_files(pid_t pid, uint32_t *serials)
{
    DIR *dir = opendir(DQ_STATS_DIR);
    const struct dirent *entry;
    uint32_t owner, serial;
    unsigned count = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (dq_stats_is_name(entry->d_name, geteuid(), &owner, &serial) &&
            (owner == (uint32_t)pid)) {
            ck_assert_uint_lt(count, FILES_MAX);
            serials[count++] = serial;
        }
    }
    closedir(dir);
    return count;
}


static unsigned count_files(pid_t pid)
{
    uint32_t serials[FILES_MAX];

    return find_files(pid, serials);
}


static const dq_stats_header_t *map_file(pid_t pid, uint32_t serial)
{
    const dq_stats_header_t *header;
    char path[DQ_STATS_FILE_MAX];
    struct stat stat;
    void *map;
    int fd;

    dq_stats_path(path, sizeof(path), geteuid(), pid, serial);
    fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &stat), 0);
    ck_assert_uint_eq(stat.st_mode & 0777, 0600);
    map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    close(fd);
    header = dq_stats_find(map, stat.st_size);
    ck_assert_ptr_nonnull(header);
    ck_assert_uint_eq(header->pid, pid);
    return header;
}


static uint64_t value(const dq_stats_header_t *header, const char *name)
{
    uint32_t i;

    for (i = 0; i < header->count; i++) {
        if (strcmp(dq_stats_entry(header, i)->name, name) == 0) {
            return dq_stats_value(header, i);
        }
    }
    ck_abort_msg("there is no value %s", name);
}


/* The only interface of a process. */
static const dq_stats_header_t *map_only(pid_t pid)
{
    uint32_t serials[FILES_MAX];

    ck_assert_uint_eq(find_files(pid, serials), 1);
    return map_file(pid, serials[0]);
}


static void unmap(const dq_stats_header_t *header)
{
    munmap((void*)header, header->length);
}


/* ---- Reading ---- */

/* A counter is right after each message; both ends add up at the end. */
START_TEST(test_live)
{
    const dq_stats_header_t *map;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;
    unsigned i;

    t_only_daqiri("counts in a file");
    end = t_end_open("");
    map = map_only(getpid());
    ck_assert_str_ne(map->device, "");
    ck_assert_str_ne(map->host, "");
    ck_assert_uint_gt(map->opened_ns, 0);
    ck_assert_uint_eq(value(map, "am_bcopy"), 0);

    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    for (i = 0; i < MESSAGES; i++) {
        t_send(link, T_BCOPY, 100 + i);
        ck_assert_uint_eq(value(map, "am_bcopy"), link->sent);
        ck_assert_uint_eq(value(map, "am_tx_bytes"), link->bytes);
        ck_assert_uint_eq(value(map, "am_rx"), stream.got);
    }
    T_WAIT(stream.got == MESSAGES);
    ck_assert_uint_eq(value(map, "am_rx"), MESSAGES);
    ck_assert_uint_eq(value(map, "am_rx_bytes"), link->bytes);
    ck_assert_uint_eq(value(map, "conns_up"), 1);
    ck_assert_uint_eq(value(map, "posts_refused"), 0);
    ck_assert_uint_eq(value(map, "posts_enomem"), 0);
    unmap(map);
    t_end_close_all();
    ck_assert_uint_eq(count_files(getpid()), 0);
}
END_TEST


/* What a QP has for timers is what the options ask for, rounded up to what the
 * encodings of IBA have, and shown in time: never 655 ms for a missed RECV. */
START_TEST(test_timers)
{
    static const struct {
        const char *options;
        uint64_t   rnr_ns, ack_ns;
    } cases[] = {
        /*  1 */ {"", 640000, 536870912},
        /*  2 */ {"RNR_TIMEOUT=0.01ms TIMEOUT=8.192us", 10000, 8192},
        /*  3 */ {"RNR_TIMEOUT=0.7ms TIMEOUT=1ms", 960000, 1048576},
        /*  4 */ {"RNR_TIMEOUT=491.52ms TIMEOUT=2s", 491520000, 2147483648},
    };
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    t_only_daqiri("has such timers");
    end = t_end_open(cases[_i].options);
    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    t_send(link, T_BCOPY, 10);
    T_WAIT(stream.got == 1);
    ck_assert_uint_eq(t_live_sum("rnr_timer_ns"), cases[_i].rnr_ns);
    ck_assert_uint_eq(t_live_sum("ack_timeout_ns"), cases[_i].ack_ns);
}
END_TEST


/* A sender never has more credits than its receiver has RECVs, nor has the
 * receiver promised more: looked at at every look while both are busy. */
START_TEST(test_promises)
{
    const dq_stats_header_t *map;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    t_only_daqiri("has credits");
    end = t_end_open("RX_WINDOW=16 SQ_STALL_TIMEOUT=10ms");
    map = map_only(getpid());
    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    t_send(link, T_BCOPY, 100);
    T_WAIT(stream.got == 1); /* what waits for the QP is not posted yet */
    while (value(map, "looked_at_ns") - map->opened_ns < 300000000) {
        if (t_try_send(link, T_BCOPY, 100) != UCS_OK) {
            t_progress();
        }
        ck_assert_uint_le(value(map, "rx_promised"), value(map, "rx_posted"));
        ck_assert_uint_le(value(map, "credits"), value(map, "rx_posted"));
        ck_assert_uint_eq(value(map, "rx_total"),
                          value(map, "rx_free") + value(map, "rx_posted") +
                          value(map, "rx_taken") + value(map, "rx_held"));
        ck_assert_uint_eq(value(map, "posted") - value(map, "retired"),
                          value(map, "sq_in_use"));
    }
    T_WAIT(stream.got == link->sent);
    ck_assert_uint_eq(value(map, "rx_overcommit"), 0);
    ck_assert_uint_eq(value(map, "rx_overrun"), 0);
    unmap(map);
}
END_TEST


/* Each name once, each with a kind; none without a meaning but the places of
 * success in a family. */
START_TEST(test_names)
{
    const dq_stats_header_t *map;
    const char *name;
    uint32_t i, j, unnamed = 0;

    t_only_daqiri("counts in a file");
    t_end_open("");
    map = map_only(getpid());
    for (i = 0; i < map->count; i++) {
        name     = dq_stats_entry(map, i)->name;
        unnamed += *name == '\0';
        for (j = 0; (j < i) && (*name != '\0'); j++) {
            ck_assert_str_ne(name, dq_stats_entry(map, j)->name);
        }
    }
    ck_assert_uint_eq(unnamed, 3);
    unmap(map);
}
END_TEST


/* Who looks is another process. */
static void read_other(t_team_t *team)
{
    t_end_t *end = t_end_open("");
    const dq_stats_header_t *map;
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    (void)t_team_get_address(team, 1 - team->rank);
    if (team->rank == 0) {
        link = t_link_open(end, t_team_get_address(team, 1), 1);
        while (link->sent < MESSAGES) {
            t_send(link, T_BCOPY, 64);
        }
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        team->shared->number[0] = 1;
    } else {
        map = map_only(team->shared->pid[0]);
        T_WAIT(team->shared->number[0] && (stream.got == MESSAGES));
        ck_assert_uint_eq(value(map, "am_bcopy"), MESSAGES);
        ck_assert_uint_eq(value(map, "am_tx_bytes"), 64 * MESSAGES);
        unmap(map);
    }
    t_team_barrier(team);
}

START_TEST(test_other_process)
{
    t_only_daqiri("counts in a file");
    t_team_run(2, 0, read_other);
}
END_TEST


/* ---- Coming and going ---- */

START_TEST(test_off)
{
    t_only_daqiri("counts in a file");
    t_end_open("STATS=n");
    ck_assert_uint_eq(count_files(getpid()), 0);
}
END_TEST


START_TEST(test_several)
{
    t_end_t *end;

    t_only_daqiri("counts in a file");
    end = t_end_open("");
    t_end_open("");
    t_end_open("");
    ck_assert_uint_eq(count_files(getpid()), 3);
    t_end_close(end);
    ck_assert_uint_eq(count_files(getpid()), 2);
}
END_TEST


/* How a process with an open interface ends. */
typedef enum { KILLED, EXITS, EXECS, WAYS } way_t;

/* A process that opens an interface, says so, and ends in this way when it is
 * let. Whatever happens, it tells nobody of its check library. */
static pid_t start(way_t way, int *go)
{
    int ready[2], gate[2];
    char byte = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(ready) | pipe(gate), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        t_unmarked = 1;
        close(gate[1]);
        t_end_open("");
        if ((write(ready[1], &byte, 1) != 1) || (read(gate[0], &byte, 1) < 0)) {
            _exit(98);
        }
        if (way == EXECS) {
            execlp("true", "true", NULL);
        }
        exit(0);
    }
    close(ready[1]);
    close(gate[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *go = gate[1];
    return pid;
}


static void finish(pid_t pid, way_t way, int go)
{
    int status;

    if (way == KILLED) {
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    close(go);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (way != KILLED) {
        ck_assert_int_eq(status, 0);
    }
}


/* UCX destroys locks at exit that its async thread may hold. */
static void skip_exits(way_t way)
{
#ifdef __SANITIZE_THREAD__
    if (way == EXITS) {
        t_skip("the sanitizer sees how UCX's async thread outlives UCX");
    }
#else
    (void)way;
#endif
}


/* Of a process that exits nothing is left; of one that is killed, or becomes
 * another, until the next comes. */
START_TEST(test_end_of_process)
{
    pid_t pid;
    int go;

    t_only_daqiri("counts in a file");
    t_expect_loss();
    skip_exits(_i);
    pid = start(_i, &go);
    ck_assert_uint_eq(count_files(pid), 1);
    finish(pid, _i, go);
    ck_assert_uint_eq(count_files(pid), (_i == EXITS) ? 0 : 1);
    t_end_open("");
    ck_assert_uint_eq(count_files(pid), 0);
    ck_assert_uint_eq(count_files(getpid()), 1);
}
END_TEST


/* A stopped process lives: its file stays, and can be read. */
START_TEST(test_stopped)
{
    const dq_stats_header_t *map;
    pid_t pid;
    int go, status;

    t_only_daqiri("counts in a file");
    t_expect_loss();
    skip_exits(EXITS);
    pid = start(EXITS, &go);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    t_end_open("");
    map = map_only(pid);
    ck_assert_uint_eq(value(map, "am_rx"), 0);
    unmap(map);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    finish(pid, EXITS, go);
    ck_assert_uint_eq(count_files(pid), 0);
}
END_TEST


/* A child that exits does not take its parent's file with it. */
START_TEST(test_child)
{
    int status;
    pid_t pid;

    t_only_daqiri("counts in a file");
    t_end_open("");
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        t_unmarked = 1;
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(count_files(getpid()), 1);
}
END_TEST


/* What has such a name and is no file of ours does no harm, and what is locked
 * by nobody is swept, whatever is in it. */
START_TEST(test_strange_files)
{
    char path[3][DQ_STATS_FILE_MAX];
    struct stat stat;
    unsigned i;
    int fd;

    t_only_daqiri("counts in a file");
    for (i = 0; i < 3; i++) {
        dq_stats_path(path[i], sizeof(path[i]), geteuid(), 0, getpid() + i);
    }
    ck_assert_int_eq(mkdir(path[0], 0700), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path[1]), 0);
    fd = open(path[2], O_CREAT | O_RDWR, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);

    t_end_open("");
    ck_assert_int_eq(lstat(path[0], &stat) | lstat(path[1], &stat) |
                     lstat(path[2], &stat), 0);
    close(fd);
    t_end_open("");
    ck_assert_int_eq(lstat(path[0], &stat) | lstat(path[1], &stat), 0);
    ck_assert_int_ne(lstat(path[2], &stat), 0);
    ck_assert_int_eq(rmdir(path[0]) | unlink(path[1]), 0);
}
END_TEST


/* ---- Suite ---- */

/* ---- UCX's VFS, which needs no FUSE to be asked ---- */

static uint64_t vfs_value(const t_end_t *end, const char *name)
{
    ucs_string_buffer_t text;
    char path[256];
    uint64_t number;

    snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p/counters/%s",
             (void*)end->worker, (void*)end->iface, name);
    ucs_string_buffer_init(&text);
    ck_assert_int_eq(ucs_vfs_path_read_file(path, &text), UCS_OK);
    ck_assert_int_eq(sscanf(ucs_string_buffer_cstr(&text), "%" SCNu64,
                            &number), 1);
    ucs_string_buffer_cleanup(&text);
    return number;
}


static void vfs_count_one(const char *name, void *arg)
{
    unsigned *count = arg;

    *count += name[0] != '\0';
}


/* How many counters there are; to list the interface makes them. */
static unsigned vfs_count(const t_end_t *end)
{
    unsigned count = 0;
    char path[256];

    snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", (void*)end->worker,
             (void*)end->iface);
    ck_assert_int_eq(ucs_vfs_path_list_dir(path, vfs_count_one, &count),
                     UCS_OK);
    count = 0;
    strcat(path, "/counters");
    ck_assert_int_eq(ucs_vfs_path_list_dir(path, vfs_count_one, &count),
                     UCS_OK);
    return count;
}


/* All that is in the file, and right at any moment, also if it was listed before
 * there was an endpoint; and where there is no file. */
START_TEST(test_vfs)
{
    const dq_stats_header_t *map;
    unsigned named = 0, i;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    t_only_daqiri("has counters in UCX's VFS");
    end = t_end_open((_i == 0) ? "" : "STATS=n");
    if (_i == 0) {
        map = map_only(getpid());
        for (i = 0; i < map->count; i++) {
            named += dq_stats_entry(map, i)->name[0] != '\0';
        }
        ck_assert_uint_eq(vfs_count(end), named);
        unmap(map);
    }
    ck_assert_uint_gt(vfs_count(end), 50);
    ck_assert_uint_eq(vfs_value(end, "am_bcopy"), 0);
    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    for (i = 0; i < MESSAGES; i++) {
        t_send(link, T_BCOPY, 100);
    }
    T_WAIT(stream.got == MESSAGES);
    ck_assert_uint_gt(vfs_count(end), 50);
    ck_assert_uint_eq(vfs_value(end, "am_bcopy"), MESSAGES);
    ck_assert_uint_eq(vfs_value(end, "am_rx"), MESSAGES);
    ck_assert_uint_eq(vfs_value(end, "conns_up"), 1);
}
END_TEST


static Suite *suite_stats(void)
{
    Suite *suite  = suite_create("stats");
    TCase *reading = t_uct_case("reading");
    TCase *files   = t_uct_case("files");

    tcase_add_test(reading, test_live);
    tcase_add_test(reading, test_names);
    tcase_add_loop_test(reading, test_timers, 0, 4);
    tcase_add_test(reading, test_promises);
    tcase_add_test(reading, test_other_process);
    tcase_add_loop_test(reading, test_vfs, 0, 2);
    suite_add_tcase(suite, reading);

    tcase_add_test(files, test_off);
    tcase_add_test(files, test_several);
    tcase_add_loop_test(files, test_end_of_process, 0, WAYS);
    tcase_add_test(files, test_stopped);
    tcase_add_test(files, test_child);
    tcase_add_test(files, test_strange_files);
    suite_add_tcase(suite, files);
    return suite;
}

T_UCT_MAIN(suite_stats)
