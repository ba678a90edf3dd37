/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIDs: which of a RoCE port's is the one to be reached at, which peers it
 * can reach, and how people write it.
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

/* The higher the better; 0 if it cannot be used. RoCE v2 before all else, then
 * IPv4 before IPv6 before link-local. */
int dq_gid_rank(const uint8_t *gid, int is_roce_v2);

/* A place of a port's GID table that is taken. */
typedef struct {
    uint8_t  gid[DQ_GID_BYTES];
    uint8_t  index;      /* what address handles have room for               */
    int      is_roce_v2;
    uint32_t netdev;     /* its index; 0: not known                          */
} dq_gid_row_t;

/* The best of these, or NULL if none can be used. Of those that are equally
 * good, the first: who adds an address changes nothing. */
const dq_gid_row_t *dq_gid_choose(const dq_gid_row_t *rows, size_t count);

/* Is it the same, at whatever place? On one device several netdevs may have an
 * address (a link-local one, with VLANs), and each protocol has it. */
int dq_gid_is_same(const dq_gid_row_t *a, const dq_gid_row_t *b);

/* The one that is the same as @a wanted, or NULL. */
const dq_gid_row_t *dq_gid_find(const dq_gid_row_t *rows, size_t count,
                                const dq_gid_row_t *wanted);

/* IPv4 and IPv6 do not meet. */
int dq_gid_can_reach(const uint8_t *local, const uint8_t *remote);

/* Writes @a gid as it is written on a command line. Returns @a buf. */
char *dq_gid_text(const uint8_t *gid, char *buf, size_t size);

#endif
