/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCP is told of a device in user space, whose wire is the memory of one
 * host.
 *
 * Of a transport UCP 1.13 knows one latency L, and adds it up four times when
 * it weighs a rendezvous: the request to send, the answer that ends it, and the
 * READ between the two, there and back. In user space they have little in
 * common. A message is a store that another core sees, the same everywhere; a
 * READ is a system call, and what that takes differs by host and kernel:
 *
 *     4 L = 2 messages + READ
 *
 * Who opens a device has nobody to read from yet but itself. Of another process
 * it takes a third longer: that one's page tables are in another core's cache.
 */
#ifndef DQ_COST_H
#define DQ_COST_H

#include "dq.h"

/* Seconds: L without anything measured. 215 ns are measured of 8 bytes one way
 * (contrib/bench transports --tests am_lat), of which 75 are the overhead of a post,
 * which UCP adds by itself. */
#define DQ_COST_MESSAGE 140e-9

/* Seconds: what a READ is believed to take, at least and at most. L is from 105 to
 * 445 ns. Any two processes of a host place the transport alike among others by this:
 * behind UCX's shared memory, which claims 80 ns, and before its verbs transports on the
 * same device, which claim 600. With the most, UCP 1.13 begins a rendezvous at 15 KB at
 * the latest, which one message of the transport holds: eager messages are not cut. */
#define DQ_COST_READ_MIN DQ_COST_MESSAGE
#define DQ_COST_READ_MAX 1.5e-6

/* L in seconds, of a READ of own memory that took @a own_read seconds; 0 (or
 * less): nobody knows. */
double dq_cost_latency(double own_read);

/* Seconds of a processor that a READ or a WRITE takes who begins it, where the
 * latency L was told: the READ of the line above. Newer UCP asks for it, and weighs
 * a stream by it, in which what is on its way costs nothing. */
double dq_cost_rdma(double latency);

#endif
