/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and address handles. */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_pd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

SV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct sv_context *ctx = sv_context(context);
    struct sv_pd *pd;

    if (sv_hook_verb(SV_VERB_ALLOC_PD) != 0) {
        return NULL;
    }
    if (atomic_fetch_add(&ctx->num_pd, 1) >= SV_LIMIT_PD) {
        atomic_fetch_sub(&ctx->num_pd, 1);
        errno = ENOMEM;
        return NULL;
    }

    pd = calloc(1, sizeof(*pd));
    if (pd == NULL) {
        atomic_fetch_sub(&ctx->num_pd, 1);
        return NULL;
    }

    pd->base.context = context;
    pd->pdn          = atomic_fetch_add(&ctx->node->next_pdn, 1) + 1;
    pd->base.handle  = pd->pdn;
    return &pd->base;
}

SV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct sv_pd *pd = sv_pd(ibpd);

    if (sv_is_orphaned(ibpd->context)) {
        return 0;
    }
    if (atomic_load(&pd->users) > 0) {
        return EBUSY;
    }

    atomic_fetch_sub(&sv_context(ibpd->context)->num_pd, 1);
    free(pd);
    return 0;
}

SV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
                                       struct ibv_ah_attr *attr)
{
    struct sv_context *ctx = sv_context(pd->context);
    struct sv_ah *ah;

    if (sv_hook_verb(SV_VERB_CREATE_AH) != 0) {
        return NULL;
    }
    if ((attr->port_num != 1) ||
        (attr->is_global && (attr->grh.sgid_index != sv_port_gid_index()))) {
        errno = EINVAL;
        return NULL;
    }
    if (atomic_fetch_add(&ctx->num_ah, 1) >= SV_LIMIT_AH) {
        atomic_fetch_sub(&ctx->num_ah, 1);
        errno = ENOMEM;
        return NULL;
    }

    ah = calloc(1, sizeof(*ah));
    if (ah == NULL) {
        atomic_fetch_sub(&ctx->num_ah, 1);
        return NULL;
    }

    ah->base.context = pd->context;
    ah->base.pd      = pd;
    ah->sl           = attr->sl;
    ah->global       = attr->is_global;
    ah->is_local     = sv_address_is_local(attr);
    sv_address_check(attr);
    atomic_fetch_add(&sv_pd(pd)->users, 1);
    return &ah->base;
}

SV_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    atomic_fetch_sub(&sv_context(ah->context)->num_ah, 1);
    atomic_fetch_sub(&sv_pd(ah->pd)->users, 1);
    free(ah);
    return 0;
}

SV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                                  struct ibv_wc *wc, struct ibv_grh *grh,
                                  struct ibv_ah_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->dlid          = wc->slid;
    attr->sl            = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num      = port_num;
    if ((wc->wc_flags & IBV_WC_GRH) != 0) {
        attr->is_global      = 1;
        attr->grh.dgid       = grh->sgid;
        attr->grh.sgid_index = sv_port_gid_index();
        attr->grh.hop_limit  = 0xff;
    }
    return 0;
}

SV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
                                               struct ibv_wc *wc,
                                               struct ibv_grh *grh,
                                               uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) {
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}
