/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: where they are, creation, clean-up.
 */
#ifndef SV_SEGMENT_H
#define SV_SEGMENT_H

#include <stdint.h>

struct sv_node;

#define SV_SHM_DIR    "/dev/shm"

/* Enough for any path of a segment. */
#define SV_PATH_BYTES 64

/* Unlinks this user's segments that have no living owner, and the names of
 * channels without a segment. */
void sv_segment_sweep(void);
/* Takes the first free slot; sets node->path and node->slot. Descriptor, or -1
 * and errno. The segment stays locked until sv_segment_unlock(), which tells
 * others that the head is valid. */
int sv_segment_create(struct sv_node *node);
void sv_segment_unlock(int fd);
/* Removes the name, unless it is another segment's by now. A process that could
 * not tell from our head that we live may have swept our file. */
void sv_segment_unlink(int fd, const char *path);
uint8_t *sv_segment_map(int fd);
/* Device and inode of the folder that holds this user's segments. */
void sv_segment_folder_id(uint64_t *device_p, uint64_t *inode_p);
/* Opens the segment in a slot if it is this user's and has the right size. Does
 * not check its owner, and does not wait. Descriptor, or -1. `path`
 * (SV_PATH_BYTES) receives the last name that was tried. */
int sv_segment_open(uint32_t slot, char *path);

#endif
