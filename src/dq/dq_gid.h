/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIDs: which GID of a RoCE port to use, which peers it can reach, and how
 * people write it.
 *
 * A GID is 16 bytes, an IPv6 address; an IPv4 address a.b.c.d is the GID
 * ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). A port has one for each address of its
 * netdev, and for each protocol: RoCE v2 goes through routers, v1 does not.
 */
#ifndef DQ_GID_H
#define DQ_GID_H

#include "dq.h"

enum {
    DQ_GID_BYTES    = 16,
    DQ_GID_TEXT_MAX = 40 /* eight groups of four digits, and the end         */
};

/* Higher is better; 0: cannot be used. RoCE v2 is preferred to v1, then IPv4 to
 * IPv6 to link-local. */
int dq_gid_rank(const uint8_t *gid, int is_roce_v2);

/* One entry of a port's GID table. */
typedef struct {
    uint8_t  gid[DQ_GID_BYTES];
    uint8_t  index;      /* what address handles have room for               */
    int      is_roce_v2;
    uint32_t netdev;     /* its index; 0: not known                          */
} dq_gid_row_t;

/* The best of these, or NULL if none can be used. Of equally good ones the first,
 * so an address that is added later changes nothing. */
const dq_gid_row_t *dq_gid_choose(const dq_gid_row_t *rows, size_t count);

/* Are they the same address of the same netdev and protocol, whatever their index?
 * Several netdevs of one device may have one address (a link-local one, with
 * VLANs), and each protocol has it. */
int dq_gid_is_same(const dq_gid_row_t *a, const dq_gid_row_t *b);

/* The row that is the same as @a wanted, or NULL. */
const dq_gid_row_t *dq_gid_find(const dq_gid_row_t *rows, size_t count,
                                const dq_gid_row_t *wanted);

/* IPv4 and IPv6 addresses cannot reach each other. */
int dq_gid_can_reach(const uint8_t *local, const uint8_t *remote);

/* Writes @a gid as users write it. Returns @a buf. */
char *dq_gid_text(const uint8_t *gid, char *buf, size_t size);

#endif
