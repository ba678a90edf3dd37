/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random bytes that nobody can guess: cookies, tickets, marks, first PSNs.
 *
 * Threads: any.
 */
#ifndef UCT_DAQIRI_DRAW_H
#define UCT_DAQIRI_DRAW_H

#include "base/daqiri_log.h"

/* Fills @a bytes, 256 at most. UCS_ERR_IO_ERROR if the kernel gives none; the log
 * says so, as often as @a limit allows. */
ucs_status_t uct_daqiri_draw(uct_daqiri_log_limit_t *limit, void *bytes,
                             size_t length);

#endif
