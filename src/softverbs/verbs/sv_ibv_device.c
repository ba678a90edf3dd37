/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices as programs find them: list, open, close.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/engine/sv_poll.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/verbs/sv_ibv.h"
#include "softverbs/verbs/sv_startup.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

/* Libraries for particular devices ask "is this device mine?". They compare a
 * pointer that lies behind struct ibv_device in their own structure. So that
 * memory must exist and be zero. */
struct sv_device {
    struct ibv_device device;
    void             *not_yours[16];
};

#define SV_DEVICE_NUMBER(n) \
    { \
        .device = { \
            .node_type      = IBV_NODE_CA, \
            .transport_type = IBV_TRANSPORT_IB, \
            .name           = SV_DEVICE #n, \
            .dev_name       = SV_DEVICE #n, \
            .dev_path       = "/sys/class/infiniband_verbs/" SV_DEVICE #n, \
            .ibdev_path     = "/sys/class/infiniband/" SV_DEVICE #n \
        } \
    }

/* They differ in name and GUID alone. They have one port, as two cables to one
 * switch have: so a program has several rails. */
static struct sv_device sv_devices[SV_DEVICES_MAX] = {
    SV_DEVICE_NUMBER(0), SV_DEVICE_NUMBER(1), SV_DEVICE_NUMBER(2), SV_DEVICE_NUMBER(3)
};

/* ---- list ---- */

unsigned sv_device_count(void)
{
    const char *text = getenv(SV_DEVICES_ENV);

    if ((text == NULL) || (*text == '\0')) {
        return 1;
    }
    if ((text[0] < '1') || (text[0] > '0' + SV_DEVICES_MAX) || (text[1] != '\0')) {
        return 0;
    }
    return text[0] - '0';
}

SV_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **list = calloc(SV_DEVICES_MAX + 1, sizeof(*list));
    unsigned count           = sv_device_count();
    unsigned i;

    if (list == NULL) {
        return NULL;
    }
    if (count == 0) {
        sv_log("there is no device: " SV_DEVICES_ENV "=\"%s\" is not a number from 1 "
               "to %d", getenv(SV_DEVICES_ENV), SV_DEVICES_MAX);
    }
    if (sv_is_idle_rdmacm(__builtin_return_address(0))) {
        count = 0;
    }
    for (i = 0; i < count; ++i) {
        list[i] = &sv_devices[i].device;
    }
    if (num_devices != NULL) {
        *num_devices = (int)count;
    }
    return list;
}

SV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

uint64_t sv_device_guid(const struct ibv_device *device)
{
    return SV_GUID + (uint64_t)((const struct sv_device*)device - sv_devices);
}

SV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(sv_device_guid(device));
}

SV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

/* ---- context ---- */

static void sv_context_fill(struct sv_context *ctx, struct ibv_device *device)
{
    struct verbs_context *vctx = &ctx->vctx;

    vctx->sz                        = sizeof(*vctx);
    vctx->query_port                = sv_query_port;
    vctx->context.abi_compat        = __VERBS_ABI_IS_EXTENDED;
    vctx->context.device            = device;
    vctx->context.cmd_fd            = -1;
    vctx->context.async_fd          = ctx->async.fd;
    vctx->context.num_comp_vectors  = 1;
    vctx->context.ops.poll_cq       = sv_poll_cq;
    vctx->context.ops.req_notify_cq = sv_req_notify_cq;
    vctx->context.ops.post_send     = sv_post_send;
    vctx->context.ops.post_recv     = sv_post_recv;
    vctx->context.ops.post_srq_recv = sv_post_srq_recv;
    pthread_mutex_init(&vctx->context.mutex, NULL);
}

SV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct sv_context *ctx;

    if (((sv_hooks.open != NULL) && (sv_hooks.open() != 0)) ||
        (sv_hook_verb(SV_VERB_OPEN_DEVICE) != 0)) {
        return NULL;
    }

    ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL) {
        return NULL;
    }

    if (sv_async_init(&ctx->async) != 0) {
        goto err_free;
    }

    ctx->node = sv_node_get();
    if (ctx->node == NULL) {
        goto err_async;
    }

    pthread_mutex_init(&ctx->lock, NULL);
    sv_context_fill(ctx, device);
    sv_context_list(ctx);
    return &ctx->vctx.context;

err_async:
    sv_async_cleanup(&ctx->async);
err_free:
    free(ctx);
    return NULL;
}

SV_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct sv_context *ctx = sv_context(context);

    if (sv_is_orphaned(context)) {
        return 0;
    }

    sv_context_unlist(ctx);
    sv_qp_close_all(ctx);
    sv_node_put(ctx->node);
    sv_async_cleanup(&ctx->async);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&context->mutex);
    free(ctx);
    return 0;
}
