/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/cmd/pingpong.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Two people need time. */
#define HAND_TIMEOUT_NS (3600 * 1000000000ull)

char *daqiri_pingpong_word(const daqiri_qp_addr_t *addr, char *text)
{
    size_t used;
    size_t i;

    used = (size_t)snprintf(text, DAQIRI_PINGPONG_WORD_MAX,
                            "dq1:%u:%u:%u:%u:%u:%d:", addr->lid, addr->qpn,
                            addr->psn, addr->mtu, addr->is_global,
                            addr->gid_index);
    for (i = 0; i < sizeof(addr->gid.raw); ++i) {
        used += (size_t)snprintf(text + used, DAQIRI_PINGPONG_WORD_MAX - used,
                                 "%02x", addr->gid.raw[i]);
    }
    return text;
}

int daqiri_pingpong_parse_word(const char *text, daqiri_qp_addr_t *addr)
{
    unsigned lid, mtu, is_global, byte;
    int length = 0;
    size_t i;

    memset(addr, 0, sizeof(*addr));
    if ((sscanf(text, "dq1:%5u:%8u:%8u:%1u:%1u:%4d:%n", &lid, &addr->qpn,
                &addr->psn, &mtu, &is_global, &addr->gid_index, &length) !=
         6) || (length == 0) || (lid > 0xffff) || (addr->qpn > 0xffffff) ||
        (addr->psn > 0xffffff) || (mtu < 1) || (mtu > 5) || (is_global > 1)) {
        return -1;
    }
    text += length;
    if ((strlen(text) != 2 * sizeof(addr->gid.raw)) ||
        (strspn(text, "0123456789abcdef") != 2 * sizeof(addr->gid.raw))) {
        return -1;
    }
    for (i = 0; i < sizeof(addr->gid.raw); ++i) {
        sscanf(text + 2 * i, "%2x", &byte);
        addr->gid.raw[i] = (uint8_t)byte;
    }
    addr->lid       = (uint16_t)lid;
    addr->mtu       = (uint8_t)mtu;
    addr->is_global = (uint8_t)is_global;
    return 0;
}

/* A line without its end. Byte by byte: what follows is not ours yet. */
static int hand_read(char *line, size_t size, daqiri_failure_t *failure)
{
    uint64_t deadline_ns = daqiri_now_ns() + HAND_TIMEOUT_NS;
    struct pollfd event  = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t used = 0;
    ssize_t ret;

    for (;;) {
        if (daqiri_stop_asked()) {
            return daqiri_fail(failure, DAQIRI_CLASS_INTERRUPTED,
                               "interrupted while waiting for a line");
        }
        if (daqiri_now_ns() > deadline_ns) {
            return daqiri_fail(failure, DAQIRI_CLASS_TIMEOUT, "no line came "
                               "within an hour");
        }
        if (poll(&event, 1, 100) <= 0) {
            continue;
        }
        ret = read(STDIN_FILENO, line + used, 1);
        if ((ret == 0) || ((ret < 0) && (errno != EINTR))) {
            return daqiri_fail(failure, DAQIRI_CLASS_PEER_GONE, "standard "
                               "input ended where a line was to come");
        }
        if ((ret > 0) && (line[used] == '\n')) {
            line[used] = '\0';
            return 0;
        }
        used += ((ret > 0) && (used + 2 < size)) ? 1 : 0;
    }
}

int daqiri_pingpong_hand_over(const daqiri_pingpong_t *opts,
                              const daqiri_qp_addr_t *local,
                              daqiri_qp_addr_t *remote,
                              daqiri_failure_t *failure)
{
    char word[DAQIRI_PINGPONG_WORD_MAX], line[256];

    fprintf(stderr, "%s: give the other side this word, and enter its word "
            "here:\n%s\n", opts->speaker, daqiri_pingpong_word(local, word));
    if (hand_read(line, sizeof(line), failure) != 0) {
        return -1;
    }
    line[strcspn(line, " \t\r")] = '\0';
    if (daqiri_pingpong_parse_word(line, remote) != 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "this is not the "
                           "word of the other side, which begins with dq1:");
    }
    return 0;
}

int daqiri_pingpong_hand_ready(const daqiri_pingpong_t *opts,
                               daqiri_failure_t *failure)
{
    char line[256];

    fprintf(stderr, "%s: ready; press Enter when the other side is ready, "
            "too, the client last\n", opts->speaker);
    return hand_read(line, sizeof(line), failure);
}
