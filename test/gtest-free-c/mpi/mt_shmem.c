/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An OpenSHMEM program: hello, put, get, and atomics of all kinds, between all
 * pairs of PEs, every byte checked. It ends with the line that the MPI tests
 * end with, to be held against the transport's own counters.
 */

#include "tools/base/mapped.h"
#include "tools/base/pattern.h"

#include <inttypes.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PES_MAX  = 8,
    SLOT     = 300000, /* bytes that each PE owns in the memory of each other */
    TICKETS  = 100,
    ROUNDS   = 3,
    BITS     = 60      /* of a word that all set, clear and flip             */
};

static int me, count;
static uint64_t one_sided, atomics;

/* In the symmetric data segment, as that is one more way to register memory. */
static unsigned long next_ticket, bits, turn;
static unsigned sum, sum_guard; /* 32 bits */
static uint64_t pids[PES_MAX], bytes_sent[PES_MAX], atomics_sent[PES_MAX];


#define CHECK(_condition) \
    ((_condition) ? (void)0 : fail(__LINE__, #_condition))

static void fail(int line, const char *what)
{
    fprintf(stderr, "mt_shmem.c:%d: PE %d of %d: not so: %s\n", line, me,
            count, what);
    shmem_global_exit(1);
    abort();
}


static uint64_t key_of(int from, int to, uint64_t serial)
{
    daqiri_pattern_id_t id = {
        .seed     = 0x5e3d,
        .serial   = serial,
        .size     = SLOT,
        .sender   = (uint32_t)from,
        .receiver = (uint32_t)to
    };

    return daqiri_pattern_key(&id);
}


/* To itself a PE may write without any transport. */
static void count_one_sided(size_t length, int pe)
{
    one_sided += (pe != me) ? length : 0;
}


static void count_atomic(int pe)
{
    atomics += (pe != me) ? 1 : 0;
}


/* Into everyone's memory, at any alignment, in pieces of all lengths. */
static void put_to(uint8_t *window, uint8_t *mine, int pe, uint64_t serial)
{
    size_t offset, length;

    daqiri_pattern_fill(mine, SLOT, key_of(me, pe, serial));
    for (offset = 0, length = 1; offset < SLOT; offset += length, length *= 3) {
        if (length > SLOT - offset) {
            length = SLOT - offset;
        }
        shmem_putmem(window + (size_t)me * SLOT + offset, mine + offset,
                     length, pe);
        count_one_sided(length, pe);
    }
    shmem_quiet(); /* mine is written over for the next one */
}


/* What that PE's neighbour has put there. */
static void get_from(const uint8_t *window, uint8_t *mine, int pe,
                     uint64_t serial)
{
    int writer = (pe + me) % count;

    memset(mine, 0, SLOT);
    shmem_getmem(mine, window + (size_t)writer * SLOT, SLOT, pe);
    count_one_sided(SLOT, pe);
    CHECK(daqiri_pattern_check(mine, SLOT, key_of(writer, pe, serial)) ==
          SLOT);
}


static void put_and_get(void)
{
    uint8_t *window = shmem_malloc((size_t)count * SLOT);
    uint8_t *mine   = malloc(SLOT);
    uint64_t serial;
    int pe;

    CHECK((window != NULL) && (mine != NULL));
    for (serial = 1; serial <= ROUNDS; serial++) {
        for (pe = 0; pe < count; pe++) {
            put_to(window, mine, pe, serial);
        }
        shmem_barrier_all();
        for (pe = 0; pe < count; pe++) {
            CHECK(daqiri_pattern_check(window + (size_t)pe * SLOT, SLOT,
                                       key_of(pe, me, serial)) == SLOT);
        }
        for (pe = 0; pe < count; pe++) {
            get_from(window, mine, pe, serial);
        }
        shmem_barrier_all();
    }
    free(mine);
    shmem_free(window);
}


/* A number for each, none twice and none left out. */
static void take_tickets(void)
{
    uint64_t *taken = shmem_calloc((size_t)count * TICKETS, sizeof(*taken));
    uint64_t one    = 1;
    unsigned long ticket;
    int i;

    CHECK(taken != NULL);
    shmem_barrier_all(); /* Open MPI's calloc clears after its own barrier */
    for (i = 0; i < TICKETS; i++) {
        ticket = shmem_ulong_atomic_fetch_add(&next_ticket, 1, 0);
        count_atomic(0);
        CHECK(ticket < (unsigned long)count * TICKETS);
        shmem_uint64_put(&taken[ticket], &one, 1, 0);
        count_one_sided(sizeof(one), 0);
        shmem_uint_atomic_add(&sum, 3, (me + 1) % count);
        count_atomic((me + 1) % count);
    }
    shmem_barrier_all();
    for (i = 0; (me == 0) && (i < count * TICKETS); i++) {
        CHECK(taken[i] == 1);
    }
    CHECK(sum == 3 * TICKETS);
    CHECK(sum_guard == 0);
    shmem_barrier_all();
    shmem_free(taken);
}


/* Each has bits of its own in one word of PE 0. */
static void set_and_flip(void)
{
    unsigned long mine = 0;
    int i;

    for (i = me; i < BITS; i += count) {
        mine |= 1ul << i;
        shmem_ulong_atomic_or(&bits, 1ul << i, 0);
        count_atomic(0);
    }
    CHECK((shmem_ulong_atomic_fetch(&bits, 0) & mine) == mine);
    count_atomic(0);
    shmem_barrier_all();
    CHECK((me != 0) || (bits == (1ul << BITS) - 1));
    shmem_barrier_all();
    CHECK((shmem_ulong_atomic_fetch_xor(&bits, mine, 0) & mine) == mine);
    CHECK((shmem_ulong_atomic_fetch_and(&bits, ~mine, 0) & mine) == 0);
    count_atomic(0);
    count_atomic(0);
    shmem_barrier_all();
    CHECK((me != 0) || (bits == 0));
}


/* PE i may go when the word is i, and leaves i + 1; the last one 0. */
static void take_turns(void)
{
    unsigned long mine = (unsigned long)me;
    unsigned long seen;

    if (count == 1) {
        return;
    }
    do {
        seen = shmem_ulong_atomic_compare_swap(&turn, mine, mine + 1000, 0);
        count_atomic(0);
    } while (seen != mine);
    seen = shmem_ulong_atomic_swap(&turn, (mine + 1) % (unsigned long)count, 0);
    count_atomic(0);
    CHECK(seen == mine + 1000);
    shmem_barrier_all();
    CHECK((me != 0) || (turn == 0));
}


static void say_hello(void)
{
    uint64_t pid = (uint64_t)getpid();
    int pe;

    shmem_uint64_put(&pids[me], &pid, 1, 0);
    shmem_uint64_put(&bytes_sent[me], &one_sided, 1, 0);
    shmem_uint64_put(&atomics_sent[me], &atomics, 1, 0);
    shmem_barrier_all();
    for (pe = 0; (me == 0) && (pe < count); pe++) {
        printf("# hello from PE %d of %d\n", pe, count);
        printf("# sent rank=%d pid=%" PRIu64 " one_sided_bytes=%" PRIu64
               " atomic_messages=%" PRIu64 "\n",
               pe, pids[pe], bytes_sent[pe], atomics_sent[pe]);
    }
}


int main(void)
{
    shmem_init();
    mapped_keep_pmix();
    me    = shmem_my_pe();
    count = shmem_n_pes();
    CHECK(count <= PES_MAX);
    shmem_barrier_all();
    put_and_get();
    take_tickets();
    set_and_flip();
    take_turns();
    say_hello();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
