/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs that a context calls by pointers, and other functions for the
 * device.
 */
#ifndef SV_IBV_H
#define SV_IBV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_context;

int sv_query_port(struct ibv_context *context, uint8_t port_num,
                  struct ibv_port_attr *attr, size_t length);
int sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
int sv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
                 struct ibv_send_wr **bad);
int sv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
                 struct ibv_recv_wr **bad);
int sv_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad);
/* Takes the QPs that the program did not destroy out of the fabric, since their
 * context is closed. */
void sv_qp_close_all(struct sv_context *ctx);
/* How many devices there are: SOFTVERBS_DEVICES, or 1. 0 if that is no such number. */
unsigned sv_device_count(void);
/* In the host's byte order. */
uint64_t sv_device_guid(const struct ibv_device *device);
/* Whether this address is in librdmacm's code, while the kernel has no RDMA
 * CM. */
bool sv_is_idle_rdmacm(const void *caller);

#endif
