/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Environment variables as a text that sets them elsewhere: lines for a shell, or a
 * modulefile. Every value arrives as it is, whatever characters it has.
 */

#ifndef DAQIRI_ENV_PRINT_H
#define DAQIRI_ENV_PRINT_H

#include "tools/base/env_list.h"

#include <stdio.h>

typedef enum daqiri_env_format {
    DAQIRI_ENV_SH,
    DAQIRI_ENV_CSH,
    DAQIRI_ENV_LUA, /* a modulefile of Lmod */
    DAQIRI_ENV_TCL, /* a modulefile of Environment Modules, and of Lmod */
    DAQIRI_ENV_FORMATS
} daqiri_env_format_t;

/* In the order of the enum. */
extern const char *const daqiri_env_formats[DAQIRI_ENV_FORMATS];

/* Whether it is a modulefile, which adds to a list what a shell's line replaces: its
 * value must not have what happens to be in the list here. */
int daqiri_env_is_module(daqiri_env_format_t format);

/* `what` is for a modulefile: one line that says what it sets. */
void daqiri_env_print(const daqiri_env_list_t *env_list,
                      daqiri_env_format_t format, const char *what,
                      FILE *stream);

#endif
