/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests that ask a question millions of times. check's own assertions
 * write a mark into a pipe each time they hold; these do nothing then.
 *
 * t_at is what a failure names besides the line: the step of a random run.
 */
#ifndef T_UNIT_H
#define T_UNIT_H

#include "t.h"

#include <inttypes.h>

static uint64_t t_at;

#define T_NEED(_cond) \
    ((_cond) ? (void)0 \
             : ck_abort_msg("at %" PRIu64 ": needed %s", t_at, #_cond))

#define T_NEED_EQ(_a, _b) t_need_eq(#_a, (_a), #_b, (_b), __FILE__, __LINE__)

static inline void t_need_eq(const char *a_text, int64_t a, const char *b_text,
                             int64_t b, const char *file, int line)
{
    if (a != b) {
        ck_abort_msg("%s:%d: at %" PRIu64 ": %s is %" PRId64
                     " but %s is %" PRId64,
                     file, line, t_at, a_text, a, b_text, b);
    }
}

#endif
