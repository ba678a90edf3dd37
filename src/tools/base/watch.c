/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/watch.h"

#include "tools/base/clock.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a child that was killed is waited for. */
#define WATCH_REAP_MS 1000

/* How long a child may take to report when the user asks to stop. */
#define WATCH_STOP_NS 2000000000ull

/* What was read. A result is one line. */
typedef struct watch_reader {
    char   *text;
    size_t used;
    size_t size;
} watch_reader_t;

/* ---- in the child ---- */

/* One line; a parent that is gone does not matter any more. */
static void watch_tell(int fd, const json_t *result)
{
    char *text = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t used = 0;
    size_t length;
    ssize_t ret;

    if (text == NULL) {
        return;
    }
    length       = strlen(text);
    text[length] = '\n';
    while (used <= length) {
        ret = write(fd, text + used, length + 1 - used);
        if ((ret < 0) && (errno != EINTR)) {
            break;
        }
        used += (ret > 0) ? (size_t)ret : 0;
    }
    free(text);
}

static void watch_child(int fd, pid_t parent, daqiri_watch_func_t func,
                        void *arg)
{
    json_t *result;

    /* A parent that is killed takes its child with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    result = func(arg);
    watch_tell(fd, result);
    json_decref(result);
    fflush(NULL);
    _exit(0);
}

/* ---- in the parent ---- */

/* Reads what is there. Returns 1 when nothing more will come. */
static int watch_read(watch_reader_t *reader, int fd)
{
    char *text;
    ssize_t ret;

    if (reader->used + 4096 > reader->size) {
        text = realloc(reader->text, 2 * reader->size + 8192);
        if (text == NULL) {
            return 1;
        }
        reader->text = text;
        reader->size = 2 * reader->size + 8192;
    }
    ret = read(fd, reader->text + reader->used, 4095);
    if (ret < 0) {
        return errno != EINTR;
    }
    reader->used += (size_t)ret;
    return (ret == 0) || (reader->text[reader->used - 1] == '\n');
}

/* Returns 1 when the child is reaped. */
static int watch_reap(pid_t pid, int *status, int wait_ms)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t end_ns = daqiri_now_ns() + (uint64_t)wait_ms * 1000000;

    do {
        if (waitpid(pid, status, WNOHANG) == pid) {
            return 1;
        }
        nanosleep(&pause, NULL);
    } while (daqiri_now_ns() < end_ns);
    return 0;
}

/* Never long: a signal that comes just before poll() does not end it. */
static int watch_poll_ms(uint64_t left_ns)
{
    return (left_ns > 200000000) ? 200 : (int)(left_ns / 1000000) + 1;
}

static void watch_show(daqiri_watch_t *watch, uint64_t now_ns)
{
    if ((watch->progress == NULL) ||
        !daqiri_progress_is_due(watch->progress, now_ns)) {
        return;
    }
    daqiri_progress_show(watch->progress, now_ns, -1, "waiting for %s", watch->what);
}

static void watch_parent(daqiri_watch_t *watch, int fd, pid_t pid)
{
    watch_reader_t reader = {NULL, 0, 0};
    struct pollfd event   = {.fd = fd, .events = POLLIN};
    uint64_t deadline_ns  = daqiri_now_ns() + (uint64_t)(watch->timeout * 1e9);
    uint64_t now_ns;
    int is_stopping = 0;
    int is_over     = 0;

    while (!is_over) {
        now_ns = daqiri_now_ns();
        if (!is_stopping && daqiri_stop_asked()) {
            /* A terminal has told the child, too; kill(1) has not. */
            is_stopping = 1;
            daqiri_stop_tell(pid);
            if (deadline_ns > now_ns + WATCH_STOP_NS) {
                deadline_ns = now_ns + WATCH_STOP_NS;
            }
        }
        if (now_ns >= deadline_ns) {
            break;
        }
        watch_show(watch, now_ns);
        if (poll(&event, 1, watch_poll_ms(deadline_ns - now_ns)) > 0) {
            is_over = watch_read(&reader, fd);
        }
    }
    if (is_over) {
        watch->result = json_loadb(reader.text, reader.used, JSON_DECODE_ANY, NULL);
    }
    free(reader.text);

    /* Who has told its result may still be stuck in giving things back. */
    if (!is_over || !watch_reap(pid, &watch->status, WATCH_REAP_MS)) {
        kill(pid, SIGKILL);
        watch_reap(pid, &watch->status, WATCH_REAP_MS);
    }
    watch->end = !is_over ? DAQIRI_WATCH_TIMEOUT :
                 (watch->result != NULL) ? DAQIRI_WATCH_DONE :
                                           DAQIRI_WATCH_DIED;
}

daqiri_watch_end_t daqiri_watch_run(daqiri_watch_t *watch,
                                    daqiri_watch_func_t func, void *arg)
{
    pid_t parent = getpid();
    int fds[2];
    pid_t pid;

    watch->end    = DAQIRI_WATCH_NO_CHILD;
    watch->result = NULL;
    watch->status = 0;
    watch->error  = 0;

    fflush(NULL);
    if (pipe(fds) != 0) {
        watch->error = errno;
        return watch->end;
    }
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        watch_child(fds[1], parent, func, arg);
    }
    watch->error = errno;
    close(fds[1]);
    if (pid > 0) {
        watch_parent(watch, fds[0], pid);
    }
    close(fds[0]);
    return watch->end;
}

void daqiri_watch_text(const daqiri_watch_t *watch, double timeout, char *text,
                       size_t length)
{
    switch (watch->end) {
    case DAQIRI_WATCH_DONE:
        snprintf(text, length, "it was done");
        break;
    case DAQIRI_WATCH_TIMEOUT:
        snprintf(text, length, "it did not come back within %.4g s: the driver "
                 "or the device may be wedged", timeout);
        break;
    case DAQIRI_WATCH_NO_CHILD:
        snprintf(text, length, "no process can be started: %s",
                 strerror(watch->error));
        break;
    case DAQIRI_WATCH_DIED:
        if (WIFSIGNALED(watch->status)) {
            snprintf(text, length, "the process that tried it died: %s",
                     strsignal(WTERMSIG(watch->status)));
        } else {
            snprintf(text, length, "the process that tried it ended without "
                     "a result");
        }
        break;
    }
}
