/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory domain: one RDMA device and its protection domain.
 */
#include "base/daqiri_md.h"

#include "base/daqiri_log.h"
#include "base/daqiri_mem.h"

/* A list that begins with ^ names what is not wanted. */
int uct_daqiri_is_asked_for(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (tls[0] != '^') &&
           (strstr(tls, UCT_DAQIRI_NAME) != NULL);
}


/* UCX asks for the devices several times; the user is told once. */
static void uct_daqiri_log_no_device(int error)
{
    static int is_logged   = 0;
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_NO_DEVICE,
        .subject = UCT_DAQIRI_NAME,
        .error   = error,
    };

    uct_daqiri_log((uct_daqiri_is_asked_for() && !is_logged)
                           ? UCS_LOG_LEVEL_WARN : UCS_LOG_LEVEL_DEBUG,
                   &facts);
    is_logged = 1;
}


ucs_status_t uct_daqiri_query_md_resources(uct_component_t *component,
                                           uct_md_resource_desc_t **md_p,
                                           unsigned *num_md_p)
{
    uct_md_resource_desc_t *mds;
    struct ibv_device **devices;
    int count = 0, i;

    uct_daqiri_compat_watch_forks();
    devices = ibv_get_device_list(&count);
    if ((devices == NULL) || (count == 0)) {
        /* ENOSYS means a kernel without RDMA: no device, and no error */
        uct_daqiri_log_no_device(((devices == NULL) && (errno != ENOSYS))
                                         ? errno : 0);
        if (devices != NULL) {
            ibv_free_device_list(devices);
        }
        return uct_md_query_empty_md_resource(md_p, num_md_p);
    }

    mds = ucs_calloc(count, sizeof(*mds), component->name);
    if (mds == NULL) {
        ibv_free_device_list(devices);
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i < count; i++) {
        ucs_strncpy_zero(mds[i].md_name, ibv_get_device_name(devices[i]),
                         sizeof(mds[i].md_name));
    }

    ibv_free_device_list(devices);
    *md_p     = mds;
    *num_md_p = count;
    return UCS_OK;
}


static struct ibv_context *uct_daqiri_md_open_device(const char *name)
{
    dq_facts_t facts = {.cause = DQ_CAUSE_DEVICE_OPEN, .subject = name};
    struct ibv_context *context = NULL;
    struct ibv_device **devices;
    int i;

    devices = ibv_get_device_list(NULL);
    for (i = 0; (devices != NULL) && (devices[i] != NULL); i++) {
        if (strcmp(ibv_get_device_name(devices[i]), name) == 0) {
            context     = ibv_open_device(devices[i]);
            facts.error = errno;
            break;
        }
    }
    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    if (context == NULL) {
        uct_daqiri_log(uct_daqiri_is_asked_for() ? UCS_LOG_LEVEL_WARN
                                                 : UCS_LOG_LEVEL_DEBUG,
                       &facts);
    }
    return context;
}


ucs_status_t uct_daqiri_md_open(uct_component_t *component,
                                const char *md_name,
                                const uct_md_config_t *config, uct_md_h *md_p)
{
    ucs_status_t status = UCS_ERR_IO_ERROR;
    uct_daqiri_md_t *md;
    int ret;

    md = ucs_calloc(1, sizeof(*md), md_name);
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    md->super.component = component;
    ucs_list_head_init(&md->ifaces);
    pthread_mutex_init(&md->ifaces_lock, NULL);
    md->context         = uct_daqiri_md_open_device(md_name);
    if (md->context == NULL) {
        status = UCS_ERR_NO_DEVICE;
        goto err_free;
    }

    ret = ibv_query_device(md->context, &md->attr);
    if (ret != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, md_name, "ibv_query_device",
                            ret);
        goto err_close;
    }
    md->pd = ibv_alloc_pd(md->context);
    if (md->pd == NULL) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, md_name, "ibv_alloc_pd",
                            errno);
        goto err_close;
    }

    md->has_dmabuf = uct_daqiri_mem_has_dmabuf(md);
    uct_daqiri_rcache_open(md, ucs_derived_of(config, uct_daqiri_md_config_t));
    *md_p = &md->super;
    return UCS_OK;

err_close:
    ibv_close_device(md->context);
err_free:
    pthread_mutex_destroy(&md->ifaces_lock);
    ucs_free(md);
    return status;
}


void uct_daqiri_md_close(uct_md_h tl_md)
{
    uct_daqiri_md_t *md = ucs_derived_of(tl_md, uct_daqiri_md_t);
    int ret;

    uct_daqiri_rcache_close(md);
    ret = ibv_dealloc_pd(md->pd);
    if (ret != 0) {
        ucs_warn("ibv_dealloc_pd() failed: %s", strerror(ret));
    }
    ibv_close_device(md->context);
    pthread_mutex_destroy(&md->ifaces_lock);
    ucs_free(md);
}


/* Returns DQ_CAUSE_NONE if the port is active. Logs a verb that fails. */
static dq_cause_t uct_daqiri_md_port_cause(uct_daqiri_md_t *md, int num)
{
    struct ibv_port_attr port;
    int ret = ibv_query_port(md->context, num, &port);

    if (ret != 0) {
        uct_daqiri_log_verb(uct_daqiri_is_asked_for() ? UCS_LOG_LEVEL_ERROR
                                                      : UCS_LOG_LEVEL_DEBUG,
                            ibv_get_device_name(md->context->device),
                            "ibv_query_port", ret);
        return DQ_CAUSE_VERB;
    }
    return (port.state == IBV_PORT_ACTIVE) ? DQ_CAUSE_NONE
                                           : DQ_CAUSE_PORT_DOWN;
}


/* A process without an async thread cannot connect, so it is offered no port. It is
 * told once, and may go on without daqiri. */
static int uct_daqiri_md_is_stranded(const char *name)
{
    static pid_t logged_by;
    const dq_facts_t facts = {.cause = DQ_CAUSE_FORKED, .subject = name};

    if (uct_daqiri_compat_async_runs()) {
        return 0;
    }
    uct_daqiri_log((uct_daqiri_is_asked_for() && (logged_by != getpid()))
                           ? UCS_LOG_LEVEL_WARN : UCS_LOG_LEVEL_DEBUG,
                   &facts);
    logged_by = getpid();
    return 1;
}


/* Leaves out ports that are not active. Logs it if none is left. */
ucs_status_t uct_daqiri_query_devices(uct_md_h tl_md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p)
{
    uct_daqiri_md_t *md = ucs_derived_of(tl_md, uct_daqiri_md_t);
    const char *name    = ibv_get_device_name(md->context->device);
    dq_facts_t facts    = {.cause = DQ_CAUSE_PORT_DOWN, .subject = name};
    uct_tl_device_resource_t *devices;
    dq_cause_t cause = DQ_CAUSE_NONE;
    unsigned count   = 0;
    int num;

    if (uct_daqiri_md_is_stranded(name)) {
        return UCS_ERR_NO_DEVICE;
    }
    devices = ucs_calloc(md->attr.phys_port_cnt, sizeof(*devices), name);
    if (devices == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (num = 1; num <= md->attr.phys_port_cnt; num++) {
        cause = uct_daqiri_md_port_cause(md, num);
        if (cause != DQ_CAUSE_NONE) {
            continue;
        }
        snprintf(devices[count].name, sizeof(devices[count].name), "%s:%d",
                 name, num);
        devices[count].type       = UCT_DEVICE_TYPE_NET;
        devices[count].sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
        count++;
    }

    *devices_p     = devices;
    *num_devices_p = count;
    if (count > 0) {
        return UCS_OK;
    }
    if (cause == DQ_CAUSE_PORT_DOWN) {
        uct_daqiri_log(uct_daqiri_is_asked_for() ? UCS_LOG_LEVEL_WARN
                                                 : UCS_LOG_LEVEL_DEBUG,
                       &facts);
    }
    ucs_free(devices);
    return UCS_ERR_NO_DEVICE;
}
