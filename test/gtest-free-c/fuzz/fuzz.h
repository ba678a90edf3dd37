/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What reads bytes that others wrote, fed with any bytes. A target takes one
 * input and ends the process if something is not as it should be. libFuzzer
 * finds the inputs (contrib/check --long fuzz); replay.c runs those that were
 * kept, and some that chance makes of them, in every flavour of the test suite.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The name is libFuzzer's. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MUST(_condition) \
    ((_condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #_condition))

static inline void fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

#endif
