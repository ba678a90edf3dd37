/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options as the plugin writes them down. UCX's own description of an option has
 * grown over time, so theirs is made from ours when the UCX is known.
 */
#ifndef UCT_DAQIRI_UCX_OPTIONS_H
#define UCT_DAQIRI_UCX_OPTIONS_H

#include <stddef.h>

/* The kind of an option: how UCX or the plugin reads and prints it. The comment says how
 * it is stored. */
typedef enum {
    UCT_DAQIRI_OPTION_IFACE,       /* UCX's own options of an interface      */
    UCT_DAQIRI_OPTION_MD,          /* UCX's own of a memory domain           */
    UCT_DAQIRI_OPTION_UINT,        /* unsigned; the whole text or nothing    */
    UCT_DAQIRI_OPTION_GID,         /* int, -1 for "auto"                     */
    UCT_DAQIRI_OPTION_COUNT,       /* unsigned long; the whole text or nothing;
                                      UCS_ULUNITS_AUTO, UCS_ULUNITS_INF      */
    UCT_DAQIRI_OPTION_BOOL,        /* int                                    */
    UCT_DAQIRI_OPTION_ON_OFF_AUTO, /* int, ucs_on_off_auto_value_t           */
    UCT_DAQIRI_OPTION_TIME,        /* double, seconds                        */
    UCT_DAQIRI_OPTION_TIME_UNITS,  /* ucs_time_t, or UCS_TIME_AUTO           */
    UCT_DAQIRI_OPTION_SECONDS,     /* double, -1 for "auto"                  */
    UCT_DAQIRI_OPTION_MEMUNITS,    /* size_t                                 */
    UCT_DAQIRI_OPTION_ULUNITS,     /* unsigned long                          */
    UCT_DAQIRI_OPTION_LAST
} uct_daqiri_option_kind_t;

/* A table of these ends with a NULL name. */
typedef struct {
    const char               *name, *preset, *help;
    size_t                   offset; /* in the structure that is filled      */
    uct_daqiri_option_kind_t kind;
} uct_daqiri_option_t;

/* Translates a table for the UCX of this process. UCX keeps the result for ever. NULL if
 * there is no memory. */
void *uct_daqiri_ucx_options(const uct_daqiri_option_t *options);

#endif
