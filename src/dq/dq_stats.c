/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_stats.h"

#include <stdio.h>
#include <string.h>

enum { DQ_STATS_TRIES = 1000, DQ_STATS_ALIGN = 64 };

#define DQ_STATS_PREFIX "daqiri-stats-"

DQ_STATIC_ASSERT(sizeof(dq_stats_header_t) == 200, "layout");
DQ_STATIC_ASSERT(sizeof(dq_stats_entry_t) == 48, "layout");
DQ_STATIC_ASSERT(sizeof(dq_stats_peer_t) == 144, "layout");


char *dq_stats_path(char *buf, size_t size, uint32_t uid, uint32_t pid,
                    uint32_t serial)
{
    snprintf(buf, size, DQ_STATS_DIR "/" DQ_STATS_PREFIX "%u.%u.%u", uid, pid,
             serial);
    return buf;
}


/* Reads a decimal number of 32 bits that is written as we write it, and returns the
 * text behind it; or NULL. */
static const char *dq_stats_number(const char *text, uint32_t *value)
{
    const char *at = text;
    uint64_t sum   = 0;

    for (; (*at >= '0') && (*at <= '9'); at++) {
        sum = sum * 10 + (uint64_t)(*at - '0');
        if (sum > UINT32_MAX) {
            return NULL;
        }
    }
    *value = sum;
    return ((at == text) || ((*text == '0') && (at > text + 1))) ? NULL : at;
}


int dq_stats_is_name(const char *name, uint32_t uid, uint32_t *pid,
                     uint32_t *serial)
{
    const size_t length = sizeof(DQ_STATS_PREFIX) - 1;
    uint32_t owner;

    if (strncmp(name, DQ_STATS_PREFIX, length) != 0) {
        return 0;
    }
    name = dq_stats_number(name + length, &owner);
    if ((name == NULL) || (*name != '.') || (owner != uid)) {
        return 0;
    }
    name = dq_stats_number(name + 1, pid);
    if ((name == NULL) || (*name != '.')) {
        return 0;
    }
    name = dq_stats_number(name + 1, serial);
    return (name != NULL) && (*name == '\0');
}


static uint32_t dq_stats_align(uint32_t at)
{
    return (at + DQ_STATS_ALIGN - 1) / DQ_STATS_ALIGN * DQ_STATS_ALIGN;
}


/* Values begin a cache line, so that names which are only read share none with
 * what is counted. */
void dq_stats_layout(dq_stats_header_t *header, uint32_t count, uint32_t peers)
{
    uint32_t entries_at = dq_stats_align(sizeof(*header));
    uint32_t values_at  = dq_stats_align(entries_at +
                                         count * sizeof(dq_stats_entry_t));
    uint32_t peers_at   = dq_stats_align(values_at + count * sizeof(uint64_t));

    DQ_ASSERT((count <= DQ_STATS_VALUES_MAX) && (peers <= DQ_STATS_PEERS_MAX));
    *header = (dq_stats_header_t){
        .version    = DQ_STATS_VERSION,
        .length     = peers_at + peers * sizeof(dq_stats_peer_t),
        .count      = count,
        .peers      = peers,
        .entries_at = entries_at,
        .values_at  = values_at,
        .peers_at   = peers_at,
        .entry_size = sizeof(dq_stats_entry_t),
        .peer_size  = sizeof(dq_stats_peer_t),
    };
}


void dq_stats_publish(dq_stats_header_t *header)
{
    __atomic_store_n(&header->magic, DQ_STATS_MAGIC, __ATOMIC_RELEASE);
}


/* Are @a count things of @a size at @a at, aligned, within the file? */
static int dq_stats_is_inside(const dq_stats_header_t *header, uint32_t at,
                              uint32_t count, size_t size)
{
    return (at % sizeof(uint64_t) == 0) && (at >= sizeof(*header)) &&
           ((uint64_t)at + (uint64_t)count * size <= header->length);
}


static int dq_stats_is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}


static int dq_stats_are_names(const dq_stats_header_t *header)
{
    const dq_stats_entry_t *entry;
    uint32_t i;

    for (i = 0; i < header->count; i++) {
        entry = dq_stats_entry(header, i);
        if (!dq_stats_is_text(entry->name, sizeof(entry->name)) ||
            (entry->kind >= DQ_STATS_KIND_LAST)) {
            return 0;
        }
    }
    return 1;
}


const dq_stats_header_t *dq_stats_find(const void *map, size_t length)
{
    const dq_stats_header_t *header = map;

    if ((length < sizeof(*header)) ||
        (__atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) !=
         DQ_STATS_MAGIC) ||
        (header->version != DQ_STATS_VERSION) || (header->length > length) ||
        (header->entry_size != sizeof(dq_stats_entry_t)) ||
        (header->peer_size != sizeof(dq_stats_peer_t)) ||
        (header->count > DQ_STATS_VALUES_MAX) ||
        (header->peers > DQ_STATS_PEERS_MAX)) {
        return NULL;
    }
    return (dq_stats_is_inside(header, header->entries_at, header->count,
                               sizeof(dq_stats_entry_t)) &&
            dq_stats_is_inside(header, header->values_at, header->count,
                               sizeof(uint64_t)) &&
            dq_stats_is_inside(header, header->peers_at, header->peers,
                               sizeof(dq_stats_peer_t)) &&
            dq_stats_is_text(header->host, sizeof(header->host)) &&
            dq_stats_is_text(header->device, sizeof(header->device)) &&
            dq_stats_are_names(header))
                   ? header : NULL;
}


static const void *dq_stats_at(const dq_stats_header_t *header, uint32_t at)
{
    return (const char*)header + at;
}


const dq_stats_entry_t *dq_stats_entry(const dq_stats_header_t *header,
                                       uint32_t index)
{
    const dq_stats_entry_t *entries = dq_stats_at(header, header->entries_at);

    return &entries[index];
}


uint64_t dq_stats_value(const dq_stats_header_t *header, uint32_t index)
{
    const uint64_t *values = dq_stats_at(header, header->values_at);

    return __atomic_load_n(&values[index], __ATOMIC_RELAXED);
}


/* ---- Peers: a sequence number around what is written ---- */

/* All but the sequence, as words. */
enum { DQ_STATS_WORDS = sizeof(dq_stats_peer_t) / sizeof(uint64_t) };

typedef union {
    dq_stats_peer_t peer;
    uint64_t        word[DQ_STATS_WORDS];
} dq_stats_words_t;


/* The exchange orders all later stores after it, and the last store all earlier ones
 * before it. */
void dq_stats_write_peer(dq_stats_peer_t *place, const dq_stats_peer_t *peer)
{
    uint32_t sequence      = place->sequence;
    dq_stats_words_t words = {.peer = *peer};
    uint64_t *to           = ((dq_stats_words_t*)(void*)place)->word;
    unsigned i;

    (void)__atomic_exchange_n(&place->sequence, sequence + 1,
                              __ATOMIC_ACQ_REL);
    __atomic_store_n(&place->state, peer->state, __ATOMIC_RELAXED);
    for (i = 1; i < DQ_STATS_WORDS; i++) { /* the first has the sequence */
        __atomic_store_n(&to[i], words.word[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&place->sequence, sequence + 2, __ATOMIC_RELEASE);
}


/* Each load orders all later loads after it. */
static void dq_stats_read_peer(const dq_stats_peer_t *place,
                               dq_stats_peer_t *peer, uint32_t sequence)
{
    const uint64_t *from = ((const dq_stats_words_t*)(const void*)place)->word;
    dq_stats_words_t words;
    unsigned i;

    for (i = 1; i < DQ_STATS_WORDS; i++) {
        words.word[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
    words.peer.sequence = sequence;
    words.peer.state    = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
    *peer               = words.peer;
}


static int dq_stats_is_sound(const dq_stats_peer_t *peer)
{
    return (peer->state != DQ_STATS_NONE) &&
           (peer->state < DQ_STATS_STATE_LAST) &&
           dq_stats_is_text(peer->host, sizeof(peer->host));
}


int dq_stats_peer(const dq_stats_header_t *header, uint32_t index,
                  dq_stats_peer_t *peer)
{
    const dq_stats_peer_t *peers = dq_stats_at(header, header->peers_at);
    const dq_stats_peer_t *place = &peers[index];
    uint32_t before;
    unsigned i;

    for (i = 0; i < DQ_STATS_TRIES; i++) {
        before = __atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE);
        dq_stats_read_peer(place, peer, before);
        if (((before & 1) == 0) &&
            (before == __atomic_load_n(&place->sequence, __ATOMIC_RELAXED))) {
            return dq_stats_is_sound(peer);
        }
    }
    return 0;
}


const char *dq_stats_state_name(dq_stats_state_t state)
{
    static const char *const names[DQ_STATS_STATE_LAST] = {
        [DQ_STATS_NONE]       = "none",
        [DQ_STATS_CONNECTING] = "connecting",
        [DQ_STATS_UP]         = "up",
        [DQ_STATS_LOST]       = "lost",
        [DQ_STATS_DEAD]       = "dead",
        [DQ_STATS_IDLE_CLOSED] = "idle",
    };

    return ((unsigned)state < DQ_STATS_STATE_LAST) ? names[state] : "?";
}
