/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What all that measure rows print: a table, and a line of a CSV.
 */

#ifndef DAQIRI_SWEEP_H
#define DAQIRI_SWEEP_H

#include "tools/base/report.h"

extern const daqiri_section_t daqiri_sweep_table[2]; /* rows; the sum of verdicts */
extern const daqiri_section_t daqiri_sweep_csv;

#endif
