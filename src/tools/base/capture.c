/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/capture.h"

#include "tools/base/clock.h"
#include "tools/base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CAPTURE_TICK_MS  250
#define CAPTURE_BURY_NS  2000000000ull
#define CAPTURE_LINE_MAX 4096 /* longer ones are nobody's to take */

static void capture_child(char *const *command,
                          const daqiri_env_list_t *env_list, int fd, int has_stdin)
{
    int null = open("/dev/null", O_RDONLY);
    size_t i;

    /* A session of its own: all of it can be ended at once. */
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!has_stdin) {
        dup2(null, STDIN_FILENO);
    }
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    for (i = 0; (env_list != NULL) && (i < env_list->count); ++i) {
        setenv(env_list->list[i].name, env_list->list[i].value, 1);
    }
    execvp(command[0], command);
    _exit(127);
}

/* Asked to stop: the program may end by itself, if it is given time for that.
 * Returns until when. */
static uint64_t capture_ask(pid_t pid, uint64_t deadline_ns,
                            const daqiri_capture_wait_t *wait)
{
    uint64_t end_ns = daqiri_now_ns() + (uint64_t)(wait->grace * 1e9);

    if (wait->grace > 0) {
        kill(-pid, SIGINT);
    }
    return (end_ns < deadline_ns) ? end_ns : deadline_ns;
}

/* Hands over the lines that are whole; *seen_p is where the first of the others is. */
static void capture_hand_over(daqiri_capture_t *capture, size_t *used_p,
                              size_t *seen_p, const daqiri_capture_wait_t *wait)
{
    char copy[CAPTURE_LINE_MAX];
    char *line, *end;
    size_t length;

    for (;;) {
        line = capture->text + *seen_p;
        end  = memchr(line, '\n', *used_p - *seen_p);
        if (end == NULL) {
            return;
        }
        length = (size_t)(end - line) + 1;
        if (length < sizeof(copy)) {
            memcpy(copy, line, length);
            copy[length - 1] = '\0';
            if (wait->take(wait->arg, copy)) {
                memmove(line, line + length, *used_p - *seen_p - length);
                *used_p -= length;
                continue;
            }
        }
        *seen_p += length;
    }
}

/* What there is to be read. Returns 0 at the end. */
static int capture_take(daqiri_capture_t *capture, int fd, size_t *used_p)
{
    char rest[4096];
    ssize_t ret;

    ret = (*used_p < sizeof(capture->text) - 1) ?
          read(fd, capture->text + *used_p,
               sizeof(capture->text) - 1 - *used_p) :
          read(fd, rest, sizeof(rest));
    if ((ret > 0) && (*used_p < sizeof(capture->text) - 1)) {
        *used_p += (size_t)ret;
    }
    return (ret > 0) || ((ret < 0) && (errno == EINTR));
}

/* Until the end of all who have the pipe, or the deadline. */
static void capture_read(daqiri_capture_t *capture, int fd, pid_t pid,
                         uint64_t deadline_ns,
                         const daqiri_capture_wait_t *wait)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    size_t used         = 0;
    size_t seen         = 0;
    int is_asked        = 0;
    uint64_t now_ns, left_ms;

    for (;;) {
        if (daqiri_stop_asked() && !is_asked) {
            is_asked    = 1;
            deadline_ns = capture_ask(pid, deadline_ns, wait);
        }
        now_ns = daqiri_now_ns();
        if ((now_ns >= deadline_ns) ||
            ((wait->until_ns != NULL) && (*wait->until_ns > 0) &&
             (now_ns >= *wait->until_ns))) {
            capture->is_timeout = 1;
            break;
        }
        if (wait->tick != NULL) {
            wait->tick(wait->arg);
        }
        left_ms = (deadline_ns - now_ns) / 1000000 + 1;
        left_ms = (left_ms < CAPTURE_TICK_MS) ? left_ms : CAPTURE_TICK_MS;
        if ((poll(&event, 1, (int)left_ms) > 0) &&
            !capture_take(capture, fd, &used)) {
            break;
        }
        if (wait->take != NULL) {
            capture_hand_over(capture, &used, &seen, wait);
        }
    }
    capture->text[used] = '\0';
}

/* One that is within a driver that hangs does not die: it is left behind. */
static void capture_bury(pid_t pid, int *status_p)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    const uint64_t end_ns = daqiri_now_ns() + CAPTURE_BURY_NS;

    while ((waitpid(pid, status_p, WNOHANG) == 0) && (daqiri_now_ns() < end_ns)) {
        nanosleep(&pause, NULL);
    }
}

static void capture_wait(daqiri_capture_t *capture, pid_t pid,
                         uint64_t deadline_ns)
{
    static const struct timespec pause = {.tv_nsec = 2000000};

    while (waitpid(pid, &capture->status, WNOHANG) == 0) {
        if (capture->is_timeout || (daqiri_now_ns() >= deadline_ns)) {
            capture->is_timeout = 1;
            kill(-pid, SIGKILL);
            capture_bury(pid, &capture->status);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

int daqiri_capture_run(daqiri_capture_t *capture, char *const *command,
                       const daqiri_env_list_t *env_list, double timeout)
{
    static const daqiri_capture_wait_t at_once = {0};

    return daqiri_capture_run_while(capture, command, env_list, timeout,
                                    &at_once);
}

int daqiri_capture_run_while(daqiri_capture_t *capture, char *const *command,
                             const daqiri_env_list_t *env_list, double timeout,
                             const daqiri_capture_wait_t *wait)
{
    uint64_t deadline_ns = daqiri_now_ns() + (uint64_t)(timeout * 1e9);
    int fds[2];
    pid_t pid;

    memset(capture, 0, sizeof(*capture));
    if (pipe2(fds, O_CLOEXEC) != 0) {
        capture->error = errno;
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        capture_child(command, env_list, fds[1], wait->has_stdin);
    }
    capture->error = (pid < 0) ? errno : 0;
    close(fds[1]);
    if (pid > 0) {
        capture_read(capture, fds[0], pid, deadline_ns, wait);
        capture_wait(capture, pid, deadline_ns);
    }
    close(fds[0]);
    return ((pid > 0) && !capture->is_timeout && WIFEXITED(capture->status) &&
            (WEXITSTATUS(capture->status) == 0)) ? 0 : -1;
}
