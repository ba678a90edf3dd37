/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_wire.h"

/* Reads "dqri" in a packet dump. */
#define DQ_FRAME_MAGIC 0x69727164u

/* The beginning of frames of all versions: enough to tell whose they are. */
typedef struct {
    uint32_t magic;
    uint8_t  version;
    uint8_t  kind;
    uint8_t  reason;
    uint8_t  rd_atomic;
    uint64_t dst_cookie;
} __attribute__((packed)) dq_wire_head_t;

/* A frame as it lies in the datagram. */
typedef struct {
    dq_wire_head_t  head;
    dq_iface_addr_t src;
    dq_port_addr_t  port;
    uint32_t        epoch;
    uint32_t        first;
    uint32_t        peer_epoch;
    uint32_t        qpn;
    uint32_t        psn;
    uint32_t        delivered;
    uint32_t        acked;
    uint32_t        done;
    uint16_t        credits;
    uint16_t        promised;
    uint32_t        pid;
    uint64_t        mark;
    uint64_t        peer_mark;
    char            host[DQ_WIRE_HOST_LEN];
    uint32_t        end; /* the magic again: a cut frame has none            */
} __attribute__((packed)) dq_wire_frame_t;

DQ_STATIC_ASSERT(sizeof(dq_wire_frame_t) == DQ_FRAME_BYTES, "frame size");
DQ_STATIC_ASSERT(offsetof(dq_wire_head_t, version) == 4,
                 "the version stays where every version finds it");
DQ_STATIC_ASSERT(offsetof(dq_wire_head_t, dst_cookie) == 8, "and the cookie");
DQ_STATIC_ASSERT(sizeof(dq_wire_head_t) == 16, "layout");
DQ_STATIC_ASSERT(offsetof(dq_wire_frame_t, epoch) == 56, "layout");
DQ_STATIC_ASSERT(offsetof(dq_wire_frame_t, mark) == 96, "layout");
DQ_STATIC_ASSERT(offsetof(dq_wire_frame_t, host) == 112, "layout");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dq_wire.c packs structures as they lie: write the swaps first"
#endif


dq_wire_status_t dq_msg_parse_slow(const void *buf, size_t length)
{
    const dq_msg_hdr_t *hdr = buf;

    if (length < sizeof(*hdr)) {
        return DQ_WIRE_SHORT;
    }
    if ((hdr->kind < DQ_MSG_AM) || (hdr->kind > DQ_MSG_CLOSE)) {
        return DQ_WIRE_BAD_KIND;
    }
    if (hdr->am_id >= DQ_WIRE_AM_ID_MAX) {
        return DQ_WIRE_BAD_FIELD;
    }
    return DQ_WIRE_OK;
}


static int dq_host_is_fit(char c)
{
    return (c >= ' ') && (c <= '~');
}


void dq_wire_host(char host[DQ_WIRE_HOST_LEN], const char *name)
{
    unsigned i;

    memset(host, 0, DQ_WIRE_HOST_LEN);
    for (i = 0; (i < DQ_WIRE_HOST_LEN - 1) && (name[i] != '\0'); i++) {
        host[i] = dq_host_is_fit(name[i]) ? name[i] : '?';
    }
}


/* It ends, and what goes to the log of its receiver is text. */
static int dq_host_is_sane(const char *host)
{
    unsigned i;

    for (i = 0; i < DQ_WIRE_HOST_LEN; i++) {
        if (host[i] == '\0') {
            return 1;
        }
        if (!dq_host_is_fit(host[i])) {
            return 0;
        }
    }
    return 0;
}


void dq_frame_pack(const dq_frame_t *frame, void *buf)
{
    dq_wire_frame_t wire = {
        .head       = {
            .magic      = DQ_FRAME_MAGIC,
            .version    = DQ_WIRE_VERSION,
            .kind       = frame->kind,
            .reason     = frame->reason,
            .rd_atomic  = frame->rd_atomic,
            .dst_cookie = frame->dst_cookie,
        },
        .src        = frame->src,
        .port       = frame->port,
        .epoch      = frame->epoch,
        .first      = frame->first,
        .peer_epoch = frame->peer_epoch,
        .qpn        = frame->qpn,
        .psn        = frame->psn,
        .delivered  = frame->delivered,
        .acked      = frame->acked,
        .done       = frame->done,
        .credits    = frame->credits,
        .promised   = frame->promised,
        .pid        = frame->pid,
        .mark       = frame->mark,
        .peer_mark  = frame->peer_mark,
        .end        = DQ_FRAME_MAGIC,
    };

    memcpy(wire.host, frame->host, sizeof(wire.host));
    memcpy(buf, &wire, sizeof(wire));
}


static int dq_frame_has_qp(unsigned kind)
{
    return (kind == DQ_FRAME_REQ) || (kind == DQ_FRAME_REP);
}


/* Must such a frame have a mark? */
static int dq_frame_has_mark(unsigned kind)
{
    return dq_frame_has_qp(kind) || (kind == DQ_FRAME_AGAIN);
}


/* Ranges of what the fields mean; the epoch 0 stands for "none", as does the
 * mark. */
static int dq_frame_is_sane(const dq_wire_frame_t *wire)
{
    if ((wire->epoch == 0) ||
        (wire->src.ud_qpn > DQ_WIRE_QPN_MAX) ||
        !dq_port_addr_is_one(&wire->port) ||
        (dq_frame_has_mark(wire->head.kind) && (wire->mark == 0)) ||
        !dq_host_is_sane(wire->host)) {
        return 0;
    }
    if (!dq_frame_has_qp(wire->head.kind)) {
        return 1;
    }
    return (wire->qpn <= DQ_WIRE_QPN_MAX) && (wire->psn <= DQ_WIRE_QPN_MAX) &&
           (wire->first != 0) && (wire->credits >= DQ_WINDOW_MIN) &&
           (wire->promised <= wire->credits);
}


/* Frames of other versions may be shorter than ours. */
static dq_wire_status_t dq_wire_head_parse(const void *buf, size_t length)
{
    dq_wire_head_t head;

    if (length < sizeof(head)) {
        return DQ_WIRE_SHORT;
    }
    memcpy(&head, buf, sizeof(head));
    if (head.magic != DQ_FRAME_MAGIC) {
        return DQ_WIRE_BAD_MAGIC;
    }
    return (head.version == DQ_WIRE_VERSION) ? DQ_WIRE_OK
                                             : DQ_WIRE_BAD_VERSION;
}


unsigned dq_frame_version(const void *buf, size_t length, uint64_t my_cookie)
{
    dq_wire_head_t head;

    if (dq_wire_head_parse(buf, length) != DQ_WIRE_BAD_VERSION) {
        return DQ_WIRE_VERSION;
    }
    memcpy(&head, buf, sizeof(head));
    return (head.dst_cookie == my_cookie) ? head.version : DQ_WIRE_VERSION;
}


dq_wire_status_t dq_frame_parse(const void *buf, size_t length,
                                uint64_t my_cookie, dq_frame_t *frame)
{
    dq_wire_status_t status = dq_wire_head_parse(buf, length);
    dq_wire_frame_t wire;

    if (status != DQ_WIRE_OK) {
        return status;
    }
    if (length < sizeof(wire)) {
        return DQ_WIRE_SHORT;
    }

    memcpy(&wire, buf, sizeof(wire));
    if (wire.end != DQ_FRAME_MAGIC) {
        return DQ_WIRE_BAD_MAGIC;
    }
    if (wire.head.kind >= DQ_FRAME_LAST) {
        return DQ_WIRE_BAD_KIND;
    }
    if (wire.head.dst_cookie != my_cookie) {
        return DQ_WIRE_BAD_COOKIE;
    }
    if (!dq_frame_is_sane(&wire)) {
        return DQ_WIRE_BAD_FIELD;
    }

    *frame = (dq_frame_t){
        .kind       = wire.head.kind,
        .dst_cookie = wire.head.dst_cookie,
        .src        = wire.src,
        .port       = wire.port,
        .epoch      = wire.epoch,
        .first      = wire.first,
        .peer_epoch = wire.peer_epoch,
        .qpn        = wire.qpn,
        .psn        = wire.psn,
        .delivered  = wire.delivered,
        .acked      = wire.acked,
        .done       = wire.done,
        .credits    = wire.credits,
        .promised   = wire.promised,
        .reason     = wire.head.reason,
        .rd_atomic  = wire.head.rd_atomic,
        .pid        = wire.pid,
        .mark       = wire.mark,
        .peer_mark  = wire.peer_mark,
    };
    memcpy(frame->host, wire.host, sizeof(frame->host));
    return DQ_WIRE_OK;
}


const char *dq_wire_status_name(dq_wire_status_t status)
{
    static const char *const names[DQ_WIRE_LAST] = {
        [DQ_WIRE_OK]          = "ok",
        [DQ_WIRE_SHORT]       = "short",
        [DQ_WIRE_BAD_MAGIC]   = "bad_magic",
        [DQ_WIRE_BAD_VERSION] = "bad_version",
        [DQ_WIRE_BAD_KIND]    = "bad_kind",
        [DQ_WIRE_BAD_FIELD]   = "bad_field",
        [DQ_WIRE_BAD_COOKIE]  = "bad_cookie",
        [DQ_WIRE_BAD_MARK]    = "bad_mark",
    };

    return (status < DQ_WIRE_LAST) ? names[status] : "?";
}


const char *dq_frame_kind_name(unsigned kind)
{
    static const char *const names[DQ_FRAME_LAST] = {
        [DQ_FRAME_REQ]    = "REQ",
        [DQ_FRAME_REP]    = "REP",
        [DQ_FRAME_RTU]    = "RTU",
        [DQ_FRAME_REFUSE] = "REFUSE",
        [DQ_FRAME_GONE]   = "GONE",
        [DQ_FRAME_HEARD]  = "HEARD",
        [DQ_FRAME_AGAIN]  = "AGAIN",
    };

    return (kind < DQ_FRAME_LAST) ? names[kind] : "?";
}
