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

/* A plan of which nothing comes, for a test that sets its own later. */
void t_fault_plan_idle(void);

/* Two ends under a plan; the second has `recvs` RECVs, see below. */
void t_fault_pair(struct t_end ends[2], const char *plan, unsigned recvs);

/* RECVs 0, 1, ... of 128 bytes each, from 4096 on. */
enum { T_FAULT_RECVS = 4096, T_FAULT_RECV = 128 };

void t_fault_expect(struct t_end *end, unsigned count);

/* Posts message `id` of 64 bytes, all of them `id`, from the first end to the
 * second. What the verb answered is returned. */
int t_fault_send(struct t_end ends[2], uint8_t id);

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
