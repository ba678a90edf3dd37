/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory domain: one RDMA device.
 *
 * Threads: the user's thread opens and closes it. The list of interfaces has a lock.
 */
#ifndef UCT_DAQIRI_MD_H
#define UCT_DAQIRI_MD_H

#include "daqiri.h"

/* Of the registration cache. */
typedef struct {
    unsigned      event_priority;
    ucs_time_t    overhead; /* or UCS_TIME_AUTO                              */
    unsigned      alignment;
    unsigned long max_regions;
    size_t        max_size, max_unreleased;
    int           purge_on_fork;
} uct_daqiri_rcache_config_t;

typedef struct {
    uct_md_config_t            super;
    int                        reg_cache; /* ucs_on_off_auto_value_t         */
    uct_daqiri_rcache_config_t rcache;
} uct_daqiri_md_config_t;

/* A registration without the cache is a system call that pins pages. Seconds, and
 * seconds for each byte, as UCX assumes for every verbs device. */
#define UCT_DAQIRI_REG_COST      16.0e-6
#define UCT_DAQIRI_REG_COST_BYTE 0.06e-9
/* With the cache, seconds, as UCX assumes. */
#define UCT_DAQIRI_REG_COST_CACHED 180e-9
/* With the cache, on a device in user space, seconds. UCP compares it with a copy at
 * 5.8 GB/s. Within one host a copy is faster than that, and zcopy is a copy, too. With
 * this value UCP changes over where both take the same time, near 4 KiB
 * (contrib/bench protocols). */
#define UCT_DAQIRI_REG_COST_SOFT 500e-9

/* The speed of a copy that UCP assumes, bytes/s (UCX_BCOPY_BW=auto). */
#define UCT_DAQIRI_COPY_BW 5.8e9

typedef struct {
    uct_md_t               super;
    struct ibv_context     *context;
    struct ibv_pd          *pd;
    struct ibv_device_attr attr;
    ucs_rcache_t           *rcache; /* or NULL                               */
    ucs_linear_func_t      reg_cost;
    size_t                 reg_align; /* of what the cache registers         */
    int                    has_dmabuf; /* registers memory of other devices  */
    pthread_mutex_t        ifaces_lock;
    ucs_list_link_t        ifaces;  /* that are open; the lock               */
} uct_daqiri_md_t;

ucs_status_t uct_daqiri_query_md_resources(uct_component_t *component,
                                           uct_md_resource_desc_t **md_p,
                                           unsigned *num_md_p);
ucs_status_t uct_daqiri_md_open(uct_component_t *component,
                                const char *md_name,
                                const uct_md_config_t *config, uct_md_h *md_p);
void uct_daqiri_md_close(uct_md_h md);
ucs_status_t uct_daqiri_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

/* True if the user named this transport. Its absence is then worth a message. */
int uct_daqiri_is_asked_for(void);

#endif
