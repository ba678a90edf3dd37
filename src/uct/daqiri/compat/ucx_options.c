/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translates our description of options into UCX's: name, default, help, offset, parser.
 * A parser is functions and an argument. The place of the argument depends on the
 * version, and so does one function in front of it.
 */
#include "daqiri.h"

#include <limits.h>

/* Unlike UCX's own parsers these take the whole text or nothing: "12abc" is not 12.
 * They return 1 if it was understood. */
static int uct_daqiri_option_read_uint(const char *buf, void *dest, const void *arg)
{
    unsigned long value;
    char *end;

    (void)arg;
    if ((*buf < '0') || (*buf > '9')) {
        return 0;
    }

    errno = 0;
    value = strtoul(buf, &end, 10);
    if ((*end != '\0') || (errno != 0) || (value > UINT_MAX)) {
        return 0;
    }
    *(unsigned*)dest = value;
    return 1;
}


static int uct_daqiri_option_read_gid(const char *buf, void *dest, const void *arg)
{
    unsigned index;

    if (strcmp(buf, "auto") == 0) {
        *(int*)dest = -1;
        return 1;
    }
    if (!uct_daqiri_option_read_uint(buf, &index, arg) || (index > INT_MAX)) {
        return 0;
    }
    *(int*)dest = index;
    return 1;
}


/* UCX's own parser takes "12abc" for 12. */
static int uct_daqiri_option_read_count(const char *buf, void *dest, const void *arg)
{
    unsigned long *count = dest;
    unsigned value;

    if ((strcmp(buf, "auto") == 0) || (strcmp(buf, "inf") == 0)) {
        *count = (buf[0] == 'a') ? UCS_ULUNITS_AUTO : UCS_ULUNITS_INF;
        return 1;
    }
    if (!uct_daqiri_option_read_uint(buf, &value, arg)) {
        return 0;
    }
    *count = value;
    return 1;
}


static int uct_daqiri_option_write_gid(char *buf, size_t max, const void *src,
                                       const void *arg)
{
    int index = *(const int*)src;

    (void)arg;
    if (index < 0) {
        snprintf(buf, max, "auto");
    } else {
        snprintf(buf, max, "%d", index);
    }
    return 1;
}


/* Not UCX's time with "auto": that is kept in ticks of its clock, and where it has no
 * better one than microseconds, 700 ns are 1 us. */
static int uct_daqiri_option_read_seconds(const char *buf, void *dest,
                                          const void *arg)
{
    int (*read)(const char*, void*, const void*);
    double value;

    if (strcmp(buf, "auto") == 0) {
        *(double*)dest = -1;
        return 1;
    }
    *(void**)&read = uct_daqiri_ucx.ucs_config_sscanf_time;
    if (!read(buf, &value, arg) || !(value >= 0)) {
        return 0; /* nor is NaN a time */
    }
    *(double*)dest = value;
    return 1;
}


static int uct_daqiri_option_write_seconds(char *buf, size_t max,
                                           const void *src, const void *arg)
{
    int (*write)(char*, size_t, const void*, const void*);

    if (*(const double*)src < 0) {
        snprintf(buf, max, "auto");
        return 1;
    }
    *(void**)&write = uct_daqiri_ucx.ucs_config_sprintf_time;
    return write(buf, max, src, arg);
}


/* The part that is the same in all versions. The functions follow it. */
typedef struct {
    const char *name, *preset, *help;
    size_t     offset;
    void       *read, *write, *clone, *release, *print_help;
} uct_daqiri_ucx_field_t;

DQ_STATIC_ASSERT(sizeof(uct_daqiri_ucx_field_t) == 72, "the same in all UCX");

/* Of each kind. The text is for `ucx_info -c -f`. */
typedef struct {
    void *read, *write, *clone;
    const void *arg;
} uct_daqiri_ucx_parser_t;


static uct_daqiri_ucx_parser_t
uct_daqiri_ucx_parser(uct_daqiri_option_kind_t kind)
{
    const uct_daqiri_ucx_t *ucx             = &uct_daqiri_ucx;
    const uct_daqiri_ucx_parser_t parsers[] = {
        [UCT_DAQIRI_OPTION_IFACE]       = {ucx->ucs_config_sscanf_table, NULL,
                                           ucx->ucs_config_clone_table,
                                           ucx->uct_iface_config_table},
        [UCT_DAQIRI_OPTION_MD]          = {ucx->ucs_config_sscanf_table, NULL,
                                           ucx->ucs_config_clone_table,
                                           ucx->uct_md_config_table},
        [UCT_DAQIRI_OPTION_UINT]        = {uct_daqiri_option_read_uint,
                                           ucx->ucs_config_sprintf_uint,
                                           ucx->ucs_config_clone_uint,
                                           "unsigned integer"},
        [UCT_DAQIRI_OPTION_GID]         = {uct_daqiri_option_read_gid,
                                           uct_daqiri_option_write_gid,
                                           ucx->ucs_config_clone_int,
                                           "<index> or \"auto\""},
        [UCT_DAQIRI_OPTION_COUNT]       = {uct_daqiri_option_read_count,
                                           ucx->ucs_config_sprintf_ulunits,
                                           ucx->ucs_config_clone_ulong,
                                           "<number>, \"inf\", or \"auto\""},
        [UCT_DAQIRI_OPTION_BOOL]        = {ucx->ucs_config_sscanf_bool,
                                           ucx->ucs_config_sprintf_bool,
                                           ucx->ucs_config_clone_int,
                                           "<y|n>"},
        [UCT_DAQIRI_OPTION_ON_OFF_AUTO] = {ucx->ucs_config_sscanf_on_off_auto,
                                           ucx->ucs_config_sprintf_on_off_auto,
                                           ucx->ucs_config_clone_int,
                                           "<on|off|auto>"},
        [UCT_DAQIRI_OPTION_TIME]        = {ucx->ucs_config_sscanf_time,
                                           ucx->ucs_config_sprintf_time,
                                           ucx->ucs_config_clone_double,
                                           "time value: <number>[s|us|ms|ns]"},
        [UCT_DAQIRI_OPTION_TIME_UNITS]  = {ucx->ucs_config_sscanf_time_units,
                                           ucx->ucs_config_sprintf_time_units,
                                           ucx->ucs_config_clone_ulong,
                                           "time value: <number>[s|us|ms|ns], "
                                           "\"inf\", or \"auto\""},
        [UCT_DAQIRI_OPTION_SECONDS]     = {uct_daqiri_option_read_seconds,
                                           uct_daqiri_option_write_seconds,
                                           ucx->ucs_config_clone_double,
                                           "time value: <number>[s|us|ms|ns], "
                                           "or \"auto\""},
        [UCT_DAQIRI_OPTION_MEMUNITS]    = {ucx->ucs_config_sscanf_memunits,
                                           ucx->ucs_config_sprintf_memunits,
                                           ucx->ucs_config_clone_ulong,
                                           "memory units: <number>[b|kb|mb|gb],"
                                           " \"inf\", or \"auto\""},
        [UCT_DAQIRI_OPTION_ULUNITS]     = {ucx->ucs_config_sscanf_ulunits,
                                           ucx->ucs_config_sprintf_ulunits,
                                           ucx->ucs_config_clone_ulong,
                                           "unsigned long: <number>, \"inf\", "
                                           "or \"auto\""},
    };

    DQ_STATIC_ASSERT(ucs_static_array_size(parsers) == UCT_DAQIRI_OPTION_LAST,
                     "each kind has a parser");
    return parsers[kind];
}


static void uct_daqiri_ucx_option(void *base, const uct_daqiri_option_t *option)
{
    int is_table                         = option->kind <= UCT_DAQIRI_OPTION_MD;
    const uct_daqiri_ucx_parser_t parser = uct_daqiri_ucx_parser(option->kind);
    uct_daqiri_ucx_field_t *field        = base;

    *field = (uct_daqiri_ucx_field_t){
        .name       = option->name,
        .preset     = option->preset,
        .help       = option->help,
        .offset     = option->offset,
        .read       = parser.read,
        .write      = parser.write,
        .clone      = parser.clone,
        .release    = is_table ? uct_daqiri_ucx.ucs_config_release_table
                               : uct_daqiri_ucx.ucs_config_release_nop,
        .print_help = is_table ? uct_daqiri_ucx.ucs_config_help_table
                               : uct_daqiri_ucx.ucs_config_help_generic,
    };
    UCT_DAQIRI_UCX_PUT(base, OPTION_DOC, void*,
                       uct_daqiri_ucx.ucs_config_doc_nop);
    UCT_DAQIRI_UCX_PUT(base, OPTION_ARG, const void*, parser.arg);
}


void *uct_daqiri_ucx_options(const uct_daqiri_option_t *options)
{
    size_t size  = uct_daqiri_ucx_layout[UCT_DAQIRI_UCX_OPTION];
    size_t count = 0;
    char *fields;
    size_t i;

    while (options[count].name != NULL) {
        count++;
    }
    fields = calloc(count + 1, size);
    for (i = 0; (fields != NULL) && (i < count); i++) {
        uct_daqiri_ucx_option(fields + i * size, &options[i]);
    }
    return fields;
}
