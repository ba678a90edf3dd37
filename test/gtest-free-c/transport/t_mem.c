/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory: it is kept for the next time, and never used for memory
 * that has become something else in the meantime.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = 64 << 10 };

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


/* ---- A device with few registrations ---- */

enum { FEW = 256, BUFFERS = 2000, BUFFER = 4096 };

static int few_max_mr; /* 0: what the device says                            */
static int few_live;   /* registrations of this process                      */
static __thread int few_depth; /* libibverbs has one of the two call the other */


/* A registration that begins there, and is there now. Others come and go with
 * connections. */
static const void *watched;
static struct ibv_mr *watched_mr;


static int few_enter(void)
{
    if ((few_depth == 0) && (few_max_mr != 0) &&
        (__atomic_load_n(&few_live, __ATOMIC_RELAXED) >= few_max_mr)) {
        errno = ENOMEM;
        return 0;
    }
    few_depth++;
    return 1;
}


static struct ibv_mr *few_leave(struct ibv_mr *mr)
{
    if (--few_depth == 0) {
        __atomic_fetch_add(&few_live, mr != NULL, __ATOMIC_RELAXED);
    }
    if ((mr != NULL) && (watched != NULL) && (mr->addr == watched)) {
        watched_mr = mr;
    }
    return mr;
}


int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*real)(struct ibv_context*, struct ibv_device_attr*);
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_query_device");
    ret            = real(context, attr);
    if ((ret == 0) && (few_max_mr != 0)) {
        attr->max_mr = few_max_mr;
    }
    return ret;
}


#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    struct ibv_mr *(*real)(struct ibv_pd*, void*, size_t, int);

    if (!few_enter()) {
        return NULL;
    }
    *(void**)&real = dlsym(RTLD_NEXT, "ibv_reg_mr");
    return few_leave(real(pd, addr, length, access));
}


struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access)
{
    struct ibv_mr *(*real)(struct ibv_pd*, void*, size_t, uint64_t, unsigned);

    if (!few_enter()) {
        return NULL;
    }
    *(void**)&real = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
    return few_leave(real(pd, addr, length, iova, access));
}


int ibv_dereg_mr(struct ibv_mr *mr)
{
    int (*real)(struct ibv_mr*);
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_dereg_mr");
    if ((mr == watched_mr) && (mr != NULL)) {
        watched_mr = NULL;
    }
    ret = real(mr);
    __atomic_fetch_sub(&few_live, ret == 0, __ATOMIC_RELAXED);
    return ret;
}


/* ---- Memory of other devices ---- */

enum { PAGE = 4096, DMABUF_PAGES = 4 };

static int is_dmabuf_known; /* this device registers it                      */


/* A file of memory stands for the other device's, and its pages can be mapped. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t length, uint64_t iova, int fd,
                                 int access)
{
    void *memory;

    if (!is_dmabuf_known || (fd < 0)) {
        errno = is_dmabuf_known ? EBADF : EOPNOTSUPP;
        return NULL;
    }
    memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return (memory == MAP_FAILED)
                   ? NULL : ibv_reg_mr_iova2(pd, memory, length, iova, access);
}


/* No public header has what UCX has for this from 1.14 on. */
#define MD_FLAG_REG_DMABUF (1u << 10)

typedef struct {
    uint64_t field_mask; /* all of the rest                                  */
    uint64_t flags;
    int      dmabuf_fd;
    size_t   dmabuf_offset;
} reg_params_t;

typedef ucs_status_t (*reg_t)(uct_md_h md, void *address, size_t length,
                              const reg_params_t *params, uct_mem_h *memh_p);

/* NULL: this UCX is older. */
static reg_t reg_v2(void)
{
    reg_t reg;

    *(void**)&reg = dlsym(RTLD_DEFAULT, "uct_md_mem_reg_v2");
    return reg;
}


static ucs_status_t reg_dmabuf(t_end_t *end, void *address, int fd,
                               uct_mem_h *memh_p)
{
    const reg_params_t params = {
        .field_mask    = 7,
        .flags         = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS,
        .dmabuf_fd     = fd,
        .dmabuf_offset = PAGE,
    };

    return reg_v2()(end->md, address, PAGE, &params, memh_p);
}


/* What a put writes to the device's address of it is in its memory, from the offset
 * on. A descriptor that is none is an error; -1 is memory as ever. */
START_TEST(test_dmabuf)
{
    void *address = (void*)0x7000000000; /* of the device: nothing is there  */
    uint64_t word = 0x1122334455667788;
    t_region_t region = {.mem = NULL};
    static uint8_t page[PAGE];
    uint64_t *memory;
    t_end_t *a, *b;
    t_link_t *link;
    int fd;

    t_only_daqiri("is known to register this");
    if (reg_v2() == NULL) {
        t_skip("UCX knows no such memory before 1.14");
    }
    is_dmabuf_known = 1;
    a    = t_end_open("");
    b    = t_end_open("");
    link = t_link_open(a, &b->address, 1);
    ck_assert(b->md_attr.cap.flags & MD_FLAG_REG_DMABUF);
    fd   = memfd_create("dmabuf", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, DMABUF_PAGES * PAGE), 0);
    memory = mmap(NULL, DMABUF_PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);

    ck_assert_int_eq(reg_dmabuf(b, address, fd, &region.memh), UCS_OK);
    ck_assert_int_eq(uct_md_mkey_pack(b->md, region.memh, region.packed),
                     UCS_OK);
    ck_assert_int_eq(uct_rkey_unpack(a->component, region.packed, &region.key),
                     UCS_OK);
    T_WAIT(uct_ep_put_short(link->ep, &word, sizeof(word), (uintptr_t)address + 8,
                            region.key.rkey) == UCS_OK);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert(memory[PAGE / 8 + 1] == word);
    ck_assert(memory[PAGE / 8] == 0);
    ck_assert_int_eq(uct_rkey_release(a->component, &region.key), UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(b->md, region.memh), UCS_OK);

    ck_assert_int_eq(reg_dmabuf(b, address, 9999, &region.memh),
                     UCS_ERR_IO_ERROR);
    ck_assert_int_eq(reg_dmabuf(b, page, -1, &region.memh), UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(b->md, region.memh), UCS_OK);
    ck_assert_int_eq(munmap(memory, DMABUF_PAGES * PAGE), 0);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST


/* Of a device that cannot, UCX is told so, and an attempt is refused. A UCX that has no
 * name for it is not told either. */
START_TEST(test_no_dmabuf)
{
    static uint8_t page[PAGE]; /* a UCX that checks wants an address         */
    uct_mem_h memh;
    t_end_t *end;

    t_only_daqiri("is known to refuse this");
    is_dmabuf_known = (reg_v2() == NULL);
    end             = t_end_open("");
    ck_assert(!(end->md_attr.cap.flags & MD_FLAG_REG_DMABUF));
    if (reg_v2() != NULL) {
        ck_assert_int_eq(reg_dmabuf(end, page, 0, &memh), UCS_ERR_UNSUPPORTED);
    }
}
END_TEST


/* Many more buffers than the device registers, one after the other, each kept
 * for the next time: those of long ago make room. */
START_TEST(test_few)
{
    t_region_t region;
    uint8_t *mem;
    t_end_t *end;
    int i;

    t_only_daqiri("is known to keep memory registered");
    few_max_mr = FEW;
    end        = t_end_open("");
    mem        = mmap(NULL, 2 * (size_t)BUFFERS * BUFFER, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(mem, MAP_FAILED);
    for (i = 0; i < BUFFERS; i++) {
        /* no two of them are neighbours, which would become one */
        t_region_open(&region, end, mem + 2 * (size_t)i * BUFFER, BUFFER);
        t_region_close(&region);
        ck_assert_int_le(__atomic_load_n(&few_live, __ATOMIC_RELAXED), FEW);
    }
    ck_assert_int_gt(few_live, FEW / 4); /* and they are kept */
    t_end_close_all();
    ck_assert_int_eq(munmap(mem, 2 * (size_t)BUFFERS * BUFFER), 0);
}
END_TEST


START_TEST(test_kept)
{
    t_region_t first, again, part;
    pair_t pair;

    pair_open(&pair);
    t_region_open(&first, pair.a, pair.mem, LENGTH);
    t_region_close(&first);
    t_region_open(&again, pair.a, pair.mem, LENGTH);
    t_region_open(&part, pair.a, pair.mem + 5000, 100);
    ck_assert_ptr_eq(again.memh, first.memh);
    ck_assert_ptr_eq(part.memh, first.memh);
    t_region_close(&part);
    t_region_close(&again);
    pair_close(&pair);
}
END_TEST


/* An array's elements lie next to each other, and seldom where a cache line
 * begins: to register one leaves those before it as they are. */
START_TEST(test_neighbours)
{
    t_region_t first, second, again;
    pair_t pair;

    pair_open(&pair);
    t_region_open(&first, pair.a, pair.mem + 16, 4096);
    t_region_open(&second, pair.a, pair.mem + 16 + 4096, 4096);
    t_region_open(&again, pair.a, pair.mem + 16, 4096);
    ck_assert_ptr_ne(second.memh, first.memh);
    ck_assert_ptr_eq(again.memh, first.memh);
    t_region_close(&again);
    t_region_close(&second);
    t_region_close(&first);
    pair_close(&pair);
}
END_TEST


/* A peer reads what is there now. */
static void check_read(pair_t *pair, const t_region_t *to,
                       const t_region_t *remote, uint8_t byte)
{
    uct_iov_t iov = {.buffer = to->mem, .length = LENGTH, .memh = to->memh,
                     .count = 1};
    ucs_status_t status;
    t_comp_t comp;

    t_comp_init(&comp);
    memset(to->mem, ~byte, LENGTH);
    while ((status = uct_ep_get_zcopy(pair->link->ep, &iov, 1,
                                      (uintptr_t)remote->mem, remote->key.rkey,
                                      &comp.super)) == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
    }
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    ck_assert_uint_eq(to->mem[0], byte);
    ck_assert_uint_eq(to->mem[LENGTH / 2], byte);
    ck_assert_uint_eq(to->mem[LENGTH - 1], byte);
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
    t_region_t local, remote;
    pair_t pair;
    unsigned i;

    pair_open(&pair);
    t_region_open(&local, pair.a, NULL, LENGTH);
    for (i = 0; i < count; i++) {
        memset(pair.mem, i, LENGTH);
        t_region_open(&remote, pair.b, pair.mem, LENGTH);
        check_read(&pair, &local, &remote, i);
        t_region_close(&remote);
        replace(&pair, _i);
    }
    t_region_close(&local);
    pair_close(&pair);
}
END_TEST


/* The end of the heap goes and comes again. What malloc() has taken behind it
 * meanwhile stays; then there is nothing to replace. */
START_TEST(test_heap_replaced)
{
    const unsigned count = t_some(10000);
    unsigned replaced    = 0;
    t_region_t local, remote;
    pair_t pair;
    uint8_t *mem;
    unsigned i;

    pair_open(&pair);
    mem = pair.mem;
    t_region_open(&local, pair.a, NULL, LENGTH);
    for (i = 0; i < count; i++) {
        pair.mem = sbrk(LENGTH);
        ck_assert_ptr_ne(pair.mem, (void*)-1);
        memset(pair.mem, i, LENGTH);
        t_region_open(&remote, pair.b, pair.mem, LENGTH);
        check_read(&pair, &local, &remote, i);
        t_region_close(&remote);
        if (sbrk(0) == pair.mem + LENGTH) {
            ck_assert_ptr_ne(sbrk(-LENGTH), (void*)-1);
            replaced++;
        }
    }
    ck_assert_uint_gt(replaced, count / 2);
    pair.mem = mem;
    t_region_close(&local);
    pair_close(&pair);
}
END_TEST


START_TEST(test_off)
{
    t_region_t first, again;
    pair_t pair;

    ck_assert_int_eq(setenv("UCX_DAQIRI_MD_REG_CACHE", "off", 1), 0);
    pair_open(&pair);
    t_region_open(&first, pair.a, pair.mem, LENGTH);
    t_region_open(&again, pair.a, pair.mem, LENGTH);
    ck_assert_ptr_ne(again.memh, first.memh);
    t_region_close(&first);
    t_region_close(&again);
    pair_close(&pair);
}
END_TEST


/* ---- Keys that are taken back ---- */

enum {
    DEREG_MEMH = 1 << 0, DEREG_FLAGS = 1 << 1, DEREG_COMP = 1 << 2,
    INVALIDATE = 1 << 0, PACK_FLAGS  = 1 << 0
};

typedef struct {
    uint64_t         mask;
    unsigned         flags;
    uct_mem_h        memh;
    uct_completion_t *comp;
} dereg_t;

typedef struct {
    uint64_t mask;
    unsigned flags;
} pack_t;


static void *symbol(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    ck_assert_ptr_nonnull(symbol);
    return symbol;
}


static int has(const char *name)
{
    return dlsym(RTLD_DEFAULT, name) != NULL;
}


static ucs_status_t invalidate(const t_region_t *region, uct_completion_t *comp)
{
    const dereg_t dereg = {
        .mask  = DEREG_MEMH | DEREG_FLAGS | DEREG_COMP,
        .flags = INVALIDATE,
        .memh  = region->memh,
        .comp  = comp,
    };
    ucs_status_t (*ask)(uct_md_h md, const dereg_t *dereg);

    *(void**)&ask = symbol("uct_md_mem_dereg_v2");
    return ask(region->end->md, &dereg);
}


/* The same in all versions, but that from 1.16 on a part of the memory is named. */
static void pack(const t_region_t *region, unsigned flags)
{
    const pack_t pack = {.mask = PACK_FLAGS, .flags = flags};
    uint8_t key[T_KEY_MAX];
    ucs_status_t (*since_16)(uct_md_h md, uct_mem_h memh, void *address,
                             size_t length, const pack_t *pack, void *key);
    ucs_status_t (*before)(uct_md_h md, uct_mem_h memh, const pack_t *pack,
                           void *key);

    if (has("uct_base_rkey_compare")) {
        *(void**)&since_16 = symbol("uct_md_mkey_pack_v2");
        ck_assert_int_eq(since_16(region->end->md, region->memh, region->mem,
                                  LENGTH, &pack, key), UCS_OK);
    } else {
        *(void**)&before = symbol("uct_md_mkey_pack_v2");
        ck_assert_int_eq(before(region->end->md, region->memh, &pack, key),
                         UCS_OK);
    }
}


/* Only of what was packed for it, since UCX asks for that. */
START_TEST(test_invalidate)
{
    const int has_rule = has("uct_md_query_v2"); /* 1.14 */
    t_region_t region;
    t_comp_t comp;
    pair_t pair;

    pair_open(&pair);
    t_region_open(&region, pair.a, pair.mem, LENGTH);
    t_comp_init(&comp);
    ck_assert_int_eq(invalidate(&region, NULL), UCS_ERR_INVALID_PARAM);
    pack(&region, 0);
    if (has_rule) {
        ck_assert_int_eq(invalidate(&region, &comp.super),
                         UCS_ERR_INVALID_PARAM);
        ck_assert_int_eq(comp.calls, 0);
        pack(&region, INVALIDATE);
    }
    ck_assert_int_eq(uct_rkey_release(pair.a->component, &region.key), UCS_OK);
    ck_assert_int_eq(invalidate(&region, &comp.super), UCS_OK);
    ck_assert_int_eq(comp.calls, 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);

    /* the memory comes again, its permission does not */
    t_region_open(&region, pair.a, pair.mem, LENGTH);
    if (has_rule) {
        ck_assert_int_eq(invalidate(&region, &comp.super),
                         UCS_ERR_INVALID_PARAM);
    }
    t_region_close(&region);
    pair_close(&pair);
}
END_TEST


/* What was packed for it is not kept, in a UCX whose UCP does that. */
START_TEST(test_not_kept)
{
    t_region_t region;
    pair_t pair;

    pair_open(&pair);
    watched = pair.mem;
    t_region_open(&region, pair.a, pair.mem, LENGTH);
    ck_assert_ptr_nonnull(watched_mr);
    pack(&region, INVALIDATE);
    t_region_close(&region);
    ck_assert_int_eq(watched_mr == NULL, has("uct_base_rkey_compare")); /* 1.16 */
    t_region_open(&region, pair.a, pair.mem, LENGTH);
    t_region_close(&region);
    ck_assert_ptr_nonnull(watched_mr);
    pair_close(&pair);
}
END_TEST


static Suite *suite_mem(void)
{
    Suite *suite  = suite_create("mem");
    TCase *kept   = t_uct_case("kept");
    TCase *back   = t_uct_case("back");
    TCase *dmabuf = t_uct_case("dmabuf");

    if (strcmp(getenv("UCX_MEM_EVENTS"), "n") != 0) {
        tcase_add_test(kept, test_kept);
        tcase_add_test(kept, test_few);
        tcase_add_test(kept, test_neighbours);
        tcase_add_loop_test(kept, test_replaced, 0, 3);
        tcase_add_test(kept, test_heap_replaced);
        tcase_add_test(back, test_not_kept);
    }
    tcase_add_test(kept, test_off);
    suite_add_tcase(suite, kept);
    tcase_add_test(back, test_invalidate);
    suite_add_tcase(suite, back);
    tcase_add_test(dmabuf, test_dmabuf);
    tcase_add_test(dmabuf, test_no_dmabuf);
    suite_add_tcase(suite, dmabuf);
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
