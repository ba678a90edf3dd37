/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any transport of UCX with active messages will do, so that one can be held
 * against another: those that are connected by interface (daqiri) and those
 * that are by endpoint (rc_verbs).
 */

#include "dq/dq_triage.h"
#include "tools/base/report.h"
#include "tools/flow/flow.h"
#include "tools/peer/net.h"
#include "tools/rdma/devices.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <uct/api/uct.h>

enum {
    FLOW_AM_DATA,
    FLOW_AM_ACK
};

typedef struct flow_uct {
    flow_link_t         link;
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_md_h            md;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            ep;
    uct_mem_h           memh;   /* of the data, if the transport wants one */
    char                *data;  /* of one fragment */
    ucs_status_t        (*send)(struct flow_uct *uct, uint64_t serial,
                                size_t length);
    uct_completion_t    unused; /* a fragment's memory never changes */
    int                 is_closing; /* the other end may close before this one */
} flow_uct_t;

static void link_need(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        flow_die("%s: %s", what, ucs_status_string(status));
    }
}

/* ---- the transport ---- */

/* What is done with the transports of a memory domain: returns whether it is
 * the one. */
typedef int (*link_look_t)(const uct_tl_resource_desc_t *tls, unsigned count,
                           void *arg);

typedef struct link_search {
    const char *tl;
    const char *devices; /* as in flow_opts_t */
    char       *device;  /* the one that was found; FLOW_DEVICE_MAX */
} link_search_t;

static int link_is_found(const uct_tl_resource_desc_t *tls, unsigned count,
                         void *arg)
{
    const link_search_t *search = arg;
    unsigned i;

    for (i = 0; i < count; ++i) {
        if ((strcmp(tls[i].tl_name, search->tl) == 0) &&
            flow_device_is_in(search->devices, tls[i].dev_name)) {
            snprintf(search->device, FLOW_DEVICE_MAX, "%.*s",
                     UCT_DEVICE_NAME_MAX, tls[i].dev_name);
            return 1;
        }
    }
    return 0;
}

static int link_list(const uct_tl_resource_desc_t *tls, unsigned count,
                     void *arg)
{
    json_t *row;
    unsigned i;

    for (i = 0; i < count; ++i) {
        row = json_object();
        daqiri_report_text(row, "name", tls[i].tl_name);
        daqiri_report_text(row, "device", tls[i].dev_name);
        json_array_append_new(arg, row);
    }
    return 0;
}

static int link_look_at(uct_md_h md, link_look_t look, void *arg)
{
    uct_tl_resource_desc_t *tls;
    unsigned count;
    int is_it;

    if (uct_md_query_tl_resources(md, &tls, &count) != UCS_OK) {
        return 0;
    }
    is_it = look(tls, count, arg);
    uct_release_tl_resource_list(tls);
    return is_it;
}

static int link_open_md(uct_component_h component, const char *name,
                        link_look_t look, void *arg, uct_md_h *md_p)
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
    if (link_look_at(*md_p, look, arg)) {
        return 1;
    }
    uct_md_close(*md_p);
    return 0;
}

static int link_search_component(uct_component_h component, link_look_t look,
                                 void *arg, uct_md_h *md_p)
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
        found = link_open_md(component, attr.md_resources[i].md_name, look,
                             arg, md_p);
    }
    free(attr.md_resources);
    return found;
}

/* Returns whether there is one, which is open then. */
static int link_search(link_look_t look, void *arg, uct_md_h *md_p)
{
    uct_component_h *components;
    unsigned count, i;
    int found = 0;

    link_need(uct_query_components(&components, &count),
              "UCX's components cannot be listed");
    for (i = 0; !found && (i < count); ++i) {
        found = link_search_component(components[i], look, arg, md_p);
    }
    uct_release_component_list(components);
    return found;
}

void flow_uct_list(json_t *rows)
{
    uct_md_h md;

    link_search(link_list, rows, &md);
}

/* Unless one was asked for, TCP goes where the other end is: over the interface
 * of the connection to it. */
static void link_find_md(flow_uct_t *uct, const flow_opts_t *opts, int fd)
{
    char device[FLOW_DEVICE_MAX];
    link_search_t search = {
        .tl      = opts->tl,
        .devices = opts->devices,
        .device  = uct->link.device
    };

    if ((search.devices == NULL) && (strcmp(search.tl, "tcp") == 0) &&
        (flow_device_of_socket(fd, device) == 0)) {
        search.devices = device;
    }
    if (!link_search(link_is_found, &search, &uct->md)) {
        flow_die("there is no transport %s on %s; \"ucx_info -d\" lists what "
                 "there is, in the environment of \"daqiri run\"", opts->tl,
                 (search.devices != NULL) ? search.devices : "this host");
    }
}

static ucs_status_t link_on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    const flow_uct_t *uct = arg;

    (void)ep;
    if (!uct->is_closing) {
        flow_die("the connection has failed: %s", ucs_status_string(status));
    }
    return UCS_OK;
}

static void link_open_iface(flow_uct_t *uct, const flow_opts_t *opts)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = opts->tl,
        .mode.device.dev_name = uct->link.device,
        .err_handler          = link_on_error,
        .err_handler_arg      = uct
    };
    uct_iface_config_t *config;

    link_need(uct_md_iface_config_read(uct->md, opts->tl, NULL, NULL, &config),
              "the transport's options cannot be read");
    link_need(uct_iface_open(uct->md, uct->worker, &params, config,
                             &uct->iface),
              "the interface cannot be opened");
    uct_config_release(config);
    link_need(uct_iface_query(uct->iface, &uct->attr),
              "the interface tells nothing of itself");
    uct_iface_progress_enable(uct->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

/* ---- being connected ---- */

/* Whether the software device has the other end on its fabric. The address of the
 * interface is left out, for it may be refused for other reasons. */
static void link_check_fabric(flow_uct_t *uct,
                              const daqiri_peer_frame_t *theirs)
{
    char text[DQ_TRIAGE_MESSAGE_MAX];
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_OTHER_FABRIC,
        .subject = uct->link.device
    };

    if (daqiri_is_soft_device(uct->link.device) &&
        !uct_iface_is_reachable(uct->iface, (const uct_device_addr_t*)
                                theirs->flow_address.device.bytes, NULL)) {
        flow_die_as(DAQIRI_CLASS_OTHER_FABRIC, "%s",
                    dq_triage_unreachable(&facts, text, sizeof(text)));
    }
}

/* What the other end has told is only looked at by UCX, and only when the
 * transport itself says that it leads somewhere. */
static void link_check_address(flow_uct_t *uct,
                               const daqiri_peer_frame_t *theirs)
{
    const uct_iface_addr_t *iface =
        (theirs->flow_address.iface.length > 0) ?
        (const uct_iface_addr_t*)theirs->flow_address.iface.bytes : NULL;

    if ((theirs->flow_address.device.length != uct->attr.device_addr_len) ||
        (theirs->flow_address.iface.length != uct->attr.iface_addr_len) ||
        (theirs->flow_address.ep.length > uct->attr.ep_addr_len)) {
        flow_die_as(DAQIRI_CLASS_PROTOCOL, "the other end has an address of "
                    "another kind of transport");
    }
    link_check_fabric(uct, theirs);
    if (!uct_iface_is_reachable(uct->iface, (const uct_device_addr_t*)
                                theirs->flow_address.device.bytes, iface)) {
        flow_die_as(DAQIRI_CLASS_PEER_UNREACHABLE, "this transport cannot "
                    "reach the other end from here");
    }
}

static void link_connect_iface(flow_uct_t *uct, int fd,
                               daqiri_peer_frame_t *mine)
{
    daqiri_peer_frame_t theirs;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = uct->iface,
        .dev_addr   = (const uct_device_addr_t*)
                      theirs.flow_address.device.bytes,
        .iface_addr = (const uct_iface_addr_t*)theirs.flow_address.iface.bytes
    };

    flow_swap(fd, mine, &theirs);
    link_check_address(uct, &theirs);
    link_need(uct_ep_create(&params, &uct->ep), "no endpoint can be made");
}

static void link_connect_ep(flow_uct_t *uct, int fd, daqiri_peer_frame_t *mine)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = uct->iface
    };
    daqiri_peer_frame_t theirs;

    link_need(uct_ep_create(&params, &uct->ep), "no endpoint can be made");
    link_need(uct_ep_get_address(uct->ep,
                                 (uct_ep_addr_t*)mine->flow_address.ep.bytes),
              "the endpoint has no address");
    mine->flow_address.ep.length = (uint16_t)uct->attr.ep_addr_len;
    flow_swap(fd, mine, &theirs);
    link_check_address(uct, &theirs);
    link_need(uct_ep_connect_to_ep(uct->ep, (const uct_device_addr_t*)
                                   theirs.flow_address.device.bytes,
                                   (const uct_ep_addr_t*)
                                   theirs.flow_address.ep.bytes),
              "the endpoints cannot be connected");
}

static void link_connect(flow_uct_t *uct, int fd)
{
    const uct_iface_attr_t *attr = &uct->attr;
    daqiri_peer_frame_t mine     = {.kind = DAQIRI_PEER_FLOW_ADDRESS};

    if ((attr->device_addr_len > DAQIRI_PEER_BLOB_MAX) ||
        (attr->iface_addr_len > DAQIRI_PEER_BLOB_MAX) ||
        (attr->ep_addr_len > DAQIRI_PEER_BLOB_MAX)) {
        flow_die("the transport's addresses are too long");
    }
    link_need(uct_iface_get_device_address(uct->iface, (uct_device_addr_t*)
                                           mine.flow_address.device.bytes),
              "the device has no address");
    if (attr->iface_addr_len > 0) {
        link_need(uct_iface_get_address(uct->iface, (uct_iface_addr_t*)
                                        mine.flow_address.iface.bytes),
                  "the interface has no address");
    }
    mine.flow_address.device.length = (uint16_t)attr->device_addr_len;
    mine.flow_address.iface.length  = (uint16_t)attr->iface_addr_len;
    if (attr->cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) {
        link_connect_iface(uct, fd, &mine);
    } else if (attr->cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP) {
        link_connect_ep(uct, fd, &mine);
    } else {
        flow_die("the transport cannot be connected by this program");
    }
}

/* ---- fragments ---- */

static ucs_status_t link_send_short(flow_uct_t *uct, uint64_t serial,
                                    size_t length)
{
    return uct_ep_am_short(uct->ep, FLOW_AM_DATA, serial, uct->data,
                           (unsigned)(length - FLOW_SERIAL_SIZE));
}

typedef struct link_pack {
    const char *data;
    uint64_t   serial;
    size_t     length;
} link_pack_t;

static size_t link_pack(void *dest, void *arg)
{
    const link_pack_t *pack = arg;

    memcpy(dest, &pack->serial, sizeof(pack->serial));
    memcpy((char*)dest + FLOW_SERIAL_SIZE, pack->data,
           pack->length - FLOW_SERIAL_SIZE);
    return pack->length;
}

static ucs_status_t link_send_bcopy(flow_uct_t *uct, uint64_t serial,
                                    size_t length)
{
    link_pack_t pack = {uct->data, serial, length};
    ssize_t packed;

    packed = uct_ep_am_bcopy(uct->ep, FLOW_AM_DATA, link_pack, &pack, 0);
    return (packed < 0) ? (ucs_status_t)packed : UCS_OK;
}

static ucs_status_t link_send_zcopy(flow_uct_t *uct, uint64_t serial,
                                    size_t length)
{
    uct_iov_t iov = {
        .buffer = uct->data,
        .length = length - FLOW_SERIAL_SIZE,
        .memh   = uct->memh,
        .count  = 1
    };
    ucs_status_t status;

    status = uct_ep_am_zcopy(uct->ep, FLOW_AM_DATA, &serial, sizeof(serial),
                             &iov, 1, 0, &uct->unused);
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

static void link_completed(uct_completion_t *unused)
{
    (void)unused; /* it is told of INT_MAX times */
}

/* The way that UCP would choose for such messages: inline, a copy, none. */
static void link_choose_send(flow_uct_t *uct, const flow_opts_t *opts)
{
    const uct_iface_attr_t *attr = &uct->attr;
    const uint64_t flags         = attr->cap.flags;

    if ((flags & UCT_IFACE_FLAG_AM_SHORT) &&
        (opts->size <= attr->cap.am.max_short)) {
        uct->send      = link_send_short;
        uct->link.most = attr->cap.am.max_short;
    } else if ((flags & UCT_IFACE_FLAG_AM_ZCOPY) &&
               (opts->size > attr->cap.am.max_bcopy)) {
        uct->send      = link_send_zcopy;
        uct->link.most = attr->cap.am.max_zcopy;
    } else if (flags & UCT_IFACE_FLAG_AM_BCOPY) {
        uct->send      = link_send_bcopy;
        uct->link.most = attr->cap.am.max_bcopy;
    } else {
        flow_die("the transport has no active messages for this size");
    }
    uct->link.serial = FLOW_SERIAL_SIZE;
    if (uct->link.most <= FLOW_SERIAL_SIZE) {
        flow_die("the transport's active messages are too short");
    }

    uct->data   = calloc(1, uct->link.most);
    uct->unused = (uct_completion_t){link_completed, INT_MAX, UCS_OK};
    if (uct->data == NULL) {
        flow_die("no memory");
    }
    uct->memh = UCT_MEM_HANDLE_NULL;
    if (uct->send == link_send_zcopy) {
        link_need(uct_md_mem_reg(uct->md, uct->data, uct->link.most,
                                 UCT_MD_MEM_ACCESS_ALL, &uct->memh),
                  "memory cannot be registered");
    }
}

/* ---- messages ---- */

static int link_send(flow_link_t *link, uint64_t serial, size_t length)
{
    flow_uct_t *uct     = (flow_uct_t*)link;
    ucs_status_t status = uct->send(uct, serial, length);

    if ((status != UCS_OK) && (status != UCS_ERR_NO_RESOURCE)) {
        flow_die("a message cannot be sent: %s", ucs_status_string(status));
    }
    return status == UCS_OK;
}

static int link_ack(flow_link_t *link, uint64_t count)
{
    flow_uct_t *uct = (flow_uct_t*)link;

    return uct_ep_am_short(uct->ep, FLOW_AM_ACK, count, NULL, 0) == UCS_OK;
}

static ucs_status_t link_on_data(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    const flow_uct_t *uct = arg;
    uint64_t serial;

    (void)flags;
    if (length < sizeof(serial)) {
        flow_die("a message of %zu bytes has come", length);
    }
    memcpy(&serial, data, sizeof(serial));
    uct->link.sink.on_data(uct->link.sink.arg, serial);
    return UCS_OK;
}

static ucs_status_t link_on_ack(void *arg, void *data, size_t length,
                                unsigned flags)
{
    const flow_uct_t *uct = arg;
    uint64_t count;

    (void)flags;
    if (length != sizeof(count)) {
        flow_die("an acknowledgement of %zu bytes has come", length);
    }
    memcpy(&count, data, sizeof(count));
    uct->link.sink.on_ack(uct->link.sink.arg, count);
    return UCS_OK;
}

static int link_poll(flow_link_t *link)
{
    return uct_worker_progress(((flow_uct_t*)link)->worker) > 0;
}

static void link_count(flow_link_t *link, json_t *counters)
{
    (void)link;
    flow_count_stats(counters);
}

static void link_close(flow_link_t *link, int fd)
{
    flow_uct_t *uct = (flow_uct_t*)link;

    while (uct_iface_flush(uct->iface, 0, NULL) != UCS_OK) {
        link_poll(link);
    }
    uct->is_closing = 1;
    flow_meet(fd);
    daqiri_net_meanwhile(NULL, NULL);
    uct_ep_destroy(uct->ep);
    if (uct->memh != UCT_MEM_HANDLE_NULL) {
        uct_md_mem_dereg(uct->md, uct->memh);
    }
    free(uct->data);
    uct_iface_close(uct->iface);
    uct_md_close(uct->md);
    uct_worker_destroy(uct->worker);
    ucs_async_context_destroy(uct->async);
    free(uct);
}

flow_link_t *flow_uct_open(const flow_opts_t *opts, int fd,
                           const flow_sink_t *sink)
{
    flow_uct_t *uct   = calloc(1, sizeof(*uct));
    flow_opts_t named = *opts;

    if (uct == NULL) {
        flow_die("no memory");
    }
    uct->link = (flow_link_t){
        .sink       = *sink,
        .window_max = UINT64_MAX,
        .is_driven  = 1,
        .send       = link_send,
        .ack        = link_ack,
        .poll       = link_poll,
        .count      = link_count,
        .close      = link_close
    };
    link_need(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                       &uct->async), "UCX cannot be used");
    link_need(uct_worker_create(uct->async, UCS_THREAD_MODE_SINGLE,
                                &uct->worker), "UCX cannot be used");
    if (strncmp(named.tl, FLOW_UCT_PREFIX, strlen(FLOW_UCT_PREFIX)) == 0) {
        named.tl += strlen(FLOW_UCT_PREFIX);
    }
    link_find_md(uct, &named, fd);
    link_open_iface(uct, &named);
    link_choose_send(uct, &named);
    link_need(uct_iface_set_am_handler(uct->iface, FLOW_AM_DATA, link_on_data,
                                       uct, 0), "no message can be taken");
    link_need(uct_iface_set_am_handler(uct->iface, FLOW_AM_ACK, link_on_ack,
                                       uct, 0), "no message can be taken");
    link_connect(uct, fd);
    return &uct->link;
}
