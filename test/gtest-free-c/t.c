/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check writes its TAP into a pipe and a child of this program, the printer,
 * copies it to stdout line by line. t_skip() writes a line of its own into the
 * same pipe before its test ends, hence before check writes the result of that
 * test: the printer joins the two. The pipe is also what keeps stdout free for
 * TAP: the runner's own stdout is made a copy of stderr.
 */
#include "t.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define T_SKIP_MARK "#t-skip "

static struct {
    uint64_t seed;
    int      have_seed;
    int      tap_fd; /* write side of the pipe, -1 outside t_main() */
} t_run = {.tap_fd = -1};

int t_unmarked;

int t_is_softroce(void)
{
    static _Thread_local int is_known, is_softroce;
    const char *bed;

    if (!is_known) {
        bed         = getenv("T_BED");
        is_softroce = (bed != NULL) && (strcmp(bed, "softroce") == 0);
        is_known    = 1;
    }
    return is_softroce;
}

void t_mark(const char *file, int line)
{
    static _Thread_local unsigned count;

    if (t_unmarked || (t_is_softroce() && (++count > T_MARKS) &&
                       (count % T_MARKS != 0))) {
        return;
    }
    (_mark_point)(file, line);
}

static void t_die(const char *what)
{
    fprintf(stderr, "test harness: %s: %s\n", what, strerror(errno));
    exit(99);
}

uint64_t t_seed(void)
{
    const char *env = getenv("T_SEED");
    char *end;

    if (t_run.have_seed) {
        return t_run.seed;
    }

    if ((env != NULL) && (*env != '\0')) {
        t_run.seed = strtoull(env, &end, 0);
        if (*end != '\0') {
            fprintf(stderr, "T_SEED is not a number: %s\n", env);
            exit(99);
        }
    } else if (getrandom(&t_run.seed, sizeof(t_run.seed), 0) !=
               (ssize_t)sizeof(t_run.seed)) {
        t_die("getrandom");
    }

    t_run.have_seed = 1;
    return t_run.seed;
}

/* One step of splitmix64: a counter through a mixing function, so that any
 * seed, zero included, gives a full period of 2^64. */
uint64_t t_rng_next(t_rng_t *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void t_rng_init(t_rng_t *rng, uint64_t salt)
{
    t_rng_t mixer = {.state = salt};

    rng->state = t_seed() ^ t_rng_next(&mixer);
}

uint64_t t_rng_below(t_rng_t *rng, uint64_t bound)
{
    /* Values below `skew` would make the first residues more likely. */
    uint64_t skew = -bound % bound;
    uint64_t value;

    do {
        value = t_rng_next(rng);
    } while (value < skew);
    return value % bound;
}

uint64_t t_rng_range(t_rng_t *rng, uint64_t first, uint64_t last)
{
    uint64_t span = last - first + 1;

    return (span == 0) ? t_rng_next(rng) : first + t_rng_below(rng, span);
}

int t_rng_once_in(t_rng_t *rng, uint64_t times)
{
    return t_rng_below(rng, times) == 0;
}

void t_rng_fill(t_rng_t *rng, void *buffer, size_t length)
{
    uint8_t *bytes = buffer;
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < length; i++) {
        value    = ((i % 8) == 0) ? t_rng_next(rng) : (value >> 8);
        bytes[i] = (uint8_t)value;
    }
}

uint64_t t_checksum(const void *buffer, size_t length)
{
    const uint8_t *bytes = buffer;
    uint64_t sum = 0xcbf29ce484222325ull;
    size_t i;

    for (i = 0; i < length; i++) {
        sum = (sum ^ bytes[i]) * 0x100000001b3ull;
    }
    return sum;
}

Suite *t_suite(const char *name, ...)
{
    Suite *suite       = suite_create(name);
    const char *last   = NULL;
    TCase *tcase       = NULL;
    const TTest *test;
    const char *label;
    va_list ap;

    va_start(ap, name);
    while ((label = va_arg(ap, const char *)) != NULL) {
        test = va_arg(ap, const TTest *);
        if ((last == NULL) || (strcmp(last, label) != 0)) {
            tcase = tcase_create(label);
            tcase_set_timeout(tcase, T_TIMEOUT);
            suite_add_tcase(suite, tcase);
            last = label;
        }
        tcase_add_test(tcase, test);
    }
    va_end(ap);
    return suite;
}

void t_suite_add_loop(Suite *suite, const char *name, const TTest *test, int count)
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, T_TIMEOUT);
    tcase_add_loop_test(tcase, test, 0, count);
    suite_add_tcase(suite, tcase);
}

static void (*t_before_skip)(void);

void t_at_skip(void (*func)(void))
{
    t_before_skip = func;
}

void t_skip(const char *format, ...)
{
    char reason[256];
    va_list ap;
    int fd;

    if (t_before_skip != NULL) {
        t_before_skip();
    }
    va_start(ap, format);
    vsnprintf(reason, sizeof(reason), format, ap);
    va_end(ap);

    fd = (t_run.tap_fd >= 0) ? t_run.tap_fd : STDERR_FILENO;
    reason[strcspn(reason, "\n")] = '\0';
    if (dprintf(fd, T_SKIP_MARK "%s\n", reason) < 0) {
        t_die("skip");
    }
    _exit(0);
}

void t_skip_all(const char *format, ...)
{
    va_list ap;

    printf("1..0 # SKIP ");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
    exit(0);
}

int t_aborts(void (*breach)(void))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }
        breach();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) || (WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT);
}

typedef struct {
    unsigned next;      /* number that the next result must have */
    char     skip[256]; /* reason why the running test skips, or "" */
} t_printer_t;

/* The name in the next result's line, or NULL if it is not that. A message of
 * several lines may hold lines that only look like results; their number
 * gives them away. */
static const char *t_result_name(const t_printer_t *printer, const char *line)
{
    unsigned number;
    int length = 0;

    if ((sscanf(line, "ok %u - %n", &number, &length) != 1) &&
        (sscanf(line, "not ok %u - %n", &number, &length) != 1)) {
        return NULL;
    }
    return ((length > 0) && (number == printer->next)) ? line + length : NULL;
}

/* check puts the file's whole path into the name; the folder is dropped, so
 * that a test has the same name in every build. */
static const char *t_without_folder(const char *name)
{
    const char *end = name + strcspn(name, ":");

    while ((end > name) && (end[-1] != '/')) {
        end--;
    }
    return end;
}

static void t_print_line(t_printer_t *printer, const char *line)
{
    const char *name = t_result_name(printer, line);

    if (strncmp(line, T_SKIP_MARK, strlen(T_SKIP_MARK)) == 0) {
        snprintf(printer->skip, sizeof(printer->skip), "%s",
                 line + strlen(T_SKIP_MARK));
        return;
    }

    if (name != NULL) {
        printf("%.*s%s", (int)(name - line), line, t_without_folder(name));
        if ((printer->skip[0] != '\0') && (line[0] == 'o')) {
            printf(" # SKIP %s", printer->skip);
        }
        printer->next++;
        printer->skip[0] = '\0';
    } else if (strncmp(line, "1..", 3) == 0) {
        printf("%s", line);
    } else {
        printf("# %s", line);
    }
    printf("\n");
    fflush(stdout);
}

static void t_print(int fd)
{
    t_printer_t printer = {.next = 1, .skip = ""};
    char *line          = NULL;
    size_t size         = 0;
    FILE *stream        = fdopen(fd, "r");
    ssize_t length;

    if (stream == NULL) {
        t_die("fdopen");
    }

    while ((length = getline(&line, &size, stream)) > 0) {
        if (line[length - 1] == '\n') {
            line[length - 1] = '\0';
        }
        t_print_line(&printer, line);
    }
    free(line);
    fclose(stream);
}

/* Starts the printer; returns its pid. From here on stdout is stderr. */
static pid_t t_start_printer(void)
{
    int fds[2];
    pid_t pid;

    fflush(NULL);
    if (pipe2(fds, O_CLOEXEC) != 0) {
        t_die("pipe");
    }

    pid = fork();
    if (pid < 0) {
        t_die("fork");
    }
    if (pid == 0) {
        close(fds[1]);
        t_print(fds[0]);
        exit(0);
    }

    close(fds[0]);
    t_run.tap_fd = fds[1];
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        t_die("dup2");
    }
    return pid;
}

/* The printer reads until every copy of the write side is closed, so it
 * outlives a test's stray child; check ends those with the test. */
static void t_stop_printer(pid_t pid)
{
    close(t_run.tap_fd);
    t_run.tap_fd = -1;
    if (waitpid(pid, NULL, 0) < 0) {
        t_die("waitpid");
    }
}

static int t_is_same_file(const char *one, const char *other)
{
    struct stat stat_one, stat_other;

    return (stat(one, &stat_one) == 0) && (stat(other, &stat_other) == 0) &&
           (stat_one.st_dev == stat_other.st_dev) &&
           (stat_one.st_ino == stat_other.st_ino);
}

static int t_is_of_ucx(const char *name)
{
    static const char *names[] = {"libucm.so.0", "libucs.so.0", "libuct.so.0",
                                  "libucp.so.0"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Names may differ: a folder may be a link, a library may know its own folder. */
static int t_ucx_check_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *name = strrchr(info->dlpi_name, '/');
    char path[PATH_MAX];

    (void)size;
    if ((name == NULL) || !t_is_of_ucx(name + 1)) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s%s", (const char*)arg, name);
    if (!t_is_same_file(path, info->dlpi_name)) {
        fprintf(stderr, "test harness: the UCX to test is in %s, and this process "
                "has %s\n", (const char*)arg, info->dlpi_name);
        exit(99);
    }
    return 0;
}

void t_ucx_check(void)
{
    char *lib = getenv("T_UCX_LIB");

    if (lib != NULL) {
        dl_iterate_phdr(t_ucx_check_object, lib);
    }
}

void t_ucx_restart(const char *mark, char **argv)
{
    static const char *const env[][2] = {
        {"UCX_LOG_LEVEL", "warn"},
        {"UCX_HANDLE_ERRORS", "none"}, /* no backtrace that may hang         */
        {"UCX_MEM_EVENTS", "n"},       /* hooks quarrel with sanitizers      */
        {"UCX_WARN_UNUSED_ENV_VARS", "n"},
        /* Its thread may hold a lock when a process forks. Then the child waits for ever
         * (UCX 1.18 of Debian 13). */
        {"UCX_VFS_ENABLE", "n"},
    };
    int status = setenv(mark, "1", 1);
    size_t i;

    for (i = 0; (i < sizeof(env) / sizeof(env[0])) && (status == 0); i++) {
        status = setenv(env[i][0], env[i][1], 0);
    }
    if (status == 0) {
        execv("/proc/self/exe", argv);
    }
    perror("test harness: cannot start again");
}

int t_main(const t_suite_func_t *suites, size_t count)
{
    char path[32];
    SRunner *runner;
    pid_t printer;
    int failed;
    size_t i;

    t_ucx_check();
    printf("# seed: T_SEED=0x%" PRIx64 "\n", t_seed());
    printer = t_start_printer();

    runner = srunner_create(NULL);
    for (i = 0; i < count; i++) {
        srunner_add_suite(runner, suites[i]());
    }
    snprintf(path, sizeof(path), "/dev/fd/%d", t_run.tap_fd);
    srunner_set_tap(runner, path);
    srunner_run_all(runner, CK_SILENT);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);

    t_stop_printer(printer);
    return (failed == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static char *t_read_all(FILE *file)
{
    char *text    = NULL;
    size_t length = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(getdelim(&text, &length, '\0', file), 0);
    fclose(file);
    return text;
}

void t_check_page(const char *path, void (*print)(FILE *out),
                  const char *target)
{
    char *printed = NULL;
    size_t length = 0;
    FILE *memory  = open_memstream(&printed, &length);
    char *page;

    ck_assert_ptr_nonnull(memory);
    print(memory);
    fclose(memory);
    page = t_read_all(fopen(path, "r"));
    ck_assert_msg(strcmp(page, printed) == 0,
                  "%s is not what the table says: run "
                  "`make -C test/gtest-free-c/unit %s` and look at "
                  "the difference", path, target);
    free(page);
    free(printed);
}
