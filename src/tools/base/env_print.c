/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/env_print.h"

#include <string.h>

const char *const daqiri_env_formats[DAQIRI_ENV_FORMATS] = {
    "sh", "csh", "lua", "tcl"
};

int daqiri_env_is_module(daqiri_env_format_t format)
{
    return (format == DAQIRI_ENV_LUA) || (format == DAQIRI_ENV_TCL);
}

/* Each byte of the value, or what stands for it. */
static void env_print_escaped(const char *value, const char *special,
                              const char *const *instead, FILE *stream)
{
    const char *found;

    for (; *value != '\0'; ++value) {
        found = strchr(special, *value);
        if (found == NULL) {
            fputc(*value, stream);
        } else {
            fputs(instead[found - special], stream);
        }
    }
}

/* Between single quotes a shell takes everything as it is but a quote. */
static void env_print_sh(const char *value, FILE *stream)
{
    static const char *const instead[] = {"'\\''"};

    fputc('\'', stream);
    env_print_escaped(value, "'", instead, stream);
    fputc('\'', stream);
}

/* There csh also looks for its history, and ends a line. */
static void env_print_csh(const char *value, FILE *stream)
{
    static const char *const instead[] = {"'\\''", "\\!", "\\\n"};

    fputc('\'', stream);
    env_print_escaped(value, "'!\n", instead, stream);
    fputc('\'', stream);
}

static void env_print_lua(const char *value, FILE *stream)
{
    static const char *const instead[] = {"\\\\", "\\\"", "\\n", "\\r"};

    fputc('"', stream);
    env_print_escaped(value, "\\\"\n\r", instead, stream);
    fputc('"', stream);
}

static void env_print_tcl(const char *value, FILE *stream)
{
    static const char *const instead[] = {"\\\\", "\\\"", "\\$", "\\[",
                                          "\\]",  "\\{",  "\\}", "\\n",
                                          "\\r"};

    fputc('"', stream);
    env_print_escaped(value, "\\\"$[]{}\n\r", instead, stream);
    fputc('"', stream);
}

/* A list to which a module adds, so that unloading it leaves the rest. */
static int env_print_is_list(const char *name)
{
    return (strcmp(name, "LD_PRELOAD") == 0) ||
           (strcmp(name, "UCX_PLUGIN_PATH") == 0);
}

static void env_print_one(const char *name, const char *value,
                          daqiri_env_format_t format, FILE *stream)
{
    switch (format) {
    case DAQIRI_ENV_SH:
        fprintf(stream, "export %s=", name);
        env_print_sh(value, stream);
        fputc('\n', stream);
        break;
    case DAQIRI_ENV_CSH:
        /* with a semicolon, for eval makes one line of them */
        fprintf(stream, "setenv %s ", name);
        env_print_csh(value, stream);
        fputs(";\n", stream);
        break;
    case DAQIRI_ENV_LUA:
        fprintf(stream, "%s(\"%s\", ",
                env_print_is_list(name) ? "append_path" : "setenv", name);
        env_print_lua(value, stream);
        fputs(")\n", stream);
        break;
    default:
        fprintf(stream, "%s %s ",
                env_print_is_list(name) ? "append-path" : "setenv", name);
        env_print_tcl(value, stream);
        fputc('\n', stream);
        break;
    }
}

static void env_print_head(daqiri_env_format_t format, const char *what,
                           FILE *stream)
{
    if (format == DAQIRI_ENV_LUA) {
        fprintf(stream, "whatis(");
        env_print_lua(what, stream);
        fputs(")\n", stream);
    } else if (format == DAQIRI_ENV_TCL) {
        /* Environment Modules knows a modulefile by its first line */
        fprintf(stream, "#%%Module1.0\nmodule-whatis ");
        env_print_tcl(what, stream);
        fputc('\n', stream);
    }
}

void daqiri_env_print(const daqiri_env_list_t *env_list,
                      daqiri_env_format_t format, const char *what,
                      FILE *stream)
{
    size_t i;

    env_print_head(format, what, stream);
    for (i = 0; i < env_list->count; ++i) {
        env_print_one(env_list->list[i].name, env_list->list[i].value, format,
                      stream);
    }
}
