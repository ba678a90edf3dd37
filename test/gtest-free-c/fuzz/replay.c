/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a target on the inputs that are kept in corpus/, and on what chance makes
 * of them: for compilers without libFuzzer, and so that what was found once is
 * never lost. A target that finds something aborts; check tells.
 */
#include "fuzz.h"
#include "t.h"

#include <dirent.h>
#include <string.h>

enum { INPUTS = 4096, BYTES = 16384, CHANGED = 20000 };

static struct {
    uint8_t  *data[INPUTS];
    size_t   size[INPUTS];
    unsigned count;
} corpus;


static void corpus_read(const char *path)
{
    FILE *file    = fopen(path, "rb");
    uint8_t *data = malloc(BYTES);

    ck_assert_msg(file != NULL, "cannot read %s", path);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_lt(corpus.count, INPUTS);
    corpus.data[corpus.count] = data;
    corpus.size[corpus.count] = fread(data, 1, BYTES, file);
    corpus.count++;
    fclose(file);
}


static void corpus_open(void)
{
    const struct dirent *entry;
    char path[1024];
    DIR *dir = opendir(FUZZ_CORPUS);

    ck_assert_msg(dir != NULL, "there is no folder %s", FUZZ_CORPUS);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", FUZZ_CORPUS, entry->d_name);
            corpus_read(path);
        }
    }
    closedir(dir);
    ck_assert_uint_gt(corpus.count, 0);
}


START_TEST(test_kept)
{
    unsigned i;

    corpus_open();
    for (i = 0; i < corpus.count; i++) {
        ck_assert_int_eq(LLVMFuzzerTestOneInput(corpus.data[i],
                                                corpus.size[i]), 0);
    }
}
END_TEST


/* Some bytes of one, and the end of another. */
START_TEST(test_changed)
{
    static uint8_t data[2 * BYTES];
    unsigned round, i, from, with;
    size_t size, at;
    t_rng_t rng;

    corpus_open();
    t_rng_init(&rng, 0xf000);
    for (round = 0; round < CHANGED; round++) {
        from = t_rng_below(&rng, corpus.count);
        with = t_rng_below(&rng, corpus.count);
        size = t_rng_range(&rng, 0, corpus.size[from]);
        memcpy(data, corpus.data[from], size);
        at = t_rng_range(&rng, 0, corpus.size[with]);
        memcpy(data + size, corpus.data[with] + at, corpus.size[with] - at);
        size += corpus.size[with] - at;
        for (i = t_rng_below(&rng, 8); (i > 0) && (size > 0); i--) {
            data[t_rng_below(&rng, size)] = t_rng_next(&rng);
        }
        ck_assert_int_eq(LLVMFuzzerTestOneInput(data, size), 0);
    }
}
END_TEST


static Suite *suite_replay(void)
{
    return t_suite("replay", "kept", test_kept, "changed", test_changed, NULL);
}

T_MAIN(suite_replay)
