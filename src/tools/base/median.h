/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The value that half of the others are below of, which no single one of them
 * can spoil.
 *
 * Threads: any. Complexity: O(count^2), count being what a person waits for.
 */

#ifndef DAQIRI_MEDIAN_H
#define DAQIRI_MEDIAN_H

#include <stddef.h>

/* Values that are looked at; of more the first ones. */
#define DAQIRI_MEDIAN_MOST 256

/* The middle one, or the mean of the two in the middle; 0 of none. */
double daqiri_median(const double *values, size_t count);

#endif
