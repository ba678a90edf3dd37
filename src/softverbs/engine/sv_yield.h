/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Letting others run when a poll has found nothing.
 */
#ifndef SV_YIELD_H
#define SV_YIELD_H

#include "softverbs/objects/sv_cq.h"

/* Offers the CPU, unless a spinning thread of the program would waste it. */
void sv_yield(struct sv_cq *cq);

#endif
