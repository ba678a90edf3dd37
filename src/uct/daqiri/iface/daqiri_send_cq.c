/* SPDX-License-Identifier: BSD-3-Clause */
#include "iface/daqiri_send_cq.h"

#include "base/daqiri_log.h"
#include "base/daqiri_md.h"

enum {
    UCT_DAQIRI_SEND_CQ_START = 4096,
    /* 4 MiB of 64-byte entries. 2000 connections that send by chance keep less than half
     * of them. */
    UCT_DAQIRI_SEND_CQ_MOST  = 65536
};


int uct_daqiri_send_cq_open(uct_daqiri_iface_t *iface,
                            const uct_daqiri_iface_config_t *config)
{
    const uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    int is_auto               = config->cq_len == UCS_ULUNITS_AUTO;
    uint32_t limit            = md->attr.max_cqe;
    uint32_t start            = is_auto ? UCT_DAQIRI_SEND_CQ_START : config->cq_len;
    uint32_t most             = is_auto ? UCT_DAQIRI_SEND_CQ_MOST : config->cq_len;

    start        = ucs_min(start, limit);
    iface->tx.cq = ibv_create_cq(md->context, start, NULL, iface->event.channel, 0);
    if (iface->tx.cq == NULL) {
        return -1;
    }
    /* The length that was asked for, although some devices give more: the option means
     * what it says. */
    dq_cq_init(&iface->tx.ledger, ucs_min(start, (unsigned)iface->tx.cq->cqe));
    iface->tx.cq_most = ucs_min(most, limit);
    return 0;
}


void uct_daqiri_send_cq_check(uct_daqiri_iface_t *iface)
{
    dq_cq_t *ledger = &iface->tx.ledger;
    uint32_t length = ucs_min(ledger->depth * 2, iface->tx.cq_most);
    int ret;

    uct_daqiri_assert_progress(iface);
    if ((length <= ledger->depth) || !dq_cq_is_filling(ledger)) {
        return;
    }
    ret = ibv_resize_cq(iface->tx.cq, length);
    if (ret != 0) {
        iface->tx.cq_most = ledger->depth; /* it works as before, only slower */
        uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, UCT_DAQIRI_NAME, "ibv_resize_cq",
                            ret);
        return;
    }
    dq_cq_deepen(ledger, length);
    iface->tx.wake = 1; /* sends may have waited for an entry */
}
