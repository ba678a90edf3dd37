/* SPDX-License-Identifier: BSD-3-Clause */

#include "mt.h"
#include "tools/base/mapped.h"
#include "tools/base/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct mt_case {
    const char *name;
    void (*run)(void);
} mt_case_t;

static const mt_case_t mt_cases[] = {
    {"blocking", mt_case_blocking},
    {"nonblocking", mt_case_nonblocking},
    {"any_source", mt_case_any_source},
    {"self", mt_case_self},
    {"truncation", mt_case_truncation},
    {"probe", mt_case_probe},
    {"unexpected", mt_case_unexpected},
    {"random", mt_case_random},
    {"threads", mt_case_threads},
    {"types", mt_case_types},
    {"thread_pairs", mt_case_thread_pairs},
    {"windows", mt_case_windows},
    {"shared_window", mt_case_shared_window},
    {"atomics", mt_case_atomics},
    {"collectives", mt_case_collectives}
};

mt_t mt;

const size_t mt_sizes[MT_NUM_SIZES] = {
    0, 1, 7, 8, 9, 63, 64, 65, 255, 1023, 1024, 1025, 4095, 4096, 4097,
    8191, 8192, 8193, 8256, 16384, 32768, 65535, 65536, 262145, 1048576,
    4194303, 4194304, MT_MAX_SIZE
};

void mt_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: rank %d of %d: not so: %s\n", file, line, mt.rank,
            mt.np, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

t_rng_t mt_rng(uint64_t salt)
{
    t_rng_t rng = {.state = mt.seed};

    rng.state = t_rng_next(&rng) + salt;
    return rng;
}

void *mt_alloc(size_t size)
{
    void *memory = malloc((size > 0) ? size : 1);

    MT_ASSERT(memory != NULL);
    return memory;
}

static uint64_t mt_key(size_t size, int sender, int receiver, uint64_t serial)
{
    daqiri_pattern_id_t id = {
        .seed     = mt.seed,
        .serial   = serial,
        .size     = size,
        .sender   = (uint32_t)sender,
        .receiver = (uint32_t)receiver
    };

    return daqiri_pattern_key(&id);
}

void mt_fill(void *buffer, size_t size, int sender, int receiver,
             uint64_t serial)
{
    daqiri_pattern_fill(buffer, size, mt_key(size, sender, receiver, serial));
}

void mt_check(const void *buffer, size_t size, int sender, int receiver,
              uint64_t serial)
{
    uint64_t key = mt_key(size, sender, receiver, serial);
    size_t wrong = daqiri_pattern_check(buffer, size, key);

    if (wrong == size) {
        return;
    }
    fprintf(stderr,
            "rank %d: wrong data from rank %d to rank %d: message %" PRIu64
            ", size %zu, offset %zu: expected 0x%02x, got 0x%02x\n",
            mt.rank, sender, receiver, serial, size, wrong,
            daqiri_pattern_byte(wrong, key), ((const uint8_t*)buffer)[wrong]);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* MPICH gives a rank its own messages without any transport. */
#ifdef OPEN_MPI
#define MT_SELF_IS_SENT 1
#else
#define MT_SELF_IS_SENT 0
#endif

void mt_count_sent(size_t size, int receiver)
{
    if (MT_SELF_IS_SENT || (receiver != mt.rank)) {
        __atomic_fetch_add(&mt.messages, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&mt.bytes, size, __ATOMIC_RELAXED);
    }
}

void mt_send(const void *buffer, size_t size, int receiver, int tag)
{
    MPI_Send(buffer, (int)size, MPI_BYTE, receiver, tag, MPI_COMM_WORLD);
    mt_count_sent(size, receiver);
}

void mt_isend(const void *buffer, size_t size, int receiver, int tag,
              MPI_Request *request)
{
    MPI_Isend(buffer, (int)size, MPI_BYTE, receiver, tag, MPI_COMM_WORLD,
              request);
    mt_count_sent(size, receiver);
}

void mt_check_status(MPI_Status *status, size_t size, int sender, int tag)
{
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    MT_ASSERT(status->MPI_SOURCE == sender);
    MT_ASSERT(status->MPI_TAG == tag);
    MT_ASSERT((size_t)count == size);
}

void mt_wait_all(int count, MPI_Request *requests)
{
    MPI_Status *statuses = mt_alloc((size_t)count * sizeof(*statuses));

    MPI_Waitall(count, requests, statuses);
    free(statuses);
}

void mt_recv(void *buffer, size_t size, int sender, int tag)
{
    MPI_Status status;

    MPI_Recv(buffer, (int)size, MPI_BYTE, sender, tag, MPI_COMM_WORLD,
             &status);
    mt_check_status(&status, size, sender, tag);
}

static const mt_case_t *mt_find(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(mt_cases) / sizeof(mt_cases[0]); ++i) {
        if (strcmp(mt_cases[i].name, name) == 0) {
            return &mt_cases[i];
        }
    }
    return NULL;
}

static void mt_print_sent(void)
{
    enum { PID, MESSAGES, BYTES, ONE_SIDED, ATOMICS, NUMBERS };
    uint64_t mine[NUMBERS] = {(uint64_t)getpid(), mt.messages, mt.bytes,
                              mt.one_sided, mt.atomics};
    uint64_t *all          = mt_alloc((size_t)mt.np * sizeof(mine));
    const uint64_t *sent;
    int rank;

    MPI_Gather(mine, NUMBERS, MPI_UINT64_T, all, NUMBERS, MPI_UINT64_T, 0,
               MPI_COMM_WORLD);
    for (rank = 0; (mt.rank == 0) && (rank < mt.np); ++rank) {
        sent = &all[NUMBERS * rank];
        printf("# sent rank=%d pid=%" PRIu64 " pt2pt_messages=%" PRIu64
               " pt2pt_bytes=%" PRIu64 " one_sided_bytes=%" PRIu64
               " atomic_messages=%" PRIu64 "\n",
               rank, sent[PID], sent[MESSAGES], sent[BYTES], sent[ONE_SIDED],
               sent[ATOMICS]);
    }
    free(all);
}

static void mt_run(const mt_case_t *test)
{
    if (mt.rank == 0) {
        printf("# case %s, %d ranks, seed %" PRIu64 "\n", test->name, mt.np,
               mt.seed);
        fflush(stdout);
    }
    test->run();
    MPI_Barrier(MPI_COMM_WORLD);
}

int mt_ucx_has_threads(void)
{
    return getenv("T_UCX_THREADS") == NULL;
}

int main(int argc, char **argv)
{
    const char *seed = getenv("T_SEED");
    int i;

    MPI_Init_thread(&argc, &argv,
                    mt_ucx_has_threads() ? MPI_THREAD_MULTIPLE
                                         : MPI_THREAD_SINGLE, &mt.threads);
    mapped_keep_pmix();
    t_ucx_check();
    MPI_Comm_rank(MPI_COMM_WORLD, &mt.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mt.np);
    mt.seed = (seed != NULL) ? strtoull(seed, NULL, 0) : (uint64_t)getpid();
    MPI_Bcast(&mt.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);

    MT_ASSERT(argc > 1);
    for (i = 1; i < argc; ++i) {
        MT_ASSERT(mt_find(argv[i]) != NULL);
        mt_run(mt_find(argv[i]));
    }

    mt_print_sent();
    MPI_Finalize();
    return 0;
}
