/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/pattern.h"

#include <string.h>

/* 2^64 divided by the golden ratio, odd: multiples of it are spread evenly. */
#define PATTERN_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Any odd number with about as many ones as zeros will do. */
#define PATTERN_MULTIPLIER UINT64_C(0xd6e8feb86659fd93)

static uint64_t pattern_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= PATTERN_MULTIPLIER;
    x ^= x >> 29;
    return x;
}

static uint64_t pattern_word(size_t index, uint64_t key)
{
    return pattern_mix(key + index * PATTERN_STEP);
}

uint64_t daqiri_pattern_key(const daqiri_pattern_id_t *id)
{
    uint64_t key = pattern_mix(id->seed + PATTERN_STEP);

    key = pattern_mix(key + id->serial);
    key = pattern_mix(key + id->size);
    key = pattern_mix(key + id->test);
    key = pattern_mix(key + id->sender);
    return pattern_mix(key + id->receiver);
}

void daqiri_pattern_fill(void *buffer, size_t length, uint64_t key)
{
    size_t words = length / sizeof(uint64_t);
    char *bytes  = buffer;
    uint64_t word;
    size_t i;

    for (i = 0; i < words; ++i) {
        word = pattern_word(i, key);
        memcpy(bytes + i * sizeof(word), &word, sizeof(word));
    }

    word = pattern_word(words, key);
    memcpy(bytes + words * sizeof(word), &word, length % sizeof(word));
}

uint8_t daqiri_pattern_byte(size_t offset, uint64_t key)
{
    uint64_t word = pattern_word(offset / sizeof(word), key);
    uint8_t bytes[sizeof(word)];

    memcpy(bytes, &word, sizeof(word));
    return bytes[offset % sizeof(word)];
}

size_t daqiri_pattern_check(const void *buffer, size_t length, uint64_t key)
{
    const uint8_t *bytes = buffer;
    uint64_t word;
    size_t i;

    for (i = 0; i + sizeof(word) <= length; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        if (word != pattern_word(i / sizeof(word), key)) {
            break;
        }
    }

    while ((i < length) && (bytes[i] == daqiri_pattern_byte(i, key))) {
        ++i;
    }
    return i;
}
