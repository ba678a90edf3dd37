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

/* What was read of a line that has not ended. A result is one line. */
typedef struct watch_reader {
    char   *text;
    size_t used;
    size_t size;
} watch_reader_t;

/* ---- in the child ---- */

/* One line; a parent that is gone does not matter any more. */
static void watch_tell(int fd, const json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
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

void daqiri_watch_step(daqiri_watch_child_t *child, const char *name,
                       double timeout)
{
    json_t *message = json_pack("{s:s, s:f}", "step", name, "timeout", timeout);

    watch_tell(child->fd, message);
    json_decref(message);
}

static void watch_child(int fd, pid_t parent, daqiri_watch_func_t func,
                        void *arg)
{
    daqiri_watch_child_t child = {.fd = fd};
    json_t *message;

    /* A parent that is killed takes its child with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    message = json_pack("{s:o}", "result", func(arg, &child));
    watch_tell(fd, message);
    json_decref(message);
    fflush(NULL);
    _exit(0);
}

/* ---- in the parent ---- */

/* Takes one message. Returns 1 when it is the result. */
static int watch_take(daqiri_watch_t *watch, const char *line,
                      uint64_t *deadline_ns)
{
    json_t *message = json_loads(line, JSON_DECODE_ANY, NULL);
    json_t *result  = json_object_get(message, "result");
    const char *step = json_string_value(json_object_get(message, "step"));

    if ((step != NULL) && (watch->progress != NULL) &&
        (strcmp(step, watch->step) != 0)) {
        daqiri_progress_end(watch->progress);
        daqiri_progress_start(watch->progress);
    }
    if (step != NULL) {
        snprintf(watch->step, sizeof(watch->step), "%s", step);
        watch->timeout = json_number_value(json_object_get(message, "timeout"));
        *deadline_ns   = daqiri_now_ns() + (uint64_t)(watch->timeout * 1e9);
    }
    if (result != NULL) {
        watch->result = json_incref(result);
    }
    json_decref(message);
    return result != NULL;
}

/* Reads what is there. Returns 1 when nothing more will come or is wanted. */
static int watch_read(daqiri_watch_t *watch, watch_reader_t *reader, int fd,
                      uint64_t *deadline_ns)
{
    char *line, *end;
    ssize_t ret;

    if (reader->used + 4096 > reader->size) {
        reader->size = 2 * reader->size + 8192;
        line         = realloc(reader->text, reader->size);
        if (line == NULL) {
            return 1;
        }
        reader->text = line;
    }
    ret = read(fd, reader->text + reader->used, 4095);
    if (ret < 0) {
        return errno != EINTR;
    }
    if (ret == 0) {
        return 1;
    }
    reader->used              += (size_t)ret;
    reader->text[reader->used] = '\0';

    line = reader->text;
    while ((end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        if (watch_take(watch, line, deadline_ns)) {
            return 1;
        }
        line = end + 1;
    }
    reader->used -= (size_t)(line - reader->text);
    memmove(reader->text, line, reader->used);
    return 0;
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
            is_over = watch_read(watch, &reader, fd, &deadline_ns);
        }
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

    watch->end     = DAQIRI_WATCH_NO_CHILD;
    watch->result  = NULL;
    watch->step[0] = '\0';
    watch->status  = 0;
    watch->error   = 0;

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
