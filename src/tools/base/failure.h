/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What went wrong in a test between two processes: the stage it was in, a
 * class that a program can act upon, and a sentence for people. The first
 * failure is kept: what follows is its echo.
 */

#ifndef DAQIRI_FAILURE_H
#define DAQIRI_FAILURE_H

#include "tools/base/report.h"

#include <jansson.h>

typedef enum daqiri_class {
    DAQIRI_CLASS_NONE,
    DAQIRI_CLASS_NO_DEVICE,          /* none of that name, or none at all */
    DAQIRI_CLASS_NOT_PERMITTED,      /* EACCES, EPERM */
    DAQIRI_CLASS_PORT_DOWN,
    DAQIRI_CLASS_NO_GID,
    DAQIRI_CLASS_RESOURCE_EXHAUSTED, /* ENOMEM, EBUSY, EAGAIN, ENOSPC */
    DAQIRI_CLASS_UNSUPPORTED,        /* the device has no such thing */
    DAQIRI_CLASS_VERB_REFUSED,       /* any other errno of a verb */
    DAQIRI_CLASS_RTR_REFUSED,        /* the change to RTR: address, MTU, GID */
    DAQIRI_CLASS_PROVIDER_TIMEOUT,   /* a verb did not come back */
    DAQIRI_CLASS_PROVIDER_DIED,      /* a verb ended the process */
    DAQIRI_CLASS_PEER_UNREACHABLE,   /* nobody to connect to */
    DAQIRI_CLASS_OTHER_FABRIC,       /* it is beyond the software device */
    DAQIRI_CLASS_PEER_REFUSED,       /* it said no */
    DAQIRI_CLASS_PEER_FAILED,        /* it told of a failure of its own */
    DAQIRI_CLASS_PEER_GONE,          /* it ended in the middle */
    DAQIRI_CLASS_PROTOCOL,           /* it sent what makes no sense */
    DAQIRI_CLASS_TIMEOUT,            /* nothing came in time */
    DAQIRI_CLASS_COMPLETION_PROTECTION, /* of a request: protection, access */
    DAQIRI_CLASS_COMPLETION_FAILURE,
    DAQIRI_CLASS_DATA_MISMATCH,
    DAQIRI_CLASS_LOCAL,              /* this system: sockets, ports in use */
    DAQIRI_CLASS_INTERRUPTED,
    DAQIRI_CLASS_LAST
} daqiri_class_t;

typedef struct daqiri_failure {
    daqiri_class_t class_id;
    const char     *stage; /* static; set by who runs the stages */
    char           text[1200];
} daqiri_failure_t;

/* "rtr_refused". */
const char *daqiri_class_name(daqiri_class_t class_id);

/* DAQIRI_CLASS_LAST when it is none. */
daqiri_class_t daqiri_class_of_name(const char *name);

/* Notes the failure unless there is one. Returns -1. */
int daqiri_fail(daqiri_failure_t *failure, daqiri_class_t class_id,
                const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a verb that failed with this errno (0: it gave none). */
int daqiri_fail_verb(daqiri_failure_t *failure, const char *verb, int error);

/* Sets "stage", "failure_class" and "error" of a report; null if none. */
void daqiri_failure_report(const daqiri_failure_t *failure, json_t *report);

#endif
