/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/peer/peer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a frame of version 1 or 2 begins with. */
#define PEER_BINARY_MAGIC 0x44515249u

/* ---- which key is which member ---- */

typedef enum peer_type {
    PEER_NUMBER,  /* an unsigned member of 1, 2, 4 or 8 bytes */
    PEER_INDEX,   /* int32_t */
    PEER_FLAG,    /* uint8_t, true or false */
    PEER_PATTERN, /* uint32_t, by name */
    PEER_TEXT,
    PEER_NAME,    /* of a transport: a word of a command line */
    PEER_HEX,     /* bytes, as many as the member has */
    PEER_BLOB     /* daqiri_peer_blob_t */
} peer_type_t;

typedef struct peer_field {
    daqiri_peer_kind_t kind;
    const char         *key;
    peer_type_t        type;
    size_t             offset, size;
    uint64_t           min, max; /* of PEER_NUMBER */
} peer_field_t;

#define PEER_AT(_member) \
    offsetof(daqiri_peer_frame_t, _member), \
    sizeof(((daqiri_peer_frame_t*)NULL)->_member)

/* A frame has all keys of its kind, in this order. */
static const peer_field_t peer_fields[] = {
    {DAQIRI_PEER_HELLO, "protocol_min", PEER_NUMBER, PEER_AT(hello.protocol_min), 1,
     UINT32_MAX},
    {DAQIRI_PEER_HELLO, "protocol_max", PEER_NUMBER, PEER_AT(hello.protocol_max), 1,
     UINT32_MAX},
    {DAQIRI_PEER_HELLO, "service", PEER_TEXT, PEER_AT(hello.service), 0, 0},
    {DAQIRI_PEER_HELLO, "version", PEER_TEXT, PEER_AT(hello.version), 0, 0},
    {DAQIRI_PEER_INFO, "lid", PEER_NUMBER, PEER_AT(info.lid), 0, UINT16_MAX},
    {DAQIRI_PEER_INFO, "mtu", PEER_NUMBER, PEER_AT(info.mtu), 1, 5},
    {DAQIRI_PEER_INFO, "is_global", PEER_FLAG, PEER_AT(info.is_global), 0, 0},
    {DAQIRI_PEER_INFO, "qpn", PEER_NUMBER, PEER_AT(info.qpn), 0, 0xffffff},
    {DAQIRI_PEER_INFO, "psn", PEER_NUMBER, PEER_AT(info.psn), 0, 0xffffff},
    {DAQIRI_PEER_INFO, "gid_index", PEER_INDEX, PEER_AT(info.gid_index), 0, 0},
    {DAQIRI_PEER_INFO, "gid", PEER_HEX, PEER_AT(info.gid), 0, 0},
    {DAQIRI_PEER_READY, "stage", PEER_TEXT, PEER_AT(ready.stage), 0, 0},
    {DAQIRI_PEER_DONE, "messages", PEER_NUMBER, PEER_AT(done.messages), 0, INT64_MAX},
    {DAQIRI_PEER_ABORT, "failure_class", PEER_TEXT, PEER_AT(abort.class_name), 0, 0},
    {DAQIRI_PEER_ABORT, "stage", PEER_TEXT, PEER_AT(abort.stage), 0, 0},
    {DAQIRI_PEER_ABORT, "error", PEER_TEXT, PEER_AT(abort.text), 0, 0},
    {DAQIRI_PEER_FLOW_TERMS, "transport", PEER_NAME, PEER_AT(flow_terms.transport), 0,
     0},
    {DAQIRI_PEER_FLOW_TERMS, "pattern", PEER_PATTERN, PEER_AT(flow_terms.pattern), 0, 0},
    {DAQIRI_PEER_FLOW_TERMS, "size", PEER_NUMBER, PEER_AT(flow_terms.size),
     DAQIRI_PEER_FLOW_SIZE_MIN, DAQIRI_PEER_FLOW_SIZE_MAX},
    {DAQIRI_PEER_FLOW_TERMS, "window", PEER_NUMBER, PEER_AT(flow_terms.window), 1,
     DAQIRI_PEER_FLOW_WINDOW_MAX},
    {DAQIRI_PEER_FLOW_TERMS, "duration_ns", PEER_NUMBER, PEER_AT(flow_terms.duration_ns),
     0, DAQIRI_PEER_NS_MAX},
    {DAQIRI_PEER_FLOW_TERMS, "bits_per_s", PEER_NUMBER, PEER_AT(flow_terms.pace), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_ADDRESS, "port", PEER_NUMBER, PEER_AT(flow_address.port), 0,
     UINT16_MAX},
    {DAQIRI_PEER_FLOW_ADDRESS, "device", PEER_BLOB, PEER_AT(flow_address.device), 0, 0},
    {DAQIRI_PEER_FLOW_ADDRESS, "iface", PEER_BLOB, PEER_AT(flow_address.iface), 0, 0},
    {DAQIRI_PEER_FLOW_ADDRESS, "ep", PEER_BLOB, PEER_AT(flow_address.ep), 0, 0},
    {DAQIRI_PEER_FLOW_SIDE, "sent", PEER_NUMBER, PEER_AT(flow_side.sent), 0, INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "received", PEER_NUMBER, PEER_AT(flow_side.received), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "disorder", PEER_NUMBER, PEER_AT(flow_side.disorder), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "first_ns", PEER_NUMBER, PEER_AT(flow_side.first_ns), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "last_ns", PEER_NUMBER, PEER_AT(flow_side.last_ns), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "elapsed_ns", PEER_NUMBER, PEER_AT(flow_side.elapsed_ns), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "cpu_ns", PEER_NUMBER, PEER_AT(flow_side.cpu_ns), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_SIDE, "preempted", PEER_NUMBER, PEER_AT(flow_side.preempted), 0,
     INT64_MAX},
    {DAQIRI_PEER_FLOW_COUNTER, "name", PEER_TEXT, PEER_AT(flow_counter.name), 0, 0},
    {DAQIRI_PEER_FLOW_COUNTER, "value", PEER_NUMBER, PEER_AT(flow_counter.value), 0,
     INT64_MAX}
};

#define PEER_NUM_FIELDS (sizeof(peer_fields) / sizeof(peer_fields[0]))

static const char *const peer_kinds[DAQIRI_PEER_LAST] = {
    [DAQIRI_PEER_HELLO]        = "hello",
    [DAQIRI_PEER_INFO]         = "info",
    [DAQIRI_PEER_READY]        = "ready",
    [DAQIRI_PEER_DONE]         = "done",
    [DAQIRI_PEER_ABORT]        = "abort",
    [DAQIRI_PEER_FLOW_TERMS]   = "flow_terms",
    [DAQIRI_PEER_FLOW_ADDRESS] = "flow_address",
    [DAQIRI_PEER_FLOW_SIDE]    = "flow_side",
    [DAQIRI_PEER_FLOW_COUNTER] = "flow_counter"
};

static const char *const peer_patterns[DAQIRI_PEER_PATTERN_LAST] = {
    [DAQIRI_PEER_STREAM] = "stream",
    [DAQIRI_PEER_ECHO]   = "pingpong",
    [DAQIRI_PEER_DUPLEX] = "duplex"
};

const char *daqiri_peer_kind_name(daqiri_peer_kind_t kind)
{
    return peer_kinds[kind];
}

/* The index of a word; 0: it is none of them. */
static unsigned peer_find(const char *const *words, unsigned count, const char *word)
{
    unsigned i;

    for (i = 1; (word != NULL) && (i < count); ++i) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return 0;
}

/* ---- bytes as hexadecimal digits ---- */

static json_t *peer_pack_hex(const uint8_t *bytes, size_t length)
{
    char text[2 * DAQIRI_PEER_BLOB_MAX + 1] = "";
    size_t i;

    for (i = 0; i < length; ++i) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return json_string(text);
}

static int peer_digit(char c)
{
    return ((c >= '0') && (c <= '9')) ? c - '0' :
           ((c >= 'a') && (c <= 'f')) ? c - 'a' + 10 : -1;
}

/* Returns how many bytes there are, or -1. */
static int peer_parse_hex(const char *text, uint8_t *bytes, size_t size)
{
    size_t length = (text != NULL) ? strlen(text) : 1;
    size_t i;

    if ((length % 2 != 0) || (length / 2 > size)) {
        return -1;
    }
    for (i = 0; i < length / 2; ++i) {
        if ((peer_digit(text[2 * i]) < 0) || (peer_digit(text[2 * i + 1]) < 0)) {
            return -1;
        }
        bytes[i] = (uint8_t)(16 * peer_digit(text[2 * i]) +
                             peer_digit(text[2 * i + 1]));
    }
    return (int)(length / 2);
}

/* ---- numbers of any width ---- */

static uint64_t peer_load(const void *at, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t*)at;
    case 2:
        return *(const uint16_t*)at;
    case 4:
        return *(const uint32_t*)at;
    default:
        return *(const uint64_t*)at;
    }
}

static void peer_store(void *at, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t*)at = (uint8_t)value;
        break;
    case 2:
        *(uint16_t*)at = (uint16_t)value;
        break;
    case 4:
        *(uint32_t*)at = (uint32_t)value;
        break;
    default:
        *(uint64_t*)at = value;
        break;
    }
}

/* ---- to JSON ---- */

static json_t *peer_pack_number(const void *at, size_t size)
{
    uint64_t value = peer_load(at, size);

    return json_integer((value < INT64_MAX) ? (json_int_t)value : INT64_MAX);
}

static json_t *peer_pack_field(const peer_field_t *field, const void *at)
{
    const daqiri_peer_blob_t *blob = at;

    switch (field->type) {
    case PEER_NUMBER:
        return peer_pack_number(at, field->size);
    case PEER_INDEX:
        return json_integer(*(const int32_t*)at);
    case PEER_FLAG:
        return json_boolean(*(const uint8_t*)at);
    case PEER_PATTERN:
        return json_string(peer_patterns[*(const uint32_t*)at]);
    case PEER_HEX:
        return peer_pack_hex(at, field->size);
    case PEER_BLOB:
        return peer_pack_hex(blob->bytes, blob->length);
    default:
        return json_string(at);
    }
}

static size_t peer_or_exit(size_t length)
{
    if (length == 0) {
        fprintf(stderr, "daqiri: no memory\n");
        exit(1);
    }
    return length;
}

size_t daqiri_peer_pack(const daqiri_peer_frame_t *frame, uint8_t *bytes)
{
    char *text     = (char*)bytes + DAQIRI_PEER_HEADER_LEN;
    json_t *object = json_object();
    size_t length, i;

    json_object_set_new(object, "kind", json_string(peer_kinds[frame->kind]));
    for (i = 0; i < PEER_NUM_FIELDS; ++i) {
        if (peer_fields[i].kind == frame->kind) {
            json_object_set_new(object, peer_fields[i].key,
                                peer_pack_field(&peer_fields[i],
                                                (const char*)frame +
                                                peer_fields[i].offset));
        }
    }
    length = peer_or_exit(json_dumpb(object, text, DAQIRI_PEER_PAYLOAD_MAX,
                                     JSON_COMPACT | JSON_ENSURE_ASCII));
    json_decref(object);
    for (i = 0; i < DAQIRI_PEER_HEADER_LEN; ++i) {
        bytes[i] = (uint8_t)(length >> (8 * (DAQIRI_PEER_HEADER_LEN - 1 - i)));
    }
    return DAQIRI_PEER_HEADER_LEN + length;
}

/* ---- from JSON ---- */

daqiri_peer_verdict_t daqiri_peer_parse_header(const uint8_t *bytes,
                                               uint32_t *length_p)
{
    size_t i;

    *length_p = 0;
    for (i = 0; i < DAQIRI_PEER_HEADER_LEN; ++i) {
        *length_p = (*length_p << 8) | bytes[i];
    }
    return (*length_p == PEER_BINARY_MAGIC) ? DAQIRI_PEER_BINARY :
           (*length_p > DAQIRI_PEER_PAYLOAD_MAX) ? DAQIRI_PEER_NOT_OURS :
           DAQIRI_PEER_OK;
}

/* What a peer writes is shown to people: nothing but printable characters. */
static int peer_parse_text(const json_t *value, char *text, size_t size)
{
    const char *string = json_string_value(value);
    size_t i;

    if ((string == NULL) || (strlen(string) >= size)) {
        return -1;
    }
    for (i = 0; string[i] != '\0'; ++i) {
        text[i] = (((string[i] >= ' ') && (string[i] <= '~')) || (string[i] == '\n')) ?
                  string[i] : '?';
    }
    text[i] = '\0';
    return 0;
}

static int peer_parse_number(const peer_field_t *field, const json_t *value, void *at)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || (number < 0) || ((uint64_t)number < field->min) ||
        ((uint64_t)number > field->max)) {
        return -1;
    }
    peer_store(at, field->size, (uint64_t)number);
    return 0;
}

static int peer_parse_index(const json_t *value, int32_t *index)
{
    json_int_t number = json_integer_value(value);

    *index = (int32_t)number;
    return (json_is_integer(value) && (number == *index)) ? 0 : -1;
}

static int peer_parse_field(const peer_field_t *field, const json_t *value, void *at)
{
    daqiri_peer_blob_t *blob = at;
    const char *text         = json_string_value(value);
    int length;

    switch (field->type) {
    case PEER_NUMBER:
        return peer_parse_number(field, value, at);
    case PEER_INDEX:
        return peer_parse_index(value, at);
    case PEER_FLAG:
        *(uint8_t*)at = json_is_true(value);
        return json_is_boolean(value) ? 0 : -1;
    case PEER_PATTERN:
        *(uint32_t*)at = peer_find(peer_patterns, DAQIRI_PEER_PATTERN_LAST, text);
        return (*(uint32_t*)at != 0) ? 0 : -1;
    case PEER_HEX:
        return (peer_parse_hex(text, at, field->size) == (int)field->size) ? 0 : -1;
    case PEER_BLOB:
        length       = peer_parse_hex(text, blob->bytes, DAQIRI_PEER_BLOB_MAX);
        blob->length = (length > 0) ? (uint16_t)length : 0;
        return (length >= 0) ? 0 : -1;
    case PEER_NAME:
        if ((text == NULL) || (text[0] == '\0') ||
            (text[strspn(text, DAQIRI_PEER_TRANSPORT_LETTERS)] != '\0')) {
            return -1;
        }
        return peer_parse_text(value, at, field->size);
    default:
        return peer_parse_text(value, at, field->size);
    }
}

static int peer_parse_object(const json_t *object, daqiri_peer_frame_t *frame, char *why)
{
    size_t i;

    frame->kind = (daqiri_peer_kind_t)peer_find(
            peer_kinds, DAQIRI_PEER_LAST,
            json_string_value(json_object_get(object, "kind")));
    if (frame->kind == 0) {
        snprintf(why, DAQIRI_PEER_WHY_MAX, "it has no kind that is known here");
        return -1;
    }
    for (i = 0; i < PEER_NUM_FIELDS; ++i) {
        if ((peer_fields[i].kind == frame->kind) &&
            (peer_parse_field(&peer_fields[i],
                              json_object_get(object, peer_fields[i].key),
                              (char*)frame + peer_fields[i].offset) != 0)) {
            snprintf(why, DAQIRI_PEER_WHY_MAX, "the value \"%s\" of kind \"%s\"",
                     peer_fields[i].key, peer_kinds[frame->kind]);
            return -1;
        }
    }
    if ((frame->kind == DAQIRI_PEER_FLOW_SIDE) &&
        (frame->flow_side.first_ns > frame->flow_side.last_ns)) {
        snprintf(why, DAQIRI_PEER_WHY_MAX, "it ends before it begins");
        return -1;
    }
    return 0;
}

int daqiri_peer_parse(const uint8_t *bytes, size_t length, daqiri_peer_frame_t *frame,
                      char *why)
{
    json_t *object = json_loadb((const char*)bytes, length, JSON_REJECT_DUPLICATES,
                                NULL);
    int ret = -1;

    memset(frame, 0, sizeof(*frame));
    if (json_is_object(object)) {
        ret = peer_parse_object(object, frame, why);
    } else {
        snprintf(why, DAQIRI_PEER_WHY_MAX, "%zu bytes that are no JSON object",
                 length);
    }
    json_decref(object);
    return ret;
}

unsigned daqiri_peer_agree(unsigned min, unsigned max, unsigned peer_min,
                           unsigned peer_max)
{
    unsigned highest = (max < peer_max) ? max : peer_max;

    return ((highest >= min) && (highest >= peer_min)) ? highest : 0;
}
