/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a READ costs on this host, for devices in user space: UCP is told by it
 * from which size on a rendezvous is worth it. A READ there is the system call
 * by which one process reads another's memory, and of that the kernel, its
 * mitigations and the hypervisor below make anything from 0.4 to 2 us.
 *
 * It is timed when the first such interface of the process is opened, for a
 * tenth of a millisecond or so, and never again.
 */
#include "base/daqiri_port.h"
#include "dq/dq_cost.h"

#include <sys/uio.h>

enum {
    UCT_DAQIRI_COST_TRIES = 24,
    UCT_DAQIRI_COST_BYTES = 64
};

/* Tries are not begun after this long, seconds. */
#define UCT_DAQIRI_COST_LIMIT 200e-6


/* Copies between two buffers of our own as if they were another process's.
 * False if the kernel forbids that. */
static int uct_daqiri_cost_read(void *to, void *from, size_t length)
{
    struct iovec local  = {.iov_base = to, .iov_len = length};
    struct iovec remote = {.iov_base = from, .iov_len = length};

    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
           (ssize_t)length;
}


/* Seconds, of the fastest: what made the others slower was not the READ. 0: it
 * cannot be told. */
static double uct_daqiri_cost_measure(void)
{
    char from[UCT_DAQIRI_COST_BYTES] = "", to[UCT_DAQIRI_COST_BYTES];
    ucs_time_t start                 = ucs_get_time();
    ucs_time_t end                   = start +
                                       ucs_time_from_sec(UCT_DAQIRI_COST_LIMIT);
    ucs_time_t least                 = UCS_TIME_INFINITY;
    ucs_time_t now;
    int i;

    for (i = 0; (i < UCT_DAQIRI_COST_TRIES) && (start < end); i++) {
        if (!uct_daqiri_cost_read(to, from, sizeof(from))) {
            return 0;
        }
        now   = ucs_get_time();
        least = ucs_min(least, now - start);
        start = now;
    }
    return ucs_time_to_sec(least);
}


static double uct_daqiri_cost_own_read; /* seconds */

static void uct_daqiri_cost_once(void)
{
    uct_daqiri_cost_own_read = uct_daqiri_cost_measure();
}


double uct_daqiri_cost_latency(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, uct_daqiri_cost_once);
    return dq_cost_latency(uct_daqiri_cost_own_read);
}


double uct_daqiri_cost_rdma(const struct ibv_device *device, double latency)
{
    return uct_daqiri_port_is_in_user_space(device) ? dq_cost_rdma(latency) : 0;
}
