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

/* Fills config.gid, gid_index and port_addr. Logs why it cannot. */
ucs_status_t uct_daqiri_port_init(uct_daqiri_iface_t *iface,
                                  const char *dev_name, int gid_index);
/* Frees what uct_daqiri_port_init() took, also after it has failed. */
void uct_daqiri_port_cleanup(uct_daqiri_iface_t *iface);
int uct_daqiri_port_is_in_user_space(const struct ibv_device *device);
/* Whether the kernel emulates the device. A doorbell is a system call there, and a packet
 * costs CPU time. */
int uct_daqiri_port_is_emulated(const struct ibv_device *device);
/* The best size of a segment for the device, bytes. */
size_t uct_daqiri_port_seg_size(const struct ibv_device *device);
/* Brings config.gid_index up to date: an address that goes and comes back may have
 * another index. UCS_ERR_UNREACHABLE if the port does not have the address now that the
 * interface gave its peers. UCS_ERR_IO_ERROR if the device does not tell. Any thread;
 * calls the kernel. */
ucs_status_t uct_daqiri_port_find_gid(uct_daqiri_iface_t *iface);
/* Whether the GID has left the port, or this index. Any thread; calls the kernel. */
int uct_daqiri_port_has_gid_left(uct_daqiri_iface_t *iface, uint8_t index);
/* Memory for the texts that facts point to. */
typedef struct {
    char port[IBV_SYSFS_NAME_MAX + 8];
    char gid[DQ_GID_TEXT_MAX];
    char hw_changes[UCT_DAQIRI_HW_TEXT_MAX];
} uct_daqiri_port_words_t;

/* Returns a reference to a snapshot of the port's counters, for a conn that is up for the
 * first time. NULL if there is no memory. Async; calls the kernel. */
uct_daqiri_hw_t *uct_daqiri_port_share_hw(uct_daqiri_iface_t *iface);
/* Adds to @a facts why a conn failed, where no completion tells: the device is gone, the
 * port is down, or the address is gone. @a when_up is the snapshot that the conn took
 * when it was up, or NULL. @a words must live as long as @a facts. Calls the kernel. */
void uct_daqiri_port_explain(uct_daqiri_iface_t *iface,
                             const uct_daqiri_hw_t *when_up, dq_facts_t *facts,
                             uct_daqiri_port_words_t *words);
/* Whether a retry may succeed: a neighbour that does not answer, or a link that is down,
 * may come back. */
int uct_daqiri_port_may_come_back(int error);
int uct_daqiri_port_is_reachable(const dq_port_addr_t *local,
                                 const dq_port_addr_t *remote);
/* The same for an interface's port. Logs why not. */
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
