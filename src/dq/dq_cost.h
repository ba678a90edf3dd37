/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The costs that UCP is told of a device in user space, whose wire is the memory
 * of one host.
 *
 * UCP 1.13 knows one latency L of a transport. For a rendezvous it counts L four
 * times: the request to send, the answer that ends it, and the READ between the
 * two, there and back. In user space these have little in common. A message is a
 * store that another core sees, and costs the same everywhere. A READ is a system
 * call, and its cost differs by host and kernel:
 *
 *     4 L = 2 messages + READ
 *
 * A process that opens a device can only read from itself. A READ from another
 * process takes a third longer, because that one's page tables are in another
 * core's cache.
 */
#ifndef DQ_COST_H
#define DQ_COST_H

#include "dq.h"

/* Seconds: L if nothing has been measured. 8 bytes take 215 ns one way
 * (contrib/bench transports --tests am_lat). 75 ns of these are the overhead of a
 * post, which UCP adds by itself. */
#define DQ_COST_MESSAGE 140e-9

/* Seconds: the bounds of a READ that are believed, so L is from 105 to 445 ns. With
 * any L in this range, two processes rank the transport alike: behind UCX's shared
 * memory, which claims 80 ns, and before its verbs transports on the same device, which
 * claim 600. At the upper bound, UCP 1.13 begins a rendezvous at 15 KB. One message of
 * the transport holds that, so UCP cuts no eager message into fragments. */
#define DQ_COST_READ_MIN DQ_COST_MESSAGE
#define DQ_COST_READ_MAX 1.5e-6

/* L in seconds, if a READ of own memory took @a own_read seconds; 0 or less means
 * not known. */
double dq_cost_latency(double own_read);

/* Seconds of its processor that a READ or a WRITE costs the process that begins it, if
 * UCP was told the latency L. Newer UCP asks for this: it rates a stream by the time
 * of processors, not by latency. */
double dq_cost_rdma(double latency);

#endif
