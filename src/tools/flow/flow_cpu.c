/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two ends on one host want a processor each. The kernel begins with both of
 * them on one, as they are parent and child, and as they yield when there is
 * nothing to do it may leave them there for tens of milliseconds.
 *
 * The processor of a virtual machine may stand still while its host runs
 * something else, and the kernel need not know: it counts no time as stolen. So
 * a witness, a thread on the processor of the end that goes before all else
 * there, wants to run every few milliseconds; by how much it is late is what has
 * been lost. Every millisecond would cost the end 3 % on such a machine. While
 * both are awake they also measure how far they are from each other.
 */

#include "tools/base/clock.h"
#include "tools/flow/flow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WITNESS_LOOK_NS 5000000ull /* how often it wants to run */
#define WITNESS_LATE_NS 1000000ull /* less is what waking takes */

/* ---- which one ---- */

void flow_cpu_halve(const cpu_set_t *all, int is_first, cpu_set_t *half)
{
    const int count = CPU_COUNT(all);
    int seen        = 0;
    int cpu;

    CPU_ZERO(half);
    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, all)) {
            if ((count == 1) || ((seen < count / 2) == (is_first != 0))) {
                CPU_SET(cpu, half);
            }
            ++seen;
        }
    }
}

void flow_cpu_part(int is_first)
{
    cpu_set_t all, half;

    if (sched_getaffinity(0, sizeof(all), &all) == 0) {
        flow_cpu_halve(&all, is_first, &half);
        (void)sched_setaffinity(0, sizeof(half), &half);
    }
}

/* Returns on which one, or -1. */
static int cpu_stay(void)
{
    const int cpu = sched_getcpu();
    cpu_set_t one;

    CPU_ZERO(&one);
    if ((cpu < 0) || (cpu >= CPU_SETSIZE)) {
        return -1;
    }
    CPU_SET(cpu, &one);
    return (sched_setaffinity(0, sizeof(one), &one) == 0) ? cpu : -1;
}

int64_t flow_cpu_waited(void)
{
    FILE *file          = fopen("/proc/thread-self/schedstat", "r");
    long long waited_ns = FLOW_NOT_SEEN;

    if ((file != NULL) && (fscanf(file, "%*d %lld", &waited_ns) != 1)) {
        waited_ns = FLOW_NOT_SEEN;
    }
    if (file != NULL) {
        fclose(file);
    }
    return waited_ns;
}

/* ---- the witness ---- */

uint64_t flow_witness_lost(uint64_t wanted_ns, uint64_t now_ns)
{
    return (now_ns >= wanted_ns + WITNESS_LATE_NS) ? now_ns - wanted_ns : 0;
}

uint64_t flow_witness_next(uint64_t now_ns)
{
    return (now_ns / WITNESS_LOOK_NS + 1) * WITNESS_LOOK_NS;
}

static void witness_look_far(flow_witness_t *witness, uint64_t look_ns)
{
    uint64_t took_ns;

    if (!flow_line_is_between(witness->line)) {
        return;
    }
    if (!witness->is_first) {
        flow_line_answer(witness->line, look_ns);
        return;
    }
    took_ns = flow_line_ask(witness->line, look_ns);
    if (took_ns > 0) {
        daqiri_hist_add(&witness->passes, took_ns);
    }
}

static void *witness_look(void *arg)
{
    flow_witness_t *witness = arg;
    uint64_t now_ns         = daqiri_now_ns();
    uint64_t wanted_ns;
    struct timespec wanted;

    while (!__atomic_load_n(&witness->is_over, __ATOMIC_ACQUIRE)) {
        wanted_ns      = flow_witness_next(now_ns);
        wanted.tv_sec  = (time_t)(wanted_ns / 1000000000);
        wanted.tv_nsec = (long)(wanted_ns % 1000000000);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, NULL);
        now_ns            = daqiri_now_ns();
        witness->lost_ns += flow_witness_lost(wanted_ns, now_ns);
        witness_look_far(witness, wanted_ns);
    }
    return NULL;
}

/* Before all else of this processor, which is its parent's. */
static int witness_create(flow_witness_t *witness)
{
    const struct sched_param first = {.sched_priority = 1};
    pthread_attr_t attr;
    int error;

    error = pthread_attr_init(&attr);
    if (error != 0) {
        return error;
    }
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &first);
    error = pthread_create(&witness->thread, &attr, witness_look, witness);
    pthread_attr_destroy(&attr);
    return error;
}

void flow_witness_start(flow_witness_t *witness, flow_line_t *line,
                        int is_first)
{
    const int cpu = cpu_stay();
    sigset_t all, before;

    memset(witness, 0, sizeof(*witness));
    daqiri_hist_init(&witness->passes);
    witness->line     = line;
    witness->is_first = is_first;
    sigfillset(&all); /* they are for who waits for something */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    witness->is_there = witness_create(witness) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (witness->is_there) {
        flow_line_enter(line, is_first, cpu);
    }
}

int64_t flow_witness_stop(flow_witness_t *witness)
{
    if (!witness->is_there) {
        return FLOW_NOT_SEEN;
    }
    flow_line_leave(witness->line, witness->is_first);
    __atomic_store_n(&witness->is_over, 1, __ATOMIC_RELEASE);
    pthread_join(witness->thread, NULL);
    return (int64_t)witness->lost_ns;
}
