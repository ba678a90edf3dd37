/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of decisions, on stderr or in a file. Two runs that decide the same
 * write the same lines. Lines that differ from run to run begin with #.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct sv_spin lock;
    int            fd;
    uint32_t       index; /* of the last decision */
    unsigned       plans;
} sv_fault_log = {.fd = STDERR_FILENO};

/* Writes one line in one write(), so that processes may share a file. On a
 * terminal the line also says what it is. */
static void sv_fault_log_line(const char *what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void sv_fault_log_line(const char *what, const char *format, ...)
{
    char line[SV_WHY_BYTES + 128];
    va_list ap;
    int used;

    used = snprintf(line, sizeof(line), "%s%s",
                    (sv_fault_log.fd == STDERR_FILENO) ? "softverbs: " : "",
                    (sv_fault_log.fd == STDERR_FILENO) ? what : "");
    va_start(ap, format);
    vsnprintf(line + used, sizeof(line) - used - 1, format, ap);
    va_end(ap);
    strcat(line, "\n");
    (void)!write(sv_fault_log.fd, line, strlen(line));
}

void sv_fault_log_decision(const struct sv_faults *faults, unsigned rule,
                            const char *where, uint64_t n)
{
    char text[SV_WHY_BYTES];

    sv_rule_print(&faults->plan.rules[rule], text);
    sv_spin_lock(&sv_fault_log.lock);
    sv_fault_log_line("fault ", "%u %s%sn=%llu rule %u: %s",
                      ++sv_fault_log.index, where, (*where != '\0') ? " " : "",
                      (unsigned long long)n, rule + 1, text);
    sv_spin_unlock(&sv_fault_log.lock);
}

void sv_fault_log_plan(const struct sv_faults *faults)
{
    sv_spin_lock(&sv_fault_log.lock);
    sv_fault_log_line("faults on purpose: ",
                      "# plan %u of process %u (pid %d): rules %u, seed %llu",
                      ++sv_fault_log.plans, faults->process, getpid(),
                      faults->plan.num_rules,
                      (unsigned long long)faults->plan.seed);
    sv_spin_unlock(&sv_fault_log.lock);
}

/* Why the log must not be written to this file, or NULL. Another user may have
 * put something into this place: it is neither followed nor waited for. Only
 * root makes devices such as /dev/null, so a device is accepted. */
static const char *sv_fault_log_refuses(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return strerror(errno);
    }
    if (S_ISCHR(st.st_mode)) {
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        return "it is no regular file";
    }
    if (st.st_uid != geteuid()) {
        return "it is another user's";
    }
    return (st.st_nlink > 1) ? "it has another name, too" : NULL;
}

static const char *sv_fault_log_why(int error)
{
    switch (error) {
    case ELOOP:
        return "it is a symbolic link";
    case ENXIO: /* a FIFO that nobody reads, or a socket */
        return "it is no regular file";
    default:
        return strerror(error);
    }
}

/* Opens SOFTVERBS_FAULTS_LOG. %d stands for the number of the process. */
int sv_fault_log_open(const char *pattern, uint32_t process)
{
    const char *d = strstr(pattern, "%d");
    const char *why;
    char path[512];
    int fd;

    if (d == NULL) {
        snprintf(path, sizeof(path), "%s", pattern);
    } else {
        snprintf(path, sizeof(path), "%.*s%u%s", (int)(d - pattern), pattern,
                 process, d + 2);
    }

    fd  = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
               O_NONBLOCK, 0666);
    why = (fd < 0) ? sv_fault_log_why(errno) : sv_fault_log_refuses(fd);
    if (why != NULL) {
        sv_log(SV_FAULT_ENV_LOG ": cannot write %s: %s", path, why);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    sv_fault_log.fd = fd;
    return 0;
}

uint32_t sv_fault_log_index(void)
{
    uint32_t index;

    sv_spin_lock(&sv_fault_log.lock);
    index = sv_fault_log.index;
    sv_spin_unlock(&sv_fault_log.lock);
    return index;
}

void sv_fault_log_orphan(void)
{
    sv_fault_log.index = 0;
    sv_fault_log.plans = 0;
    atomic_store(&sv_fault_log.lock.held, false);
    if (sv_fault_log.fd != STDERR_FILENO) {
        close(sv_fault_log.fd);
        sv_fault_log.fd = STDERR_FILENO;
    }
}
