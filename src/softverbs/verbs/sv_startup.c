/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node: how this process comes onto the fabric and leaves it.
 */
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/fabric/sv_wake.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/verbs/sv_service.h"
#include "softverbs/verbs/sv_startup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t sv_node_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sv_node *sv_node;

static int sv_table_init(struct sv_table *table, uint64_t offset,
                         uint32_t stride, uint32_t max,
                         _Atomic uint64_t *pages)
{
    table->offset = offset;
    table->stride = stride;
    table->max    = max;
    table->pages  = pages;
    table->taken  = calloc(max, 1);
    return (table->taken == NULL) ? -1 : 0;
}

static int sv_node_tables(struct sv_node *node)
{
    struct sv_shm_head *head = node->head;

    node->mr_gen  = calloc(SV_MR_MAX, sizeof(*node->mr_gen));
    node->regions = calloc(SV_MR_MAX, sizeof(*node->regions));
    node->qps     = calloc(SV_QP_MAX, sizeof(*node->qps));
    node->cqs     = calloc(SV_CQ_MAX, sizeof(*node->cqs));
    if ((node->mr_gen == NULL) || (node->regions == NULL) ||
        (node->qps == NULL) || (node->cqs == NULL) ||
        (sv_table_init(&node->qp_table, SV_OFF_QP, sizeof(struct sv_shm_qp),
                       SV_QP_MAX, head->qp_pages) != 0) ||
        (sv_table_init(&node->cq_table, SV_OFF_CQ, sizeof(struct sv_shm_cq),
                       SV_CQ_MAX, head->cq_pages) != 0) ||
        (sv_table_init(&node->srq_table, SV_OFF_SRQ, sizeof(struct sv_shm_srq),
                       SV_SRQ_MAX, head->srq_pages) != 0) ||
        (sv_table_init(&node->mr_table, SV_OFF_MR, sizeof(struct sv_shm_mr),
                       SV_MR_MAX, head->mr_pages) != 0) ||
        (sv_table_init(&node->small_table, SV_OFF_SMALL, SV_RING_SMALL,
                       SV_QP_MAX, head->small_pages) != 0)) {
        errno = ENOMEM;
        return -1;
    }

    /* CQ entry 0 serves QPs whose CQ has no channel. */
    return (sv_table_take_at(node, &node->cq_table, 0) < 0) ? -1 : 0;
}

static void sv_node_free(struct sv_node *node)
{
    free(node->qp_table.taken);
    free(node->cq_table.taken);
    free(node->srq_table.taken);
    free(node->mr_table.taken);
    free(node->small_table.taken);
    free(node->mr_gen);
    free(node->regions);
    free(node->qps);
    free(node->cqs);
    free(node);
}

static int sv_node_fill_head(struct sv_node *node)
{
    struct sv_shm_head *head = node->head;
    char state;

    head->magic       = SV_MAGIC;
    head->version     = SV_VERSION;
    head->slot        = node->slot;
    head->pid         = getpid();
    head->pid_ns      = sv_pid_namespace();
    head->needs_fence = !sv_barrier_init();
    if (sv_process_stat(head->pid, &state, &head->start_time) != 0) {
        sv_log("cannot read /proc/%d/stat: %m", head->pid);
        errno = ENODEV;
        return -1;
    }

    node->lock_id          = sv_lock_id(head);
    node->self->fence      = (head->needs_fence != 0);
    node->self->pid        = head->pid;
    node->self->start_time = head->start_time;
    node->self->lock_id    = node->lock_id;
    return 0;
}

/* Writing beyond this limit would end the process by a signal. */
static int sv_node_check_limit(void)
{
    struct rlimit limit;

    if ((getrlimit(RLIMIT_FSIZE, &limit) != 0) ||
        (limit.rlim_cur == RLIM_INFINITY) || (limit.rlim_cur >= SV_SEG_BYTES)) {
        return 0;
    }
    sv_log("no room for a segment: this process may write files of %llu KiB "
           "(ulimit -f), and a segment is a file of %llu KiB, most of it holes",
           (unsigned long long)(limit.rlim_cur >> 10),
           (unsigned long long)(SV_SEG_BYTES >> 10));
    errno = EFBIG;
    return -1;
}

/* Reserves the head, maps the segment, and makes the peer that is ourselves. */
static int sv_node_map(struct sv_node *node, int fd)
{
    uint8_t *base;

    if (ftruncate(fd, SV_SEG_BYTES) != 0) {
        sv_log("cannot size %s: %m", node->path);
        return -1;
    }

    if (sv_reserve(fd, 0, SV_PAGE) != 0) {
        sv_log("no room for a segment in " SV_SHM_DIR ": %m");
        errno = ENOMEM;
        return -1;
    }

    base = sv_segment_map(fd);
    if (base == NULL) {
        sv_log("cannot map %s: %m", node->path);
        return -1;
    }

    node->self = sv_peer_new(fd, base, node->slot, node->path);
    if (node->self == NULL) {
        munmap(base, SV_SEG_BYTES);
        errno = ENOMEM;
        return -1;
    }

    node->self->self = true;
    node->head       = node->self->head;
    return 0;
}

static struct sv_node *sv_node_new(void)
{
    struct sv_node *node;
    int fd, saved;

    if (sv_node_check_limit() != 0) {
        return NULL;
    }
    node = calloc(1, sizeof(*node));
    if (node == NULL) {
        return NULL;
    }

    sv_address_init();
    node->serial = sv_random();
    pthread_mutex_init(&node->lock, NULL);
    pthread_mutex_init(&node->objects_lock, NULL);
    sv_segment_sweep();

    fd = sv_segment_create(node);
    if (fd < 0) {
        goto err_free;
    }
    if (sv_node_map(node, fd) != 0) {
        close(fd);
        goto err_unlink;
    }
    if ((sv_node_fill_head(node) != 0) || (sv_node_tables(node) != 0) ||
        (sv_wake_open(node) != 0)) {
        goto err_unmap;
    }
    if (sv_service_start(node) != 0) {
        goto err_wake;
    }

    /* Where Yama allows process_vm_*() only to ancestors, this allows it to
     * siblings. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (sv_hooks.node_up != NULL) {
        sv_hooks.node_up(node);
    }
    atomic_store(&node->head->ready, 1);
    sv_segment_unlock(node->self->fd);
    return node;

err_wake:
    saved = errno;
    close(node->wake_fd);
    errno = saved;
err_unmap:
    saved = errno;
    sv_peer_destroy(node->self);
    errno = saved;
err_unlink:
    saved = errno;
    unlink(node->path);
    errno = saved;
err_free:
    saved = errno;
    sv_node_free(node);
    errno = saved;
    return NULL;
}

static void sv_node_atfork_child(void)
{
    sv_contexts_orphan();
    if (sv_hooks.orphan != NULL) {
        sv_hooks.orphan();
    }
    pthread_mutex_init(&sv_node_mutex, NULL);
    sv_node = NULL;
}

struct sv_node *sv_node_get(void)
{
    static bool fork_handled;
    struct sv_node *node;

    pthread_mutex_lock(&sv_node_mutex);
    if (!fork_handled) {
        fork_handled = pthread_atfork(NULL, NULL, sv_node_atfork_child) == 0;
    }
    if (sv_node == NULL) {
        sv_node = sv_node_new();
    }
    node = sv_node;
    if (node != NULL) {
        ++node->refs;
    }
    pthread_mutex_unlock(&sv_node_mutex);
    return node;
}

/* Closes the node with its last context. No object is left, so nobody of this
 * process uses the node. Peers that still map the segment see it closed. */
void sv_node_put(struct sv_node *node)
{
    struct sv_peer *peer;

    pthread_mutex_lock(&sv_node_mutex);
    if (--node->refs > 0) {
        pthread_mutex_unlock(&sv_node_mutex);
        return;
    }

    sv_node = NULL;
    sv_service_stop(node);
    if (sv_hooks.node_down != NULL) {
        sv_hooks.node_down(node);
    }
    sv_channels_unlink(node);
    sv_segment_unlink(node->self->fd, node->path);
    pthread_mutex_unlock(&sv_node_mutex);

    while ((peer = node->peers) != NULL) {
        node->peers = peer->next;
        sv_peer_destroy(peer);
    }
    close(node->wake_fd);
    sv_peer_destroy(node->self);
    sv_node_free(node);
}

/* Removes at least the names at exit() without ibv_close_device(). Other
 * threads may still run, so nothing else is touched. */
__attribute__((destructor)) static void sv_node_at_exit(void)
{
    if ((sv_node == NULL) || (sv_node->self->pid != getpid())) {
        return;
    }
    if (pthread_mutex_trylock(&sv_node->lock) == 0) {
        sv_channels_unlink(sv_node);
        pthread_mutex_unlock(&sv_node->lock);
    }
    sv_segment_unlink(sv_node->self->fd, sv_node->path);
}
