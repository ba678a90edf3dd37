/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service thread: one thread per node, nearly always asleep. It does five
 * things for which the program's own threads cannot be relied on.
 *
 * - It marks the process's death. The `life` word of the segment is on this
 *   thread's robust list (set_robust_list(2)). So the kernel marks the word
 *   when the process ends in whatever way, before anybody can see the end.
 *   Peers find out with a plain load.
 * - It runs the stuck list. The program may sleep on a channel, or compute,
 *   while its sends wait for room, for a RECV or for an answer. The timers of a
 *   program that polls do not depend on this thread.
 * - It answers the doorbell. A peer rings if its request must fail a QP here,
 *   if it has a long message for a program that sleeps, or if it has deferred
 *   an event. Somebody may also have a request (fault/sv_control.c).
 * - It checks once a second on programs that sleep. Their wake-up may be lost,
 *   because the sender has died or memory was overwritten.
 * - It is the clock of the plan of faults, if there is one.
 *
 * The list of robust futexes belongs to the C library, which releases its own
 * robust mutexes when their thread dies. This thread never takes such a mutex,
 * so it may give the kernel a list of its own.
 */
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_poll.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/verbs/sv_service.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the stuck list runs while it has entries. For that many rounds
 * after it became empty the service thread stays awake, so that waking it is
 * cheap. */
#define SV_SERVICE_TICK_NS    1000000u

#define SV_SERVICE_LINGER     64

/* How long a program may sleep after its wake-up was lost. */
#define SV_SERVICE_CHECK_NS   1000000000u

/* Fails the QPs for which a peer has asked that. */
static void sv_service_remote_faults(struct sv_node *node)
{
    struct sv_qp *qp;
    uint32_t i;

    if (atomic_exchange(&node->head->faults, 0) == 0) {
        return;
    }

    pthread_mutex_lock(&node->objects_lock);
    for (i = 0; i < SV_QP_MAX; ++i) {
        qp = node->qps[i];
        if ((qp != NULL) && (atomic_load(&qp->shm->fault) != 0)) {
            sv_qp_remote_fault(qp);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
}

static void sv_service_drain(struct sv_node *node)
{
    bool audit = (atomic_exchange(&node->head->audit, 0) != 0);
    struct sv_cq *cq;

    pthread_mutex_lock(&node->objects_lock);
    for (cq = node->all_cqs; cq != NULL; cq = cq->next) {
        if (audit) {
            sv_cq_audit(cq);
        }
        sv_cq_drain(cq);
    }
    pthread_mutex_unlock(&node->objects_lock);
}

static void sv_service_mark_life(struct sv_node *node)
{
    struct robust_list_head *list = &node->robust;
    struct sv_shm_head *head      = node->head;
    struct robust_list *entry     = (struct robust_list*)&head->robust_next;

    list->futex_offset    = offsetof(struct sv_shm_head, life) -
                            offsetof(struct sv_shm_head, robust_next);
    list->list_op_pending = NULL;
    list->list.next       = entry;
    entry->next           = &list->list;
    syscall(SYS_set_robust_list, list, sizeof(*list));
    atomic_store(&head->life, (uint32_t)syscall(SYS_gettid));
}

/* Runs the stuck list, unless the program's own threads have done so since the
 * last time. Then running it would only take their CPU. */
static void sv_service_run_stuck(struct sv_node *node)
{
    uint32_t pushes = atomic_load(&node->pushes);
    bool alone      = (pushes == node->pushes_seen);

    if (atomic_exchange(&node->service_urgent, false)) {
        alone = true;
    }
    node->pushes_seen = pushes;
    sv_stuck_run(node, alone ? SV_PUSHER_SERVICE : SV_PUSHER_WATCH);
}

static void sv_service_check_sleepers(struct sv_node *node)
{
    struct sv_cq *cq;

    pthread_mutex_lock(&node->objects_lock);
    for (cq = node->all_cqs; cq != NULL; cq = cq->next) {
        if (sv_cq_check_wakeup(cq)) {
            sv_cq_drain_all(cq);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
}

/* The time until the next fault of the plan or the next check, whichever is
 * earlier. */
static struct timespec sv_service_pause(const struct timespec *until_fault,
                                        uint64_t check_at)
{
    uint64_t now   = sv_now_ns();
    uint64_t pause = (check_at > now) ? check_at - now : 0;
    uint64_t fault = (until_fault == NULL) ? UINT64_MAX :
                             until_fault->tv_sec * 1000000000ull +
                                     until_fault->tv_nsec;

    pause = (fault < pause) ? fault : pause;
    return (struct timespec){pause / 1000000000u, pause % 1000000000u};
}

static void *sv_service_main(void *arg)
{
    const struct timespec tick = {0, SV_SERVICE_TICK_NS};
    const struct timespec *fault;
    struct timespec pause;
    struct timespec until_fault;
    struct sv_node *node       = arg;
    struct sv_shm_head *head   = node->head;
    uint32_t served            = atomic_load(&head->doorbell);
    uint64_t check_at          = sv_now_ns() + SV_SERVICE_CHECK_NS;
    unsigned linger            = 0;
    uint32_t seen;

    sv_service_mark_life(node);
    sv_futex_wake(&head->life);

    while (!atomic_load(&node->service_stop)) {
        seen = atomic_load(&head->doorbell);
        if (seen != served) {
            served = seen;
            sv_service_remote_faults(node);
            sv_service_drain(node);
            sv_channels_send_deferred(node);
            if (sv_hooks.rung != NULL) {
                sv_hooks.rung(node);
            }
        }
        fault = (sv_hooks.tick != NULL) ? sv_hooks.tick(node, &until_fault) :
                                          NULL;
        if (sv_now_ns() >= check_at) {
            sv_service_check_sleepers(node);
            check_at = sv_now_ns() + SV_SERVICE_CHECK_NS;
        }

        if (atomic_load(&node->num_stuck) > 0) {
            linger = SV_SERVICE_LINGER;
            sv_service_run_stuck(node);
        }

        if (linger > 0) {
            --linger;
            sv_futex_wait(&head->doorbell, seen, &tick);
            continue;
        }

        /* Whoever adds to the stuck list after this store rings the
         * doorbell. */
        atomic_store(&node->service_sleeps, 1);
        if (atomic_load(&node->num_stuck) == 0) {
            pause = sv_service_pause(fault, check_at);
            sv_futex_wait(&head->doorbell, seen, &pause);
        }
        atomic_store(&node->service_sleeps, 0);
    }

    atomic_store(&head->life, SV_LIFE_CLOSED);
    node->robust.list.next = &node->robust.list;
    return NULL;
}

int sv_service_start(struct sv_node *node)
{
    sigset_t all, before;
    int ret;

    /* Signals are for the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&node->service_thread, NULL, sv_service_main, node);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ret != 0) {
        errno = ret;
        return -1;
    }

    pthread_setname_np(node->service_thread, "softverbs");
    pthread_getcpuclockid(node->service_thread, &node->service_clock);
    while (atomic_load(&node->head->life) == 0) {
        sv_futex_wait(&node->head->life, 0, NULL);
    }
    return 0;
}

void sv_service_stop(struct sv_node *node)
{
    atomic_store(&node->service_stop, true);
    sv_doorbell_ring(node->head);
    pthread_join(node->service_thread, NULL);
}
