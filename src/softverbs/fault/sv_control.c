/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to running processes, for the command `daqiri faults`: both ends.
 *
 * The asking process writes a request into the segment of the other, increments
 * control_asked and rings the doorbell. The service thread there writes an
 * answer and sets control_answered. A lock on the segment's file lets one
 * process ask at a time.
 *
 * A request is "set" and a plan, "clear", or "show". An answer is "ok" or "no"
 * and text. Line ends separate the parts.
 */
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

/* How long to wait for an answer: the process may have to wait for a CPU. */
#define SV_ANSWER_NS      5000000000ull

/* Sends a request to a process. Process 0: checks here whether the request is a
 * valid plan. 0 or -1; `reply` receives the text in both cases. The command
 * repeats these two declarations and finds the functions with dlsym(). */
SV_EXPORT int softverbs_control(int pid, const char *request, char *reply,
                                size_t size);
/* Stores up to `max` process numbers of this user's processes that have the
 * device open. Returns how many there are. */
SV_EXPORT int softverbs_processes(int *pids, int max);

static struct sv_shm_control *sv_control_area(uint8_t *base)
{
    return (struct sv_shm_control*)(base + SV_OFF_CONTROL);
}

/* ---- the process that is asked ---- */

static void sv_control_handle(const char *request, char *reply, size_t size)
{
    char why[SV_WHY_BYTES] = "";
    size_t used;

    if (strncmp(request, "set\n", 4) == 0) {
        used = (sv_fault_set_plan(request + 4, why) == 0);
        snprintf(reply, size, "%s\n%s", used ? "ok" : "no", why);
    } else if (strcmp(request, "clear\n") == 0) {
        sv_fault_set_plan(NULL, why);
        snprintf(reply, size, "ok\n");
    } else if (strcmp(request, "show\n") == 0) {
        used = (size_t)snprintf(reply, size, "ok\n");
        sv_fault_show(reply + used, size - used);
    } else {
        snprintf(reply, size, "no\nit does not know this request");
    }
}

void sv_control_answer(struct sv_node *node)
{
    struct sv_shm_head *head = node->head;
    uint32_t asked           = atomic_load(&head->control_asked);
    struct sv_shm_control *area;
    char *request;

    if (asked == atomic_load(&head->control_answered)) {
        return;
    }

    /* A copy, because the asking process may have given up, and the next one
     * may be writing. */
    area    = sv_control_area(node->self->base);
    request = calloc(1, SV_CONTROL_BYTES + 1);
    if (request == NULL) {
        snprintf(area->reply, sizeof(area->reply), "no\nit is out of memory");
    } else {
        memcpy(request, area->request, SV_CONTROL_BYTES);
        if (atomic_load(&head->control_asked) != asked) {
            free(request);
            return; /* it rang again */
        }
        sv_control_handle(request, area->reply, sizeof(area->reply));
        free(request);
    }
    atomic_store(&head->control_answered, asked);
}

/* ---- the process that asks ---- */

/* Opens the segment in this slot if its process lives. Descriptor or -1. */
static int sv_control_open(uint32_t slot, struct sv_shm_head *head)
{
    char path[SV_PATH_BYTES];
    int fd;

    fd = sv_segment_open(slot, path);
    if (fd < 0) {
        return -1;
    }

    if ((pread(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head)) &&
        (head->magic == SV_MAGIC) && (atomic_load(&head->ready) != 0) &&
        (head->version == SV_VERSION) &&
        (head->pid_ns == sv_pid_namespace()) &&
        (sv_process_lives(head->pid, head->start_time) > 0)) {
        return fd;
    }
    close(fd);
    return -1;
}

int softverbs_processes(int *pids, int max)
{
    struct sv_shm_head head;
    uint32_t slot;
    int count = 0;
    int fd;

    for (slot = 1; slot <= SV_SLOT_MAX; ++slot) {
        fd = sv_control_open(slot, &head);
        if (fd < 0) {
            continue;
        }
        close(fd);
        if (count < max) {
            pids[count] = head.pid;
        }
        ++count;
    }
    return count;
}

static int sv_control_find(int pid)
{
    struct sv_shm_head head;
    uint32_t slot;
    int fd;

    for (slot = 1; slot <= SV_SLOT_MAX; ++slot) {
        fd = sv_control_open(slot, &head);
        if ((fd >= 0) && (head.pid == pid)) {
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return -1;
}

/* False: no answer. */
static bool sv_control_wait(struct sv_shm_head *head, uint32_t asked)
{
    uint64_t deadline = sv_now_ns() + SV_ANSWER_NS;

    while (atomic_load(&head->control_answered) != asked) {
        if (((atomic_load(&head->life) &
              (FUTEX_OWNER_DIED | SV_LIFE_CLOSED)) != 0) ||
            (sv_now_ns() > deadline)) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

/* With the segment mapped and locked. */
static int sv_control_ask(uint8_t *base, const char *request, char *reply,
                          size_t size)
{
    struct sv_shm_control *area = sv_control_area(base);
    struct sv_shm_head *head    = (struct sv_shm_head*)base;
    bool good;

    strcpy(area->request, request);
    atomic_fetch_add(&head->control_asked, 1);
    sv_doorbell_ring(head);
    if (!sv_control_wait(head, atomic_load(&head->control_asked))) {
        snprintf(reply, size, "it does not answer: it is stopped, or has just "
                 "ended");
        return -1;
    }

    good = (strncmp(area->reply, "ok\n", 3) == 0);
    snprintf(reply, size, "%.*s", SV_CONTROL_BYTES - 4, area->reply + 3);
    return good ? 0 : -1;
}

static int sv_control_locked(int fd, const char *request, char *reply,
                             size_t size)
{
    uint8_t *base;
    int ret;

    if (sv_reserve(fd, SV_OFF_CONTROL, sizeof(struct sv_shm_control)) != 0) {
        snprintf(reply, size, SV_SHM_DIR " is full");
        return -1;
    }

    base = sv_segment_map(fd);
    if (base == NULL) {
        snprintf(reply, size, "its segment cannot be mapped: %m");
        return -1;
    }

    ret = sv_control_ask(base, request, reply, size);
    munmap(base, SV_SEG_BYTES);
    return ret;
}

/* Checks here whether a process would take this plan. */
static int sv_control_check(const char *text, char *reply, size_t size)
{
    struct sv_plan *plan = malloc(sizeof(*plan));
    char rule[SV_WHY_BYTES];
    size_t used;
    unsigned i;
    int ret;

    if (plan == NULL) {
        snprintf(reply, size, "out of memory");
        return -1;
    }

    ret = sv_plan_parse(plan, text, rule);
    if (ret != 0) {
        snprintf(reply, size, "%s", rule);
    } else {
        snprintf(reply, size, "seed %llu\n", (unsigned long long)plan->seed);
        for (i = 0; i < plan->num_rules; ++i) {
            sv_rule_print(&plan->rules[i], rule);
            used = strlen(reply);
            snprintf(reply + used, size - used, "%s\n", rule);
        }
    }
    free(plan);
    return ret;
}

int softverbs_control(int pid, const char *request, char *reply, size_t size)
{
    int fd, ret;

    if (strlen(request) >= SV_CONTROL_BYTES) {
        snprintf(reply, size, "the plan is longer than %d bytes",
                 SV_PLAN_BYTES - 1);
        return -1;
    }
    if (pid == 0) {
        return sv_control_check(request, reply, size);
    }

    fd = sv_control_find(pid);
    if (fd < 0) {
        snprintf(reply, size, "it has no softverbs device open, or is not "
                 "yours");
        return -1;
    }

    (void)sv_lock(fd);
    ret = sv_control_locked(fd, request, reply, size);
    close(fd);
    return ret;
}
