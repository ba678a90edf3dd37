/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* strtoull takes a sign and leading spaces; here a number is digits. */
static int parse_digits(const char *text, uint64_t *value_p, char **end_p)
{
    int base = 10;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }
    if ((text[0] == '0') && ((text[1] == 'x') || (text[1] == 'X'))) {
        base = 16;
    }
    errno    = 0;
    *value_p = strtoull(text, end_p, base);
    return (errno == 0) ? 0 : -1;
}

int daqiri_parse_u64(const char *text, uint64_t *value_p)
{
    uint64_t value;
    char *end;

    if ((parse_digits(text, &value, &end) != 0) || (*end != '\0')) {
        return -1;
    }
    *value_p = value;
    return 0;
}

int daqiri_parse_pid(const char *text, uint32_t *value_p)
{
    uint64_t value;

    if ((daqiri_parse_u64(text, &value) != 0) || (value == 0) ||
        (value > INT32_MAX)) {
        return -1;
    }
    *value_p = (uint32_t)value;
    return 0;
}

int daqiri_parse_size(const char *text, size_t *value_p)
{
    static const char units[] = "KMG";
    unsigned shift = 0;
    const char *unit;
    uint64_t value;
    char *end;

    if (parse_digits(text, &value, &end) != 0) {
        return -1;
    }
    if (*end != '\0') {
        unit = strchr(units, toupper((unsigned char)*end));
        if ((unit == NULL) || (end[1] != '\0')) {
            return -1;
        }
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (value > (SIZE_MAX >> shift)) {
        return -1;
    }
    *value_p = (size_t)value << shift;
    return 0;
}

int daqiri_parse_seconds(const char *text, double *value_p)
{
    double value;
    char *end;

    errno = 0;
    value = strtod(text, &end);
    if ((end == text) || (*end != '\0') || (errno != 0) || !isfinite(value) ||
        (value <= 0)) {
        return -1;
    }
    *value_p = value;
    return 0;
}

/* strtod() knows hexadecimal, infinity and signs; here a number is digits with
 * at most one point. */
int daqiri_parse_duration(const char *text, double *value_p)
{
    static const struct {
        const char *name;
        double     seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60},
                 {"h", 3600}};
    size_t length = strspn(text, "0123456789.");
    double value;
    char *end;
    size_t i;

    if (!isdigit((unsigned char)text[0]) || (length > 32)) {
        return -1;
    }
    value = strtod(text, &end);
    if (end != text + length) {
        return -1;
    }
    for (i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        if (strcmp(end, units[i].name) == 0) {
            value *= units[i].seconds;
            if ((value <= 0) || (value > DAQIRI_DURATION_MAX)) {
                return -1;
            }
            *value_p = value;
            return 0;
        }
    }
    return -1;
}

char *daqiri_size_text(uint64_t value, char *text, size_t length)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    uint64_t rest = value;
    size_t i      = 0;

    while ((rest >= 1024) && ((rest % 1024) == 0) && (i < 4)) {
        rest /= 1024;
        ++i;
    }
    snprintf(text, length, "%llu %s", (unsigned long long)rest, units[i]);
    return text;
}
