/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a line of memory takes from CPU 0 to CPU 1 and back, in nanoseconds: the
 * median of some tries, for some are interrupted, and the clock of a virtual
 * machine makes others look short. contrib/bench compiles it.
 */
#define _GNU_SOURCE
#include "must.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES   = 200,
    PASSES  = 50, /* of a try, so that the clock does not count */
    SECONDS = 10  /* after which a busy machine has no answer */
};

typedef _Atomic uint64_t ball_t;

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static void await(ball_t *ball, uint64_t number)
{
    while (atomic_load_explicit(ball, memory_order_acquire) != number) {
    }
}

static void answer(ball_t *ball)
{
    uint64_t i;

    pin(1);
    for (i = 0; i <= TRIES * PASSES; ++i) {
        await(ball, 2 * i + 1);
        atomic_store_explicit(ball, 2 * i + 2, memory_order_release);
    }
}

static void pass(ball_t *ball, uint64_t i)
{
    atomic_store_explicit(ball, 2 * i + 1, memory_order_release);
    await(ball, 2 * i + 2);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

static uint64_t ask(ball_t *ball)
{
    static uint64_t took[TRIES];
    uint64_t began, i = 0;
    int try;

    pin(0);
    pass(ball, i); /* both are there */
    for (try = 0; try < TRIES; ++try) {
        began = now_ns();
        do {
            pass(ball, ++i);
        } while (i % PASSES != 0);
        took[try] = (now_ns() - began) / PASSES;
    }
    qsort(took, TRIES, sizeof(took[0]), compare);
    return took[TRIES / 2];
}

int main(void)
{
    ball_t *ball = mmap(NULL, sizeof(*ball), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t other;

    MUST(ball != MAP_FAILED);
    other = fork();
    MUST(other >= 0);
    if (other == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        alarm(SECONDS);
        answer(ball);
        return 0;
    }
    alarm(SECONDS);
    printf("%llu\n", (unsigned long long)ask(ball));
    MUST(waitpid(other, NULL, 0) == other);
    return 0;
}
