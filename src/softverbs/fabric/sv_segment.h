/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: where they lie, who makes them, who clears them away.
 */
#ifndef SV_SEGMENT_H
#define SV_SEGMENT_H

#include <stdint.h>

struct sv_node;

#define SV_SHM_DIR    "/dev/shm"

/* Enough for any path of a segment. */
#define SV_PATH_BYTES 64

/* Unlinks the segments of this user that belong to nobody any more, and the
 * names of channels whose segment is not there. */
void sv_segment_sweep(void);
/* Takes the first free slot: fills in node->path and node->slot. Descriptor,
 * or -1 and errno. The segment stays locked until sv_segment_unlock(): its head
 * says now whose it is. */
int sv_segment_create(struct sv_node *node);
void sv_segment_unlock(int fd);
/* Takes the name away, unless it is by now another segment's: whoever could not
 * tell from its head that we live may have swept ours away. */
void sv_segment_unlink(int fd, const char *path);
uint8_t *sv_segment_map(int fd);
/* The device and the inode of the folder that this user's segments are found
 * in. */
void sv_segment_folder_id(uint64_t *device_p, uint64_t *inode_p);
/* The segment in a slot, if this user has a file of the right size there. Whose
 * it is, and whether he lives, is not looked at. Descriptor, or -1. Waits for
 * nobody. `path`, which has SV_PATH_BYTES, is where it was looked for last. */
int sv_segment_open(uint32_t slot, char *path);

#endif
