/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the programs that contrib/bench compiles: what has to be so, or a line
 * says where it was not, and the process ends with 1.
 */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <unistd.h>

#define MUST(_cond)                                                       \
    do {                                                                  \
        if (!(_cond)) {                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_cond);   \
            _exit(1);                                                     \
        }                                                                 \
    } while (0)

#endif
