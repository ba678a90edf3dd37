/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/failure.h"

#include "tools/base/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const failure_names[DAQIRI_CLASS_LAST] = {
    [DAQIRI_CLASS_NONE]                  = "none",
    [DAQIRI_CLASS_NO_DEVICE]             = "no_device",
    [DAQIRI_CLASS_NOT_PERMITTED]         = "not_permitted",
    [DAQIRI_CLASS_PORT_DOWN]             = "port_down",
    [DAQIRI_CLASS_NO_GID]                = "no_gid",
    [DAQIRI_CLASS_RESOURCE_EXHAUSTED]    = "resource_exhausted",
    [DAQIRI_CLASS_UNSUPPORTED]           = "unsupported",
    [DAQIRI_CLASS_VERB_REFUSED]          = "verb_refused",
    [DAQIRI_CLASS_RTR_REFUSED]           = "rtr_refused",
    [DAQIRI_CLASS_PROVIDER_TIMEOUT]      = "provider_timeout",
    [DAQIRI_CLASS_PROVIDER_DIED]         = "provider_died",
    [DAQIRI_CLASS_PEER_UNREACHABLE]      = "peer_unreachable",
    [DAQIRI_CLASS_OTHER_FABRIC]          = "other_fabric",
    [DAQIRI_CLASS_PEER_REFUSED]          = "peer_refused",
    [DAQIRI_CLASS_PEER_FAILED]           = "peer_failed",
    [DAQIRI_CLASS_PEER_GONE]             = "peer_gone",
    [DAQIRI_CLASS_PROTOCOL]              = "protocol",
    [DAQIRI_CLASS_TIMEOUT]               = "timeout",
    [DAQIRI_CLASS_COMPLETION_PROTECTION] = "completion_protection",
    [DAQIRI_CLASS_COMPLETION_FAILURE]    = "completion_failure",
    [DAQIRI_CLASS_DATA_MISMATCH]         = "data_mismatch",
    [DAQIRI_CLASS_LOCAL]                 = "local",
    [DAQIRI_CLASS_INTERRUPTED]           = "interrupted"
};

const char *daqiri_class_name(daqiri_class_t class_id)
{
    return failure_names[class_id];
}

daqiri_class_t daqiri_class_of_name(const char *name)
{
    int i;

    for (i = 0; i < DAQIRI_CLASS_LAST; ++i) {
        if (strcmp(name, failure_names[i]) == 0) {
            return (daqiri_class_t)i;
        }
    }
    return DAQIRI_CLASS_LAST;
}

int daqiri_fail(daqiri_failure_t *failure, daqiri_class_t class_id,
                const char *format, ...)
{
    va_list args;

    if (failure->class_id == DAQIRI_CLASS_NONE) {
        va_start(args, format);
        vsnprintf(failure->text, sizeof(failure->text), format, args);
        va_end(args);
        failure->class_id = class_id;
    }
    return -1;
}

static daqiri_class_t failure_of_errno(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return DAQIRI_CLASS_NOT_PERMITTED;
    case ENOMEM:
    case EBUSY:
    case EAGAIN:
    case ENOSPC:
        return DAQIRI_CLASS_RESOURCE_EXHAUSTED;
    case EOPNOTSUPP:
    case ENOSYS:
        return DAQIRI_CLASS_UNSUPPORTED;
    default:
        return DAQIRI_CLASS_VERB_REFUSED;
    }
}

int daqiri_fail_verb(daqiri_failure_t *failure, const char *verb, int error)
{
    if (error == 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_VERB_REFUSED, "%s failed and "
                           "gave no reason", verb);
    }
    return daqiri_fail(failure, failure_of_errno(error), "%s failed: %s", verb,
                       strerror(error));
}

void daqiri_failure_report(const daqiri_failure_t *failure, json_t *report)
{
    int is_ok = (failure->class_id == DAQIRI_CLASS_NONE);

    daqiri_report_text(report, "stage", failure->stage);
    daqiri_report_text(report, "failure_class",
                       is_ok ? NULL : daqiri_class_name(failure->class_id));
    daqiri_report_text(report, "error", is_ok ? NULL : failure->text);
}
