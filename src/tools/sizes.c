/* SPDX-License-Identifier: BSD-3-Clause */

#include "sizes.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
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
