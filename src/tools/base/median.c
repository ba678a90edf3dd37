/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/median.h"

double daqiri_median(const double *values, size_t count)
{
    double sorted[DAQIRI_MEDIAN_MOST];
    size_t i, j;

    if (count == 0) {
        return 0;
    }
    count = (count < DAQIRI_MEDIAN_MOST) ? count : DAQIRI_MEDIAN_MOST;
    for (i = 0; i < count; ++i) {
        for (j = i; (j > 0) && (sorted[j - 1] > values[i]); --j) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = values[i];
    }
    return ((count % 2) != 0) ? sorted[count / 2] :
           (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}
