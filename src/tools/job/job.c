/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/job/job.h"

#include "tools/base/elf_file.h"
#include "tools/base/exit_status.h"
#include "tools/base/locate.h"
#include "tools/job/travel.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* UCX's transports that use no network device, and the one that uses sockets. */
static const char *const env_other_tls[] = {"self", "tcp",  "sm",  "shm",
                                            "mm",   "posix", "sysv", "cma",
                                            "knem", "xpmem"};

static int env_is_word(const char *word, size_t length, const char *text)
{
    return (strlen(text) == length) && (memcmp(word, text, length) == 0);
}

static int env_is_other(const char *word, size_t length)
{
    size_t i;

    for (i = 0; i < sizeof(env_other_tls) / sizeof(env_other_tls[0]); ++i) {
        if (env_is_word(word, length, env_other_tls[i])) {
            return 1;
        }
    }
    return 0;
}

int daqiri_job_needs_device(const char *tls)
{
    size_t length;

    for (; *tls != '\0'; tls += length + (tls[length] == ',')) {
        length = strcspn(tls, ",");
        if ((length > 0) && !env_is_other(tls, length)) {
            return 1;
        }
    }
    return 0;
}

/* A list with this separator, one character, between the words. */
static int env_has_word(const char *list, const char *separator,
                        const char *text)
{
    size_t length;

    for (; *list != '\0'; list += length + (list[length] == *separator)) {
        length = strcspn(list, separator);
        if (env_is_word(list, length, text)) {
            return 1;
        }
    }
    return 0;
}

int daqiri_job_has_network(const char *tls)
{
    return env_has_word(tls, ",", "tcp") || env_has_word(tls, ",", "all");
}

int daqiri_job_uses_plugin(const char *tls)
{
    return env_has_word(tls, ",", "daqiri");
}

static int env_look(const daqiri_library_t *library, char *path, char *why,
                    size_t size)
{
    char tried[PATH_MAX];

    if (daqiri_locate_library(library, path, tried) != 0) {
        snprintf(why, size, "%s is in none of: %s", library->file, tried);
        return -1;
    }
    return daqiri_elf_check(path, why, size);
}

int daqiri_job_find_plugin(char *path, char *why, size_t size)
{
    return env_look(&daqiri_library_plugin, path, why, size);
}

static int env_find(const daqiri_library_t *library, char *path,
                    const char *speaker)
{
    char why[2 * PATH_MAX];

    if (env_look(library, path, why, sizeof(why)) != 0) {
        fprintf(stderr, "%s: %s\n", speaker, why);
        return DAQIRI_EXIT_FAILED;
    }
    return 0;
}

static int env_preload(char **preload_p, const daqiri_library_t *library,
                       int is_quiet, const char *speaker)
{
    char path[PATH_MAX];
    const char *present;
    size_t length;

    if (env_find(library, path, speaker) != 0) {
        return DAQIRI_EXIT_FAILED;
    }
    if (strpbrk(path, DAQIRI_PRELOAD_SEPARATORS) != NULL) {
        fprintf(stderr, "%s: %s cannot be preloaded: there is a space or a "
                "colon in its path\n", speaker, path);
        return DAQIRI_EXIT_FAILED;
    }
    length = daqiri_env_list_add_preload(preload_p, path, &present);
    if ((length > 0) && !is_quiet && !env_is_word(present, length, path)) {
        fprintf(stderr, "%s: LD_PRELOAD has %.*s already: that one is used, "
                "not %s\n", speaker, (int)length, present, path);
    }
    return 0;
}

/*
 * The device first: the transport must see it when it looks. What the user
 * preloads comes before both, since a sanitizer or an allocator insists on it.
 */
static int env_preload_device(char **preload_p,
                              const daqiri_job_device_t *device, int is_quiet,
                              const char *speaker)
{
    const char *old = getenv("LD_PRELOAD");

    *preload_p = strdup((old != NULL) ? old : "");
    if (*preload_p == NULL) {
        fprintf(stderr, "%s: no memory\n", speaker);
        return DAQIRI_EXIT_FAILED;
    }
    return device->is_soft ? env_preload(preload_p, &daqiri_library_softverbs,
                                         is_quiet, speaker) : 0;
}

int daqiri_job_preload(char **preload_p, const daqiri_job_device_t *device,
                       const char *speaker)
{
    return env_preload_device(preload_p, device, 1, speaker);
}

static int env_add_preload(daqiri_env_list_t *env_list, int needs_plugin,
                           const daqiri_job_device_t *device,
                           const char *speaker)
{
    char *preload;
    int status = env_preload_device(&preload, device, 0, speaker);

    if ((status == 0) && needs_plugin) {
        status = env_preload(&preload, &daqiri_library_plugin, 0, speaker);
    }
    if ((status == 0) && (preload[0] != '\0')) {
        daqiri_env_list_add(env_list, "LD_PRELOAD", preload);
    }
    free(preload);
    return status;
}

/* UCX looks into all folders in order, and takes the first plugin of a name. */
static int env_add_plugin_path(daqiri_env_list_t *env_list, const char *speaker)
{
    const char *old = getenv(DAQIRI_UCX_PLUGIN_PATH);
    char path[PATH_MAX];
    char *joined;

    if (env_find(&daqiri_library_plugin, path, speaker) != 0) {
        return DAQIRI_EXIT_FAILED;
    }
    *strrchr(path, '/') = '\0';
    if (strchr(path, ':') != NULL) {
        fprintf(stderr, "%s: %s cannot be in " DAQIRI_UCX_PLUGIN_PATH ": there "
                "is a colon in it\n", speaker, path);
        return DAQIRI_EXIT_FAILED;
    }
    if ((old == NULL) || (old[0] == '\0')) {
        daqiri_env_list_add(env_list, DAQIRI_UCX_PLUGIN_PATH, path);
        return 0;
    }
    if (env_has_word(old, ":", path)) {
        daqiri_env_list_add(env_list, DAQIRI_UCX_PLUGIN_PATH, old);
        return 0;
    }
    if (asprintf(&joined, "%s:%s", old, path) < 0) {
        return DAQIRI_EXIT_FAILED;
    }
    daqiri_env_list_add(env_list, DAQIRI_UCX_PLUGIN_PATH, joined);
    free(joined);
    return 0;
}

/* Whether UCX's TCP takes it: it is up, and has an address. */
static int env_has_address(const struct ifaddrs *list, const char *name)
{
    const unsigned flags = IFF_UP | IFF_RUNNING;

    for (; list != NULL; list = list->ifa_next) {
        if ((list->ifa_addr != NULL) &&
            ((list->ifa_addr->sa_family == AF_INET) ||
             (list->ifa_addr->sa_family == AF_INET6)) &&
            ((list->ifa_flags & flags) == flags) &&
            (strcmp(list->ifa_name, name) == 0)) {
            return 1;
        }
    }
    return 0;
}

/* The network interfaces of this host, those in `wanted` if it is not NULL, with
 * a comma before each. Returns how many. */
static size_t env_list_interfaces(const char *wanted, FILE *stream)
{
    struct ifaddrs *list, *i;
    size_t count = 0;

    if (getifaddrs(&list) != 0) {
        return 0;
    }
    for (i = list; i != NULL; i = i->ifa_next) {
        /* each has one entry of this kind, beside one for each address */
        if ((i->ifa_addr != NULL) && (i->ifa_addr->sa_family == AF_PACKET) &&
            ((wanted == NULL) || env_has_word(wanted, ",", i->ifa_name)) &&
            env_has_address(list, i->ifa_name)) {
            fprintf(stream, ",%s", i->ifa_name);
            ++count;
        }
    }
    freeifaddrs(list);
    return count;
}

/*
 * UCX takes no device but those that are named, for no transport. So TCP beside
 * one that has an RDMA device needs its interfaces named too: those that the
 * user has named, else all of them, for a listener may have any address.
 */
static void env_add_devices(daqiri_env_list_t *env_list, const char *tls,
                            const daqiri_job_device_t *device)
{
    const char *user = getenv("UCX_NET_DEVICES");
    char *names      = NULL;
    size_t length;
    FILE *stream;
    unsigned i;

    stream = open_memstream(&names, &length);
    if (stream == NULL) {
        return;
    }
    fprintf(stream, "%s:%u", device->name, device->port);
    for (i = 0; i < device->others; ++i) {
        fprintf(stream, ",%s:%u", device->other[i].name, device->other[i].port);
    }
    if (daqiri_job_has_network(tls) &&
        ((user == NULL) || (env_list_interfaces(user, stream) == 0))) {
        env_list_interfaces(NULL, stream);
    }
    fclose(stream);
    daqiri_env_list_add(env_list, "UCX_NET_DEVICES", names);
    free(names);
}

/*
 * Debian's configuration of Open MPI excludes UCX, so it is named; then no
 * other messaging layer can step in unseen. Open MPI 4 takes UCX seriously
 * only for transports and devices in its lists, which a plugin cannot be in:
 * "any". Windows go through UCX too, with a priority above that of the
 * component for shared memory (100), which stays because only it can do
 * MPI_Win_allocate_shared.
 */
static void env_add_open_mpi(daqiri_env_list_t *env_list)
{
    daqiri_env_list_add(env_list, "OMPI_MCA_pml", "ucx");
    daqiri_env_list_add(env_list, "OMPI_MCA_osc", "ucx,sm");
    daqiri_env_list_add(env_list, "OMPI_MCA_osc_ucx_priority", "200");
    daqiri_env_list_add(env_list, "OMPI_MCA_pml_ucx_tls", "any");
    daqiri_env_list_add(env_list, "OMPI_MCA_pml_ucx_devices", "any");
}

/*
 * UCP copies puts up to 16 KiB, whatever the transport says. On the software
 * device zcopy is worth it from here on (contrib/bench protocols). What the user
 * says goes before.
 */
static void env_add_threshold(daqiri_env_list_t *env_list)
{
    if (getenv("UCX_ZCOPY_THRESH") == NULL) {
        daqiri_env_list_add(env_list, "UCX_ZCOPY_THRESH", "4096");
    }
}

/* UCX sends one long message over two rails by default, and short ones over one. */
static void env_add_rails(daqiri_env_list_t *env_list,
                          const daqiri_job_device_t *device)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", device->others + 1);
    daqiri_env_list_add(env_list, "UCX_MAX_EAGER_LANES", number);
    daqiri_env_list_add(env_list, "UCX_MAX_RNDV_RAILS", number);
    if (device->is_soft) {
        daqiri_env_list_add(env_list, "SOFTVERBS_DEVICES", number);
    }
}

int daqiri_job_env(daqiri_env_list_t *env_list, const char *tls,
                   const daqiri_job_device_t *device, const daqiri_ucx_t *ucx,
                   const char *speaker)
{
    int loads_plugin = daqiri_ucx_loads_plugin(ucx);
    int needs_plugin = daqiri_job_uses_plugin(tls);
    int status;

    status = env_add_preload(env_list, needs_plugin && !loads_plugin, device,
                             speaker);
    if ((status == 0) && needs_plugin && loads_plugin) {
        status = env_add_plugin_path(env_list, speaker);
    }
    if (status != 0) {
        return status;
    }
    daqiri_env_list_add(env_list, "UCX_TLS", tls);
    if (device->name[0] != '\0') {
        env_add_devices(env_list, tls, device);
    }
    if (device->others > 0) {
        env_add_rails(env_list, device);
    }
    if (device->is_soft && daqiri_job_uses_plugin(tls)) {
        env_add_threshold(env_list);
    }
    /* MPICH takes UCX's variables and needs none of its own. Open MPI hands its own to
     * all ranks, so they come after those that need help. */
    daqiri_travel_add(env_list);
    env_add_open_mpi(env_list);
    return 0;
}
