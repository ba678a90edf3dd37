/* SPDX-License-Identifier: BSD-3-Clause */
#include "t_stuck.h"
#include "t_uct.h"
#include "dq/dq_stats.h"

#include <ucs/async/async_fwd.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    EXPECT_MAX = 8,
    /* t_progress_or_yield(): some milliseconds of an emulated processor, and
     * what then is lost at most */
    T_SPINS    = 1000,
    T_NAP_US   = 1000
};

/* State of the running test, of its process alone. */
static struct {
    t_end_t    *ends;
    t_link_t   *links;
    char       dir[64];
    int        log_fd;
    pid_t      owner;     /* the process that looks at the log at the end    */
    const char *expected[EXPECT_MAX];
    unsigned   expected_count;
    int        may_lose;
    int        may_flush;
    int        is_cut; /* an end was closed before all was acknowledged      */
    int        may_refuse;
    int        may_be_bad;
    int        is_fine;   /* the test came to its end                        */
    unsigned   opened;    /* ends of this process                            */
    unsigned   rank;      /* of this process in its team                     */
    uint8_t    scratch[T_LENGTH_MAX];
} t_now;


/* The folders of the tests of this program, one for each. */
static char t_base[] = "/tmp/t_uct.XXXXXX";


/* ---- The log ---- */

static void t_log_path(char *path, size_t size)
{
    snprintf(path, size, "%s/log", t_now.dir);
}


/* UCX writes its log to stdout; sanitizers write to stderr, which stays. */
static void t_log_capture(void)
{
    char path[128];

    t_log_path(path, sizeof(path));
    t_now.log_fd = open(path, O_CREAT | O_RDWR | O_APPEND, 0600);
    ck_assert_int_ge(t_now.log_fd, 0);
    fflush(stdout);
    ck_assert_int_ge(dup2(t_now.log_fd, STDOUT_FILENO), 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
}


static FILE *t_log_read(void)
{
    char path[128];

    fflush(stdout);
    t_log_path(path, sizeof(path));
    return fopen(path, "r");
}


static void t_log_replay(void)
{
    FILE *file = t_log_read();
    int c;

    if (file == NULL) {
        return;
    }
    while ((c = getc(file)) != EOF) {
        putc(c, stderr);
    }
    fclose(file);
}


void t_plan_by_command(const char *rule)
{
    const char *daqiri = getenv("T_DAQIRI");
    char command[600];

    ck_assert_ptr_nonnull(daqiri);
    snprintf(command, sizeof(command), "%s faults set %d -e '%s' >/dev/null",
             daqiri, getpid(), rule);
    ck_assert_int_eq(system(command), 0);
}


unsigned t_log_count(const char *words)
{
    FILE *file     = t_log_read();
    char *line     = NULL;
    size_t size    = 0;
    unsigned count = 0;

    ck_assert_ptr_nonnull(file);
    while (getline(&line, &size, file) > 0) {
        count += (strstr(line, words) != NULL);
    }
    free(line);
    fclose(file);
    return count;
}


/* The number that ends at @a end, no further back than @a begin, without what is
 * behind its point. */
static uint64_t t_number_before(const char *begin, const char *end)
{
    while ((end > begin) &&
           (((end[-1] >= '0') && (end[-1] <= '9')) || (end[-1] == '.'))) {
        end--;
    }
    return strtoull(end, NULL, 10);
}


uint64_t t_log_sum(const char *words)
{
    FILE *file   = t_log_read();
    char *line   = NULL;
    size_t size  = 0;
    uint64_t sum = 0;
    const char *at;

    ck_assert_ptr_nonnull(file);
    while (getline(&line, &size, file) > 0) {
        at   = strstr(line, words);
        sum += (at != NULL) ? t_number_before(line, at) : 0;
    }
    free(line);
    fclose(file);
    return sum;
}


void t_expect_log(const char *words)
{
    ck_assert_uint_lt(t_now.expected_count, EXPECT_MAX);
    t_now.expected[t_now.expected_count++] = words;
}


static int t_log_is_alarming(const char *line)
{
    return (strstr(line, " WARN ") != NULL) ||
           (strstr(line, " ERROR ") != NULL) ||
           (strstr(line, " FATAL ") != NULL) ||
           (strstr(line, "Assertion") != NULL);
}


/* UCX gives each line of a message a line of its own. All but the first begin
 * with two blanks, and are as expected as that one. */
static int t_log_is_detail(const char *line)
{
    return (strstr(line, " WARN    ") != NULL) ||
           (strstr(line, " ERROR   ") != NULL) ||
           (strstr(line, " FATAL   ") != NULL);
}


static int t_log_is_expected(const char *line)
{
    unsigned i;

    for (i = 0; i < t_now.expected_count; i++) {
        if (strstr(line, t_now.expected[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}


static void t_log_check(void)
{
    FILE *file      = t_log_read();
    char *line      = NULL;
    size_t size     = 0;
    int is_expected = 0;

    ck_assert_ptr_nonnull(file);
    while (getline(&line, &size, file) > 0) {
        if (!t_log_is_alarming(line)) {
            continue;
        }
        if (!t_log_is_detail(line)) {
            is_expected = t_log_is_expected(line);
        }
        if (!is_expected) {
            ck_abort_msg("unexpected in the log: %s", line);
        }
    }
    free(line);
    fclose(file);
}


/* ---- The counters ---- */

typedef void (*t_stats_func_t)(const char *file, const char *key,
                               uint64_t value, void *arg);

static void t_stats_file(const char *name, t_stats_func_t func, void *arg)
{
    char path[400], key[64];
    uint64_t value;
    FILE *file;
    int got;

    snprintf(path, sizeof(path), "%s/%s", t_now.dir, name);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while ((got = fscanf(file, "%63s %" SCNu64, key, &value)) != EOF) {
        if (got == 2) {
            func(name, key, value, arg);
        } else {
            ck_assert_int_ge(fscanf(file, "%*s"), 0); /* the device's name */
        }
    }
    fclose(file);
}


static void t_stats_each(t_stats_func_t func, void *arg)
{
    DIR *dir = opendir(t_now.dir);
    const struct dirent *entry;

    ck_assert_msg(dir != NULL, "%s: %s", t_now.dir, strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "daqiri.", 7) == 0) {
            t_stats_file(entry->d_name, func, arg);
        }
    }
    closedir(dir);
}


typedef struct {
    const char *key;
    uint64_t   sum, max;
    unsigned   files;
} t_stats_want_t;

static void t_stats_add(const char *file, const char *key, uint64_t value,
                        void *arg)
{
    t_stats_want_t *want = arg;

    (void)file;
    if (strcmp(key, want->key) == 0) {
        want->sum += value;
        want->max  = (value > want->max) ? value : want->max;
        want->files++;
    }
}


static t_stats_want_t t_stats_get(const char *key)
{
    t_stats_want_t want = {.key = key};

    t_stats_each(t_stats_add, &want);
    return want;
}


uint64_t t_stats_sum(const char *key)
{
    return t_stats_get(key).sum;
}


uint64_t t_stats_max(const char *key)
{
    return t_stats_get(key).max;
}


/* Of a file that is ours, so that nothing of it need be checked. */
static uint64_t t_live_value(const char *name, const char *key)
{
    const dq_stats_entry_t *entries;
    const dq_stats_header_t *map;
    const uint64_t *values;
    char path[300];
    uint64_t value = 0;
    struct stat stat;
    uint32_t i;
    int fd;

    snprintf(path, sizeof(path), DQ_STATS_DIR "/%s", name);
    fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &stat), 0);
    map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    close(fd);
    entries = (const void*)((const char*)map + map->entries_at);
    values  = (const void*)((const char*)map + map->values_at);
    for (i = 0; i < map->count; i++) {
        if (strcmp(entries[i].name, key) == 0) {
            value += __atomic_load_n(&values[i], __ATOMIC_RELAXED);
        }
    }
    munmap((void*)map, stat.st_size);
    return value;
}


uint64_t t_live_sum(const char *key)
{
    DIR *dir = opendir(DQ_STATS_DIR);
    const struct dirent *entry;
    uint64_t sum = 0;
    char ours[64];

    ck_assert_ptr_nonnull(dir);
    snprintf(ours, sizeof(ours), "daqiri-stats-%u.%d.", geteuid(), getpid());
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, ours, strlen(ours)) == 0) {
            sum += t_live_value(entry->d_name, key);
        }
    }
    closedir(dir);
    return sum;
}


/* What must be zero in every file, whatever happened. */
static void t_stats_must_be_zero(const char *file, const char *key,
                                 uint64_t value, void *arg)
{
    static const char *const keys[] = {
        "sq_in_use_at_close", "rx_held_at_close", "tx_buffers_out_at_close",
        "rx_out_of_order", "stray_completions", "posts_refused", "rx_overrun",
        "rx_dropped", "rx_duplicates"
    };
    size_t i;

    (void)arg;
    if (t_is_softroce() && (strcmp(key, "rx_duplicates") == 0)) {
        return; /* it delivers a message twice now and then: docs/softroce.md */
    }
    if ((t_now.may_refuse && (strcmp(key, "posts_refused") == 0)) ||
        (t_now.may_be_bad && ((strcmp(key, "rx_duplicates") == 0) ||
                              (strcmp(key, "rx_out_of_order") == 0) ||
                              (strcmp(key, "rx_overrun") == 0) ||
                              (strcmp(key, "stray_completions") == 0) ||
                              (strcmp(key, "rx_dropped") == 0)))) {
        return;
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        ck_assert_msg((strcmp(key, keys[i]) != 0) || (value == 0),
                      "%s: %s is %" PRIu64, file, key, value);
    }
}


static void t_stats_check(void)
{
    if (strcmp(t_tl(), "daqiri") != 0) {
        return;
    }
    t_stats_each(t_stats_must_be_zero, NULL);
    ck_assert_uint_ge(t_stats_get("pid").files, t_now.opened);
    if (t_now.may_lose) {
        return;
    }
    ck_assert_uint_eq(t_stats_sum("am_tx"), t_stats_sum("am_rx"));
    ck_assert_uint_eq(t_stats_sum("am_tx_bytes"), t_stats_sum("am_rx_bytes"));
    if (t_now.may_flush) {
        return;
    }
    ck_assert_uint_eq(t_stats_sum("tx_errors"), 0);
    if (!t_now.is_cut) {
        ck_assert_uint_eq(t_stats_sum("tx_flushed"), 0);
    }
}


void t_expect_losses_of_qps(void)
{
    t_now.may_flush = 1;
    t_expect_log("; lost, connecting again");
    t_expect_log(" daqiri: back, with ");
}


void t_expect_refused_posts(void)
{
    t_now.may_refuse = 1;
}


void t_expect_bad_messages(void)
{
    t_now.may_be_bad = 1;
}


void t_expect_loss(void)
{
    t_now.may_lose = 1;
}


/* ---- Before and after each test ---- */

static void t_dir_remove(void)
{
    DIR *dir = opendir(t_now.dir);
    const struct dirent *entry;
    char path[400];

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", t_now.dir, entry->d_name);
        unlink(path); /* "." and ".." refuse */
    }
    closedir(dir);
    rmdir(t_now.dir);
}


static void t_at_exit(void)
{
    if ((getpid() == t_now.owner) && t_now.is_fine) {
        t_dir_remove();
    }
}


/* A test that fails ends by _exit() or by a signal. Its folder tells of it. */
static void t_tell_failures(void)
{
    DIR *dir = opendir(t_base);
    const struct dirent *entry;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(t_now.dir, sizeof(t_now.dir), "%s/%.6s", t_base,
                     entry->d_name);
            fprintf(stderr, "the log of a test that failed:\n");
            t_log_replay();
            t_dir_remove();
        }
    }
    closedir(dir);
    rmdir(t_base);
}


/* Check multiplies the time that a test has by this. */
static double t_timeout_multiplier(void)
{
    const char *text = getenv("CK_TIMEOUT_MULTIPLIER");

    return (text != NULL) ? atof(text) : 1;
}


static void t_setup(void)
{
    t_stuck_arm(T_TIMEOUT * t_timeout_multiplier() * 750, STDERR_FILENO);
    memset(&t_now, 0, offsetof(__typeof__(t_now), scratch));
    snprintf(t_now.dir, sizeof(t_now.dir), "%s/XXXXXX", t_base);
    ck_assert_ptr_nonnull(mkdtemp(t_now.dir));
    ck_assert_int_eq(setenv("DAQIRI_STATS_DIR", t_now.dir, 1), 0);
    t_now.owner = getpid();
    atexit(t_at_exit);
    t_at_skip(t_dir_remove);
    t_log_capture();
}


/* What flushes one end may let another that was flushed before grant credits
 * again: none does at the end. */
static void t_flush_all(void)
{
    uint64_t grants;
    t_end_t *end;

    do {
        grants = t_live_sum("credit_frames_tx");
        for (end = t_now.ends; end != NULL; end = end->next) {
            t_iface_flush(end);
        }
    } while (t_live_sum("credit_frames_tx") != grants);
}


void t_end_close_all(void)
{
    t_flush_all();
    while (t_now.ends != NULL) {
        t_end_close(t_now.ends);
    }
}


static void t_teardown(void)
{
    t_end_close_all();
    t_log_check();
    t_stats_check();
    t_now.is_fine = 1;
}


TCase *t_uct_case(const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, T_TIMEOUT);
    tcase_add_checked_fixture(tcase, t_setup, t_teardown);
    return tcase;
}


int t_uct_main(char **argv, const t_suite_func_t *suites, size_t count)
{
    static const char mark[] = "T_UCT_STARTED";
    int failed;

    if (getenv(mark) != NULL) {
        if (mkdtemp(t_base) == NULL) {
            perror(t_base);
            return 99;
        }
        failed = t_main(suites, count);
        t_tell_failures();
        return failed;
    }
    t_ucx_restart(mark, argv);
    return 99;
}


const char *t_tl(void)
{
    const char *tl = getenv("T_TL");

    return (tl == NULL) ? "daqiri" : tl;
}


unsigned t_some(unsigned count)
{
    if (t_is_softroce()) {
        return count / 10;
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return count / 5;
#else
    return count;
#endif
}


double t_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}


#ifdef __x86_64__
double ucs_get_cpu_clocks_per_sec(void); /* no header that is installed has it */

/* It counts the processor's cycles, or microseconds where those cannot be used. Up to
 * 1.21 UCX measures for a millisecond how many cycles a second has; on a busy machine
 * that may be a third too few. */
double t_ucx_seconds(void)
{
    double clocks = ucs_get_cpu_clocks_per_sec();

    return (clocks > 1e6) ? __builtin_ia32_rdtsc() / clocks : t_seconds();
}

#else

double t_ucx_seconds(void)
{
    return t_seconds();
}

#endif


int t_is_daqiri(void)
{
    return strcmp(t_tl(), "daqiri") == 0;
}


void t_only_daqiri(const char *why)
{
    if (!t_is_daqiri()) {
        t_skip("only daqiri %s", why);
    }
}


int t_has_idle_closes(void)
{
    return t_is_daqiri() && (getenv("UCX_DAQIRI_MAX_QPS") != NULL);
}


void t_no_idle_closes(const char *why)
{
    if (t_has_idle_closes()) {
        t_skip("%s, and here queue pairs are closed because they are idle", why);
    }
}


/* ---- Ends ---- */

static ucs_status_t t_on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    t_end_t *end = arg;

    end->errors++;
    end->error    = status;
    end->error_ep = ep;
    return UCS_OK; /* handled: the process may live */
}


/* Does the next end go to this device? T_DEVICES is a list of names with spaces
 * between; each end takes another one in turn, beginning with a process's
 * rank. Without it the first device that there is serves all. */
static int t_is_turn_of(const char *device)
{
    const char *env = getenv("T_DEVICES");
    char *words     = strdup((env == NULL) ? "" : env);
    char *names[T_TEAM_MAX], *name, *rest;
    unsigned count = 0;
    int is_turn;

    for (name = strtok_r(words, " ", &rest);
         (name != NULL) && (count < T_TEAM_MAX);
         name = strtok_r(NULL, " ", &rest)) {
        names[count++] = name;
    }
    is_turn = (count == 0) ||
              (strcmp(names[(t_now.rank + t_now.opened) % count],
                      device) == 0);
    free(words);
    return is_turn;
}


/* Opens the memory domain that has the transport, and names its device. */
static int t_md_find(t_end_t *end, uct_component_h component, const char *name,
                     char *device)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned count, i;
    int found = 0;

    ck_assert_int_eq(uct_md_config_read(component, NULL, NULL, &config),
                     UCS_OK);
    if (uct_md_open(component, name, config, &end->md) != UCS_OK) {
        uct_config_release(config);
        return 0;
    }
    uct_config_release(config);
    ck_assert_int_eq(uct_md_query_tl_resources(end->md, &tls, &count), UCS_OK);
    for (i = 0; (i < count) && !found; i++) {
        found = (strcmp(tls[i].tl_name, t_tl()) == 0) &&
                t_is_turn_of(tls[i].dev_name);
        if (found) {
            strcpy(device, tls[i].dev_name);
        }
    }
    uct_release_tl_resource_list(tls);
    if (!found) {
        uct_md_close(end->md);
    }
    end->component = component;
    return found;
}


static void t_md_open(t_end_t *end, char *device)
{
    uct_component_attr_t attr = {.field_mask =
                                         UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    uct_md_resource_desc_t mds[32];
    uct_component_h *components;
    unsigned count, i, j;
    int found = 0;

    ck_assert_int_eq(uct_query_components(&components, &count), UCS_OK);
    for (i = 0; (i < count) && !found; i++) {
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        ck_assert_int_eq(uct_component_query(components[i], &attr), UCS_OK);
        ck_assert_uint_le(attr.md_resource_count, 32);
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        ck_assert_int_eq(uct_component_query(components[i], &attr), UCS_OK);
        for (j = 0; (j < attr.md_resource_count) && !found; j++) {
            found = t_md_find(end, components[i], mds[j].md_name, device);
        }
    }
    uct_release_component_list(components);
    ck_assert_msg(found, "there is no transport %s", t_tl());
}


/* UCX knows an option by its name, and from some version on only by its whole one. */
static ucs_status_t t_config_modify(uct_iface_config_t *config,
                                    const char *name, const char *value)
{
    ucs_status_t status = uct_config_modify(config, name, value);
    char whole[64];

    if (status != UCS_ERR_NO_ELEM) {
        return status;
    }
    snprintf(whole, sizeof(whole), "DAQIRI_%s", name);
    return uct_config_modify(config, whole, value);
}


static ucs_status_t t_config_apply(uct_iface_config_t *config,
                                   const char *options)
{
    char *words         = strdup(options);
    ucs_status_t status = UCS_OK;
    char *rest          = words;
    char *name, *value;

    while ((status == UCS_OK) &&
           ((name = strsep(&rest, " ")) != NULL) && (*name != '\0')) {
        value    = strchr(name, '=');
        *value++ = '\0';
        status   = t_config_modify(config, name, value);
    }
    free(words);
    return status;
}


static ucs_status_t t_iface_open(t_end_t *end, const char *device,
                                 const uct_iface_params_t *more,
                                 const char *options)
{
    uct_iface_params_t params = {.field_mask = 0};
    uct_iface_config_t *config;
    ucs_status_t status;

    if (more != NULL) {
        params = *more;
    }
    params.field_mask |= UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                         UCT_IFACE_PARAM_FIELD_DEVICE |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                         UCT_IFACE_PARAM_FIELD_FEATURES;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = t_tl();
    params.mode.device.dev_name = device;
    params.err_handler          = t_on_error;
    params.err_handler_arg      = end;
    params.features             = UCT_IFACE_FEATURE_AM;

    ck_assert_int_eq(uct_md_iface_config_read(end->md, t_tl(), NULL, NULL,
                                              &config), UCS_OK);
    status = t_config_apply(config, options);
    if (status == UCS_OK) {
        status = uct_iface_open(end->md, end->worker, &params, config,
                                &end->iface);
    }
    uct_config_release(config);
    return status;
}


static void t_end_learn(t_end_t *end)
{
    t_address_t *address = &end->address;

    ck_assert_int_eq(uct_md_query(end->md, &end->md_attr), UCS_OK);
    ck_assert_int_eq(uct_iface_query(end->iface, &end->attr), UCS_OK);
    address->dev_length   = end->attr.device_addr_len;
    address->iface_length = end->attr.iface_addr_len;
    ck_assert_uint_le(address->dev_length, T_ADDRESS_MAX);
    ck_assert_uint_le(address->iface_length, T_ADDRESS_MAX);
    ck_assert_int_eq(uct_iface_get_device_address(
                             end->iface, (uct_device_addr_t*)address->dev),
                     UCS_OK);
    ck_assert_int_eq(uct_iface_get_address(
                             end->iface, (uct_iface_addr_t*)address->iface),
                     UCS_OK);
}


static void t_end_free(t_end_t *end)
{
    uct_md_close(end->md);
    uct_worker_destroy(end->worker);
    ucs_async_context_destroy(end->async);
    free(end);
}


ucs_status_t t_end_try_open(const uct_iface_params_t *more,
                            const char *options, t_end_t **end_p)
{
    t_end_t *end = calloc(1, sizeof(*end));
    char device[64];
    ucs_status_t status;

    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                              &end->async), UCS_OK);
    ck_assert_int_eq(uct_worker_create(end->async, UCS_THREAD_MODE_SINGLE,
                                       &end->worker), UCS_OK);
    t_md_open(end, device);
    status = t_iface_open(end, device, more, options);
    if (status != UCS_OK) {
        t_end_free(end);
        return status;
    }

    t_end_learn(end);
    uct_iface_progress_enable(end->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    end->next  = t_now.ends;
    t_now.ends = end;
    t_now.opened++;
    *end_p = end;
    return UCS_OK;
}


t_end_t *t_end_open(const char *options)
{
    t_end_t *end;

    ck_assert_int_eq(t_end_try_open(NULL, options, &end), UCS_OK);
    return end;
}


void t_end_close(t_end_t *end)
{
    t_link_t *link, *next;
    t_end_t **at;

    if (end->is_rude) {
        t_now.is_cut = 1; /* what is on a wire just then is flushed */
    } else {
        t_iface_flush(end);
    }
    for (link = t_now.links; link != NULL; link = next) {
        next = link->next;
        if (link->end == end) {
            t_link_close(link);
        }
    }
    for (at = &t_now.ends; *at != end; at = &(*at)->next) {
    }
    *at = end->next;
    uct_iface_close(end->iface);
    t_end_free(end);
}


void t_end_leave(t_end_t *end)
{
    end->is_rude = 1;
    t_end_close(end);
}


unsigned t_progress(void)
{
    unsigned count = 0;
    t_end_t *end;

    for (end = t_now.ends; end != NULL; end = end->next) {
        if (!end->is_stopped) {
            count += uct_worker_progress(end->worker);
        }
    }
    return count;
}


/* A wait for a timer, say that of a queue pair whose peer is dead, is nearly
 * all that some tests do. An emulated processor that spins meanwhile takes a
 * real one from whoever has work: from the peer in the same machine, and from
 * the machine beside it. What comes from the device comes long before the
 * first nap. */
void t_progress_or_yield(void)
{
    static _Thread_local unsigned idle;

    if (t_progress() > 0) {
        idle = 0;
    } else if ((++idle <= T_SPINS) || !t_is_softroce()) {
        sched_yield(); /* the peer may want this CPU */
    } else {
        usleep(T_NAP_US);
    }
}


void t_progress_turns(unsigned turns)
{
    while (turns-- > 0) {
        t_progress_or_yield();
    }
}


/* ---- Holding the thread that reads events ---- */

static void t_hold_on(int fd, ucs_event_set_types_t events, void *arg)
{
    t_hold_t *hold = arg;
    eventfd_t value;

    (void)events;
    (void)eventfd_read(fd, &value);
    __atomic_store_n(&hold->is_held, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&hold->may_go, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}


void t_hold_ask(t_hold_t *hold)
{
    *hold = (t_hold_t){.fd = eventfd(0, EFD_NONBLOCK)};
    ck_assert_int_ge(hold->fd, 0);
    ck_assert_int_eq(ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                                 hold->fd, UCS_EVENT_SET_EVREAD,
                                                 t_hold_on, hold, NULL),
                     UCS_OK);
    ck_assert_int_eq(eventfd_write(hold->fd, 1), 0);
}


void t_hold_begin(t_hold_t *hold)
{
    t_hold_ask(hold);
    T_WAIT(__atomic_load_n(&hold->is_held, __ATOMIC_ACQUIRE));
}


void t_hold_next(t_hold_t *next, t_hold_t *hold)
{
    t_hold_ask(next);
    __atomic_store_n(&hold->may_go, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&next->is_held, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}


void t_hold_end(t_hold_t *hold)
{
    __atomic_store_n(&hold->may_go, 1, __ATOMIC_RELEASE);
    ck_assert_int_eq(ucs_async_remove_handler(hold->fd, 1), UCS_OK);
    close(hold->fd);
}


/* ---- Messages ---- */

/* Message @a number of the stream @a id, all of its bytes. */
static void t_fill(void *buffer, uint8_t id, uint64_t number, size_t length)
{
    uint64_t x     = (number * 131 + id) * UINT64_C(0x9e3779b97f4a7c15) + length;
    uint8_t *bytes = buffer;
    size_t i;

    for (i = 0; i < length; i++) {
        if ((i % 8) == 0) {
            x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9) + 1;
        }
        bytes[i] = x >> (8 * (i % 8));
    }
}


static void t_verify(const void *data, uint8_t id, uint64_t number,
                     size_t length)
{
    ck_assert_uint_le(length, T_LENGTH_MAX);
    t_fill(t_now.scratch, id, number, length);
    if (memcmp(t_now.scratch, data, length) != 0) {
        ck_abort_msg("message %" PRIu64 " of stream %u, %zu bytes, is not what "
                     "was sent, or comes out of turn", number, id, length);
    }
}


static ucs_status_t t_on_message(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    t_stream_t *stream = arg;
    t_held_t *held;

    t_verify(data, stream->id, stream->got, length);
    stream->got++;
    stream->bytes += length;
    if (!stream->keep || !(flags & UCT_CB_PARAM_FLAG_DESC)) {
        return UCS_OK;
    }

    held = malloc(sizeof(*held));
    ck_assert_ptr_nonnull(held);
    *held        = (t_held_t){.data   = data,
                              .length = length,
                              .number = stream->got - 1,
                              .next   = stream->held};
    stream->held = held;
    stream->kept++;
    return UCS_INPROGRESS;
}


void t_stream_open(t_stream_t *stream, t_end_t *end, uint8_t id)
{
    *stream = (t_stream_t){.id = id};
    ck_assert_int_eq(uct_iface_set_am_handler(end->iface, id, t_on_message,
                                              stream, 0), UCS_OK);
}


static t_held_t *t_stream_pick(t_stream_t *stream, unsigned index)
{
    t_held_t **at = &stream->held;
    t_held_t *held;

    while (index-- > 0) {
        at = &(*at)->next;
    }
    held = *at;
    *at  = held->next;
    return held;
}


void t_stream_release(t_stream_t *stream, t_rng_t *rng, int only_half)
{
    unsigned left = only_half ? stream->kept / 2 : 0;
    t_held_t *held;

    while (stream->kept > left) {
        held = t_stream_pick(stream, t_rng_below(rng, stream->kept));
        t_verify(held->data, stream->id, held->number, held->length);
        uct_iface_release_desc(held->data);
        free(held);
        stream->kept--;
    }
}


/* ---- Links ---- */

static t_link_t *t_link_create(t_end_t *from, const uct_ep_params_t *params,
                               uint8_t id)
{
    t_link_t *link = calloc(1, sizeof(*link));

    ck_assert_ptr_nonnull(link);
    link->end    = from;
    link->id     = id;
    link->pieces = 1;
    ck_assert_int_eq(uct_ep_create(params, &link->ep), UCS_OK);
    link->next  = t_now.links;
    t_now.links = link;
    return link;
}


t_link_t *t_link_open(t_end_t *from, const t_address_t *to, uint8_t id)
{
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = from->iface,
        .dev_addr   = (const uct_device_addr_t*)to->dev,
        .iface_addr = (const uct_iface_addr_t*)to->iface,
    };

    ck_assert(uct_iface_is_reachable(from->iface, params.dev_addr,
                                     params.iface_addr));
    return t_link_create(from, &params, id);
}


t_link_t *t_link_make(t_end_t *from, uint8_t id)
{
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = from->iface,
    };

    return t_link_create(from, &params, id);
}


ucs_status_t t_link_connect(t_link_t *link, const t_link_t *to)
{
    uint8_t address[T_ADDRESS_MAX];

    ck_assert_uint_le(to->end->attr.ep_addr_len, sizeof(address));
    ck_assert_int_eq(uct_ep_get_address(to->ep, (uct_ep_addr_t*)address),
                     UCS_OK);
    return uct_ep_connect_to_ep(link->ep,
                                (const uct_device_addr_t*)to->end->address.dev,
                                (const uct_ep_addr_t*)address);
}


void t_link_close(t_link_t *link)
{
    t_link_t **at;

    for (at = &t_now.links; *at != link; at = &(*at)->next) {
    }
    *at = link->next;
    uct_ep_destroy(link->ep);
    ck_assert_uint_eq(link->zcopies, 0);
    free(link);
}


t_how_t t_some_how(const t_link_t *link, t_rng_t *rng)
{
    t_how_t how = t_rng_below(rng, T_HOW_LAST);

    return (link->end->attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT) ? how
                                                                 : T_BCOPY;
}


size_t t_some_length(const t_link_t *link, t_how_t how, unsigned long_every,
                     t_rng_t *rng)
{
    size_t length;

    do {
        length = t_rng_once_in(rng, long_every) ? t_rng_below(rng, 8000)
                                                : t_rng_below(rng, 100);
    } while (!t_can_send(link, how, length));
    return length;
}


void t_try_some(t_link_t *link, t_rng_t *rng)
{
    t_how_t how         = t_some_how(link, rng);
    ucs_status_t status = t_try_send(link, how, t_some_length(link, how, 4, rng));

    ck_assert_msg((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE),
                  "%s: %s", t_how_name(how), ucs_status_string(status));
}


const char *t_how_name(t_how_t how)
{
    static const char *const names[T_HOW_LAST] = {
        [T_SHORT]     = "short",
        [T_SHORT_IOV] = "short_iov",
        [T_BCOPY]     = "bcopy",
        [T_ZCOPY]     = "zcopy",
    };

    return names[how];
}


int t_can_send(const t_link_t *link, t_how_t how, size_t length)
{
    const uct_iface_attr_t *attr = &link->end->attr;

    switch (how) {
    case T_SHORT:
        return (attr->cap.flags & UCT_IFACE_FLAG_AM_SHORT) &&
               (length >= sizeof(uint64_t)) &&
               (length <= attr->cap.am.max_short);
    case T_SHORT_IOV:
        return (attr->cap.flags & UCT_IFACE_FLAG_AM_SHORT) &&
               (length <= attr->cap.am.max_short) &&
               (link->pieces <= attr->cap.am.max_iov);
    case T_BCOPY:
        return (attr->cap.flags & UCT_IFACE_FLAG_AM_BCOPY) &&
               (length <= attr->cap.am.max_bcopy);
    default:
        return (attr->cap.flags & UCT_IFACE_FLAG_AM_ZCOPY) &&
               (length >= link->header) &&
               (link->header <= attr->cap.am.max_hdr) &&
               (length >= attr->cap.am.min_zcopy) &&
               (length <= attr->cap.am.max_zcopy) &&
               (link->pieces <= attr->cap.am.max_iov);
    }
}


/* Cuts @a length bytes into entries of different sizes, some empty. */
static void t_cut(uct_iov_t *iov, unsigned pieces, uint8_t *buffer,
                  size_t length, uct_mem_h memh)
{
    unsigned i;
    size_t n;

    for (i = 0; i < pieces; i++) {
        n      = (i + 1 == pieces) ? length : length * i / pieces;
        iov[i] = (uct_iov_t){.buffer = buffer,
                             .length = n,
                             .memh   = memh,
                             .stride = 0,
                             .count  = 1};
        buffer += n;
        length -= n;
    }
}


static ucs_status_t t_send_short(t_link_t *link, size_t length)
{
    uint64_t header;

    t_fill(t_now.scratch, link->id, link->sent, length);
    memcpy(&header, t_now.scratch, sizeof(header));
    return uct_ep_am_short(link->ep, link->id, header,
                           t_now.scratch + sizeof(header),
                           length - sizeof(header));
}


static ucs_status_t t_send_short_iov(t_link_t *link, size_t length)
{
    uct_iov_t iov[64];

    t_fill(t_now.scratch, link->id, link->sent, length);
    t_cut(iov, link->pieces, t_now.scratch, length, UCT_MEM_HANDLE_NULL);
    return uct_ep_am_short_iov(link->ep, link->id, iov, link->pieces);
}


typedef struct {
    t_link_t *link;
    size_t   length;
    int      packed;
} t_pack_arg_t;

static size_t t_pack(void *dest, void *arg)
{
    t_pack_arg_t *pack = arg;

    t_fill(dest, pack->link->id, pack->link->sent, pack->length);
    pack->packed++;
    return pack->length;
}


/* The pack callback runs if, and only if, the message is sent. */
static ucs_status_t t_send_bcopy(t_link_t *link, size_t length)
{
    t_pack_arg_t pack = {.link = link, .length = length};
    ssize_t ret       = uct_ep_am_bcopy(link->ep, link->id, t_pack, &pack, 0);

    if (ret < 0) {
        ck_assert_int_eq(pack.packed, 0);
        return (ucs_status_t)ret;
    }
    ck_assert_int_eq(pack.packed, 1);
    ck_assert_uint_eq(ret, length);
    return UCS_OK;
}


/* Memory of one zcopy, from its post to its completion. */
typedef struct {
    uct_completion_t comp;
    t_link_t         *link;
    uct_mem_h        memh;
    int              calls;
    size_t           length;
    uint8_t          data[];
} t_zcopy_t;

static void t_zcopy_free(t_zcopy_t *zcopy)
{
    if (zcopy->memh != UCT_MEM_HANDLE_NULL) {
        ck_assert_int_eq(uct_md_mem_dereg(zcopy->link->end->md, zcopy->memh),
                         UCS_OK);
    }
    free(zcopy);
}


static void t_on_zcopy(uct_completion_t *comp)
{
    t_zcopy_t *zcopy = (t_zcopy_t*)comp;

    ck_assert_uint_gt(zcopy->link->zcopies, 0);
    zcopy->link->zcopies--;
    zcopy->link->zcopy_status = comp->status;
    /* whoever still sent from here would send this */
    memset(zcopy->data, 0xdd, zcopy->length);
    t_zcopy_free(zcopy);
}


static ucs_status_t t_send_zcopy(t_link_t *link, size_t length)
{
    t_zcopy_t *zcopy = malloc(sizeof(*zcopy) + length + 1);
    uint8_t header[4096];
    uct_iov_t iov[64];
    ucs_status_t status;
    size_t rest = length - link->header;

    ck_assert_ptr_nonnull(zcopy);
    *zcopy = (t_zcopy_t){.comp   = {.func   = t_on_zcopy,
                                    .count  = 1,
                                    .status = UCS_OK},
                         .link   = link,
                         .memh   = UCT_MEM_HANDLE_NULL,
                         .length = rest};
    if (link->end->md_attr.cap.flags & UCT_MD_FLAG_REG) {
        ck_assert_int_eq(uct_md_mem_reg(link->end->md, zcopy->data, rest + 1,
                                        UCT_MD_MEM_ACCESS_ALL, &zcopy->memh),
                         UCS_OK);
    }
    t_fill(t_now.scratch, link->id, link->sent, length);
    memcpy(header, t_now.scratch, link->header);
    memcpy(zcopy->data, t_now.scratch + link->header, rest);
    t_cut(iov, link->pieces, zcopy->data, rest, zcopy->memh);

    link->zcopies++;
    status = uct_ep_am_zcopy(link->ep, link->id, header, link->header, iov,
                             link->pieces, 0, &zcopy->comp);
    memset(header, 0xee, sizeof(header)); /* the header was ours to lend */
    if (status == UCS_INPROGRESS) {
        link->zcopies_sent++;
        return UCS_OK;
    }
    link->zcopies--;
    t_zcopy_free(zcopy);
    return status;
}


ucs_status_t t_try_send(t_link_t *link, t_how_t how, size_t length)
{
    ucs_status_t status;

    switch (how) {
    case T_SHORT:
        status = t_send_short(link, length);
        break;
    case T_SHORT_IOV:
        status = t_send_short_iov(link, length);
        break;
    case T_BCOPY:
        status = t_send_bcopy(link, length);
        break;
    default:
        status = t_send_zcopy(link, length);
        break;
    }
    if (status == UCS_OK) {
        link->sent++;
        link->bytes += length;
    }
    return status;
}


void t_send(t_link_t *link, t_how_t how, size_t length)
{
    ucs_status_t status;

    while ((status = t_try_send(link, how, length)) == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
    }
    ck_assert_msg(status == UCS_OK, "%s of %zu bytes: %s", t_how_name(how),
                  length, ucs_status_string(status));
}


t_link_t *t_link_up(t_end_t *from, t_end_t *to, uint8_t id, t_stream_t *stream)
{
    t_link_t *link = t_link_open(from, &to->address, id);

    t_stream_open(stream, to, id);
    t_send(link, T_BCOPY, 10);
    T_WAIT(stream->got == 1);
    return link;
}


/* ---- Flush ---- */

static void t_on_comp(uct_completion_t *super)
{
    t_comp_t *comp = (t_comp_t*)super;

    comp->calls++;
    ck_assert_uint_eq(comp->calls, 1);
}


void t_comp_init(t_comp_t *comp)
{
    *comp = (t_comp_t){.super = {.func   = t_on_comp,
                                 .count  = 1,
                                 .status = UCS_OK}};
}


void t_region_open(t_region_t *region, t_end_t *end, void *mem, size_t length)
{
    *region = (t_region_t){.end      = end,
                           .mem      = mem,
                           .length   = length,
                           .is_given = mem != NULL};
    if (mem == NULL) {
        region->mem = calloc(1, length);
        ck_assert_ptr_nonnull(region->mem);
    }
    ck_assert_int_eq(uct_md_mem_reg(end->md, region->mem, length,
                                    UCT_MD_MEM_ACCESS_ALL, &region->memh),
                     UCS_OK);
    ck_assert_uint_le(end->md_attr.rkey_packed_size, T_KEY_MAX);
    ck_assert_int_eq(uct_md_mkey_pack(end->md, region->memh, region->packed),
                     UCS_OK);
    ck_assert_int_eq(uct_rkey_unpack(end->component, region->packed,
                                     &region->key), UCS_OK);
}


void t_region_close(t_region_t *region)
{
    ck_assert_int_eq(uct_rkey_release(region->end->component, &region->key),
                     UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(region->end->md, region->memh), UCS_OK);
    if (!region->is_given) {
        memset(region->mem, 0xdd, region->length);
        free(region->mem);
    }
}


ucs_status_t t_ep_flush(t_link_t *link)
{
    ucs_status_t status;
    t_comp_t comp;

    for (;;) {
        t_comp_init(&comp);
        status = uct_ep_flush(link->ep, UCT_FLUSH_FLAG_LOCAL, &comp.super);
        if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        t_progress_or_yield();
    }
    if (status == UCS_INPROGRESS) {
        T_WAIT(comp.calls > 0);
        return comp.super.status;
    }
    ck_assert_uint_eq(comp.calls, 0);
    return status;
}


void t_iface_flush(t_end_t *end)
{
    ucs_status_t status;

    while ((status = uct_iface_flush(end->iface, UCT_FLUSH_FLAG_LOCAL,
                                     NULL)) == UCS_INPROGRESS) {
        t_progress_or_yield();
    }
    ck_assert_int_eq(status, UCS_OK);
}


ucs_status_t t_wait_flush(uct_pending_req_t *self)
{
    t_wait_t *wait = ucs_container_of(self, t_wait_t, super);

    wait->status = uct_ep_flush(wait->link->ep, 0, &wait->comp.super);
    if (wait->status == UCS_ERR_NO_RESOURCE) {
        return wait->status;
    }
    ck_assert(!UCS_STATUS_IS_ERR(wait->status));
    wait->is_done = 1;
    return UCS_OK;
}


/* ---- Teams ---- */

/* Nobody leaves while another one grants it credits: who has left is no longer
 * there to take the grant, which is then flushed. */
static void t_team_leave(t_team_t *team)
{
    if (!t_now.may_lose && !t_now.may_flush) {
        t_team_barrier(team);
        t_flush_all();
        t_team_barrier(team);
    }
    t_end_close_all();
}


static void t_team_member(t_team_t *team, void (*body)(t_team_t *team))
{
    t_now.rank = team->rank;
    body(team);
    t_team_leave(team);
    exit(0);
}


/* A member failed: the others would wait for it in vain. */
static void t_team_end(const t_team_t *team, unsigned failed)
{
    unsigned rank;

    for (rank = 0; rank < team->size; rank++) {
        if ((rank != failed) && (team->shared->pid[rank] != 0)) {
            kill(team->shared->pid[rank], SIGKILL);
        }
    }
}


static unsigned t_team_rank(const t_team_t *team, pid_t pid)
{
    unsigned rank;

    for (rank = 0; rank < team->size; rank++) {
        if (team->shared->pid[rank] == pid) {
            return rank;
        }
    }
    ck_abort_msg("a child that is none: pid %d", (int)pid);
}


static void t_team_wait(t_team_t *team, uint32_t may_die)
{
    unsigned left = team->size;
    unsigned rank;
    int status;
    pid_t pid;

    while (left-- > 0) {
        pid = wait(&status);
        ck_assert_int_gt(pid, 0);
        rank                    = t_team_rank(team, pid);
        team->shared->pid[rank] = 0;
        if ((status == 0) || (may_die & (1u << rank))) {
            continue;
        }
        t_team_end(team, rank);
        ck_abort_msg("rank %u ended with %s %d", rank,
                     WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status)
                                         : WEXITSTATUS(status));
    }
}


void t_team_run(unsigned size, uint32_t may_die, void (*body)(t_team_t *team))
{
    t_team_t team = {.size = size};
    pid_t pid;

    ck_assert_uint_le(size, T_TEAM_MAX);
    team.shared = mmap(NULL, sizeof(*team.shared), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(team.shared != MAP_FAILED);
    fflush(NULL);
    for (team.rank = 0; team.rank < size; team.rank++) {
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            team.shared->pid[team.rank] = getpid();
            t_team_member(&team, body);
        }
        team.shared->pid[team.rank] = pid;
    }
    t_team_wait(&team, may_die);
    munmap(team.shared, sizeof(*team.shared));
}


void t_team_barrier(t_team_t *team)
{
    team->phase++;
    __atomic_add_fetch(&team->shared->arrived, 1, __ATOMIC_ACQ_REL);
    T_WAIT(__atomic_load_n(&team->shared->arrived, __ATOMIC_ACQUIRE) >=
           team->phase * team->size);
}


void t_team_put_address(t_team_t *team, const t_end_t *end)
{
    team->shared->address[team->rank] = end->address;
    __atomic_store_n(&team->shared->has_address[team->rank], 1,
                     __ATOMIC_RELEASE);
}


const t_address_t *t_team_get_address(t_team_t *team, unsigned rank)
{
    T_WAIT(__atomic_load_n(&team->shared->has_address[rank],
                           __ATOMIC_ACQUIRE));
    return &team->shared->address[rank];
}
