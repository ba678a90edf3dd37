/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The device of daqiri run: the one that was asked for, or the nearest that is usable.
 *
 * A job has one device for each rank, or with --rails several. Before the ranks start,
 * that is one for all of them, because nobody knows yet where they will be. A rank that
 * daqiri run itself starts has been bound to its processors already, so it gets the
 * nearest of its host.
 */

#include "tools/cmd/run.h"

#include "tools/base/exit_status.h"
#include "tools/job/command.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Memory that a transport registers before the first message: send buffers
 * and a window of receive buffers for a few peers, 4 and 2 MiB with their
 * defaults, and a large message or two. A lower limit cannot work; a higher
 * one may still be too small for many peers, and then the transport says so.
 */
#define RUN_MEMORY_NEEDED ((size_t)16 << 20)

/* Shared memory of two ranks, as measured; every further one takes about half
 * as much. */
#define RUN_SOFT_ROOM_NEEDED ((size_t)2 << 20)

/* The number of a rank among all, as its launcher says it. */
static const char *run_rank(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"
    };
    const char *text = NULL;
    size_t i;

    for (i = 0; (i < sizeof(names) / sizeof(names[0])) && (text == NULL); ++i) {
        text = getenv(names[i]);
    }
    return (text != NULL) ? text : "?";
}

static void run_say_device(const run_opts_t *opts,
                           const daqiri_job_device_t *device, const char *kind,
                           const char *why)
{
    char host[64] = "";

    if (opts->local_rank < 0) {
        daqiri_run_say(opts, "device %s:%u%s: %s", device->name, device->port,
                       kind, why);
        return;
    }
    gethostname(host, sizeof(host) - 1);
    daqiri_run_say(opts, "rank %.10s on %s: device %s:%u%s: %s", run_rank(), host,
                   device->name, device->port, kind, why);
}

/* A full folder of shared memory stops the software device as surely as a
 * locked memory limit stops another. */
static int run_refuse_soft(unsigned long long room, int error)
{
    if (error != 0) {
        fprintf(stderr, RUN_SPEAKER ": device " DAQIRI_SOFT_DEVICE " cannot be "
                "used: " DAQIRI_SOFT_DEVICE_FOLDER ": %s\n", strerror(error));
    } else {
        fprintf(stderr, RUN_SPEAKER ": device " DAQIRI_SOFT_DEVICE " cannot be "
                "used: " DAQIRI_SOFT_DEVICE_FOLDER " has %llu KiB left, at "
                "least %zu KiB are needed\n", room >> 10,
                RUN_SOFT_ROOM_NEEDED >> 10);
    }
    return DAQIRI_EXIT_FAILED;
}

/* One more device for each rank. */
static void run_add_rail(const run_opts_t *opts, const char *name, unsigned port,
                         daqiri_job_device_t *chosen)
{
    daqiri_job_port_t *rail = &chosen->other[chosen->others++];

    snprintf(rail->name, sizeof(rail->name), "%s", name);
    rail->port = port;
    if (daqiri_run_is_speaker(opts)) {
        daqiri_run_say(opts, "device %s:%u: rail %u of %u", rail->name, rail->port,
                       chosen->others + 1, opts->rails);
    }
}

static int run_choose_soft(const run_opts_t *opts, const char *why,
                           daqiri_job_device_t *chosen)
{
    unsigned long long room = 0;
    int error               = daqiri_soft_device_room(&room);
    char name[DAQIRI_DEVICE_NAME_MAX];
    unsigned rail;

    if ((error != 0) || (room < RUN_SOFT_ROOM_NEEDED)) {
        return run_refuse_soft(room, error);
    }
    chosen->is_soft = 1;
    snprintf(chosen->name, sizeof(chosen->name), DAQIRI_SOFT_DEVICE);
    chosen->port = 1;
    run_say_device(opts, chosen, ", in software and for this host only", why);
    for (rail = 1; rail < opts->rails; ++rail) {
        snprintf(name, sizeof(name), DAQIRI_SOFT_DEVICES "%u", rail);
        run_add_rail(opts, name, 1, chosen);
    }
    return RUN_GO_ON;
}

/* A limit on locked memory is worth a sentence only where it is the cause. */
static int run_refuse_memory(const daqiri_device_t *device, int error)
{
    struct rlimit limit;

    if ((error == ENOMEM) && (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: this user "
                "may lock %llu KiB of memory, at least %zu KiB are needed "
                "(ulimit -l; raise it in /etc/security/limits.conf)\n",
                device->name, (unsigned long long)(limit.rlim_cur >> 10),
                RUN_MEMORY_NEEDED >> 10);
    } else {
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: it does not "
                "register %zu KiB of memory: %s\n", device->name,
                RUN_MEMORY_NEEDED >> 10, strerror(error));
    }
    return DAQIRI_EXIT_FAILED;
}

static int run_choose_device(const run_opts_t *opts,
                             const daqiri_device_t *device, const char *why,
                             daqiri_job_device_t *chosen)
{
    int error = daqiri_device_try_memory(device, RUN_MEMORY_NEEDED);

    if (error != 0) {
        return run_refuse_memory(device, error);
    }
    chosen->is_soft = 0;
    snprintf(chosen->name, sizeof(chosen->name), "%s", device->name);
    chosen->port = device->port;
    run_say_device(opts, chosen, "", why);
    return RUN_GO_ON;
}

/* ---- the nearest ---- */

/* Those among which one is to be chosen, in the order of the list. */
typedef struct run_nics {
    const daqiri_device_t **list;
    size_t count;
} run_nics_t;

/* The kernel does not know of all how far they are; those come last. */
static int run_is_nearer(const daqiri_device_t *a, const daqiri_device_t *b)
{
    if ((a->near.distance < 0) || (b->near.distance < 0)) {
        return (a->near.distance >= 0) && (b->near.distance < 0);
    }
    return a->near.distance < b->near.distance - 0.01;
}

/* Puts the nearest before all others, and returns how many are equally near. */
static size_t run_sort_nearest(const run_nics_t *nics)
{
    const daqiri_device_t *device;
    size_t i, j, near = 0;

    for (i = 1; i < nics->count; ++i) { /* those that are equally near keep their order */
        device = nics->list[i];
        for (j = i; (j > 0) && run_is_nearer(device, nics->list[j - 1]); --j) {
            nics->list[j] = nics->list[j - 1];
        }
        nics->list[j] = device;
    }
    while ((near < nics->count) && !run_is_nearer(nics->list[0], nics->list[near])) {
        ++near;
    }
    return near;
}

/* The other rails of a rank are the nearest of those that are left, from the one behind
 * its first on, so that neighbours do not all share one. */
static int run_choose_rails(const run_opts_t *opts, const run_nics_t *nics, size_t near,
                            size_t first, daqiri_job_device_t *chosen)
{
    const daqiri_device_t *device;
    size_t i;
    int error;

    if (opts->rails > nics->count) {
        fprintf(stderr, RUN_SPEAKER ": --rails %u needs as many devices, and there %s "
                "%zu\n", opts->rails, (nics->count == 1) ? "is" : "are", nics->count);
        return DAQIRI_EXIT_FAILED;
    }
    for (i = 1; chosen->others + 1 < opts->rails; ++i) {
        device = nics->list[(i < near) ? (first + i) % near : i];
        error  = daqiri_device_try_memory(device, RUN_MEMORY_NEEDED);
        if (error != 0) {
            return run_refuse_memory(device, error);
        }
        run_add_rail(opts, device->name, device->port, chosen);
    }
    return RUN_GO_ON;
}

/* Before the ranks start there is one for all of them. */
static void run_say_one_for_all(const run_opts_t *opts, size_t count)
{
    const char *starter = daqiri_command_starter(opts->command);

    if ((count > opts->rails) && (starter != NULL)) {
        daqiri_run_say(opts, "all ranks use this one of %zu devices: for the nearest "
                       "to each rank, let the ranks be started so: %.60s ... "
                       "daqiri run PROGRAM", count, starter);
    }
}

/* `of` says what they are, such as "usable RDMA devices". */
static int run_choose_nearest(const run_opts_t *opts, run_nics_t *nics,
                              const char *of, int in_turn,
                              daqiri_job_device_t *chosen)
{
    size_t near  = run_sort_nearest(nics);
    size_t count = nics->count;
    size_t index = 0;
    char why[128];
    int status;

    if (near < count) {
        snprintf(why, sizeof(why), "the nearest of %zu %s (NUMA node %d)", count, of,
                 nics->list[0]->near.node);
    } else if (nics->list[0]->near.distance < 0) {
        snprintf(why, sizeof(why), "the first of %zu %s (the kernel does not say how "
                 "near they are)", count, of);
    } else {
        snprintf(why, sizeof(why), "the first of %zu %s, which are equally near",
                 count, of);
    }
    if (in_turn && (near > 1) && (opts->local_rank >= 0)) {
        index = (size_t)opts->local_rank % near;
        snprintf(why, sizeof(why), "number %zu of %zu %s that are equally near, by "
                 "local rank %ld", index + 1, near, of, opts->local_rank);
    }
    status = run_choose_device(opts, nics->list[index], why, chosen);
    if (status != RUN_GO_ON) {
        return status;
    }
    run_say_one_for_all(opts, count);
    return run_choose_rails(opts, nics, near, index, chosen);
}

static int run_choose_only(const run_opts_t *opts, const run_nics_t *nics,
                           const char *why, daqiri_job_device_t *chosen)
{
    int status = run_choose_device(opts, nics->list[0], why, chosen);

    return (status == RUN_GO_ON) ? run_choose_rails(opts, nics, 1, 0, chosen) : status;
}

static int run_choose_auto(const run_opts_t *opts,
                           const daqiri_device_t *devices, run_nics_t *nics,
                           size_t count, daqiri_job_device_t *chosen)
{
    char why[128];
    size_t i;

    for (i = 0; i < count; ++i) {
        if (devices[i].state == DAQIRI_DEVICE_USABLE) {
            nics->list[nics->count++] = &devices[i];
        } else if (daqiri_run_is_speaker(opts)) {
            daqiri_device_why_not(&devices[i], why, sizeof(why));
            daqiri_run_say(opts, "device %s is not usable: %s", devices[i].name, why);
        }
    }
    switch (nics->count) {
    case 0:
        return run_choose_soft(opts, (count == 0) ? "there is no RDMA device" :
                                                    "no RDMA device is usable",
                               chosen);
    case 1:
        return run_choose_only(opts, nics, "the only usable RDMA device", chosen);
    default:
        return run_choose_nearest(opts, nics, "usable RDMA devices", 0, chosen);
    }
}

/* ---- by name ---- */

static int run_refuse_name(const daqiri_device_t *devices, size_t count,
                           const char *name, size_t length)
{
    size_t i;

    fprintf(stderr, RUN_SPEAKER ": there is no device '%.*s'; there are: ",
            (int)length, name);
    for (i = 0; i < count; ++i) {
        fprintf(stderr, "%s, ", devices[i].name);
    }
    fprintf(stderr, "soft\n");
    return DAQIRI_EXIT_FAILED;
}

/* Adds the device of that name; each once. */
static int run_add_name(const daqiri_device_t *devices, size_t count,
                        const char *name, size_t length, run_nics_t *nics)
{
    char why[128];
    size_t i, j;

    for (i = 0; i < count; ++i) {
        if ((strlen(devices[i].name) == length) &&
            (memcmp(devices[i].name, name, length) == 0)) {
            break;
        }
    }
    if (i == count) {
        return run_refuse_name(devices, count, name, length);
    }
    if (devices[i].state != DAQIRI_DEVICE_USABLE) {
        daqiri_device_why_not(&devices[i], why, sizeof(why));
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: %s\n",
                devices[i].name, why);
        return DAQIRI_EXIT_FAILED;
    }
    for (j = 0; j < nics->count; ++j) {
        if (nics->list[j] == &devices[i]) {
            return RUN_GO_ON;
        }
    }
    nics->list[nics->count++] = &devices[i];
    return RUN_GO_ON;
}

static int run_choose_named(const run_opts_t *opts,
                            const daqiri_device_t *devices, run_nics_t *nics,
                            size_t count, daqiri_job_device_t *chosen)
{
    const char *name = opts->device;
    size_t length;
    int status;

    for (;; name += length + 1) {
        length = strcspn(name, ",");
        status = run_add_name(devices, count, name, length, nics);
        if (status != RUN_GO_ON) {
            return status;
        }
        if (name[length] == '\0') {
            break;
        }
    }
    if (nics->count == 1) {
        return run_choose_only(opts, nics, "asked for with --device", chosen);
    }
    return run_choose_nearest(opts, nics, "devices of --device", 1, chosen);
}

static int run_no_list(int error)
{
    fprintf(stderr, RUN_SPEAKER ": RDMA devices cannot be listed: %s\n",
            strerror(error));
    return DAQIRI_EXIT_FAILED;
}

int daqiri_run_choose(const run_opts_t *opts, daqiri_job_device_t *chosen)
{
    run_nics_t nics = {0};
    daqiri_device_t *devices;
    size_t count;
    int error, status;

    if ((strcmp(opts->device, "soft") == 0) ||
        (strcmp(opts->device, DAQIRI_SOFT_DEVICE) == 0)) {
        return run_choose_soft(opts, "asked for with --device", chosen);
    }

    error = daqiri_devices_list(&devices, &count);
    if (error != 0) {
        return run_no_list(error);
    }
    nics.list = calloc(count + 1, sizeof(*nics.list));
    if (nics.list == NULL) {
        free(devices);
        return run_no_list(ENOMEM);
    }
    if (strcmp(opts->device, "auto") == 0) {
        status = run_choose_auto(opts, devices, &nics, count, chosen);
    } else {
        status = run_choose_named(opts, devices, &nics, count, chosen);
    }
    free(nics.list);
    free(devices);
    return status;
}
