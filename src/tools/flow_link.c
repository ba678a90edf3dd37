/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any transport of UCX with active messages will do, so that one can be held
 * against another: those that are connected by interface (daqiri) and those
 * that are by endpoint (rc_verbs).
 */

#include "flow.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOW_ADDRESS_MAX 1024
#define FLOW_IDLE_POLLS  1024

void flow_die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "daqiri-flow: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

static void flow_need(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        flow_die("%s: %s", what, ucs_status_string(status));
    }
}

/* ---- the socket pair ---- */

void flow_tell(int fd, const void *data, size_t length)
{
    ssize_t n;

    for (; length > 0; length -= (size_t)n) {
        n = write(fd, data, length);
        if ((n < 0) && (errno == EINTR)) {
            n = 0;
        } else if (n <= 0) {
            flow_die("the other end is gone");
        }
        data = (const char*)data + n;
    }
}

void flow_hear(int fd, void *data, size_t length)
{
    ssize_t n;

    for (; length > 0; length -= (size_t)n) {
        n = read(fd, data, length);
        if ((n < 0) && (errno == EINTR)) {
            n = 0;
        } else if (n <= 0) {
            flow_die("the other end is gone");
        }
        data = (char*)data + n;
    }
}

/* Both ends tell at the same time, and less than a socket holds. */
static void flow_swap(int fd, const void *mine, void *theirs, size_t length)
{
    flow_tell(fd, mine, length);
    flow_hear(fd, theirs, length);
}

/* ---- the transport ---- */

static int flow_md_has(uct_md_h md, const flow_opts_t *opts)
{
    uct_tl_resource_desc_t *tls;
    unsigned count, i;
    int has = 0;

    if (uct_md_query_tl_resources(md, &tls, &count) != UCS_OK) {
        return 0;
    }
    for (i = 0; i < count; ++i) {
        has |= (strcmp(tls[i].tl_name, opts->tl) == 0) &&
               (strcmp(tls[i].dev_name, opts->device) == 0);
    }
    uct_release_tl_resource_list(tls);
    return has;
}

static int flow_open_md(uct_component_h component, const char *name,
                        const flow_opts_t *opts, uct_md_h *md_p)
{
    uct_md_config_t *config;
    ucs_status_t status;

    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
        return 0;
    }
    status = uct_md_open(component, name, config, md_p);
    uct_config_release(config);
    if (status != UCS_OK) {
        return 0;
    }
    if (flow_md_has(*md_p, opts)) {
        return 1;
    }
    uct_md_close(*md_p);
    return 0;
}

static int flow_search_component(uct_component_h component,
                                 const flow_opts_t *opts, uct_md_h *md_p)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    unsigned i;
    int found = 0;

    if (uct_component_query(component, &attr) != UCS_OK) {
        return 0;
    }
    attr.md_resources = calloc(attr.md_resource_count + 1,
                               sizeof(*attr.md_resources));
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    if ((attr.md_resources == NULL) ||
        (uct_component_query(component, &attr) != UCS_OK)) {
        free(attr.md_resources);
        return 0;
    }
    for (i = 0; !found && (i < attr.md_resource_count); ++i) {
        found = flow_open_md(component, attr.md_resources[i].md_name, opts,
                             md_p);
    }
    free(attr.md_resources);
    return found;
}

static void flow_find_md(flow_link_t *link, const flow_opts_t *opts)
{
    uct_component_h *components;
    unsigned count, i;
    int found = 0;

    flow_need(uct_query_components(&components, &count),
              "UCX's components cannot be listed");
    for (i = 0; !found && (i < count); ++i) {
        found = flow_search_component(components[i], opts, &link->md);
    }
    uct_release_component_list(components);
    if (!found) {
        flow_die("there is no transport %s on %s; \"ucx_info -d\" lists what "
                 "there is, in the environment of \"daqiri run\"", opts->tl,
                 opts->device);
    }
}

static ucs_status_t flow_on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    flow_die("the connection has failed: %s", ucs_status_string(status));
}

static void flow_open_iface(flow_link_t *link, const flow_opts_t *opts)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = opts->tl,
        .mode.device.dev_name = opts->device,
        .err_handler          = flow_on_error
    };
    uct_iface_config_t *config;

    flow_need(uct_md_iface_config_read(link->md, opts->tl, NULL, NULL, &config),
              "the transport's options cannot be read");
    flow_need(uct_iface_open(link->md, link->worker, &params, config,
                             &link->iface),
              "the interface cannot be opened");
    uct_config_release(config);
    flow_need(uct_iface_query(link->iface, &link->attr),
              "the interface tells nothing of itself");
    uct_iface_progress_enable(link->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

/* ---- being connected ---- */

typedef struct flow_addresses {
    char device[FLOW_ADDRESS_MAX];
    char iface[FLOW_ADDRESS_MAX];
    char ep[FLOW_ADDRESS_MAX];
} flow_addresses_t;

static void flow_connect_iface(flow_link_t *link, int fd,
                               flow_addresses_t *mine,
                               flow_addresses_t *theirs)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = link->iface,
        .dev_addr   = (const uct_device_addr_t*)theirs->device,
        .iface_addr = (const uct_iface_addr_t*)theirs->iface
    };

    flow_need(uct_iface_get_address(link->iface,
                                    (uct_iface_addr_t*)mine->iface),
              "the interface has no address");
    flow_swap(fd, mine, theirs, sizeof(*mine));
    flow_need(uct_ep_create(&params, &link->ep), "no endpoint can be made");
}

static void flow_connect_ep(flow_link_t *link, int fd, flow_addresses_t *mine,
                            flow_addresses_t *theirs)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = link->iface
    };

    flow_need(uct_ep_create(&params, &link->ep), "no endpoint can be made");
    flow_need(uct_ep_get_address(link->ep, (uct_ep_addr_t*)mine->ep),
              "the endpoint has no address");
    flow_swap(fd, mine, theirs, sizeof(*mine));
    flow_need(uct_ep_connect_to_ep(link->ep,
                                   (const uct_device_addr_t*)theirs->device,
                                   (const uct_ep_addr_t*)theirs->ep),
              "the endpoints cannot be connected");
}

static void flow_connect(flow_link_t *link, int fd)
{
    const uint64_t flags = link->attr.cap.flags;
    flow_addresses_t mine = {{0}}, theirs = {{0}};
    char ready = 1;

    if ((link->attr.device_addr_len > FLOW_ADDRESS_MAX) ||
        (link->attr.iface_addr_len > FLOW_ADDRESS_MAX) ||
        (link->attr.ep_addr_len > FLOW_ADDRESS_MAX)) {
        flow_die("the transport's addresses are too long");
    }
    flow_need(uct_iface_get_device_address(link->iface,
                                           (uct_device_addr_t*)mine.device),
              "the device has no address");
    if (flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) {
        flow_connect_iface(link, fd, &mine, &theirs);
    } else if (flags & UCT_IFACE_FLAG_CONNECT_TO_EP) {
        flow_connect_ep(link, fd, &mine, &theirs);
    } else {
        flow_die("the transport cannot be connected by this program");
    }
    flow_swap(fd, &ready, &ready, sizeof(ready)); /* nobody is too early */
}

/* ---- fragments ---- */

static ucs_status_t flow_send_short(flow_link_t *link, uint64_t serial,
                                    size_t length)
{
    return uct_ep_am_short(link->ep, FLOW_AM_DATA, serial, link->data,
                           (unsigned)(length - FLOW_SERIAL_SIZE));
}

typedef struct flow_pack {
    const char *data;
    uint64_t   serial;
    size_t     length;
} flow_pack_t;

static size_t flow_pack(void *dest, void *arg)
{
    const flow_pack_t *pack = arg;

    memcpy(dest, &pack->serial, sizeof(pack->serial));
    memcpy((char*)dest + FLOW_SERIAL_SIZE, pack->data,
           pack->length - FLOW_SERIAL_SIZE);
    return pack->length;
}

static ucs_status_t flow_send_bcopy(flow_link_t *link, uint64_t serial,
                                    size_t length)
{
    flow_pack_t pack = {link->data, serial, length};
    ssize_t packed;

    packed = uct_ep_am_bcopy(link->ep, FLOW_AM_DATA, flow_pack, &pack, 0);
    return (packed < 0) ? (ucs_status_t)packed : UCS_OK;
}

static ucs_status_t flow_send_zcopy(flow_link_t *link, uint64_t serial,
                                    size_t length)
{
    uct_iov_t iov = {
        .buffer = link->data,
        .length = length - FLOW_SERIAL_SIZE,
        .memh   = link->memh,
        .count  = 1
    };
    ucs_status_t status;

    status = uct_ep_am_zcopy(link->ep, FLOW_AM_DATA, &serial, sizeof(serial),
                             &iov, 1, 0, &link->unused);
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

static void flow_completed(uct_completion_t *unused)
{
    (void)unused; /* it is told of INT_MAX times */
}

/* The way that UCP would choose for such messages: inline, a copy, none. */
static void flow_choose_send(flow_link_t *link, const flow_opts_t *opts)
{
    const uct_iface_attr_t *attr = &link->attr;
    const uint64_t flags         = attr->cap.flags;

    if ((flags & UCT_IFACE_FLAG_AM_SHORT) &&
        (opts->size <= attr->cap.am.max_short)) {
        link->send = flow_send_short;
        link->most = attr->cap.am.max_short;
    } else if ((flags & UCT_IFACE_FLAG_AM_ZCOPY) &&
               (opts->size > attr->cap.am.max_bcopy)) {
        link->send = flow_send_zcopy;
        link->most = attr->cap.am.max_zcopy;
    } else if (flags & UCT_IFACE_FLAG_AM_BCOPY) {
        link->send = flow_send_bcopy;
        link->most = attr->cap.am.max_bcopy;
    } else {
        flow_die("the transport has no active messages for this size");
    }
    if (link->most <= FLOW_SERIAL_SIZE) {
        flow_die("the transport's active messages are too short");
    }

    link->data   = calloc(1, link->most);
    link->unused = (uct_completion_t){flow_completed, INT_MAX, UCS_OK};
    if (link->data == NULL) {
        flow_die("no memory");
    }
    link->memh = UCT_MEM_HANDLE_NULL;
    if (link->send == flow_send_zcopy) {
        flow_need(uct_md_mem_reg(link->md, link->data, link->most,
                                 UCT_MD_MEM_ACCESS_ALL, &link->memh),
                  "memory cannot be registered");
    }
}

void flow_link_open(flow_link_t *link, const flow_opts_t *opts, int fd,
                    uct_am_callback_t on_data, uct_am_callback_t on_ack,
                    void *arg)
{
    flow_need(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                       &link->async), "UCX cannot be used");
    flow_need(uct_worker_create(link->async, UCS_THREAD_MODE_SINGLE,
                                &link->worker), "UCX cannot be used");
    flow_find_md(link, opts);
    flow_open_iface(link, opts);
    flow_choose_send(link, opts);
    flow_need(uct_iface_set_am_handler(link->iface, FLOW_AM_DATA, on_data, arg,
                                       0), "no message can be taken");
    flow_need(uct_iface_set_am_handler(link->iface, FLOW_AM_ACK, on_ack, arg,
                                       0), "no message can be taken");
    flow_connect(link, fd);
}

void flow_link_close(flow_link_t *link, int fd)
{
    char done = 1;

    while (uct_iface_flush(link->iface, 0, NULL) != UCS_OK) {
        flow_progress(link);
    }
    flow_swap(fd, &done, &done, sizeof(done));
    uct_ep_destroy(link->ep);
    if (link->memh != UCT_MEM_HANDLE_NULL) {
        uct_md_mem_dereg(link->md, link->memh);
    }
    free(link->data);
    uct_iface_close(link->iface);
    uct_md_close(link->md);
    uct_worker_destroy(link->worker);
    ucs_async_context_destroy(link->async);
}

int flow_progress(flow_link_t *link)
{
    static unsigned idle;

    if (uct_worker_progress(link->worker) > 0) {
        idle = 0;
        return 1;
    }
    if (++idle >= FLOW_IDLE_POLLS) {
        idle = 0;
        sched_yield();
    }
    return 0;
}
