/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that an interface gives to its peers, and whether a peer's fits it.
 */
#include "base/daqiri_addr.h"

#include "base/daqiri_log.h"
#include "iface/daqiri_iface.h"


void uct_daqiri_addr_get(const uct_daqiri_iface_t *iface, void *addr)
{
    const dq_iface_info_t info = dq_iface_info_make(&iface->config.addr,
                                                    iface->config.seg_size);

    memcpy(addr, &info, sizeof(info)); /* it may lie at any address */
}


/* A message must fit the RECV that the peer has posted. The best size depends on the
 * device (SEG_SIZE=auto), so a difference need not be a mistake. */
static int uct_daqiri_addr_is_seg_alike(uct_daqiri_iface_t *iface,
                                        const dq_iface_info_t *info)
{
    uint32_t seg_size = dq_iface_info_seg_size(info);

    if (seg_size == iface->config.seg_size) {
        return 1;
    }
    if (!iface->is_seg_logged) {
        iface->is_seg_logged = 1;
        ucs_warn("daqiri: %s does not connect to a peer whose segments have %u "
                 "bytes, for here they have %zu: set UCX_DAQIRI_SEG_SIZE to "
                 "the same on both sides", iface->config.port_name, seg_size,
                 iface->config.seg_size);
    }
    return 0;
}


static int uct_daqiri_addr_is_version_alike(uct_daqiri_iface_t *iface,
                                            const dq_iface_info_t *info)
{
    unsigned version = dq_iface_info_version(info);

    if (version == DQ_WIRE_VERSION) {
        return 1;
    }
    if (!iface->is_version_logged) {
        iface->is_version_logged = 1;
        uct_daqiri_log_version(iface->config.port_name, version, "");
    }
    return 0;
}


int uct_daqiri_addr_is_alike(uct_daqiri_iface_t *iface, const void *addr)
{
    dq_iface_info_t info;

    memcpy(&info, addr, sizeof(info)); /* it may lie at any address */
    return uct_daqiri_addr_is_version_alike(iface, &info) &&
           uct_daqiri_addr_is_seg_alike(iface, &info);
}
