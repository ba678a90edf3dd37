/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How this process comes onto the fabric and leaves it.
 */
#ifndef SV_STARTUP_H
#define SV_STARTUP_H

struct sv_node;

/* The node of this process; the first caller makes it. NULL and errno. */
struct sv_node *sv_node_get(void);
void sv_node_put(struct sv_node *node);

#endif
