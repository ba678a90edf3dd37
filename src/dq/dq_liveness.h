/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the peer's process run? The peer's device answers whether the process runs
 * or not. So if nothing has come from the process for long, we send a probe: a frame
 * that only a thread of the process can answer. Frames get lost, so we repeat it.
 *
 *     last heard        probe_after   probes sent    unresponsive
 *         |----------------|---|---|---|---|---|---|---|--> it does not run
 *                          one probe in unresponsive / DQ_LIVENESS_PROBES_MAX
 *
 * The caller looks now and then. The time between two looks counts as unanswered
 * only if a probe went out before it and the peer's device completed something in
 * it: the device reports a path that carries nothing, and such a path says nothing
 * about the process. If our own process was stopped, it has not looked. The caller
 * then cuts the time to the usual time between two looks.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_LIVENESS_H
#define DQ_LIVENESS_H

#include "dq.h"

enum {
    DQ_LIVENESS_PROBES_MAX = 16, /* most probes within the bound             */
    DQ_LIVENESS_PROBES_MIN = 8 /* probes sent before any verdict             */
};

/* What to do. */
enum {
    DQ_LIVENESS_PROBE_DEVICE  = 1 << 0, /* have the device complete something */
    DQ_LIVENESS_PROBE_PROCESS = 1 << 1, /* send a probe                      */
    DQ_LIVENESS_GIVE_UP       = 1 << 2 /* the process does not run           */
};

typedef struct {
    uint64_t probe_after;  /* silence; 0: never                              */
    uint64_t unresponsive; /* how long it may leave probes unanswered        */
} dq_liveness_bounds_t;

/* What the caller sees of a connection. */
typedef struct {
    uint32_t heard;   /* changes when anything comes from the peer's process */
    uint32_t probes;  /* probes sent                                         */
    uint32_t retired; /* changes when the peer's device completes anything   */
    int      is_up;   /* probes can be sent                                  */
} dq_liveness_seen_t;

typedef struct {
    dq_liveness_seen_t seen;   /* at the last look                           */
    uint64_t       silent;     /* time since anything came from the process  */
    uint64_t       unanswered; /* part of it in which it was probed and its
                                  device completed something                 */
    uint64_t       rest;       /* time until the next probe                  */
    uint32_t       probes;     /* sent since then                            */
} dq_liveness_t;

/* Nothing has been seen yet. */
void dq_liveness_init(dq_liveness_t *live);

/* One look, @a elapsed after the last one. Returns what to do. */
unsigned dq_liveness_look(dq_liveness_t *live,
                          const dq_liveness_bounds_t *bounds,
                          const dq_liveness_seen_t *seen, uint64_t elapsed);

#endif
