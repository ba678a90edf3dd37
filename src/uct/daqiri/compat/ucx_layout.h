/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of ucx_layout.def, and what they are in the UCX of this process.
 */
#ifndef UCT_DAQIRI_UCX_LAYOUT_H
#define UCT_DAQIRI_UCX_LAYOUT_H

#include <ucs/sys/compiler_def.h>
#include <stdint.h>

/* The versions that ucx_layout.def tells of: 1.FIRST to 1.LAST. */
enum {
    UCT_DAQIRI_UCX_MAJOR = 1,
    UCT_DAQIRI_UCX_FIRST = 13,
    UCT_DAQIRI_UCX_LAST  = 23,
    UCT_DAQIRI_UCX_NONE  = -1
};

typedef enum {
#define SIZE(_name, ...) UCT_DAQIRI_UCX_##_name,
#define AT(_name, ...)   UCT_DAQIRI_UCX_##_name,
#define SLOT(_name, ...) UCT_DAQIRI_UCX_##_name,
#include "ucx_layout.def"
#undef SIZE
#undef AT
#undef SLOT
    UCT_DAQIRI_UCX_ROWS
} uct_daqiri_ucx_row_t;

/* From uct_daqiri_ucx_choose() on: the values for the UCX of this process. */
extern int uct_daqiri_ucx_layout[UCT_DAQIRI_UCX_ROWS];

/* The row's value for UCX 1.@a minor. Later versions are assumed to be like the last. */
int uct_daqiri_ucx_value(uct_daqiri_ucx_row_t row, unsigned minor);
void uct_daqiri_ucx_choose(unsigned minor);

static inline int uct_daqiri_ucx_has(uct_daqiri_ucx_row_t row)
{
    return uct_daqiri_ucx_layout[row] != UCT_DAQIRI_UCX_NONE;
}

/* The address that a row AT() or SLOT() names in the structure at @a base. */
static inline void *uct_daqiri_ucx_at(void *base, uct_daqiri_ucx_row_t row)
{
    return (char*)base + uct_daqiri_ucx_layout[row];
}

static inline void **uct_daqiri_ucx_slot(void *base, uct_daqiri_ucx_row_t row)
{
    return (void**)base + uct_daqiri_ucx_layout[row];
}

/* Stores a member if this version has it, and else does nothing. */
#define UCT_DAQIRI_UCX_PUT(_base, _row, _type, _value) \
    do { \
        if (uct_daqiri_ucx_has(UCT_DAQIRI_UCX_##_row)) { \
            *(_type*)uct_daqiri_ucx_at(_base, UCT_DAQIRI_UCX_##_row) = _value; \
        } \
    } while (0)

#endif
