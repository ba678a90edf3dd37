/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two hosts that cannot connect by TCP: a person carries a word from each to the other,
 * and says when both are ready. What is to be asked is told to the process that started
 * this one; the answers are lines on stdin.
 */

#include "tools/base/answer.h"
#include "tools/base/clock.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/flow/flow.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Two people need time. */
#define HAND_TIMEOUT_NS (3600 * 1000000000ull)

char *flow_hand_word(const daqiri_peer_frame_t *info, char *text)
{
    size_t used;
    size_t i;

    used = (size_t)snprintf(text, FLOW_WORD_MAX, "dq1:%u:%u:%u:%u:%u:%d:",
                            info->info.lid, info->info.qpn, info->info.psn,
                            info->info.mtu, info->info.is_global,
                            info->info.gid_index);
    for (i = 0; i < sizeof(info->info.gid); ++i) {
        used += (size_t)snprintf(text + used, FLOW_WORD_MAX - used, "%02x",
                                 info->info.gid[i]);
    }
    return text;
}

int flow_hand_parse_word(const char *text, daqiri_peer_frame_t *info)
{
    unsigned lid, mtu, is_global, byte;
    int length = 0;
    size_t i;

    memset(info, 0, sizeof(*info));
    info->kind = DAQIRI_PEER_INFO;
    if ((sscanf(text, "dq1:%5u:%8u:%8u:%1u:%1u:%4d:%n", &lid, &info->info.qpn,
                &info->info.psn, &mtu, &is_global, &info->info.gid_index,
                &length) != 6) || (length == 0) || (lid > 0xffff) ||
        (info->info.qpn > 0xffffff) || (info->info.psn > 0xffffff) || (mtu < 1) ||
        (mtu > 5) || (is_global > 1)) {
        return -1;
    }
    text += length;
    if ((strlen(text) != 2 * sizeof(info->info.gid)) ||
        (strspn(text, "0123456789abcdef") != 2 * sizeof(info->info.gid))) {
        return -1;
    }
    for (i = 0; i < sizeof(info->info.gid); ++i) {
        sscanf(text + 2 * i, "%2x", &byte);
        info->info.gid[i] = (uint8_t)byte;
    }
    info->info.lid       = (uint16_t)lid;
    info->info.mtu       = (uint8_t)mtu;
    info->info.is_global = (uint8_t)is_global;
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

static void hand_ask(const char *key, json_t *value)
{
    json_t *object = json_object();

    daqiri_report_set(object, key, value);
    daqiri_answer_write(DAQIRI_ANSWER_HAND, object);
    json_decref(object);
}

int flow_hand_over(const daqiri_peer_frame_t *mine, daqiri_peer_frame_t *theirs,
                   daqiri_failure_t *failure)
{
    char word[FLOW_WORD_MAX], line[256];

    hand_ask("word", json_string(flow_hand_word(mine, word)));
    if (hand_read(line, sizeof(line), failure) != 0) {
        return -1;
    }
    line[strcspn(line, " \t\r")] = '\0';
    if (flow_hand_parse_word(line, theirs) != 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "this is not the "
                           "word of the other side, which begins with dq1:");
    }
    return 0;
}

int flow_hand_ready(daqiri_failure_t *failure)
{
    char line[256];

    hand_ask("ready", json_true());
    return hand_read(line, sizeof(line), failure);
}
