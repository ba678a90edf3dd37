/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/args.h"

#include "tools/base/exit_status.h"
#include "tools/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option args_help_options[] = {
    {"help", 'h', NULL, 0, "Print this", 91},
    {"usage", DAQIRI_ARGS_USAGE, NULL, OPTION_HIDDEN, NULL, 91},
    {NULL}
};

static error_t args_help_parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    switch (key) {
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case DAQIRI_ARGS_USAGE:
        argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp daqiri_args_help = {args_help_options, args_help_parse};

static void args_parse(const struct argp *argp, int argc, char **argv,
                       unsigned flags, void *opts)
{
    argp_err_exit_status = DAQIRI_EXIT_USAGE;
    if (argp_parse(argp, argc, argv, ARGP_NO_HELP | flags, NULL,
                   opts) != 0) {
        exit(DAQIRI_EXIT_USAGE);
    }
}

void daqiri_args_parse(const struct argp *argp, int argc, char **argv,
                       void *opts)
{
    args_parse(argp, argc, argv, 0, opts);
}

void daqiri_args_parse_command(const struct argp *argp, int argc, char **argv,
                               void *opts)
{
    args_parse(argp, argc, argv, ARGP_IN_ORDER, opts);
}

size_t daqiri_args_size(struct argp_state *state, const char *name,
                        const char *text, size_t min, size_t max)
{
    char least[DAQIRI_SIZE_TEXT_MAX], most[DAQIRI_SIZE_TEXT_MAX];
    size_t value;

    if ((daqiri_parse_size(text, &value) != 0) || (value < min) ||
        (value > max)) {
        argp_error(state, "--%s %s: it is a size from %s to %s, such as 64, 64K "
                   "or 1M", name, text,
                   daqiri_size_text(min, least, sizeof(least)),
                   daqiri_size_text(max, most, sizeof(most)));
    }
    return value;
}

uint64_t daqiri_args_count(struct argp_state *state, const char *name,
                           const char *text, uint64_t min, uint64_t max)
{
    uint64_t value;

    if ((daqiri_parse_u64(text, &value) != 0) || (value < min) ||
        (value > max)) {
        argp_error(state, "--%s %s: it is a number from %llu to %llu", name,
                   text, (unsigned long long)min, (unsigned long long)max);
    }
    return value;
}

/* Without an exponent: at most six digits behind the point are asked for. */
static const char *args_number_text(double value, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%.6f", value);

    while (text[length - 1] == '0') {
        text[--length] = '\0';
    }
    if (text[length - 1] == '.') {
        text[--length] = '\0';
    }
    return text;
}

/* strtod() knows hexadecimal, infinity and signs; here a number is digits, with
 * a point or an exponent. */
double daqiri_args_number(struct argp_state *state, const char *name,
                          const char *text, double min, double max)
{
    char least[32], most[32];
    double value;
    char *rest;

    errno = 0;
    value = strtod(text, &rest);
    if (!isdigit((unsigned char)text[0]) ||
        (text[strspn(text, "0123456789.eE+-")] != '\0') || (errno != 0) ||
        (*rest != '\0') || !(value >= min) || !(value <= max)) {
        argp_error(state, "--%s %s: it is a number from %s to %s", name, text,
                   args_number_text(min, least, sizeof(least)),
                   args_number_text(max, most, sizeof(most)));
    }
    return value;
}

double daqiri_args_duration(struct argp_state *state, const char *name,
                            const char *text)
{
    double value;

    if (daqiri_parse_duration(text, &value) != 0) {
        argp_error(state, "--%s %s: it is a time such as 10s, 500ms or 2m, a "
                   "week at most", name, text);
    }
    return value;
}

double daqiri_args_interval(struct argp_state *state, const char *text)
{
    double value = daqiri_args_duration(state, "interval", text);

    if (value < 0.1) {
        argp_error(state, "--interval %s: it is 100ms at least", text);
    }
    return value;
}

const char *daqiri_args_name(struct argp_state *state, const char *name,
                             const char *text)
{
    if (text[0] == '\0') {
        argp_error(state, "--%s has an empty value", name);
    }
    return text;
}

int daqiri_args_word(struct argp_state *state, const char *name,
                     const char *text, const char *const *words, size_t count)
{
    char list[256] = "";
    size_t used    = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        if (strcmp(text, words[i]) == 0) {
            return (int)i;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 (i > 0) ? ", " : "", words[i]);
    }
    argp_error(state, "--%s %s: it is one of %s", name, text, list);
    return -1;
}

uint32_t daqiri_args_user(struct argp_state *state, const char *text)
{
    const struct passwd *user = getpwnam(text);
    unsigned long value;
    char *end;

    if (user != NULL) {
        return user->pw_uid;
    }
    errno = 0;
    value = strtoul(text, &end, 10);
    if ((*text < '0') || (*text > '9') || (*end != '\0') || (errno != 0) ||
        (value > UINT32_MAX)) {
        argp_error(state, "--user %s: there is no such user", text);
    }
    return (uint32_t)value;
}
