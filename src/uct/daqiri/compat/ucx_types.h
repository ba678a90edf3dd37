/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structures that a transport shares with UCX and no installed header declares. They are
 * the same in all UCX from 1.13 to 1.23, with and without assertions and statistics. What
 * differs is in ucx_layout.h.
 *
 * They were written from measured sizes and offsets. Only members that the plugin uses
 * have names. ucx_types.def has the numbers, and ucx_layout.c compares these types with
 * them. A UCX with statistics has one pointer more at the end of an interface and of an
 * endpoint. There is always room for it.
 */
#ifndef UCT_DAQIRI_UCX_TYPES_H
#define UCT_DAQIRI_UCX_TYPES_H

#include <ucs/async/async_fwd.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue_types.h>
#include <ucs/sys/event_set.h>
#include <ucs/type/class.h>
#include <uct/api/uct.h>

/* ---- Objects that UCX and the transport both know ---- */

typedef struct uct_component uct_component_t;

/* Only pointers to them are handed on. */
typedef void uct_iface_internal_ops_t;
typedef void uct_tl_t;
typedef void ucs_rcache_params_t;

/* The name comes first in every version; ucx_layout.h has the rest. */
struct uct_component {
    char name[16];
};

struct uct_md {
    void            *ops;
    uct_component_t *component;
};

struct uct_iface_config {
    uint64_t room[4];
};

struct uct_md_config {
    char room;
};

typedef struct {
    uct_am_callback_t cb;
    void              *arg;
    uint32_t          flags;
} uct_am_handler_t;

typedef struct {
    uct_iface_t      super;
    void             *internal_ops;
    uct_md_h         md;
    uct_worker_h     worker;
    uct_am_handler_t am[UCT_AM_ID_MAX];
    uint64_t         am_tracer[2];
    uint64_t         err_handler[3];
    uint32_t         progress_refcount;
    uint32_t         progress_flags;
    uint64_t         alloc_methods[3];
    int              failure_level; /* ucs_log_level_t                       */
    uint64_t         max_num_eps;
    void             *stats;        /* only with statistics                  */
} uct_base_iface_t;

typedef struct {
    uct_ep_t super;
    void     *stats; /* only with statistics                                 */
} uct_base_ep_t;

/* One port. UCX frees the array. */
typedef struct {
    char             name[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
    ucs_sys_device_t sys_device;
} uct_tl_device_resource_t;

/* ---- Parameters of the second edition of the API ---- */

typedef struct {
    uint64_t         field_mask;
    unsigned         flags;
    uct_mem_h        memh;
    uct_completion_t *comp;
} uct_md_mem_dereg_params_t;

/* The estimate of an operation. More members follow, which differ by version. */
typedef struct {
    uint64_t field_mask;
    int      operation;
    int      memory_types[2]; /* here and there                              */
    uint8_t  sys_devices[2];
    double   send_pre_overhead;
} uct_perf_attr_t;

typedef struct {
    uint64_t field_mask;
    unsigned flags;
} uct_md_mkey_pack_params_t;

/* Since 1.14; more may follow. */
typedef struct {
    uint64_t field_mask;
    uint64_t flags;
    int      dmabuf_fd;
    size_t   dmabuf_offset;
} uct_md_mem_reg_params_t;

/* Since 1.14; the scope since 1.15, the lengths since 1.18. */
typedef struct {
    uint64_t                field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t  *iface_addr;
    char                    *info_string;
    size_t                  info_string_length;
    int                     scope;
    size_t                  device_addr_length;
    size_t                  iface_addr_length;
} uct_iface_is_reachable_params_t;

/* Since 1.16. */
typedef struct {
    uint64_t                field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t  *iface_addr;
    const uct_ep_addr_t     *ep_addr;
} uct_ep_is_connected_params_t;

enum {
    UCT_DAQIRI_PERF_OPERATION   = UCS_BIT(0),
    UCT_DAQIRI_PERF_PRE         = UCS_BIT(5),
    UCT_DAQIRI_OP_PUT_SHORT     = 3, /* RDMA is from here ...                */
    UCT_DAQIRI_OP_GET_ZCOPY     = 8, /* ... to here                          */
    UCT_DAQIRI_DEREG_MEMH       = UCS_BIT(0), /* bits of field_mask          */
    UCT_DAQIRI_DEREG_FLAGS      = UCS_BIT(1),
    UCT_DAQIRI_DEREG_COMP       = UCS_BIT(2),
    UCT_DAQIRI_DEREG_INVALIDATE = UCS_BIT(0), /* of flags                    */
    UCT_DAQIRI_PACK_FLAGS       = UCS_BIT(0),
    UCT_DAQIRI_PACK_INVALIDATE  = UCS_BIT(0), /* of flags; from 1.15: RMA    */
    UCT_DAQIRI_PACK_INVALIDATE_AMO = UCS_BIT(1), /* since 1.15               */
    UCT_DAQIRI_REG_FLAGS        = UCS_BIT(0),
    UCT_DAQIRI_REG_DMABUF_FD    = UCS_BIT(1),
    UCT_DAQIRI_REG_DMABUF_OFFSET = UCS_BIT(2),
    UCT_DAQIRI_REACH_DEVICE     = UCS_BIT(0),
    UCT_DAQIRI_REACH_IFACE      = UCS_BIT(1),
    UCT_DAQIRI_REACH_INFO       = UCS_BIT(2),
    UCT_DAQIRI_REACH_INFO_LEN   = UCS_BIT(3),
    UCT_DAQIRI_REACH_SCOPE      = UCS_BIT(4),
    UCT_DAQIRI_SCOPE_DEVICE     = 0,          /* the same device             */
    UCT_DAQIRI_CONNECTED_DEVICE = UCS_BIT(0),
    UCT_DAQIRI_CONNECTED_IFACE  = UCS_BIT(1),
    UCT_DAQIRI_CONNECTED_EP     = UCS_BIT(2)
};

/* Flags that installed headers have from some version on. */
#define UCT_DAQIRI_IFACE_INTER_NODE    UCS_BIT(54) /* 1.18: leaves the node  */
#define UCT_DAQIRI_MD_REG_DMABUF       UCS_BIT(10) /* 1.14                   */
#define UCT_DAQIRI_MD_INVALIDATE_RMA   UCS_BIT(11) /* 1.15                   */
#define UCT_DAQIRI_MD_INVALIDATE_AMO   UCS_BIT(12) /* 1.15                   */

/* ---- The registration cache ---- */

typedef struct ucs_rcache ucs_rcache_t;

/* UCX's part of a region. Its size differs by version, and our part follows it. */
typedef struct {
    uintptr_t start, end;
    char      room[112];
} ucs_rcache_region_t;

enum {
    UCT_DAQIRI_RCACHE_HIDE_ERRORS   = UCS_BIT(0), /* of a registration       */
    UCT_DAQIRI_RCACHE_PURGE_ON_FORK = UCS_BIT(1)  /* of a cache              */
};

/* ---- Small things ---- */

#define UCS_SYS_CACHE_LINE_SIZE 64  /* x86-64 and arm64                      */
#define UCS_SYS_PCI_MAX_PAYLOAD 512

#endif
