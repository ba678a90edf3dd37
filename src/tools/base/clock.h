/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The system's clocks.
 */

#ifndef DAQIRI_CLOCK_H
#define DAQIRI_CLOCK_H

#include <stdint.h>

/* Monotonic, in ns. */
uint64_t daqiri_now_ns(void);


#endif
