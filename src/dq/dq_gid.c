/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_gid.h"

#include <stdio.h>
#include <string.h>

enum { DQ_GID_GROUPS = DQ_GID_BYTES / 2 };


static int dq_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}


/* fe80::/10 (RFC 4291, 2.5.6) */
static int dq_gid_is_link_local(const uint8_t *gid)
{
    return (gid[0] == 0xfe) && ((gid[1] & 0xc0) == 0x80);
}


static int dq_gid_is_empty(const uint8_t *gid)
{
    static const uint8_t empty[DQ_GID_BYTES];

    return memcmp(gid, empty, sizeof(empty)) == 0;
}


int dq_gid_rank(const uint8_t *gid, int is_roce_v2)
{
    int rank = is_roce_v2 ? 4 : 1;

    if (dq_gid_is_empty(gid)) {
        return 0;
    }
    if (dq_gid_is_ipv4(gid)) {
        return rank + 2;
    }
    return dq_gid_is_link_local(gid) ? rank : rank + 1;
}


const dq_gid_row_t *dq_gid_choose(const dq_gid_row_t *rows, size_t count)
{
    const dq_gid_row_t *best = NULL;
    int best_rank            = 0;
    size_t i;
    int rank;

    for (i = 0; i < count; i++) {
        rank = dq_gid_rank(rows[i].gid, rows[i].is_roce_v2);
        if (rank > best_rank) {
            best      = &rows[i];
            best_rank = rank;
        }
    }
    return best;
}


int dq_gid_is_same(const dq_gid_row_t *a, const dq_gid_row_t *b)
{
    return (memcmp(a->gid, b->gid, sizeof(a->gid)) == 0) &&
           (a->is_roce_v2 == b->is_roce_v2) && (a->netdev == b->netdev);
}


const dq_gid_row_t *dq_gid_find(const dq_gid_row_t *rows, size_t count,
                                const dq_gid_row_t *wanted)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (dq_gid_is_same(&rows[i], wanted)) {
            return &rows[i];
        }
    }
    return NULL;
}


int dq_gid_can_reach(const uint8_t *local, const uint8_t *remote)
{
    return dq_gid_is_ipv4(local) == dq_gid_is_ipv4(remote);
}


static unsigned dq_gid_group(const uint8_t *gid, unsigned i)
{
    return (gid[2 * i] << 8) | gid[2 * i + 1];
}


/* The longest run of groups that are 0, the first of those that are equally
 * long; it is written "::" if there is more than one (RFC 5952, 4.2). */
static unsigned dq_gid_zeros(const uint8_t *gid, unsigned *length_p)
{
    unsigned best = DQ_GID_GROUPS;
    unsigned i, n;

    *length_p = 1;
    for (i = 0; i < DQ_GID_GROUPS; i += n + 1) {
        for (n = 0; (i + n < DQ_GID_GROUPS) && (dq_gid_group(gid, i + n) == 0);
             n++) {
        }
        if (n > *length_p) {
            best      = i;
            *length_p = n;
        }
    }
    return best;
}


char *dq_gid_text(const uint8_t *gid, char *buf, size_t size)
{
    char text[DQ_GID_TEXT_MAX + 1];
    size_t used = 0;
    unsigned zeros, length, i;

    if (dq_gid_is_ipv4(gid)) {
        snprintf(buf, size, "%u.%u.%u.%u", gid[12], gid[13], gid[14],
                 gid[15]);
        return buf;
    }

    zeros = dq_gid_zeros(gid, &length);
    for (i = 0; i < DQ_GID_GROUPS; i++) {
        if (i == zeros) {
            used += snprintf(text + used, sizeof(text) - used, "::");
            i    += length - 1;
            continue;
        }
        used += snprintf(text + used, sizeof(text) - used, "%s%x",
                         ((i > 0) && (text[used - 1] != ':')) ? ":" : "",
                         dq_gid_group(gid, i));
    }
    snprintf(buf, size, "%s", text);
    return buf;
}
