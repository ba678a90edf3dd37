/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/elf_file.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* Program headers that are looked at; no file has nearly as many. */
#define ELF_HEADERS_MAX 64

static const struct {
    unsigned   machine;
    const char *name;
} elf_machines[] = {
    {EM_386, "i386"},     {EM_X86_64, "x86-64"}, {EM_ARM, "arm"},
    {EM_AARCH64, "aarch64"}, {EM_PPC64, "ppc64"},   {EM_RISCV, "riscv"},
    {EM_S390, "s390"},
};

/* The path in PT_INTERP of a file that is like this program. */
static void elf_read_loader(FILE *file, daqiri_elf_t *elf)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) part;
    unsigned i;

    rewind(file);
    if ((fread(&header, sizeof(header), 1, file) != 1) ||
        (header.e_phentsize != sizeof(part)) ||
        (header.e_phnum > ELF_HEADERS_MAX)) {
        return;
    }
    for (i = 0; i < header.e_phnum; ++i) {
        if ((fseek(file, (long)(header.e_phoff + i * sizeof(part)),
                   SEEK_SET) != 0) ||
            (fread(&part, sizeof(part), 1, file) != 1)) {
            return;
        }
        if ((part.p_type == PT_INTERP) &&
            (part.p_filesz < sizeof(elf->loader)) &&
            (fseek(file, (long)part.p_offset, SEEK_SET) == 0)) {
            elf->loader[fread(elf->loader, 1, part.p_filesz, file)] = '\0';
            return;
        }
    }
}

static int elf_is_alike(const daqiri_elf_t *a, const daqiri_elf_t *b)
{
    return (a->bits == b->bits) && (a->machine == b->machine) &&
           (a->is_big_endian == b->is_big_endian);
}

/* The first bytes, which are alike for all systems but for their order. */
static int elf_read_identity(FILE *file, daqiri_elf_t *elf)
{
    unsigned char first[20];

    if ((fread(first, sizeof(first), 1, file) != 1) ||
        (memcmp(first, ELFMAG, SELFMAG) != 0)) {
        return -1;
    }
    elf->bits          = (first[EI_CLASS] == ELFCLASS64) ? 64 : 32;
    elf->is_big_endian = (first[EI_DATA] == ELFDATA2MSB);
    elf->machine       = elf->is_big_endian ? first[18] * 256u + first[19] :
                                              first[19] * 256u + first[18];
    elf->loader[0]     = '\0';
    return 0;
}

static int elf_read(const char *path, daqiri_elf_t *elf,
                    const daqiri_elf_t *self)
{
    FILE *file = fopen(path, "rbe");
    int ret;

    if (file == NULL) {
        return -1;
    }
    ret = elf_read_identity(file, elf);
    if ((ret == 0) && ((self == NULL) || elf_is_alike(elf, self))) {
        elf_read_loader(file, elf);
    }
    fclose(file);
    return ret;
}

void daqiri_elf_self(daqiri_elf_t *elf)
{
    memset(elf, 0, sizeof(*elf));
    elf_read("/proc/self/exe", elf, NULL);
}

int daqiri_elf_read(const char *path, daqiri_elf_t *elf)
{
    daqiri_elf_t self;

    daqiri_elf_self(&self);
    return elf_read(path, elf, &self);
}

static const char *elf_name(const daqiri_elf_t *elf, char *text, size_t size)
{
    size_t i;

    for (i = 0; i < sizeof(elf_machines) / sizeof(elf_machines[0]); ++i) {
        if (elf_machines[i].machine == elf->machine) {
            return elf_machines[i].name;
        }
    }
    snprintf(text, size, "a processor with the ELF number %u", elf->machine);
    return text;
}

int daqiri_elf_check(const char *path, char *text, size_t size)
{
    char name[64], own_name[64];
    daqiri_elf_t elf, self;

    daqiri_elf_self(&self);
    if (elf_read(path, &elf, &self) != 0) {
        snprintf(text, size, "%s is no library or program of this system",
                 path);
        return -1;
    }
    if (elf_is_alike(&elf, &self)) {
        return 0;
    }
    snprintf(text, size, "%s is for %s (%u bits), and this program for %s "
             "(%u bits)", path, elf_name(&elf, name, sizeof(name)), elf.bits,
             elf_name(&self, own_name, sizeof(own_name)), self.bits);
    return -1;
}
