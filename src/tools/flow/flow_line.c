/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The host of a virtual machine may move its processors, and leave two of them
 * far from each other for seconds: then all that goes between two processes
 * takes longer, whoever carries it. The witnesses of both ends (flow_cpu.c)
 * wake at the same times, and pass a line of memory to and fro:
 *
 *     ball = look + 1    who asks is there
 *     ball = look + 2    the other one, too: the first of LINE_PASSES
 *     ball = look + 3    ...
 *
 * A look is the time that it was meant for, so that no ball of another one is
 * taken for its own. Who does not come is waited for until the look is over.
 */

#include "tools/base/clock.h"
#include "tools/flow/flow.h"

#include <string.h>
#include <sys/mman.h>

#define LINE_LOOK_NS 60000u /* both have woken by then, or never mind */
#define LINE_POLLS   64     /* between two looks at the clock */
#define LINE_TRIES   4      /* the least of them: others were interrupted */
#define LINE_TRY     4      /* passes of one, for the clock takes its time */

/* The first one is for meeting. */
#define LINE_PASSES  (1 + LINE_TRIES * LINE_TRY)

flow_line_t *flow_line_make(void)
{
    void *line = mmap(NULL, sizeof(flow_line_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return (line != MAP_FAILED) ? line : NULL;
}

void flow_line_enter(flow_line_t *line, int is_first, int cpu)
{
    if (line != NULL) {
        __atomic_store_n(&line->cpus[is_first != 0], cpu + 1,
                         __ATOMIC_RELEASE);
    }
}

void flow_line_leave(flow_line_t *line, int is_first)
{
    flow_line_enter(line, is_first, -1);
}

int flow_line_is_between(const flow_line_t *line)
{
    int cpus[2];

    if (line == NULL) {
        return 0;
    }
    cpus[0] = __atomic_load_n(&line->cpus[0], __ATOMIC_ACQUIRE);
    cpus[1] = __atomic_load_n(&line->cpus[1], __ATOMIC_ACQUIRE);
    return (cpus[0] != 0) && (cpus[1] != 0) && (cpus[0] != cpus[1]);
}

/* Returns whether it came while the look lasted. */
static int line_await(const flow_line_t *line, uint64_t ball,
                      uint64_t look_ns)
{
    unsigned i;

    do {
        for (i = 0; i < LINE_POLLS; ++i) {
            if (__atomic_load_n(&line->ball, __ATOMIC_ACQUIRE) == ball) {
                return 1;
            }
        }
    } while (daqiri_now_ns() < look_ns + LINE_LOOK_NS);
    return 0;
}

static int line_pass(flow_line_t *line, uint64_t *ball_p, uint64_t look_ns)
{
    __atomic_store_n(&line->ball, *ball_p + 1, __ATOMIC_RELEASE);
    *ball_p += 2;
    return line_await(line, *ball_p, look_ns);
}

uint64_t flow_line_ask(flow_line_t *line, uint64_t look_ns)
{
    uint64_t ball  = look_ns;
    uint64_t least = UINT64_MAX;
    uint64_t start, took;
    unsigned try, i;

    if (!line_pass(line, &ball, look_ns)) {
        return 0;
    }
    for (try = 0; try < LINE_TRIES; ++try) {
        start = daqiri_now_ns();
        for (i = 0; i < LINE_TRY; ++i) {
            if (!line_pass(line, &ball, look_ns)) {
                return 0;
            }
        }
        took  = (daqiri_now_ns() - start) / LINE_TRY;
        least = (took < least) ? took : least;
    }
    return least;
}

void flow_line_answer(flow_line_t *line, uint64_t look_ns)
{
    uint64_t ball = look_ns;
    unsigned i;

    for (i = 0; i < LINE_PASSES; ++i) {
        if (!line_await(line, ball + 1, look_ns)) {
            return;
        }
        ball += 2;
        __atomic_store_n(&line->ball, ball, __ATOMIC_RELEASE);
    }
}
