/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a process is, as numbers that others can compare.
 *
 * Two processes reach each other if three things hold. They find each other's
 * segments by name. They may open them. They know each other by their process
 * numbers. All of that depends on a struct sv_site: two processes with the same
 * one are on the same fabric.
 *
 * A GID has room for a digest of it. A LID has room for a shorter digest, of
 * all but the PID namespace. A process that shares the rest at least finds the
 * segment, and can say what is missing.
 *
 * The digest is FNV-1a of 64 bits (Fowler, Noll, Vo; "The FNV Non-Cryptographic
 * Hash Algorithm", draft-eastlake-fnv). It tells apart what differs by chance.
 * It is no protection: anybody can imitate it.
 *
 * The functions are pure: no file, no memory.
 */
#ifndef SV_SITE_H
#define SV_SITE_H

#include <stddef.h>
#include <stdint.h>

#define SV_BOOT_BYTES 65 /* HOST_NAME_MAX, and the end */

struct sv_site {
    char     boot[SV_BOOT_BYTES]; /* which start of which kernel */
    uint32_t version;       /* of segments */
    uint32_t uid;           /* in the names of segments */
    uint32_t owner;         /* of segments, outside of the user namespace */
    uint64_t device, inode; /* of the folder that the names are in */
    uint64_t pid_ns;        /* its inode */
};

#define SV_FNV_BASIS 0xcbf29ce484222325ull

/* Continues FNV-1a with more bytes. The first call passes SV_FNV_BASIS. */
uint64_t sv_fnv(uint64_t hash, const void *bytes, size_t length);

/*
 * Subnet prefix of the GID: fd00::/8 and 56 bits of the digest.
 *
 * Anybody may choose such a prefix at random (RFC 4193, unique local
 * addresses). InfiniBand treats it as a global prefix (IBA 4.1.1). There is
 * only one link-local prefix (fe80::). Site-local prefixes (fec0::) have room
 * for 16 bits, and some programs take these for routes.
 */
uint64_t sv_site_prefix(const struct sv_site *site);

/* LID of the port: a legal unicast LID, 1 to 0xbfff. */
uint16_t sv_site_lid(const struct sv_site *site);

/*
 * The number of a user outside of the user namespace. `map` is the text of
 * /proc/self/uid_map: lines of "inside outside count". Returns the number
 * itself if no line has it.
 */
uint32_t sv_site_owner(const char *map, uint32_t uid);

#endif
