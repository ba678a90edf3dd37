/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of the device: its addresses, and which addresses are of this fabric.
 */
#ifndef SV_PORT_H
#define SV_PORT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Looks it up; the others tell what was found. */
void sv_address_init(void);
void sv_port_gid(union ibv_gid *gid_p);
/* Its place in the table, in which there is no other. */
uint32_t sv_port_gid_index(void);
/* The GID becomes another one; goes to another place in the table. */
void sv_port_change_gid(void);
void sv_port_move_gid(void);
bool sv_port_link_is_down(void);
void sv_port_set_link(bool is_up);
/* As new. */
void sv_port_reset(void);
/* For each message that arrives: no call. */
extern _Atomic uint16_t sv_lid;

static inline uint16_t sv_port_lid(void)
{
    return atomic_load_explicit(&sv_lid, memory_order_relaxed);
}

/* Whether an address is of this fabric. By the GID, if there is one: programs
 * that know Ethernet only leave the LID as it is. What is sent elsewhere is
 * lost. */
bool sv_address_is_local(const struct ibv_ah_attr *to);
/* Says once what is the matter with one that is not. */
void sv_address_check(const struct ibv_ah_attr *to);

#endif
