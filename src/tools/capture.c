/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture.h"

#include "stop.h"

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

static void capture_child(char *const *command,
                          const daqiri_settings_t *settings, int fd)
{
    int null = open("/dev/null", O_RDONLY);
    size_t i;

    /* A session of its own: all of it can be ended at once. */
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    for (i = 0; (settings != NULL) && (i < settings->count); ++i) {
        setenv(settings->list[i].name, settings->list[i].value, 1);
    }
    execvp(command[0], command);
    _exit(127);
}

/* Until the end of all who have the pipe, or the deadline. */
static void capture_read(daqiri_capture_t *capture, int fd,
                         uint64_t deadline_ns)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    char rest[4096];
    size_t used = 0;
    uint64_t now_ns;
    ssize_t ret;

    for (;;) {
        now_ns = daqiri_now_ns();
        if ((now_ns >= deadline_ns) || daqiri_stop_asked()) {
            capture->is_timeout = 1;
            break;
        }
        if (poll(&event, 1, (int)((deadline_ns - now_ns) / 1000000) + 1) <= 0) {
            continue;
        }
        ret = (used < sizeof(capture->text) - 1) ?
              read(fd, capture->text + used,
                   sizeof(capture->text) - 1 - used) :
              read(fd, rest, sizeof(rest));
        if (ret == 0) {
            break;
        }
        if ((ret < 0) && (errno != EINTR)) {
            break;
        }
        if ((ret > 0) && (used < sizeof(capture->text) - 1)) {
            used += (size_t)ret;
        }
    }
    capture->text[used] = '\0';
}

static void capture_wait(daqiri_capture_t *capture, pid_t pid,
                         uint64_t deadline_ns)
{
    static const struct timespec pause = {.tv_nsec = 2000000};

    while (waitpid(pid, &capture->status, WNOHANG) == 0) {
        if (capture->is_timeout || (daqiri_now_ns() >= deadline_ns)) {
            capture->is_timeout = 1;
            kill(-pid, SIGKILL);
            waitpid(pid, &capture->status, 0);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

int daqiri_capture_run(daqiri_capture_t *capture, char *const *command,
                       const daqiri_settings_t *settings, double timeout)
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
        capture_child(command, settings, fds[1]);
    }
    capture->error = (pid < 0) ? errno : 0;
    close(fds[1]);
    if (pid > 0) {
        capture_read(capture, fds[0], deadline_ns);
        capture_wait(capture, pid, deadline_ns);
    }
    close(fds[0]);
    return ((pid > 0) && !capture->is_timeout && WIFEXITED(capture->status) &&
            (WEXITSTATUS(capture->status) == 0)) ? 0 : -1;
}

char *daqiri_capture_line(daqiri_capture_t *capture, const char *beginning)
{
    size_t length = strlen(beginning);
    char *line    = capture->text;

    while (line != NULL) {
        if (strncmp(line, beginning, length) == 0) {
            line[strcspn(line, "\n")] = '\0';
            return line + length;
        }
        line = strchr(line, '\n');
        line = (line != NULL) ? line + 1 : NULL;
    }
    return NULL;
}
