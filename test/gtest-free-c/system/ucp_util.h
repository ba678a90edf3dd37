/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What programs of UCP share: what must go well does, or the program ends with a
 * sentence and status 1. @a who is the program, and which of its processes.
 */

#ifndef UCP_UTIL_H
#define UCP_UTIL_H

#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

static inline void ucp_util_must(const char *who, ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s: %s\n", who, what, ucs_status_string(status));
        exit(1);
    }
}

/* Progresses @a worker until the request, if it is one, is over; frees it. */
static inline void ucp_util_wait(const char *who, ucp_worker_h worker,
                                 ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        ucp_util_must(who, UCS_PTR_STATUS(request), what);
        return;
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    ucp_request_free(request);
    ucp_util_must(who, status, what);
}

#endif
