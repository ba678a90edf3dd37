/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A driver that is wedged, or worse: preloaded in front of a device's library.
 * HANG_VERBS="ibv_reg_mr" makes that verb never come back, not even for
 * SIGTERM, after it has made the file HANG_FILE. "die:ibv_reg_mr" makes it end
 * the process; "refuse:ibv_reg_mr" fails with ENOMEM. Changes of state of a
 * queue pair are called init, rtr, rts. "class:184" refuses a path whose traffic
 * class is not that; "spoil:20" turns over a bit of that byte of each message
 * that arrives. "has:dmabuf" registers memory of other devices, if it were given some.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
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

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t length, uint64_t iova, int fd,
                                 int access)
{
    const char *text = getenv("HANG_VERBS");
    const int has_it = (text != NULL) && (strcmp(text, "has:dmabuf") == 0);

    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)access;
    errno = !has_it ? EOPNOTSUPP : (fd < 0) ? EBADF : ENOMEM;
    return NULL;
}

static void *hang_next(const char *verb)
{
    return dlsym(RTLD_NEXT, verb);
}

/* ---- data ---- */

static int (*spoil_next)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
static uint8_t *spoil_buffer; /* where messages arrive: as in src/tools/rdma/qp.h */
static int spoil_offset;

static int spoil_poll(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    int ret = spoil_next(cq, count, wc);
    int i;

    for (i = 0; i < ret; ++i) {
        if ((wc[i].status == IBV_WC_SUCCESS) &&
            (wc[i].opcode == IBV_WC_RECV)) {
            spoil_buffer[spoil_offset] ^= 1;
        }
    }
    return ret;
}

static void spoil_context(struct ibv_context *context)
{
    const char *text = getenv("HANG_VERBS");

    if ((context != NULL) && (text != NULL) &&
        (strncmp(text, "spoil:", 6) == 0)) {
        spoil_offset         = atoi(text + 6);
        spoil_next           = context->ops.poll_cq;
        context->ops.poll_cq = spoil_poll;
    }
}

/* ---- verbs ---- */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*next)(struct ibv_device*) =
            hang_next("ibv_open_device");
    struct ibv_context *context;

    context = hang_now("ibv_open_device") ? NULL : next(device);
    spoil_context(context);
    return context;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *(*next)(struct ibv_context*) = hang_next("ibv_alloc_pd");

    return hang_now("ibv_alloc_pd") ? NULL : next(context);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *(*next)(struct ibv_context*) =
            hang_next("ibv_create_comp_channel");

    return hang_now("ibv_create_comp_channel") ? NULL : next(context);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user,
                             struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *(*next)(struct ibv_context*, int, void*,
                           struct ibv_comp_channel*, int) =
            hang_next("ibv_create_cq");

    return hang_now("ibv_create_cq") ? NULL :
           next(context, cqe, user, channel, vector);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *(*next)(struct ibv_pd*, struct ibv_ah_attr*) =
            hang_next("ibv_create_ah");

    return hang_now("ibv_create_ah") ? NULL : next(pd, attr);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                               struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *(*next)(struct ibv_pd*, struct ibv_srq_init_attr*) =
            hang_next("ibv_create_srq");

    return hang_now("ibv_create_srq") ? NULL : next(pd, attr);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    struct ibv_mr *(*next)(struct ibv_pd*, void*, size_t, int) =
            hang_next("ibv_reg_mr");

    spoil_buffer = (uint8_t*)addr + length / 2;
    return hang_now("ibv_reg_mr") ? NULL : next(pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access)
{
    struct ibv_mr *(*next)(struct ibv_pd*, void*, size_t, uint64_t, unsigned) =
            hang_next("ibv_reg_mr_iova2");

    spoil_buffer = (uint8_t*)addr + length / 2;
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
