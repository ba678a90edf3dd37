/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of the device: link, LID, GID, and which addresses are of this
 * fabric.
 */
#ifndef SV_PORT_H
#define SV_PORT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Computes the addresses. The functions below return them. */
void sv_address_init(void);
void sv_port_gid(union ibv_gid *gid_p);
/* The only index of the GID table that holds a GID. */
uint32_t sv_port_gid_index(void);
/* Changes the GID; moves it to another index of the table. */
void sv_port_change_gid(void);
void sv_port_move_gid(void);
bool sv_port_link_is_down(void);
void sv_port_set_link(bool is_up);
/* Resets link and GID to those of a new process. */
void sv_port_reset(void);
/* A plain load, since each received message reads it. */
extern _Atomic uint16_t sv_lid;

static inline uint16_t sv_port_lid(void)
{
    return atomic_load_explicit(&sv_lid, memory_order_relaxed);
}

/* Whether an address is of this fabric: by its GID if it has one, else by its
 * LID. Programs that know only Ethernet leave the LID as it is. Messages to
 * other addresses are lost. */
bool sv_address_is_local(const struct ibv_ah_attr *to);
/* Logs once why an address cannot be reached. */
void sv_address_check(const struct ibv_ah_attr *to);

#endif
