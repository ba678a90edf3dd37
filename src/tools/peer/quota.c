/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/peer/quota.h"

#include "tools/base/parse.h"

#include <sys/mman.h>

/* Each test has a message to be sent and one that is received. */
#define QUOTA_COPIES 2

uint64_t *daqiri_quota_share(size_t places)
{
    void *memory = mmap(NULL, places * sizeof(uint64_t),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);

    return (memory != MAP_FAILED) ? memory : NULL;
}

void daqiri_quota_unshare(uint64_t *taken, size_t places)
{
    munmap(taken, places * sizeof(*taken));
}

/* Taken first and looked at afterwards: of two who want the last of it at the
 * same time none has it, rather than both. */
static int quota_take_memory(const daqiri_quota_t *quota, uint64_t size,
                             daqiri_failure_t *failure)
{
    uint64_t sum = 0;
    char most[32], wanted[32];
    size_t i;

    __atomic_store_n(&quota->taken[quota->place], QUOTA_COPIES * size,
                     __ATOMIC_SEQ_CST);
    for (i = 0; i < quota->places; ++i) {
        sum += __atomic_load_n(&quota->taken[i], __ATOMIC_SEQ_CST);
    }
    if (sum <= quota->max_memory) {
        return 0;
    }
    __atomic_store_n(&quota->taken[quota->place], 0, __ATOMIC_SEQ_CST);
    daqiri_size_text(QUOTA_COPIES * size, wanted, sizeof(wanted));
    daqiri_size_text(quota->max_memory, most, sizeof(most));
    return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "this server "
                       "has no %s for the test: its clients may have %s "
                       "together (--max-memory)", wanted, most);
}

int daqiri_quota_take(const daqiri_quota_t *quota, uint64_t size,
                      double seconds, daqiri_failure_t *failure)
{
    if (quota == NULL) {
        return 0;
    }
    if (seconds > quota->max_duration) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "a test "
                           "of %.10g s is longer than the %.10g s that this "
                           "server allows (--max-duration)", seconds,
                           quota->max_duration);
    }
    return quota_take_memory(quota, size, failure);
}
