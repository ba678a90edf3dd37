/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the peer's process run? Its device answers for it, whether it runs or
 * not: so who has heard nothing of the process for long calls it, by a frame
 * that only a thread of it can answer, and again now and then, for frames get
 * lost.
 *
 *     last heard          call      called              mute
 *         |----------------|---|---|---|---|---|---|---|--> it does not run
 *                          one call in mute / DQ_LIVENESS_PROBES_MAX
 *
 * Somebody looks now and then. Time without an answer counts from one look to
 * the next, and only if a call has gone out before it and the peer's device has
 * completed something in it: a path that carries nothing is the device's to
 * report, and says nothing about the process. A process that was stopped itself
 * has not looked: who calls cuts the time to what a look usually takes.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_LIVENESS_H
#define DQ_LIVENESS_H

#include "dq.h"

enum {
    DQ_LIVENESS_PROBES_MAX = 16, /* calls, at most, within the bound         */
    DQ_LIVENESS_PROBES_MIN = 8 /* calls that must have gone out before a verdict */
};

/* What to do. */
enum {
    DQ_LIVENESS_PROBE_DEVICE  = 1 << 0, /* have the device complete something */
    DQ_LIVENESS_PROBE_PROCESS = 1 << 1, /* call                              */
    DQ_LIVENESS_GIVE_UP       = 1 << 2 /* the process does not run                 */
};

typedef struct {
    uint64_t probe_after;  /* silence; 0: never                              */
    uint64_t unresponsive; /* how long it may leave probes unanswered        */
} dq_liveness_bounds_t;

/* What is to be seen of a connection. */
typedef struct {
    uint32_t heard;   /* changes when the peer's process says anything       */
    uint32_t probes;  /* calls that have gone out                            */
    uint32_t retired; /* changes when the peer's device completes anything   */
    int      is_up;   /* the process can be called                           */
} dq_liveness_seen_t;

typedef struct {
    dq_liveness_seen_t seen;   /* at the last look                           */
    uint64_t       silent;     /* the process has said nothing for so long,  */
    uint64_t       unanswered; /* although called, and its device has        */
    uint64_t       rest;       /* until it may be called again               */
    uint32_t       probes;     /* that have gone out since                   */
} dq_liveness_t;

/* Nothing has been seen yet. */
void dq_liveness_init(dq_liveness_t *live);

/* One look, @a elapsed after the last. Returns what to do. */
unsigned dq_liveness_look(dq_liveness_t *live,
                          const dq_liveness_bounds_t *bounds,
                          const dq_liveness_seen_t *seen, uint64_t elapsed);

#endif
