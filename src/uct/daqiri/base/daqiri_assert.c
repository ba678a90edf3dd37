/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/daqiri_assert.h"

#include <stdio.h>
#include <stdlib.h>

#if DQ_DEBUG

/* Handlers of UCX's thread do not call each other; depth shows if they do. */
static __thread int uct_daqiri_async_depth;


/* No log of UCX's: a test may have redirected it, and it may need a lock. */
void uct_daqiri_assert_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "daqiri: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}


void uct_daqiri_enter_async(void)
{
    uct_daqiri_assert(uct_daqiri_async_depth == 0);
    uct_daqiri_async_depth = 1;
}


void uct_daqiri_leave_async(void)
{
    uct_daqiri_assert(uct_daqiri_async_depth == 1);
    uct_daqiri_async_depth = 0;
}


int uct_daqiri_is_async(void)
{
    return uct_daqiri_async_depth > 0;
}

#endif
