/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service thread of a node.
 */
#ifndef SV_SERVICE_H
#define SV_SERVICE_H

struct sv_node;

int sv_service_start(struct sv_node *node);
void sv_service_stop(struct sv_node *node);

#endif
