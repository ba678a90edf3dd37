/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Glue over the check library, for every C test of this tree.
 *
 * A test program is one file: START_TEST functions, one or more functions that
 * return a Suite, and T_MAIN. check forks every test, bounds its time and
 * ends what it forked; this file adds what check lacks: a seed that is printed
 * before anything else, skipping with a reason, TAP that nobody can spoil.
 *
 *     START_TEST(test_edges)
 *     {
 *         ck_assert_uint_eq(1 + 1, 2);
 *     }
 *     END_TEST
 *
 *     static Suite *suite_sum(void)
 *     {
 *         return t_suite("sum", "edges", test_edges, NULL);
 *     }
 *
 *     T_MAIN(suite_sum)
 *
 * What a test writes to stdout goes to stderr: stdout carries TAP only.
 *
 * Environment:
 *   T_SEED                 seed of this run, any base strtoull knows
 *   CK_FORK=no             no fork, for a debugger
 *   CK_RUN_CASE=NAME       this test case only (CK_RUN_SUITE likewise)
 *   CK_TIMEOUT_MULTIPLIER  set by run-test in flavours that are slow
 */
#ifndef T_H
#define T_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef Suite *(*t_suite_func_t)(void);

/* Time in seconds that a test has unless its test case says otherwise
 * (tcase_set_timeout). Far beyond what any test needs: it ends a hang, it
 * never decides whether something was quick enough. */
#define T_TIMEOUT 60

/*
 * A suite from pairs (test case name, test function), ended by NULL. Pairs
 * with the same name one after the other share a test case. Who needs
 * fixtures or another time-out builds the suite with check's own calls.
 */
Suite *t_suite(const char *name, ...) __attribute__((sentinel));

/* Adds a test case whose test runs @a count times, with _i from 0 on. */
void t_suite_add_loop(Suite *suite, const char *name, const TTest *test, int count);

/* Runs the suites and prints TAP. Returns the exit status: 0 if no test
 * failed, 1 otherwise. */
int t_main(const t_suite_func_t *suites, size_t count);

#define T_MAIN(...) \
    int main(void) \
    { \
        const t_suite_func_t suites[] = {__VA_ARGS__}; \
        return t_main(suites, sizeof(suites) / sizeof(suites[0])); \
    }

/*
 * Ends the running test as skipped; the reason is for people and is printed
 * with the result. Call it before the test asserts anything, in the process
 * that check forked for the test, not in a child of it. Checked fixtures are
 * not torn down. With CK_FORK=no it ends the whole program.
 */
void t_skip(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* What a skip does first: handlers of atexit() do not run. */
void t_at_skip(void (*func)(void));

/* Ends the whole program as skipped; for a main() of one's own, before
 * t_main(). */
void t_skip_all(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/*
 * check notes the place of each assertion that holds in a file that a forked
 * process shares with its parent. One that is killed in the middle of a note
 * leaves half of it behind, and check then ends the whole program: processes
 * that may be killed set t_unmarked. Those that fail say so all the same.
 */
extern int t_unmarked;

#define _mark_point(_file, _line) t_mark(_file, _line)

/* Notes the place. On Soft-RoCE, where a note is dear, one in T_MARKS is made
 * after the first ones: what a crash or a time-out then names as the last place
 * may be so many assertions old. */
void t_mark(const char *file, int line);

enum { T_MARKS = 100 };

/* Whether `breach` ends with SIGABRT, in a process of its own whose stderr is lost. It
 * returns, or aborts: any other end fails the test. */
int t_aborts(void (*breach)(void));

/* True where the device under test is Soft-RoCE, as T_BED says: in a machine
 * that software emulates, 20 to 50 times slower. */
int t_is_softroce(void);

/* Ends the program with a sentence if T_UCX_LIB names the UCX that is to be tested
 * (contrib/check-ucx) and another one is in this process. t_main() calls it; a main() of
 * one's own does so when its UCX is loaded. */
void t_ucx_check(void);

/* UCX reads its environment before main() runs. So this sets one that suits tests, and
 * the variable @a mark, and starts the program again. What the caller has set stays.
 * Returns, after a line that says why, if it cannot. */
void t_ucx_restart(const char *mark, char **argv);

/* The seed of this run: T_SEED, or a new one each time. */
uint64_t t_seed(void);

/*
 * Pseudo-random numbers: the same for the same seed on every machine. A test
 * that needs more than one independent stream gives each its own salt.
 */
typedef struct {
    uint64_t state;
} t_rng_t;

void t_rng_init(t_rng_t *rng, uint64_t salt);

uint64_t t_rng_next(t_rng_t *rng);

/* Uniform in [0, bound); bound > 0. */
uint64_t t_rng_below(t_rng_t *rng, uint64_t bound);

/* Uniform in [first, last], both included. */
uint64_t t_rng_range(t_rng_t *rng, uint64_t first, uint64_t last);

/* True once in `times` on average; times > 0. */
int t_rng_once_in(t_rng_t *rng, uint64_t times);

void t_rng_fill(t_rng_t *rng, void *buffer, size_t length);

/* The page at @a path is what @a print writes; if not, the message names the
 * target of unit's make that prints it. */
void t_check_page(const char *path, void (*print)(FILE *out),
                  const char *target);

/* FNV-1a, to compare what arrived with what was sent. */
uint64_t t_checksum(const void *buffer, size_t length);

#endif
