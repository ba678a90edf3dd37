/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port: its addresses, what it reaches, what it can do.
 */
#ifndef UCT_DAQIRI_PORT_H
#define UCT_DAQIRI_PORT_H

#include "base/daqiri_hw.h"
#include "daqiri.h"
#include "dq/dq_gid.h"
#include "dq/dq_triage.h"
#include "dq/dq_wire.h"

/* Fills config.gid, gid_index and port_addr; says why it cannot. */
ucs_status_t uct_daqiri_port_init(uct_daqiri_iface_t *iface,
                                  const char *dev_name, int gid_index);
/* Frees what the former has taken; also after it has failed. */
void uct_daqiri_port_cleanup(uct_daqiri_iface_t *iface);
int uct_daqiri_port_is_in_user_space(const struct ibv_device *device);
/* Is it one of the kernel's own, where a doorbell is a system call, and a
 * packet costs CPU time? */
int uct_daqiri_port_is_emulated(const struct ibv_device *device);
/* Bytes of a segment that suit it. */
size_t uct_daqiri_port_seg_size(const struct ibv_device *device);
/* Sees to config.gid_index: an address that goes and comes back is at another
 * place. UCS_ERR_UNREACHABLE: the port does not have, now, the address that the
 * interface gave its peers; UCS_ERR_IO_ERROR: the device does not say. Any
 * thread; calls the kernel. */
ucs_status_t uct_daqiri_port_find_gid(uct_daqiri_iface_t *iface);
/* What was addressed by this index cannot be by now. The same. */
int uct_daqiri_port_has_gid_left(uct_daqiri_iface_t *iface, uint8_t index);
/* Words that facts point to. */
typedef struct {
    char port[IBV_SYSFS_NAME_MAX + 8];
    char gid[DQ_GID_TEXT_MAX];
    char hw_changes[UCT_DAQIRI_HW_TEXT_MAX];
} uct_daqiri_port_words_t;

/* A snapshot of the port's counters of errors for a conn that is up for the first
 * time: a reference, or NULL if there is no memory. Async; calls the kernel. */
uct_daqiri_hw_t *uct_daqiri_port_share_hw(uct_daqiri_iface_t *iface);
/* Why a conn died, as far as no completion tells: the device was taken away,
 * the port is down, the address is gone. @a when_up: of the counters when the conn
 * was up, or NULL if it never was. @a words, filled, must live as long as
 * @a facts. Calls the kernel. */
void uct_daqiri_port_explain(uct_daqiri_iface_t *iface,
                             const uct_daqiri_hw_t *when_up, dq_facts_t *facts,
                             uct_daqiri_port_words_t *words);
/* May another try succeed? A neighbour that does not answer, or a link that is
 * down, may come back. */
int uct_daqiri_port_may_come_back(int error);
int uct_daqiri_port_is_reachable(const dq_port_addr_t *local,
                                 const dq_port_addr_t *remote);
/* The same of an interface's port; says why not. */
int uct_daqiri_port_reaches(uct_daqiri_iface_t *iface,
                            const dq_port_addr_t *remote);
void uct_daqiri_port_ah_attr(const uct_daqiri_iface_t *iface,
                             const dq_port_addr_t *remote,
                             struct ibv_ah_attr *attr);
/* Bytes of messages per second that the port moves at its active width, speed
 * and MTU. */
double uct_daqiri_port_bandwidth(const uct_daqiri_iface_t *iface);
/* Seconds that a short message takes one way, as UCP is to reckon. */
double uct_daqiri_port_latency(uct_daqiri_iface_t *iface);
/* Seconds of processor time that a READ or a WRITE takes beyond its post, as UCP
 * is to reckon. */
double uct_daqiri_port_rdma_overhead(uct_daqiri_iface_t *iface);

#endif
