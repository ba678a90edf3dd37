/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and frames: whatever arrives, nothing behind its end is read; what
 * is taken is within the ranges that dq_wire.h promises, and packs to the very
 * bytes that it came as. An input is also tried as one of our version, so that
 * those that are kept do not end with it.
 */
#include "fuzz.h"

#include "dq/dq_wire.h"

#include <string.h>

#define COOKIE UINT64_C(0x1122334455667788)

enum { AT_VERSION = 4 };


static void fuzz_message(const uint8_t *data, size_t size)
{
    dq_wire_status_t status = dq_msg_parse(data, size);
    dq_msg_hdr_t hdr;

    FUZZ_MUST(status < DQ_WIRE_LAST);
    FUZZ_MUST(status == dq_msg_parse_slow(data, size));
    FUZZ_MUST((status == DQ_WIRE_SHORT) == (size < sizeof(hdr)));
    if (status == DQ_WIRE_OK) {
        memcpy(&hdr, data, sizeof(hdr));
        FUZZ_MUST((hdr.kind >= DQ_MSG_AM) && (hdr.kind <= DQ_MSG_CLOSE));
        FUZZ_MUST(hdr.am_id < DQ_WIRE_AM_ID_MAX);
    }
}


static void fuzz_frame(const uint8_t *data, size_t size)
{
    uint8_t packed[DQ_FRAME_BYTES];
    dq_wire_status_t status;
    dq_frame_t frame, before;

    memset(&frame, 0x5a, sizeof(frame));
    before = frame;
    status = dq_frame_parse(data, size, COOKIE, &frame);
    FUZZ_MUST(status < DQ_WIRE_LAST);
    FUZZ_MUST((status != DQ_WIRE_SHORT) || (size < DQ_FRAME_BYTES));
    FUZZ_MUST((dq_frame_version(data, size, COOKIE) == DQ_WIRE_VERSION) ||
              (status == DQ_WIRE_BAD_VERSION));
    if (status != DQ_WIRE_OK) {
        FUZZ_MUST(memcmp(&frame, &before, sizeof(frame)) == 0);
        return;
    }
    FUZZ_MUST(size >= DQ_FRAME_BYTES);

    FUZZ_MUST((frame.kind < DQ_FRAME_LAST) && (frame.dst_cookie == COOKIE));
    FUZZ_MUST((frame.epoch != 0) && (frame.src.ud_qpn <= 0xffffff));
    FUZZ_MUST(memchr(frame.host, '\0', sizeof(frame.host)) != NULL);
    FUZZ_MUST((frame.mark != 0) ||
              ((frame.kind != DQ_FRAME_REQ) && (frame.kind != DQ_FRAME_REP) &&
               (frame.kind != DQ_FRAME_AGAIN)));
    if ((frame.kind == DQ_FRAME_REQ) || (frame.kind == DQ_FRAME_REP)) {
        FUZZ_MUST((frame.qpn <= 0xffffff) && (frame.psn <= 0xffffff));
        FUZZ_MUST((frame.first != 0) && (frame.credits >= DQ_WINDOW_MIN));
        FUZZ_MUST(frame.promised <= frame.credits);
    }
    dq_frame_pack(&frame, packed);
    FUZZ_MUST(memcmp(packed, data, sizeof(packed)) == 0);
    FUZZ_MUST(dq_frame_parse(data, size, COOKIE + 1, &frame) ==
              DQ_WIRE_BAD_COOKIE);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc((size > 0) ? size : 1); /* its end is watched */

    FUZZ_MUST(exact != NULL);
    if (size > 0) {
        memcpy(exact, data, size);
    }
    fuzz_message(exact, size);
    fuzz_frame(exact, size);
    if (size > AT_VERSION) {
        exact[AT_VERSION] = DQ_WIRE_VERSION;
        fuzz_frame(exact, size);
    }
    free(exact);
    return 0;
}
