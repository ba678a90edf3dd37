/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a program or a library is made for, as its first bytes tell. The loader's
 * own words for a library of another processor are those for one that is missing.
 */

#ifndef DAQIRI_ELF_FILE_H
#define DAQIRI_ELF_FILE_H

#include <limits.h>
#include <stddef.h>

typedef struct daqiri_elf {
    unsigned bits;              /* 32 or 64 */
    unsigned machine;           /* as in <elf.h> */
    int      is_big_endian;
    char     loader[PATH_MAX];  /* that starts it; empty: it is a library, it is
                                   linked statically, or not for this system */
} daqiri_elf_t;

/* Returns 0, or -1: it cannot be read, or is something else, such as a script. */
int daqiri_elf_read(const char *path, daqiri_elf_t *elf);

/* Returns 0 if this program could load the file; else -1, and text says what the
 * file is ("... is for aarch64, and this program for x86-64"). */
int daqiri_elf_check(const char *path, char *text, size_t size);

/* What this program is. */
void daqiri_elf_self(daqiri_elf_t *elf);

#endif
