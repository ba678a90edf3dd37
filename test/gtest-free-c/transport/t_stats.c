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
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
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

/* A sum or a gauge is of the last look, however long ago that was. Returns when
 * the next one was. */
static uint64_t wait_for_look(const dq_stats_header_t *map)
{
    uint64_t last = value(map, "sampled_at_ns");

    T_WAIT(value(map, "sampled_at_ns") != last);
    return value(map, "sampled_at_ns");
}


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
    t_end_t *end;

    t_only_daqiri("has such timers");
    end = t_end_open(cases[_i].options);
    (void)t_link_up(end, end, 1, &stream);
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
    uint64_t first_ns;
    t_link_t *link;
    t_end_t *end;

    t_only_daqiri("has credits");
    end = t_end_open("RX_WINDOW=16 SQ_STALL_TIMEOUT=10ms");
    map = map_only(getpid());
    /* and not sooner: what waits for the QP is not posted yet */
    link     = t_link_up(end, end, 1, &stream);
    first_ns = wait_for_look(map);
    while (value(map, "sampled_at_ns") - first_ns < 300000000) {
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
    T_WAIT(value(map, "conns_open") == 1);
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


/* ---- Each counts what it says ---- */

enum { OP_LENGTH = 24 };

typedef struct {
    const char *name;
    uint64_t   value;
} sum_t;

static void check_sums(const sum_t *sums, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        ck_assert_msg(t_stats_sum(sums[i].name) == sums[i].value,
                      "%s is %" PRIu64 ", should be %" PRIu64, sums[i].name,
                      t_stats_sum(sums[i].name), sums[i].value);
    }
}


static size_t op_pack(void *to, void *from)
{
    memcpy(to, from, OP_LENGTH);
    return OP_LENGTH;
}


static void op_unpack(void *to, const void *data, size_t length)
{
    memcpy(to, data, length);
}


/* So many times each, one after another. */
static void do_operations(t_end_t *end, t_end_t *peer, t_link_t *link)
{
    static uint64_t memory[16];
    uint64_t there = (uintptr_t)memory, packed[8] = {0};
    uct_iov_t iov  = {.buffer = &memory[8], .length = OP_LENGTH, .count = 1};
    uct_mem_h theirs;
    uct_rkey_bundle_t key;
    t_comp_t comp;
    unsigned i;

    ck_assert_int_eq(uct_md_mem_reg(end->md, memory, sizeof(memory),
                                    UCT_MD_MEM_ACCESS_ALL, &iov.memh), UCS_OK);
    ck_assert_int_eq(uct_md_mem_reg(peer->md, memory, sizeof(memory),
                                    UCT_MD_MEM_ACCESS_ALL, &theirs), UCS_OK);
    ck_assert_uint_le(end->md_attr.rkey_packed_size, sizeof(packed));
    ck_assert_int_eq(uct_md_mkey_pack(peer->md, theirs, packed), UCS_OK);
    ck_assert_int_eq(uct_rkey_unpack(end->component, packed, &key), UCS_OK);
    for (i = 0; i < 6; i++) {
        t_comp_init(&comp);
        if (i < 1) {
            ck_assert_int_eq(uct_ep_put_short(link->ep, &memory[8], OP_LENGTH,
                                              there, key.rkey), UCS_OK);
        }
        if (i < 2) {
            ck_assert_int_eq(uct_ep_put_bcopy(link->ep, op_pack, &memory[8],
                                              there, key.rkey), OP_LENGTH);
        }
        if (i < 3) {
            ck_assert_int_eq(uct_ep_put_zcopy(link->ep, &iov, 1, there,
                                              key.rkey, &comp.super),
                             UCS_INPROGRESS);
            T_WAIT(comp.calls == 1);
            t_comp_init(&comp);
        }
        if (i < 4) {
            ck_assert_int_eq(uct_ep_get_bcopy(link->ep, op_unpack, &memory[8],
                                              OP_LENGTH, there, key.rkey,
                                              &comp.super), UCS_INPROGRESS);
            T_WAIT(comp.calls == 1);
            t_comp_init(&comp);
        }
        if (i < 5) {
            ck_assert_int_eq(uct_ep_get_zcopy(link->ep, &iov, 1, there,
                                              key.rkey, &comp.super),
                             UCS_INPROGRESS);
            T_WAIT(comp.calls == 1);
        }
        ck_assert_int_eq(uct_ep_atomic64_post(link->ep, UCT_ATOMIC_OP_ADD, 1,
                                              there, key.rkey), UCS_OK);
    }
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_int_eq(uct_rkey_release(end->component, &key), UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(end->md, iov.memh), UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(peer->md, theirs), UCS_OK);
}


START_TEST(test_operations)
{
    static const sum_t sums[] = {
        {"am_short", 7}, {"am_bcopy", 8}, {"am_zcopy", 9}, {"am_rx", 24},
        {"put_short", 1}, {"put_bcopy", 2}, {"put_zcopy", 3},
        {"get_bcopy", 4}, {"get_zcopy", 5}, {"atomics", 6},
        {"rma_bytes", 15 * OP_LENGTH}, {"cq_len", 2 * 96},
    };
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    unsigned i;

    t_only_daqiri("counts operations");
    end[0] = t_end_open("CQ_LEN=96");
    end[1] = t_end_open("CQ_LEN=96");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    for (i = 0; i < 24; i++) {
        t_send(link, (i < 7) ? T_SHORT : (i < 15) ? T_BCOPY : T_ZCOPY, 50);
        T_WAIT(stream.got == i + 1);
    }
    do_operations(end[0], end[1], link);
    T_WAIT(t_live_sum("conns_up") == 2);
    t_end_close_all();
    check_sums(sums, sizeof(sums) / sizeof(sums[0]));
    ck_assert_uint_gt(t_stats_sum("tx_buffers"), 0);
    ck_assert_uint_gt(t_stats_sum("frames_rx"), 0);
    ck_assert_uint_ge(t_stats_sum("frames_tx"), t_stats_sum("frames_rx"));
    ck_assert_uint_eq(t_stats_sum("conns"), 2);
}
END_TEST


/* Whoever sends and does not look is refused, for one reason and no other. */
START_TEST(test_refusals)
{
    static const struct {
        const char *options;
        t_how_t    how;
        size_t     length;
        const char *name;
        unsigned   sent; /* before that                                      */
    } cases[] = {
        {"RX_WINDOW=8", T_SHORT, 50, "refused_no_credit", 7},
        {"SQ_DEPTH=8", T_SHORT, 50, "refused_sq_full", 7},
        {"CQ_LEN=16", T_SHORT, 50, "refused_cq_full", 15},
        {"TX_BUFFERS=64 SQ_DEPTH=512 CQ_LEN=4096", T_BCOPY, 200,
         "refused_no_buffer", 64},
        /* what fits inline keeps no buffer */
        {"TX_BUFFERS=64 SQ_DEPTH=512 CQ_LEN=4096", T_BCOPY, 50,
         "refused_no_credit", 255},
    };
    static const char *const names[] = {
        "refused_no_credit", "refused_sq_full", "refused_cq_full",
        "refused_no_buffer", "refused_not_up", "refused_dead"
    };
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;
    uint64_t before[6];
    t_end_t *end[2];
    unsigned i;

    t_only_daqiri("counts refusals");
    end[0] = t_end_open(cases[_i].options);
    end[1] = t_end_open("RX_WINDOW=256 RX_WINDOW_START=256");
    if (_i == 0) {
        t_end_close(end[1]);
        end[1] = t_end_open(cases[_i].options);
    }
    link = t_link_up(end[0], end[1], 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    for (i = 0; i < 6; i++) { /* it may have taken a while until it was up */
        before[i] = t_live_sum(names[i]);
    }

    do {
        status = t_try_send(link, cases[_i].how, cases[_i].length);
    } while (status == UCS_OK);
    ck_assert_int_eq(status, UCS_ERR_NO_RESOURCE);
    for (i = 0; i < 6; i++) {
        ck_assert_uint_eq(t_live_sum(names[i]) - before[i],
                          strcmp(names[i], cases[_i].name) == 0);
    }
    ck_assert_uint_le(link->sent, 1 + cases[_i].sent);
    T_WAIT(stream.got == link->sent);
}
END_TEST


/* What goes wrong, and what is mended. */
START_TEST(test_faults)
{
    static const struct {
        const char *plan;
        const char *options;
        sum_t      sums[4];
    } cases[] = {
        {"post qp=rc n=5 errno=ENOMEM times=1", "",
         {{"posts_refused", 1}, {"posts_enomem", 1}, {"qp_failures", 0},
          {"retries_posted", 1}}},
        {"post qp=rc n=5 errno=EAGAIN times=1", "",
         {{"posts_refused", 1}, {"posts_enomem", 0}, {"qp_failures", 0},
          {"retries_posted", 1}}},
        {"complete qp=rc n=5 status=GENERAL_ERR times=1", "SIGNAL_EVERY=1",
         {{"tx_errors", 1}, {"rx_flushed", 0}, {"posts_refused", 0},
          {"posts_enomem", 0}}},
        {"complete qp=rc n=5 queue=recv status=WR_FLUSH_ERR times=1", "",
         {{"rx_flushed", 1}, {"posts_refused", 0}, {"posts_enomem", 0},
          {"rx_out_of_order", 0}}},
        /* the peer has what is not acknowledged */
        {"lose-ack qp=rc n=5 times=1", "",
         {{"replay_delivered", 1}, {"tx_errors", 1}, {"posts_refused", 0},
          {"posts_enomem", 0}}},
    };
    char options[96];
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    t_only_daqiri("counts what goes wrong");
    if (t_is_softroce()) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", cases[_i].plan, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    t_expect_losses_of_qps();
    t_expect_refused_posts();
    snprintf(options, sizeof(options), "RX_WINDOW=16 TIMEOUT=8ms RETRY_COUNT=3 "
             "CONN_RETRY=5ms %s", cases[_i].options);
    end[0] = t_end_open(options);
    end[1] = t_end_open(options);
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    while (link->sent < 200) {
        t_send(link, T_BCOPY, 20);
    }
    T_WAIT(stream.got == link->sent);
    t_end_close_all();
    check_sums(cases[_i].sums, 4);
    ck_assert_uint_gt(t_stats_sum("credit_frames_rx"), 0);
    ck_assert_uint_ge(t_stats_sum("credit_frames_tx"),
                      t_stats_sum("credit_frames_rx"));
    ck_assert_int_eq(t_stats_sum("qp_failures") > 0, _i > 1);
    ck_assert_int_eq(t_stats_sum("tx_flushed") > 0, _i > 1);
}
END_TEST


START_TEST(test_chains)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    t_only_daqiri("chains requests");
    end = t_end_open("TX_BATCH=on TX_BATCH_TIMEOUT=60s");
    link = t_link_up(end, end, 1, &stream);
    ck_assert_uint_eq(t_live_sum("batches"), 0);
    while (link->sent < 4) { /* the first one goes by itself */
        ck_assert_int_eq(t_try_send(link, T_SHORT, 20), UCS_OK);
    }
    T_WAIT(stream.got == 4);
    ck_assert_uint_eq(t_live_sum("batches"), 1);
    ck_assert_uint_eq(t_live_sum("batched"), 2);
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
 * another, until the next comes, which may be of another program. */
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
    ck_assert_uint_le(count_files(pid), (_i == EXITS) ? 0 : 1);
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


static int is_forked_off;

#ifdef __SANITIZE_ADDRESS__
/* At exit() the search for leaks takes the allocator's lock, which a thread that
 * fork() has left behind may hold for ever (libasan of GCC 12). */
int __lsan_is_turned_off(void)
{
    return is_forked_off;
}
#endif


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
        t_unmarked    = 1;
        is_forked_off = 1;
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
    while (lstat(path[2], &stat) == 0) { /* once a second it is looked for */
        t_end_close(t_end_open(""));
    }
    ck_assert_int_eq(lstat(path[0], &stat) | lstat(path[1], &stat), 0);
    ck_assert_int_eq(rmdir(path[0]) | unlink(path[1]), 0);
}
END_TEST


/* ---- Names that others have taken ---- */

enum { NOBODY = 65534, TAKEN = 40 };

static void skip_unless_root(void)
{
    if (geteuid() != 0) {
        t_skip("only root can make files of another user");
    }
}


static void make_foreign(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchown(fd, NOBODY, NOBODY), 0);
    close(fd);
}


/* Another user has all the names that we would take: there is a file still, it
 * is said once, and it goes as any other. */
START_TEST(test_taken)
{
    char path[TAKEN][DQ_STATS_FILE_MAX];
    uint32_t serials[FILES_MAX], before[FILES_MAX];
    uint32_t serial;
    struct stat st;
    unsigned i;

    t_only_daqiri("counts in a file");
    skip_unless_root();
    t_end_open("");
    ck_assert_uint_eq(find_files(getpid(), before), 1);
    for (i = 0; i < TAKEN; i++) {
        dq_stats_path(path[i], sizeof(path[i]), geteuid(), getpid(),
                      before[0] + 1 + i);
        make_foreign(path[i]);
    }
    t_expect_log("is there already, as user 65534's: the counters are in "
                 DQ_STATS_DIR "/daqiri-stats-");
    t_end_open("");
    t_end_open("");
    for (i = 0; i < TAKEN; i++) {
        ck_assert_int_eq(stat(path[i], &st), 0);
        ck_assert_int_eq(st.st_size, 0);
        ck_assert_int_eq(unlink(path[i]), 0);
    }

    ck_assert_uint_eq(find_files(getpid(), serials), 3);
    ck_assert_uint_eq(t_log_count("is there already, as user 65534's"), 1);
    for (i = 0; i < 3; i++) {
        serial = serials[i];
        ck_assert((serial == before[0]) || (serial >= before[0] + TAKEN));
        unmap(map_file(getpid(), serial));
    }
    t_end_close_all();
    ck_assert_uint_eq(count_files(getpid()), 0);
}
END_TEST


/* What stands in the folder of texts under our names. */
typedef enum {
    LINK, LINK_TO_NOTHING, SECOND_NAME, FIFO, FIFO_READ, FOLDER, FOREIGN, TRAPS
} trap_t;

static int spring(trap_t trap, const char *path, const char *victim)
{
    char nothing[320];

    switch (trap) {
    case LINK:
        return symlink(victim, path);
    case LINK_TO_NOTHING:
        snprintf(nothing, sizeof(nothing), "%s.nothing", victim);
        return symlink(nothing, path);
    case SECOND_NAME:
        return link(victim, path);
    case FIFO:
        return mkfifo(path, 0666);
    case FIFO_READ: /* closed as the process ends */
        return (mkfifo(path, 0666) == 0) &&
               (open(path, O_RDONLY | O_NONBLOCK) >= 0) ? 0 : -1;
    case FOLDER:
        return mkdir(path, 0777);
    default:
        skip_unless_root();
        make_foreign(path);
        return 0;
    }
}


/* Nothing in the folder is followed, waited for or written to that is not ours
 * alone; the text is in a file with another name. */
START_TEST(test_traps)
{
    const char *dir = getenv("DAQIRI_STATS_DIR");
    char victim[300], path[300], text[320], line[64] = "";
    struct stat st;
    FILE *file;

    t_only_daqiri("writes counters");
    snprintf(victim, sizeof(victim), "%s/victim", dir);
    file = fopen(victim, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "precious"), 0);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(path, sizeof(path), "%s/daqiri.%d.0", dir, getpid());
    ck_assert_int_eq(spring((trap_t)_i, path, victim), 0);

    t_expect_log("is there already, as user ");
    t_end_open("");
    t_end_close_all();
    ck_assert_int_eq(remove(path), 0);

    snprintf(text, sizeof(text), "%s.nothing", victim);
    ck_assert_int_ne(stat(text, &st), 0);
    file = fopen(victim, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    ck_assert_str_eq(line, "precious");
    fclose(file);
    ck_assert_uint_eq(t_log_count("is there already, as user "), 1);
    snprintf(path, sizeof(path), "%s/daqiri.%d.1", dir, getpid());
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert(S_ISREG(st.st_mode) && (st.st_size > 0));
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
    tcase_add_test(reading, test_operations);
    tcase_add_loop_test(reading, test_refusals, 0, 5);
    tcase_add_loop_test(reading, test_faults, 0, 5);
    tcase_add_test(reading, test_chains);
    tcase_add_test(reading, test_other_process);
    tcase_add_loop_test(reading, test_vfs, 0, 2);
    suite_add_tcase(suite, reading);

    tcase_add_test(files, test_off);
    tcase_add_test(files, test_several);
    tcase_add_loop_test(files, test_end_of_process, 0, WAYS);
    tcase_add_test(files, test_stopped);
    tcase_add_test(files, test_child);
    tcase_add_test(files, test_strange_files);
    tcase_add_test(files, test_taken);
    tcase_add_loop_test(files, test_traps, 0, TRAPS);
    suite_add_tcase(suite, files);
    return suite;
}

T_UCT_MAIN(suite_stats)
