/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two processes of daqiri pingpong, serve, sweep and tcp tell each other:
 * whatever arrives, nothing behind its end is read; what is taken is within the
 * ranges that peer.h promises, and packs to what is taken as the same again.
 */
#include "fuzz.h"

#include "tools/peer/peer.h"

#include <string.h>

/* Its end is there, and nothing before it would move a terminal's cursor. */
static int fuzz_is_text(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);
    const char *at;

    for (at = text; (end != NULL) && (at < end); at++) {
        if (((*at < ' ') || (*at > '~')) && (*at != '\n')) {
            return 0;
        }
    }
    return end != NULL;
}


static void fuzz_texts(const daqiri_peer_frame_t *frame)
{
    if (frame->kind == DAQIRI_PEER_HELLO) {
        FUZZ_MUST(fuzz_is_text(frame->hello.service, DAQIRI_PEER_WORD_MAX));
        FUZZ_MUST(fuzz_is_text(frame->hello.version, DAQIRI_PEER_WORD_MAX));
        FUZZ_MUST((frame->hello.protocol_min >= 1) &&
                  (frame->hello.protocol_max >= 1));
    } else if (frame->kind == DAQIRI_PEER_READY) {
        FUZZ_MUST(fuzz_is_text(frame->ready.stage, DAQIRI_PEER_WORD_MAX));
    } else if (frame->kind == DAQIRI_PEER_ABORT) {
        FUZZ_MUST(fuzz_is_text(frame->abort.class_name, DAQIRI_PEER_WORD_MAX));
        FUZZ_MUST(fuzz_is_text(frame->abort.stage, DAQIRI_PEER_WORD_MAX));
        FUZZ_MUST(fuzz_is_text(frame->abort.text, DAQIRI_PEER_TEXT_MAX));
    } else if (frame->kind == DAQIRI_PEER_FLOW_COUNTER) {
        FUZZ_MUST(fuzz_is_text(frame->flow_counter.name,
                               DAQIRI_PEER_COUNTER_MAX));
    }
}


/* It becomes a word of a command, and sizes of memory. */
static void fuzz_flow_terms(const daqiri_peer_frame_t *frame)
{
    const char *transport = frame->flow_terms.transport;

    FUZZ_MUST(fuzz_is_text(transport, DAQIRI_PEER_WORD_MAX));
    FUZZ_MUST((transport[0] != '\0') && (transport[0] != '-') &&
              (strpbrk(transport, " \n/;$") == NULL));
    FUZZ_MUST((frame->flow_terms.pattern >= DAQIRI_PEER_STREAM) &&
              (frame->flow_terms.pattern < DAQIRI_PEER_PATTERN_LAST));
    FUZZ_MUST((frame->flow_terms.size >= DAQIRI_PEER_FLOW_SIZE_MIN) &&
              (frame->flow_terms.size <= DAQIRI_PEER_FLOW_SIZE_MAX));
    FUZZ_MUST((frame->flow_terms.window >= 1) &&
              (frame->flow_terms.window <= DAQIRI_PEER_FLOW_WINDOW_MAX));
    FUZZ_MUST(frame->flow_terms.duration_ns <= DAQIRI_PEER_NS_MAX);
}


/* What UCX may read behind the end of an address is zero. */
static void fuzz_blob(const daqiri_peer_blob_t *blob)
{
    size_t i;

    FUZZ_MUST(blob->length <= DAQIRI_PEER_BLOB_MAX);
    for (i = blob->length; i < DAQIRI_PEER_BLOB_MAX; i++) {
        FUZZ_MUST(blob->bytes[i] == 0);
    }
}


static void fuzz_ranges(const daqiri_peer_frame_t *frame)
{
    switch (frame->kind) {
    case DAQIRI_PEER_INFO:
        FUZZ_MUST((frame->info.mtu >= 1) && (frame->info.mtu <= 5));
        FUZZ_MUST((frame->info.qpn <= 0xffffff) &&
                  (frame->info.psn <= 0xffffff));
        FUZZ_MUST(frame->info.is_global <= 1);
        break;
    case DAQIRI_PEER_FLOW_TERMS:
        fuzz_flow_terms(frame);
        break;
    case DAQIRI_PEER_FLOW_ADDRESS:
        fuzz_blob(&frame->flow_address.device);
        fuzz_blob(&frame->flow_address.iface);
        fuzz_blob(&frame->flow_address.ep);
        break;
    case DAQIRI_PEER_FLOW_SIDE:
        FUZZ_MUST(frame->flow_side.first_ns <= frame->flow_side.last_ns);
        break;
    default:
        fuzz_texts(frame);
        break;
    }
}


static void fuzz_again(const daqiri_peer_frame_t *frame)
{
    uint8_t first[DAQIRI_PEER_FRAME_MAX], second[DAQIRI_PEER_FRAME_MAX];
    size_t length = daqiri_peer_pack(frame, first);
    char why[DAQIRI_PEER_WHY_MAX];
    daqiri_peer_frame_t again;
    uint32_t said;

    FUZZ_MUST(length <= DAQIRI_PEER_FRAME_MAX);
    FUZZ_MUST(daqiri_peer_parse_header(first, &said) == DAQIRI_PEER_OK);
    FUZZ_MUST(said == length - DAQIRI_PEER_HEADER_LEN);
    FUZZ_MUST(daqiri_peer_parse(first + DAQIRI_PEER_HEADER_LEN, said, &again,
                                why) == 0);
    FUZZ_MUST(daqiri_peer_pack(&again, second) == length);
    FUZZ_MUST(memcmp(first, second, length) == 0);
}


/* The bytes behind a length that fits, in memory of exactly their length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[DAQIRI_PEER_WHY_MAX] = "";
    uint8_t header[DAQIRI_PEER_HEADER_LEN] = {0};
    daqiri_peer_frame_t frame;
    uint32_t length;
    uint8_t *exact;

    memcpy(header, data, (size < sizeof(header)) ? size : sizeof(header));
    if (daqiri_peer_parse_header(header, &length) == DAQIRI_PEER_OK) {
        FUZZ_MUST(length <= DAQIRI_PEER_PAYLOAD_MAX);
    }
    if (size > DAQIRI_PEER_PAYLOAD_MAX) {
        return 0;
    }
    exact = malloc((size > 0) ? size : 1);
    FUZZ_MUST(exact != NULL);
    memcpy(exact, data, size);
    if (daqiri_peer_parse(exact, size, &frame, why) == 0) {
        fuzz_ranges(&frame);
        fuzz_again(&frame);
    } else {
        FUZZ_MUST(fuzz_is_text(why, sizeof(why)) && (why[0] != '\0'));
    }
    free(exact);
    return 0;
}
