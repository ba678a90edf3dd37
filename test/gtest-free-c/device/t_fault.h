/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of faults share: plans, their log, asynchronous events.
 *
 * A plan is set before the device is opened, so each test sets its own first;
 * check has forked it, and the device reads the plan anew in each process.
 */
#ifndef T_FAULT_H
#define T_FAULT_H

#include "t_device.h"

enum { T_FAULT_TEXT = 8192 };

/* Skips the whole program on a device other than softverbs. */
void t_fault_begin(void);

/* The plan of this process, from the environment, with its log in a file. */
void t_fault_plan(const char *plan);

/* A request to this process, as `daqiri faults` makes one; the answer's text is
 * in t_fault_reply. */
int t_fault_ask(const char *request);
extern char t_fault_reply[T_FAULT_TEXT];

/* Replaces the plan while the device is in use. */
void t_fault_set(const char *plan);

/* How many decisions the log has; all of it, but what names the process. */
unsigned t_fault_decisions(void);
const char *t_fault_log(void);

/* The next asynchronous event, acknowledged: of this type, about this. */
void t_event_is(struct t_end *end, enum ibv_event_type type, void *element);
/* There is none. */
void t_event_none(struct t_end *end);

#endif
