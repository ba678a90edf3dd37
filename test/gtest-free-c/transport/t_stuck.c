/* SPDX-License-Identifier: BSD-3-Clause */
#include "t_stuck.h"

#include <check.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* glibc has a function for it, and Debian 12's header no name for the field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    FRAMES = 48,
    TURN_MS = 100 /* for one thread, so that their lines do not mix */
};

/* What getdents64() gives, getdents64(2). Nothing here may call malloc(): its lock may be
 * what the program waits for. */
typedef struct {
    uint64_t ino;
    int64_t  off;
    uint16_t length;
    uint8_t  type;
    char     name[];
} entry_t;

static int stuck_fd;


static int signal_to_ask(void)
{
    return SIGRTMAX - 1;
}


static int signal_to_tell(void)
{
    return SIGRTMAX - 2;
}


static void write_text(const char *text)
{
    ssize_t ret = write(stuck_fd, text, strlen(text));

    (void)ret;
}


/* Each thread, itself. */
static void on_tell(int number)
{
    int saved = errno;
    void *frames[FRAMES];
    char name[17] = "";

    (void)number;
    prctl(PR_GET_NAME, name);
    write_text("thread ");
    write_text(name);
    write_text(":\n");
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES), stuck_fd);
    errno = saved;
}


static void ask(pid_t tid)
{
    struct timespec turn = {.tv_nsec = TURN_MS * 1000000};

    if ((tid > 0) && (tid != syscall(SYS_gettid)) &&
        (syscall(SYS_tgkill, getpid(), tid, signal_to_tell()) == 0)) {
        nanosleep(&turn, NULL);
    }
}


static void ask_all(int dir)
{
    char buffer[2048] __attribute__((aligned(8)));
    const entry_t *entry;
    long length, at;

    while ((length = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0) {
        for (at = 0; at < length; at += entry->length) {
            entry = (const entry_t*)(buffer + at);
            ask(atoi(entry->name));
        }
    }
}


static void on_ask(int number)
{
    int saved = errno;
    int dir   = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    write_text("still running, and soon out of time; its threads:\n");
    on_tell(number);
    if (dir >= 0) {
        ask_all(dir);
        close(dir);
    }
    errno = saved;
}


static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}


void t_stuck_arm(unsigned milliseconds, int fd)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo  = signal_to_ask()};
    struct itimerspec when = {.it_value = {.tv_sec  = milliseconds / 1000,
                                           .tv_nsec = milliseconds % 1000 * 1000000}};
    void *frame;
    timer_t timer;

    (void)backtrace(&frame, 1); /* the first call loads a library */
    stuck_fd                     = fd;
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    handle(signal_to_ask(), on_ask);
    handle(signal_to_tell(), on_tell);
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &when, NULL), 0);
}
