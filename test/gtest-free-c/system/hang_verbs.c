/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A driver that is wedged, or worse: preloaded in front of a device's library.
 * HANG_VERBS="ibv_reg_mr" makes that verb never come back, not even for
 * SIGTERM, after it has made the file HANG_FILE. "die:ibv_reg_mr" makes it end
 * the process; "refuse:ibv_reg_mr" fails with ENOMEM. Changes of state of a
 * queue pair are called init, rtr, rts. "class:184" refuses a path whose traffic
 * class is not that.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr

static void hang_note(void)
{
    const char *path = getenv("HANG_FILE");
    int fd;

    if (path != NULL) {
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        close(fd);
    }
}

/* Returns whether to refuse. */
static int hang_now(const char *verb)
{
    const char *text = getenv("HANG_VERBS");

    if ((text != NULL) && (strncmp(text, "die:", 4) == 0) &&
        (strcmp(text + 4, verb) == 0)) {
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    if ((text != NULL) && (strncmp(text, "refuse:", 7) == 0) &&
        (strcmp(text + 7, verb) == 0)) {
        errno = ENOMEM;
        return 1;
    }
    if ((text != NULL) && (strcmp(text, verb) == 0)) {
        signal(SIGTERM, SIG_IGN);
        hang_note();
        signal(SIGINT, SIG_IGN);
        for (;;) {
            pause();
        }
    }
    return 0;
}

static void *hang_next(const char *verb)
{
    return dlsym(RTLD_NEXT, verb);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*next)(struct ibv_device*) =
            hang_next("ibv_open_device");

    return hang_now("ibv_open_device") ? NULL : next(device);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    struct ibv_mr *(*next)(struct ibv_pd*, void*, size_t, int) =
            hang_next("ibv_reg_mr");

    return hang_now("ibv_reg_mr") ? NULL : next(pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access)
{
    struct ibv_mr *(*next)(struct ibv_pd*, void*, size_t, uint64_t, unsigned) =
            hang_next("ibv_reg_mr_iova2");

    return hang_now("ibv_reg_mr") ? NULL :
                                    next(pd, addr, length, iova, access);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*next)(struct ibv_pd*, struct ibv_qp_init_attr*) =
            hang_next("ibv_create_qp");

    return hang_now("ibv_create_qp") ? NULL : next(pd, attr);
}

static int hang_has_other_class(const struct ibv_qp_attr *attr, int mask)
{
    const char *text = getenv("HANG_VERBS");

    return (text != NULL) && (strncmp(text, "class:", 6) == 0) &&
           ((mask & IBV_QP_AV) != 0) &&
           (!attr->ah_attr.is_global ||
            (attr->ah_attr.grh.traffic_class != atoi(text + 6)));
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*next)(struct ibv_qp*, struct ibv_qp_attr*, int) =
            hang_next("ibv_modify_qp");
    const char *names[] = {[IBV_QPS_INIT] = "init", [IBV_QPS_RTR] = "rtr",
                           [IBV_QPS_RTS] = "rts", [IBV_QPS_ERR] = "err"};
    const char *name = (((mask & IBV_QP_STATE) != 0) &&
                        (attr->qp_state <= IBV_QPS_ERR)) ?
                       names[attr->qp_state] : NULL;

    if (hang_has_other_class(attr, mask)) {
        return EPROTOTYPE;
    }
    return ((name != NULL) && hang_now(name)) ? errno : next(qp, attr, mask);
}
