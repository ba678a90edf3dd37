/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the peer's process run? Its device answers for it, whether it runs or
 * not: so who has heard nothing of the process for long calls it, by a frame
 * that only a thread of it can answer, and again now and then, for frames get
 * lost.
 *
 *     last heard          call      called              mute
 *         |----------------|---|---|---|---|---|---|---|--> it does not run
 *                          one call in mute / DQ_CALL_OFTEN
 *
 * Somebody looks now and then. Time without an answer counts from one look to
 * the next, and only if a call has gone out before it and the peer's device has
 * completed something in it: a path that carries nothing is the device's to
 * report, and says nothing about the process. A process that was stopped itself
 * has not looked: who calls cuts the time to what a look usually takes.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_CALL_H
#define DQ_CALL_H

#include "dq.h"

enum {
    DQ_CALL_OFTEN = 16, /* calls, at most, within the bound                  */
    DQ_CALL_LEAST = 8   /* calls that must have gone out before a verdict    */
};

/* What to do. */
enum {
    DQ_CALL_DEVICE  = 1 << 0, /* have the device complete something          */
    DQ_CALL_PROCESS = 1 << 1, /* call                                        */
    DQ_CALL_GIVE_UP = 1 << 2  /* the process does not run                    */
};

typedef struct {
    uint64_t call; /* silence until it is called; 0: never                   */
    uint64_t mute; /* how long it may leave the calls unanswered             */
} dq_call_bounds_t;

/* What is to be seen of a connection. */
typedef struct {
    uint32_t told;    /* changes when the peer's process says anything       */
    uint32_t called;  /* calls that have gone out                            */
    uint32_t retired; /* changes when the peer's device completes anything   */
    int      is_up;   /* the process can be called                           */
} dq_call_seen_t;

typedef struct {
    dq_call_seen_t seen;       /* at the last look                           */
    uint64_t       silent;     /* the process has said nothing for so long,  */
    uint64_t       unanswered; /* although called, and its device has        */
    uint64_t       rest;       /* until it may be called again               */
    uint32_t       calls;      /* that have gone out since                   */
} dq_call_t;

/* Nothing has been seen yet. */
void dq_call_init(dq_call_t *call);

/* One look, @a elapsed after the last. Returns what to do. */
unsigned dq_call_look(dq_call_t *call, const dq_call_bounds_t *bounds,
                      const dq_call_seen_t *seen, uint64_t elapsed);

#endif
