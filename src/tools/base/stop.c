/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/stop.h"

#include "tools/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

#define STOP_NUM_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

static volatile sig_atomic_t stop_signal;
static volatile uint64_t stop_asked_ns; /* when, by a signal that counts */
static int stop_is_owned;

int daqiri_stop_is_second(uint64_t first_ns, uint64_t now_ns)
{
    return (first_ns != 0) && (now_ns - first_ns >= DAQIRI_STOP_GRACE_NS);
}

static void stop_handler(int signal_number, siginfo_t *info, void *context)
{
    int error = errno;
    uint64_t now_ns;

    (void)context;
    stop_signal = signal_number;
    /* What daqiri_stop_tell() has sent is what the sender was asked. */
    if (info->si_code != SI_QUEUE) {
        now_ns = daqiri_now_ns();
        if (daqiri_stop_is_second(stop_asked_ns, now_ns)) {
            signal(signal_number, SIG_DFL);
            raise(signal_number); /* taken when this function is left */
        }
        stop_asked_ns = (stop_asked_ns == 0) ? now_ns : stop_asked_ns;
    }
    errno = error;
}

void daqiri_stop_catch(void)
{
    /* Not restarted: who waits for a peer must notice. */
    struct sigaction action = {
        .sa_sigaction = stop_handler,
        .sa_flags     = SA_SIGINFO
    };
    size_t i;

    sigemptyset(&action.sa_mask);
    for (i = 0; i < STOP_NUM_SIGNALS; ++i) {
        sigaddset(&action.sa_mask, stop_signals[i]);
    }
    for (i = 0; i < STOP_NUM_SIGNALS; ++i) {
        sigaction(stop_signals[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
}

void daqiri_stop_tell(pid_t pid)
{
    const union sigval nothing = {0};

    sigqueue(pid, SIGTERM, nothing);
}

int daqiri_stop_asked(void)
{
    return stop_signal;
}

void daqiri_stop_pause(double seconds)
{
    uint64_t now_ns = daqiri_now_ns();
    uint64_t end_ns = now_ns + (uint64_t)(seconds * 1e9);

    while (!daqiri_stop_asked() && (now_ns < end_ns)) {
        poll(NULL, 0, (end_ns - now_ns > 100000000) ? 100 :
             (int)((end_ns - now_ns) / 1000000) + 1);
        now_ns = daqiri_now_ns();
    }
}

void daqiri_stop_own(void)
{
    stop_is_owned = 1;
}

int daqiri_stop_is_owned(void)
{
    return stop_is_owned;
}
