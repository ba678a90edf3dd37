/* SPDX-License-Identifier: BSD-3-Clause */
#include "softverbs/base/sv_site.h"

#include <stdio.h>
#include <string.h>

#define SV_FNV_PRIME   0x100000001b3ull

#define SV_PREFIX      0xfd00000000000000ull
#define SV_PREFIX_BITS 56
#define SV_LID_MAX     0xbfffu /* behind it are those of groups */

uint64_t sv_fnv(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;
    size_t i;

    for (i = 0; i < length; ++i) {
        hash = (hash ^ byte[i]) * SV_FNV_PRIME;
    }
    return hash;
}

/* The lowest byte first, on every machine. */
static uint64_t sv_fnv_number(uint64_t hash, uint64_t number)
{
    uint8_t bytes[sizeof(number)];
    size_t i;

    for (i = 0; i < sizeof(bytes); ++i) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    return sv_fnv(hash, bytes, sizeof(bytes));
}

/* Each part has its own length, so that no part runs into the next. */
static uint64_t sv_site_digest(const struct sv_site *site)
{
    size_t length = strnlen(site->boot, sizeof(site->boot));
    uint64_t hash;

    hash = sv_fnv_number(SV_FNV_BASIS, length);
    hash = sv_fnv(hash, site->boot, length);
    hash = sv_fnv_number(hash, site->version);
    hash = sv_fnv_number(hash, site->uid);
    hash = sv_fnv_number(hash, site->owner);
    hash = sv_fnv_number(hash, site->device);
    return sv_fnv_number(hash, site->inode);
}

uint64_t sv_site_prefix(const struct sv_site *site)
{
    uint64_t hash = sv_fnv_number(sv_site_digest(site), site->pid_ns);
    uint64_t mask = (1ull << SV_PREFIX_BITS) - 1;

    /* Bits that do not fit are folded into the others. */
    return SV_PREFIX | ((hash ^ (hash >> SV_PREFIX_BITS)) & mask);
}

uint16_t sv_site_lid(const struct sv_site *site)
{
    return (uint16_t)(1 + sv_site_digest(site) % SV_LID_MAX);
}

uint32_t sv_site_owner(const char *map, uint32_t uid)
{
    unsigned inside, outside, count;

    while (sscanf(map, "%u %u %u", &inside, &outside, &count) == 3) {
        if ((uid >= inside) && (uid - inside < count)) {
            return outside + (uid - inside);
        }
        map += strcspn(map, "\n");
        map += (*map == '\n');
    }
    return uid;
}
