/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a process is, as numbers that others can compare.
 *
 * Processes reach each other if they find each other's segments by their names,
 * may open them, and know each other by their process numbers. All that it
 * depends on is a struct sv_site; two processes with the same one are on the
 * same fabric. A GID has room for a digest of it, a LID for a shorter one of
 * all but the PID namespace: who shares the rest at least finds the segment,
 * and can say what is missing.
 *
 * The digest is FNV-1a of 64 bits (Fowler, Noll, Vo; "The FNV Non-Cryptographic
 * Hash Algorithm", draft-eastlake-fnv). It tells apart what differs by chance.
 * It keeps nobody out: who wants to look like another can.
 *
 * Pure functions: no file, no memory.
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

/* FNV-1a of more bytes after those that `hash` is of; it begins with the
 * basis. */
uint64_t sv_fnv(uint64_t hash, const void *bytes, size_t length);

/*
 * Subnet prefix of the GID: fd00::/8 and 56 bits of the digest. These are the
 * prefixes that everybody may make for himself by chance (RFC 4193, unique
 * local addresses); to InfiniBand one is a global prefix (IBA 4.1.1). Of
 * link-local ones (fe80::) there is only one, and those that are site-local
 * (fec0::) have room for 16 bits, which some programs take for routes.
 */
uint64_t sv_site_prefix(const struct sv_site *site);

/* LID of the port: one of those that a port may have, 1 to 0xbfff. */
uint16_t sv_site_lid(const struct sv_site *site);

/*
 * What a user number is called outside of the user namespace, by the text of
 * /proc/self/uid_map: lines of "inside outside count". The number itself if
 * none has it.
 */
uint32_t sv_site_owner(const char *map, uint32_t uid);

#endif
