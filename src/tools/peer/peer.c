/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/peer/peer.h"

#include <string.h>

#define PEER_MAGIC 0x44515249u

/* ---- cursors: what runs out is noted once, and read as zero ---- */

typedef struct peer_writer {
    uint8_t *next;
} peer_writer_t;

typedef struct peer_reader {
    const uint8_t *next;
    const uint8_t *end;
    int           is_bad;
} peer_reader_t;

static void peer_put(peer_writer_t *writer, uint64_t value, unsigned length)
{
    while (length-- > 0) {
        *writer->next++ = (uint8_t)(value >> (8 * length));
    }
}

/* A length and the text without its zero. */
static void peer_put_text(peer_writer_t *writer, const char *text, size_t size)
{
    size_t length = strnlen(text, size - 1);

    peer_put(writer, length, 2);
    memcpy(writer->next, text, length);
    writer->next += length;
}

static void peer_put_blob(peer_writer_t *writer, const daqiri_peer_blob_t *blob)
{
    peer_put(writer, blob->length, 2);
    memcpy(writer->next, blob->bytes, blob->length);
    writer->next += blob->length;
}

static uint64_t peer_get(peer_reader_t *reader, unsigned length)
{
    uint64_t value = 0;

    if ((size_t)(reader->end - reader->next) < length) {
        reader->is_bad = 1;
        return 0;
    }
    while (length-- > 0) {
        value = (value << 8) | *reader->next++;
    }
    return value;
}

static uint64_t peer_get_range(peer_reader_t *reader, unsigned length,
                               uint64_t first, uint64_t last)
{
    uint64_t value = peer_get(reader, length);

    reader->is_bad |= (value < first) || (value > last);
    return value;
}

/* What a peer writes is shown to people: nothing but printable characters. */
static void peer_get_text(peer_reader_t *reader, char *text, size_t size)
{
    size_t length = (size_t)peer_get(reader, 2);
    size_t i;

    if ((length >= size) || ((size_t)(reader->end - reader->next) < length)) {
        reader->is_bad = 1;
        length         = 0;
    }
    for (i = 0; i < length; ++i) {
        text[i] = ((reader->next[i] >= ' ') && (reader->next[i] <= '~')) ?
                  (char)reader->next[i] :
                  (reader->next[i] == '\n') ? '\n' : '?';
    }
    text[length]  = '\0';
    reader->next += length;
}

/* What becomes a word of a command line. */
static void peer_get_name(peer_reader_t *reader, char *text, size_t size)
{
    peer_get_text(reader, text, size);
    if ((text[0] == '\0') ||
        (text[strspn(text, DAQIRI_PEER_TRANSPORT_LETTERS)] != '\0')) {
        reader->is_bad = 1;
    }
}

static void peer_get_blob(peer_reader_t *reader, daqiri_peer_blob_t *blob)
{
    size_t length = (size_t)peer_get_range(reader, 2, 0, DAQIRI_PEER_BLOB_MAX);

    if (reader->is_bad || ((size_t)(reader->end - reader->next) < length)) {
        reader->is_bad = 1;
        return;
    }
    blob->length = (uint16_t)length;
    memcpy(blob->bytes, reader->next, length);
    reader->next += length;
}

/* ---- frames ---- */

static void peer_pack_info(peer_writer_t *writer,
                           const daqiri_peer_frame_t *frame)
{
    peer_put(writer, frame->info.lid, 2);
    peer_put(writer, frame->info.mtu, 1);
    peer_put(writer, frame->info.is_global, 1);
    peer_put(writer, frame->info.qpn, 4);
    peer_put(writer, frame->info.psn, 4);
    peer_put(writer, (uint32_t)frame->info.gid_index, 4);
    memcpy(writer->next, frame->info.gid, sizeof(frame->info.gid));
    writer->next += sizeof(frame->info.gid);
}

static void peer_pack_flow(peer_writer_t *writer,
                           const daqiri_peer_frame_t *frame)
{
    switch (frame->kind) {
    case DAQIRI_PEER_FLOW_TERMS:
        peer_put_text(writer, frame->flow_terms.transport,
                      DAQIRI_PEER_WORD_MAX);
        peer_put(writer, frame->flow_terms.pattern, 4);
        peer_put(writer, frame->flow_terms.size, 8);
        peer_put(writer, frame->flow_terms.window, 8);
        peer_put(writer, frame->flow_terms.duration_ns, 8);
        peer_put(writer, frame->flow_terms.pace, 8);
        break;
    case DAQIRI_PEER_FLOW_ADDRESS:
        peer_put(writer, frame->flow_address.port, 2);
        peer_put_blob(writer, &frame->flow_address.device);
        peer_put_blob(writer, &frame->flow_address.iface);
        peer_put_blob(writer, &frame->flow_address.ep);
        break;
    case DAQIRI_PEER_FLOW_SIDE:
        peer_put(writer, frame->flow_side.sent, 8);
        peer_put(writer, frame->flow_side.received, 8);
        peer_put(writer, frame->flow_side.disorder, 8);
        peer_put(writer, frame->flow_side.first_ns, 8);
        peer_put(writer, frame->flow_side.last_ns, 8);
        peer_put(writer, frame->flow_side.elapsed_ns, 8);
        peer_put(writer, frame->flow_side.cpu_ns, 8);
        peer_put(writer, frame->flow_side.preempted, 8);
        break;
    case DAQIRI_PEER_FLOW_COUNTER:
        peer_put_text(writer, frame->flow_counter.name,
                      DAQIRI_PEER_COUNTER_MAX);
        peer_put(writer, frame->flow_counter.value, 8);
        break;
    default:
        break;
    }
}

static void peer_pack_payload(peer_writer_t *writer,
                              const daqiri_peer_frame_t *frame)
{
    switch (frame->kind) {
    case DAQIRI_PEER_HELLO:
        peer_put(writer, frame->hello.service, 2);
        peer_put_text(writer, frame->hello.version, DAQIRI_PEER_WORD_MAX);
        break;
    case DAQIRI_PEER_TERMS:
        peer_put(writer, frame->terms.size, 8);
        peer_put(writer, frame->terms.iters, 8);
        peer_put(writer, frame->terms.is_uc, 1);
        break;
    case DAQIRI_PEER_INFO:
        peer_pack_info(writer, frame);
        break;
    case DAQIRI_PEER_READY:
        peer_put_text(writer, frame->ready.stage, DAQIRI_PEER_WORD_MAX);
        break;
    case DAQIRI_PEER_DONE:
        peer_put(writer, frame->done.messages, 8);
        break;
    case DAQIRI_PEER_ABORT:
        peer_put_text(writer, frame->abort.class_name, DAQIRI_PEER_WORD_MAX);
        peer_put_text(writer, frame->abort.stage, DAQIRI_PEER_WORD_MAX);
        peer_put_text(writer, frame->abort.text, DAQIRI_PEER_TEXT_MAX);
        break;
    case DAQIRI_PEER_TCP_TERMS:
        peer_put(writer, frame->tcp_terms.pattern, 4);
        peer_put(writer, frame->tcp_terms.size, 8);
        peer_put(writer, frame->tcp_terms.duration_ms, 8);
        break;
    case DAQIRI_PEER_TCP_RESULT:
        peer_put(writer, frame->tcp_result.bytes, 8);
        peer_put(writer, frame->tcp_result.messages, 8);
        peer_put(writer, frame->tcp_result.elapsed_ns, 8);
        break;
    default:
        peer_pack_flow(writer, frame);
        break;
    }
}

size_t daqiri_peer_pack(const daqiri_peer_frame_t *frame, uint8_t *bytes)
{
    peer_writer_t header  = {bytes};
    peer_writer_t payload = {bytes + DAQIRI_PEER_HEADER_LEN};
    size_t length;

    peer_pack_payload(&payload, frame);
    length = (size_t)(payload.next - bytes) - DAQIRI_PEER_HEADER_LEN;
    peer_put(&header, PEER_MAGIC, 4);
    peer_put(&header, DAQIRI_PEER_VERSION, 2);
    peer_put(&header, frame->kind, 2);
    peer_put(&header, length, 4);
    peer_put(&header, 0, 4);
    return DAQIRI_PEER_HEADER_LEN + length;
}

daqiri_peer_verdict_t daqiri_peer_parse_header(const uint8_t *bytes,
                                               daqiri_peer_header_t *header)
{
    peer_reader_t reader = {bytes, bytes + DAQIRI_PEER_HEADER_LEN, 0};

    memset(header, 0, sizeof(*header));
    if (peer_get(&reader, 4) != PEER_MAGIC) {
        return DAQIRI_PEER_NOT_OURS;
    }
    header->version = (uint16_t)peer_get(&reader, 2);
    header->kind    = (uint16_t)peer_get(&reader, 2);
    header->length  = (uint32_t)peer_get(&reader, 4);
    if (header->version != DAQIRI_PEER_VERSION) {
        return DAQIRI_PEER_OTHER_VERSION;
    }
    if ((header->kind < DAQIRI_PEER_HELLO) ||
        (header->kind >= DAQIRI_PEER_LAST) ||
        (header->length > DAQIRI_PEER_PAYLOAD_MAX) ||
        (peer_get(&reader, 4) != 0)) {
        return DAQIRI_PEER_MALFORMED;
    }
    return DAQIRI_PEER_OK;
}

static void peer_parse_info(peer_reader_t *reader, daqiri_peer_frame_t *frame)
{
    size_t i;

    frame->info.lid       = (uint16_t)peer_get(reader, 2);
    frame->info.mtu       = (uint8_t)peer_get_range(reader, 1, 1, 5);
    frame->info.is_global = (uint8_t)peer_get_range(reader, 1, 0, 1);
    frame->info.qpn       = (uint32_t)peer_get_range(reader, 4, 0, 0xffffff);
    frame->info.psn       = (uint32_t)peer_get_range(reader, 4, 0, 0xffffff);
    frame->info.gid_index = (int32_t)(uint32_t)peer_get(reader, 4);
    for (i = 0; i < sizeof(frame->info.gid); ++i) {
        frame->info.gid[i] = (uint8_t)peer_get(reader, 1);
    }
}

static void peer_parse_flow_terms(peer_reader_t *reader,
                                  daqiri_peer_frame_t *frame)
{
    peer_get_name(reader, frame->flow_terms.transport, DAQIRI_PEER_WORD_MAX);
    frame->flow_terms.pattern = (uint32_t)peer_get_range(
            reader, 4, DAQIRI_PEER_STREAM, DAQIRI_PEER_DUPLEX);
    frame->flow_terms.size        = peer_get_range(reader, 8,
                                                   DAQIRI_PEER_FLOW_SIZE_MIN,
                                                   DAQIRI_PEER_FLOW_SIZE_MAX);
    frame->flow_terms.window      = peer_get_range(reader, 8, 1,
                                                   DAQIRI_PEER_FLOW_WINDOW_MAX);
    frame->flow_terms.duration_ns = peer_get_range(reader, 8, 1,
                                                   DAQIRI_PEER_NS_MAX);
    frame->flow_terms.pace        = peer_get(reader, 8);
}

static void peer_parse_flow_side(peer_reader_t *reader,
                                 daqiri_peer_frame_t *frame)
{
    frame->flow_side.sent       = peer_get(reader, 8);
    frame->flow_side.received   = peer_get(reader, 8);
    frame->flow_side.disorder   = peer_get(reader, 8);
    frame->flow_side.first_ns   = peer_get(reader, 8);
    frame->flow_side.last_ns    = peer_get_range(reader, 8,
                                                 frame->flow_side.first_ns,
                                                 UINT64_MAX);
    frame->flow_side.elapsed_ns = peer_get(reader, 8);
    frame->flow_side.cpu_ns     = peer_get(reader, 8);
    frame->flow_side.preempted  = peer_get(reader, 8);
}

static void peer_parse_flow(peer_reader_t *reader, daqiri_peer_frame_t *frame)
{
    switch (frame->kind) {
    case DAQIRI_PEER_FLOW_TERMS:
        peer_parse_flow_terms(reader, frame);
        break;
    case DAQIRI_PEER_FLOW_ADDRESS:
        frame->flow_address.port = (uint16_t)peer_get(reader, 2);
        peer_get_blob(reader, &frame->flow_address.device);
        peer_get_blob(reader, &frame->flow_address.iface);
        peer_get_blob(reader, &frame->flow_address.ep);
        break;
    case DAQIRI_PEER_FLOW_SIDE:
        peer_parse_flow_side(reader, frame);
        break;
    case DAQIRI_PEER_FLOW_COUNTER:
        peer_get_text(reader, frame->flow_counter.name,
                      DAQIRI_PEER_COUNTER_MAX);
        frame->flow_counter.value = peer_get(reader, 8);
        break;
    default:
        reader->is_bad = 1;
        break;
    }
}

static void peer_parse_payload(peer_reader_t *reader,
                               daqiri_peer_frame_t *frame)
{
    switch (frame->kind) {
    case DAQIRI_PEER_HELLO:
        frame->hello.service = (uint16_t)peer_get_range(
                reader, 2, DAQIRI_PEER_PINGPONG, DAQIRI_PEER_SERVICE_LAST - 1);
        peer_get_text(reader, frame->hello.version, DAQIRI_PEER_WORD_MAX);
        break;
    case DAQIRI_PEER_TERMS:
        frame->terms.size  = peer_get_range(reader, 8, 1, DAQIRI_PEER_SIZE_MAX);
        frame->terms.iters = peer_get_range(reader, 8, 1,
                                            DAQIRI_PEER_ITERS_MAX);
        frame->terms.is_uc = (uint8_t)peer_get_range(reader, 1, 0, 1);
        break;
    case DAQIRI_PEER_INFO:
        peer_parse_info(reader, frame);
        break;
    case DAQIRI_PEER_READY:
        peer_get_text(reader, frame->ready.stage, DAQIRI_PEER_WORD_MAX);
        break;
    case DAQIRI_PEER_DONE:
        frame->done.messages = peer_get(reader, 8);
        break;
    case DAQIRI_PEER_ABORT:
        peer_get_text(reader, frame->abort.class_name, DAQIRI_PEER_WORD_MAX);
        peer_get_text(reader, frame->abort.stage, DAQIRI_PEER_WORD_MAX);
        peer_get_text(reader, frame->abort.text, DAQIRI_PEER_TEXT_MAX);
        break;
    case DAQIRI_PEER_TCP_TERMS:
        frame->tcp_terms.pattern = (uint32_t)peer_get_range(
                reader, 4, DAQIRI_PEER_STREAM, DAQIRI_PEER_DUPLEX);
        frame->tcp_terms.size = peer_get_range(reader, 8, 1,
                                               DAQIRI_PEER_SIZE_MAX);
        frame->tcp_terms.duration_ms = peer_get_range(reader, 8, 1,
                                                      DAQIRI_PEER_MS_MAX);
        break;
    case DAQIRI_PEER_TCP_RESULT:
        frame->tcp_result.bytes      = peer_get(reader, 8);
        frame->tcp_result.messages   = peer_get(reader, 8);
        frame->tcp_result.elapsed_ns = peer_get(reader, 8);
        break;
    default:
        peer_parse_flow(reader, frame);
        break;
    }
}

int daqiri_peer_parse(const daqiri_peer_header_t *header, const uint8_t *bytes,
                      daqiri_peer_frame_t *frame)
{
    peer_reader_t reader = {bytes, bytes + header->length, 0};

    memset(frame, 0, sizeof(*frame));
    frame->kind = (daqiri_peer_kind_t)header->kind;
    peer_parse_payload(&reader, frame);
    return (reader.is_bad || (reader.next != reader.end)) ? -1 : 0;
}
