/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the values of ucx_layout.def for a version of UCX, and asserts that our
 * declarations of what does not differ agree with ucx_types.def.
 */
#include "ucx_calls.h"
#include "ucx_layout.h"

#define SIZE(_type, _bytes) \
    _Static_assert(sizeof(_type) == _bytes, #_type);
#define AT(_type, _member, _offset) \
    _Static_assert(offsetof(_type, _member) == _offset, #_type " " #_member);
#define LATER(_type, _member, _offset, _since) AT(_type, _member, _offset)
#define VALUE(...)
#include "ucx_types.def"
#undef SIZE
#undef AT
#undef LATER
#undef VALUE

#define NONE UCT_DAQIRI_UCX_NONE

typedef struct {
    uint8_t since; /* 0: there are no more                                   */
    int16_t value;
} uct_daqiri_ucx_step_t;

static const uct_daqiri_ucx_step_t
uct_daqiri_ucx_steps[UCT_DAQIRI_UCX_ROWS][6] = {
#define SIZE(_name, _type, ...)        {__VA_ARGS__},
#define AT(_name, _type, _member, ...) {__VA_ARGS__},
#define SLOT AT
#include "ucx_layout.def"
};

int uct_daqiri_ucx_layout[UCT_DAQIRI_UCX_ROWS];


int uct_daqiri_ucx_value(uct_daqiri_ucx_row_t row, unsigned minor)
{
    const uct_daqiri_ucx_step_t *step;
    int value = NONE;

    for (step = uct_daqiri_ucx_steps[row];
         (step->since != 0) && (step->since <= minor); step++) {
        value = step->value;
    }
    return value;
}


void uct_daqiri_ucx_choose(unsigned minor)
{
    uct_daqiri_ucx_row_t row;

    for (row = 0; row < UCT_DAQIRI_UCX_ROWS; row++) {
        uct_daqiri_ucx_layout[row] = uct_daqiri_ucx_value(row, minor);
    }
}
