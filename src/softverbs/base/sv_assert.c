/* SPDX-License-Identifier: BSD-3-Clause */
#include "softverbs/base/sv_assert.h"

#include <stdio.h>
#include <stdlib.h>

#if DQ_DEBUG

void sv_assert_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "softverbs: %s:%d: not true: %s\n", file, line, what);
    abort();
}

#endif
