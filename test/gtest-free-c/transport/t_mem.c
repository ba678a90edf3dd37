/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory: it is kept for the next time, and never used for memory
 * that has become something else in the meantime.
 */
#include "t_uct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = 64 << 10, KEY_MAX = 256 };

typedef struct {
    t_end_t  *a, *b;
    t_link_t *link;
    uint8_t  *mem; /* at an address of its own, LENGTH bytes                 */
} pair_t;


static void pair_open(pair_t *pair)
{
    t_only_daqiri("is known to keep memory registered");
    pair->a    = t_end_open("");
    pair->b    = t_end_open("");
    pair->link = t_link_open(pair->a, &pair->b->address, 1);
    pair->mem  = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pair->mem, MAP_FAILED);
}


static void pair_close(pair_t *pair)
{
    ck_assert_int_eq(munmap(pair->mem, LENGTH), 0);
}


static uct_mem_h reg(t_end_t *end, void *address, size_t length)
{
    uct_mem_h memh;

    ck_assert_int_eq(uct_md_mem_reg(end->md, address, length,
                                    UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    return memh;
}


static void dereg(t_end_t *end, uct_mem_h memh)
{
    ck_assert_int_eq(uct_md_mem_dereg(end->md, memh), UCS_OK);
}


static uct_rkey_t unpack(const pair_t *pair, uct_mem_h memh,
                         uct_rkey_bundle_t *key)
{
    uint8_t packed[KEY_MAX];

    ck_assert_int_eq(uct_md_mkey_pack(pair->b->md, memh, packed), UCS_OK);
    ck_assert_int_eq(uct_rkey_unpack(pair->a->component, packed, key), UCS_OK);
    return key->rkey;
}


START_TEST(test_kept)
{
    uct_mem_h first, again, part;
    pair_t pair;

    pair_open(&pair);
    first = reg(pair.a, pair.mem, LENGTH);
    dereg(pair.a, first);
    again = reg(pair.a, pair.mem, LENGTH);
    part  = reg(pair.a, pair.mem + 5000, 100);
    ck_assert_ptr_eq(again, first);
    ck_assert_ptr_eq(part, first);
    dereg(pair.a, part);
    dereg(pair.a, again);
    pair_close(&pair);
}
END_TEST


/* An array's elements lie next to each other, and seldom where a cache line
 * begins: to register one leaves those before it as they are. */
START_TEST(test_neighbours)
{
    uct_mem_h first, second, again;
    pair_t pair;

    pair_open(&pair);
    first  = reg(pair.a, pair.mem + 16, 4096);
    second = reg(pair.a, pair.mem + 16 + 4096, 4096);
    again  = reg(pair.a, pair.mem + 16, 4096);
    ck_assert_ptr_ne(second, first);
    ck_assert_ptr_eq(again, first);
    dereg(pair.a, again);
    dereg(pair.a, second);
    dereg(pair.a, first);
    pair_close(&pair);
}
END_TEST


/* A peer reads what is there now. */
static void check_read(pair_t *pair, uct_mem_h local, uint8_t *to,
                       uct_mem_h remote, uint8_t byte)
{
    uct_rkey_bundle_t key;
    uct_rkey_t rkey = unpack(pair, remote, &key);
    uct_iov_t iov   = {.buffer = to, .length = LENGTH, .memh = local,
                       .count = 1};
    ucs_status_t status;
    t_comp_t comp;

    t_comp_init(&comp);
    memset(to, ~byte, LENGTH);
    while ((status = uct_ep_get_zcopy(pair->link->ep, &iov, 1,
                                      (uintptr_t)pair->mem, rkey,
                                      &comp.super)) == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
    }
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    ck_assert_uint_eq(to[0], byte);
    ck_assert_uint_eq(to[LENGTH / 2], byte);
    ck_assert_uint_eq(to[LENGTH - 1], byte);
    ck_assert_int_eq(uct_rkey_release(pair->a->component, &key), UCS_OK);
}


/* The ways in which memory becomes another behind the cache's back. */
static void replace(pair_t *pair, unsigned how)
{
    void *moved;

    switch (how) {
    case 0:
        ck_assert_int_eq(munmap(pair->mem, LENGTH), 0);
        break;
    case 1: /* replaced in one step */
        break;
    default:
        moved = mremap(pair->mem, LENGTH, 4 * LENGTH, MREMAP_MAYMOVE);
        ck_assert_ptr_ne(moved, MAP_FAILED);
        ck_assert_int_eq(munmap(moved, 4 * LENGTH), 0);
        break;
    }
    ck_assert_ptr_eq(mmap(pair->mem, LENGTH, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     pair->mem);
}


START_TEST(test_replaced)
{
    const unsigned count = t_some(10000);
    uint8_t *to          = malloc(LENGTH);
    uct_mem_h local, remote;
    pair_t pair;
    unsigned i;

    ck_assert_ptr_nonnull(to);
    pair_open(&pair);
    local = reg(pair.a, to, LENGTH);
    for (i = 0; i < count; i++) {
        memset(pair.mem, i, LENGTH);
        remote = reg(pair.b, pair.mem, LENGTH);
        check_read(&pair, local, to, remote, i);
        dereg(pair.b, remote);
        replace(&pair, _i);
    }
    dereg(pair.a, local);
    free(to);
    pair_close(&pair);
}
END_TEST


/* The end of the heap goes and comes again. What malloc() has taken behind it
 * meanwhile stays; then there is nothing to replace. */
START_TEST(test_heap_replaced)
{
    const unsigned count = t_some(10000);
    uint8_t *to          = malloc(LENGTH);
    unsigned replaced    = 0;
    uct_mem_h local, remote;
    pair_t pair;
    uint8_t *mem;
    unsigned i;

    ck_assert_ptr_nonnull(to);
    pair_open(&pair);
    mem   = pair.mem;
    local = reg(pair.a, to, LENGTH);
    for (i = 0; i < count; i++) {
        pair.mem = sbrk(LENGTH);
        ck_assert_ptr_ne(pair.mem, (void*)-1);
        memset(pair.mem, i, LENGTH);
        remote = reg(pair.b, pair.mem, LENGTH);
        check_read(&pair, local, to, remote, i);
        dereg(pair.b, remote);
        if (sbrk(0) == pair.mem + LENGTH) {
            ck_assert_ptr_ne(sbrk(-LENGTH), (void*)-1);
            replaced++;
        }
    }
    ck_assert_uint_gt(replaced, count / 2);
    pair.mem = mem;
    dereg(pair.a, local);
    free(to);
    pair_close(&pair);
}
END_TEST


START_TEST(test_off)
{
    uct_mem_h first, again;
    pair_t pair;

    ck_assert_int_eq(setenv("UCX_DAQIRI_MD_REG_CACHE", "off", 1), 0);
    pair_open(&pair);
    first = reg(pair.a, pair.mem, LENGTH);
    again = reg(pair.a, pair.mem, LENGTH);
    ck_assert_ptr_ne(again, first);
    dereg(pair.a, first);
    dereg(pair.a, again);
    pair_close(&pair);
}
END_TEST


static Suite *suite_mem(void)
{
    Suite *suite = suite_create("mem");
    TCase *kept  = t_uct_case("kept");

    if (strcmp(getenv("UCX_MEM_EVENTS"), "n") != 0) {
        tcase_add_test(kept, test_kept);
        tcase_add_test(kept, test_neighbours);
        tcase_add_loop_test(kept, test_replaced, 0, 3);
        tcase_add_test(kept, test_heap_replaced);
    }
    tcase_add_test(kept, test_off);
    suite_add_tcase(suite, kept);
    return suite;
}


int main(int argc, char **argv)
{
    const t_suite_func_t suites[] = {suite_mem};

    (void)argc;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* the hooks that tell the cache; sanitizers have hooks of their own */
    if (setenv("UCX_MEM_EVENTS", "y", 1) != 0) {
        return 99;
    }
#endif
    return t_uct_main(argv, suites, 1);
}
