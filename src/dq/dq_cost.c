/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_cost.h"

#define DQ_COST_READ_OF_ANOTHER (4.0 / 3.0)


double dq_cost_latency(double own_read)
{
    double read = own_read * DQ_COST_READ_OF_ANOTHER;

    if (!(own_read > 0)) { /* NaN, too */
        return DQ_COST_MESSAGE;
    }
    if (read < DQ_COST_READ_MIN) {
        read = DQ_COST_READ_MIN;
    } else if (read > DQ_COST_READ_MAX) {
        read = DQ_COST_READ_MAX;
    }
    return (2 * DQ_COST_MESSAGE + read) / 4;
}


double dq_cost_rdma(double latency)
{
    double read = 4 * latency - 2 * DQ_COST_MESSAGE;

    return (read > 0) ? read : 0; /* NaN, too */
}
