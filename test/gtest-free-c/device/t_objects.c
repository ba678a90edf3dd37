/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device and its objects: what they say of themselves, what cannot be
 * made, what cannot be destroyed because something needs it.
 */
#include "t_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(test_list_and_open)
{
    struct ibv_context *a = t_open_device();
    struct ibv_context *b = t_open_device();

    ck_assert_ptr_ne(a, b);
    ck_assert_str_eq(ibv_get_device_name(a->device),
                     ibv_get_device_name(b->device));
    ck_assert_int_eq(ibv_close_device(a), 0);
    ck_assert_int_eq(ibv_close_device(b), 0);

    /* again, after the last was closed */
    a = t_open_device();
    ck_assert_int_eq(ibv_close_device(a), 0);
}
END_TEST

START_TEST(test_attributes)
{
    struct ibv_context *context = t_open_device();
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    union ibv_gid gid, zero = {{0}};
    __be16 pkey;

    ck_assert_int_eq(ibv_query_device(context, &device), 0);
    ck_assert_int_ge(device.max_qp, 1000);
    ck_assert_int_ge(device.max_qp_wr, 4096);
    ck_assert_int_ge(device.max_cqe, 16384);
    ck_assert_int_ge(device.max_sge, 16);
    ck_assert_int_ge(device.max_srq_wr, 4096);
    ck_assert_int_ge(device.phys_port_cnt, 1);

    ck_assert_int_eq(ibv_query_port(context, 1, &port), 0);
    ck_assert_int_eq(port.state, IBV_PORT_ACTIVE);
    ck_assert_int_ge(port.active_mtu, IBV_MTU_1024);
    ck_assert_int_ge(port.gid_tbl_len, 1);
    ck_assert_int_ne(ibv_query_port(context, device.phys_port_cnt + 1, &port),
                     0);

    ck_assert_int_eq(ibv_query_gid(context, 1, 0, &gid), 0);
    ck_assert_int_ne(memcmp(&gid, &zero, sizeof(gid)), 0);
    ck_assert_int_eq(ibv_query_pkey(context, 1, 0, &pkey), 0);
    ck_assert_int_eq(ibv_close_device(context), 0);
}
END_TEST

START_TEST(test_cq_limits)
{
    struct ibv_context *context = t_open_device();
    struct ibv_device_attr device;
    struct ibv_cq *cq;

    ck_assert_int_eq(ibv_query_device(context, &device), 0);
    ck_assert_ptr_null(ibv_create_cq(context, 0, NULL, NULL, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_create_cq(context, device.max_cqe + 1, NULL, NULL,
                                     0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_create_cq(context, 16, NULL, NULL,
                                     context->num_comp_vectors));
    ck_assert_int_eq(errno, EINVAL);

    cq = ibv_create_cq(context, device.max_cqe, NULL, NULL, 0);
    ck_assert_ptr_nonnull(cq);
    ck_assert_int_ge(cq->cqe, device.max_cqe);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_close_device(context), 0);
}
END_TEST

/* errno of creating a QP with one capability out of range */
static int qp_refusal(struct t_end *end, struct ibv_qp_cap cap,
                      enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end->send_cq,
        .recv_cq = end->recv_cq,
        .qp_type = type,
        .cap     = cap
    };

    errno = 0;
    ck_assert_ptr_null(ibv_create_qp(end->pd, &init));
    return errno;
}

START_TEST(test_qp_limits)
{
    const struct ibv_qp_cap good = {
        .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1
    };
    struct ibv_device_attr device;
    struct ibv_qp_cap cap;
    struct t_end end;

    t_end_open(&end, NULL);
    ck_assert_int_eq(ibv_query_device(end.context, &device), 0);

    cap             = good;
    cap.max_send_wr = device.max_qp_wr + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap             = good;
    cap.max_recv_wr = device.max_qp_wr + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap              = good;
    cap.max_send_sge = device.max_sge + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap              = good;
    cap.max_recv_sge = device.max_sge + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap                 = good;
    cap.max_inline_data = 1 << 20;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    t_end_close(&end);
}
END_TEST

/* QPs of other types than RC and UD. */
START_TEST(test_qp_types)
{
    static const enum ibv_qp_type types[] = {
        IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER
    };
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UC,
        .cap     = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
                    .max_recv_sge = 1}
    };
    struct ibv_qp *qp;
    struct t_end end;
    unsigned i;
    int ret;

    t_end_open(&end, NULL);
    if (t_differs(T_DIFF_UC)) {
        init.send_cq = end.send_cq;
        init.recv_cq = end.recv_cq;
        qp           = ibv_create_qp(end.pd, &init);
        ck_assert_ptr_nonnull(qp);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    } else {
        ck_assert_int_eq(qp_refusal(&end, init.cap, IBV_QPT_UC), EOPNOTSUPP);
    }
    for (i = 0; i < sizeof(types) / sizeof(*types); ++i) {
        ret = qp_refusal(&end, init.cap, types[i]);
        ck_assert_msg((ret == EOPNOTSUPP) || t_differs(T_DIFF_UC),
                      "type %d: %d", types[i], ret);
    }
    t_end_close(&end);
}
END_TEST

START_TEST(test_qp_capabilities)
{
    const struct t_make make = {.depth = 7, .max_sge = 3, .max_inline = 60};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct t_end end;

    t_end_open(&end, &make);
    ck_assert_int_eq(ibv_query_qp(end.qp, &attr, IBV_QP_CAP, &init), 0);
    ck_assert_uint_ge(attr.cap.max_send_wr, 7);
    ck_assert_uint_ge(attr.cap.max_recv_wr, 7);
    ck_assert_uint_ge(attr.cap.max_send_sge, 3);
    ck_assert_uint_ge(attr.cap.max_recv_sge, 3);
    ck_assert_uint_ge(attr.cap.max_inline_data, 60);
    ck_assert_int_eq(init.qp_type, IBV_QPT_RC);
    ck_assert_ptr_eq(init.send_cq, end.send_cq);
    ck_assert_ptr_eq(init.recv_cq, end.recv_cq);
    ck_assert_int_eq(attr.qp_state, IBV_QPS_RESET);
    t_end_close(&end);
}
END_TEST

START_TEST(test_srq_limits)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
    struct ibv_device_attr device;
    struct ibv_srq_attr attr;
    struct ibv_srq *srq;
    struct t_end end;

    t_end_open(&end, NULL);
    ck_assert_int_eq(ibv_query_device(end.context, &device), 0);
    srq = ibv_create_srq(end.pd, &init);
    ck_assert_ptr_nonnull(srq);
    ck_assert_int_eq(ibv_query_srq(srq, &attr), 0);
    ck_assert_uint_ge(attr.max_wr, 8);
    ck_assert_uint_ge(attr.max_sge, 2);
    ck_assert_uint_eq(attr.srq_limit, 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);

    init.attr.max_wr = device.max_srq_wr + 1;
    ck_assert_ptr_null(ibv_create_srq(end.pd, &init));
    ck_assert_int_eq(errno, EINVAL);
    init.attr.max_wr  = 8;
    init.attr.max_sge = device.max_srq_sge + 1;
    ck_assert_ptr_null(ibv_create_srq(end.pd, &init));
    ck_assert_int_eq(errno, EINVAL);
    t_end_close(&end);
}
END_TEST

START_TEST(test_mr_refusals)
{
    struct ibv_mr *mr;
    struct t_end end;
    char *half;
    void *hole;
    int fd;

    t_end_open(&end, NULL);
    /* remote writing needs local writing */
    ck_assert_ptr_null(ibv_reg_mr(end.pd, end.buf, end.size,
                                  IBV_ACCESS_REMOTE_WRITE));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_reg_mr(end.pd, end.buf, end.size,
                                  IBV_ACCESS_REMOTE_ATOMIC));
    ck_assert_int_eq(errno, EINVAL);

    /* what is optional is no matter */
    mr = ibv_reg_mr(end.pd, end.buf, 64, IBV_ACCESS_RELAXED_ORDERING);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);

    /* memory that is not there; page 0 never is */
    hole = (void*)4096;
    ck_assert_ptr_null(ibv_reg_mr(end.pd, hole, 4096, T_ACCESS_ALL));
    ck_assert_int_eq(errno, EFAULT);
    /* or only half of it is */
    half = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(half, MAP_FAILED);
    ck_assert_int_eq(munmap(half + 4096, 4096), 0);
    ck_assert_ptr_null(ibv_reg_mr(end.pd, half, 4097, T_ACCESS_ALL));
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_int_eq(munmap(half, 4096), 0);

    /* memory of another device: neither does have the verb */
    fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_null(ibv_reg_dmabuf_mr(end.pd, 0, 4096, 0, fd,
                                         IBV_ACCESS_LOCAL_WRITE));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(close(fd), 0);
    t_end_close(&end);
}
END_TEST

/* Verbs that softverbs does not have. Each is there to be called, and says so. */
START_TEST(test_other_verbs)
{
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 4};
    struct ibv_xrcd_init_attr xrcd     = {.fd = -1};
    struct ibv_alloc_dm_attr dm        = {.length = 64};
    struct ibv_td_init_attr td         = {0};
    union ibv_gid gid                  = {{0xff}};
    struct ibv_ece ece                 = {0};
    struct t_end end;

    t_softverbs_only("it has some of these verbs");
    t_end_open(&end, NULL);
    ck_assert_int_eq(ibv_attach_mcast(end.qp, &gid, 1), EOPNOTSUPP);
    ck_assert_int_eq(ibv_detach_mcast(end.qp, &gid, 1), EOPNOTSUPP);
    ck_assert_int_eq(ibv_query_ece(end.qp, &ece), EOPNOTSUPP);
    ck_assert_int_eq(ibv_set_ece(end.qp, &ece), EOPNOTSUPP);
    ck_assert_int_eq(ibv_rereg_mr(end.mr, IBV_REREG_MR_CHANGE_ACCESS, end.pd,
                                  NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_ptr_null(ibv_qp_to_qp_ex(end.qp));

    errno = 0;
    ck_assert_ptr_null(ibv_import_device(0));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    errno = 0;
    ck_assert_ptr_null(ibv_alloc_mw(end.pd, IBV_MW_TYPE_1));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    errno = 0;
    ck_assert_ptr_null(ibv_create_cq_ex(end.context, &cq_init));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    errno = 0;
    ck_assert_ptr_null(ibv_open_xrcd(end.context, &xrcd));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    errno = 0;
    ck_assert_ptr_null(ibv_alloc_dm(end.context, &dm));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    errno = 0;
    ck_assert_ptr_null(ibv_alloc_td(end.context, &td));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    t_end_close(&end);
}
END_TEST

/* Verbs that the headers may not have. */
struct ibv_buf;
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf_p);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                              size_t length, int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
struct ibv_comp_cntr_caps;
int _ibv_query_comp_cntr_caps(struct ibv_context *context,
                              struct ibv_comp_cntr_caps *caps, size_t size);

static void check_buffer(struct ibv_pd *pd, size_t size)
{
    struct ibv_buf *buf;
    struct ibv_mr *mr;
    char *memory;

    memory = ibv_alloc_buf(pd, size, &buf);
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % 4096, 0);
    memset(memory, 1, size);
    mr = ibv_reg_buf_mr(pd, buf, memory, size, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert_ptr_eq(mr->addr, memory);
    ck_assert_uint_eq(mr->length, size);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_buf_mr(pd, buf, memory + size - 1, 1, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_ptr_null(ibv_reg_buf_mr(pd, buf, memory, size + 1, 0));
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_ptr_null(ibv_reg_buf_mr(pd, buf, memory - 1, 1, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_export_buf_dmabuf_fd(buf), -1);
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ibv_free_buf(buf);
}

/* A buffer that the device gives is memory like any other, and no more of it. */
START_TEST(test_buffers)
{
    static const size_t sizes[] = {1, 4096, 5000, 1 << 20};
    struct ibv_buf *buf;
    struct t_end end;
    size_t i;

    t_softverbs_only("this libibverbs may have no such verbs");
    t_end_open(&end, NULL);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        check_buffer(end.pd, sizes[i]);
    }
    errno = 0;
    ck_assert_ptr_null(ibv_alloc_buf(end.pd, 0, &buf));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(_ibv_query_comp_cntr_caps(end.context, NULL, 0), EOPNOTSUPP);
    t_end_close(&end);
}
END_TEST

/* What the settings of an SRQ and of a CQ cannot be. */
START_TEST(test_other_settings)
{
    const struct t_make make = {.depth = 8, .srq = true, .sig_all = true};
    struct ibv_srq_attr attr = {.max_wr = 16, .srq_limit = 9};
    struct ibv_device_attr device;
    struct t_end ends[2];
    int i;

    t_softverbs_only("it may take them");
    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(ibv_query_device(ends[0].context, &device), 0);
    ck_assert_int_eq(ibv_modify_srq(ends[0].srq, &attr, IBV_SRQ_MAX_WR),
                     EOPNOTSUPP);
    ck_assert_int_eq(ibv_modify_srq(ends[0].srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr.srq_limit = 8;
    ck_assert_int_eq(ibv_modify_srq(ends[0].srq, &attr, IBV_SRQ_LIMIT), 0);

    /* smaller than what is in it */
    for (i = 0; i < 8; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 16), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 16, 0), 0);
    }
    ck_assert_int_eq(ibv_resize_cq(ends[0].send_cq, 7), EINVAL);
    ck_assert_int_eq(ibv_resize_cq(ends[0].send_cq, 0), EINVAL);
    ck_assert_int_eq(ibv_resize_cq(ends[0].send_cq, device.max_cqe + 1),
                     EINVAL);
    ck_assert_int_eq(ibv_resize_cq(ends[0].send_cq, 8), 0);
    for (i = 0; i < 8; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* There is port 1, with GID 0, and no other. */
START_TEST(test_other_port)
{
    struct t_end end;
    struct t_address own;
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = 1};
    struct ibv_port_attr port;
    union ibv_gid gid;
    __be16 pkey;

    t_softverbs_only("it has more GIDs");
    t_end_open(&end, NULL);
    own = t_end_address(&end);
    ck_assert_int_eq(ibv_query_port(end.context, 0, &port), EINVAL);
    ck_assert_int_eq(ibv_query_port(end.context, 2, &port), EINVAL);
    ck_assert_int_eq(ibv_query_gid(end.context, 1, 1, &gid), -1);
    ck_assert_int_eq(ibv_query_gid(end.context, 2, 0, &gid), -1);
    ck_assert_int_eq(ibv_query_pkey(end.context, 1, 1, &pkey), -1);
    attr.port_num = 2;
    ck_assert_ptr_null(ibv_create_ah(end.pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr = (struct ibv_ah_attr){.port_num = 1, .is_global = 1,
                                .grh = {.dgid = own.gid, .sgid_index = 1}};
    errno = 0;
    ck_assert_ptr_null(ibv_create_ah(end.pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
    t_end_close(&end);
}
END_TEST

/* What the device does not do with memory it does not promise. */
START_TEST(test_mr_access)
{
    static const unsigned unknown[] = {
        IBV_ACCESS_MW_BIND, IBV_ACCESS_ZERO_BASED, IBV_ACCESS_HUGETLB, 1u << 19
    };
    struct t_end end;
    unsigned i;

    t_softverbs_only("it has some of these");
    t_end_open(&end, NULL);
    for (i = 0; i < sizeof(unknown) / sizeof(*unknown); ++i) {
        errno = 0;
        ck_assert_ptr_null(ibv_reg_mr(end.pd, end.buf, 64, unknown[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
    t_end_close(&end);
}
END_TEST

START_TEST(test_mr_keys)
{
    struct ibv_mr *mr[64];
    struct t_end end;
    uint32_t last;
    int i, j;

    t_end_open(&end, NULL);
    for (i = 0; i < 64; ++i) {
        mr[i] = ibv_reg_mr(end.pd, end.buf + i, 64, T_ACCESS_ALL);
        ck_assert_ptr_nonnull(mr[i]);
        ck_assert_ptr_eq(mr[i]->addr, end.buf + i);
        ck_assert_uint_eq(mr[i]->length, 64);
        for (j = 0; j < i; ++j) {
            ck_assert_uint_ne(mr[i]->rkey, mr[j]->rkey);
        }
    }

    /* a key does not come back with the next registration */
    last = mr[63]->rkey;
    ck_assert_int_eq(ibv_dereg_mr(mr[63]), 0);
    mr[63] = ibv_reg_mr(end.pd, end.buf, 64, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr[63]);
    ck_assert_uint_ne(mr[63]->rkey, last);
    for (i = 0; i < 64; ++i) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    t_end_close(&end);
}
END_TEST

static unsigned pages_there(void *memory, unsigned pages)
{
    unsigned char there[64] = {0};
    unsigned count          = 0;
    unsigned i;

    ck_assert_uint_le(pages, sizeof(there));
    ck_assert_int_eq(mincore(memory, pages * 4096ul, there), 0);
    for (i = 0; i < pages; ++i) {
        count += there[i] & 1;
    }
    return count;
}

/* As hardware, which pins them: the first message finds them. Memory that the device
 * does not write may be read-only. */
START_TEST(test_mr_pages)
{
    enum { PAGES = 32 };
    struct t_end end;
    struct ibv_mr *mr;
    char *memory;
    int fd;

    t_end_open(&end, NULL);
    memory = mmap(NULL, PAGES * 4096ul, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    if ((madvise(memory, 4096, MADV_POPULATE_WRITE) != 0) && (errno == EINVAL)) {
        t_skip("this kernel makes no pages when asked");
    }
    ck_assert_uint_eq(pages_there(memory, PAGES), 1);
    /* part of the second page to part of the last but one */
    mr = ibv_reg_mr(end.pd, memory + 4196, (PAGES - 3) * 4096ul, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert_uint_eq(pages_there(memory, PAGES), PAGES - 1);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(munmap(memory, PAGES * 4096ul), 0);

    /* so much is not filled for nothing */
    memory = mmap(NULL, 32ul << 20, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    mr = ibv_reg_mr(end.pd, memory, 32ul << 20, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert(t_is_softroce() || (pages_there(memory, PAGES) == 0));
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(munmap(memory, 32ul << 20), 0);

    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    mr = ibv_reg_mr(end.pd, memory, 4096, IBV_ACCESS_REMOTE_READ);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(munmap(memory, 4096), 0);
    ck_assert_int_eq(close(fd), 0);
    t_end_close(&end);
}
END_TEST

/* With ON_DEMAND a page comes when a message does. */
START_TEST(test_mr_pages_on_demand)
{
    enum { PAGES = 32 };
    const struct t_make make = {.size = PAGES * 4096ul};
    struct t_end ends[2];
    struct ibv_sge sge       = {.length = 4096};
    struct ibv_recv_wr wr    = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_mr *mr;
    uint8_t *memory;

    t_softverbs_only("other devices may not have this");
    t_pair_open(ends, &make, NULL);
    memory = mmap(NULL, PAGES * 4096ul, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    mr = ibv_reg_mr(ends[1].pd, memory, PAGES * 4096ul,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ck_assert_ptr_nonnull(mr);
    ck_assert_uint_eq(pages_there(memory, PAGES), 0);

    sge.addr = (uintptr_t)memory + 3 * 4096ul;
    sge.lkey = mr->lkey;
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, &wr, &bad), 0);
    memset(ends[0].buf, 0x5a, 4096);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 4096, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[1].recv_cq, 7, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(memory + 3 * 4096ul, ends[0].buf, 4096), 0);
    ck_assert_uint_eq(pages_there(memory, PAGES), 1);

    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(munmap(memory, PAGES * 4096ul), 0);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_in_use)
{
    const struct t_make make = {.srq = true, .channel = true};
    struct t_address own;
    struct ibv_ah *ah;
    struct t_end end;

    t_end_open(&end, &make);
    own = t_end_address(&end);
    ck_assert_int_eq(ibv_destroy_comp_channel(end.channel), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(end.send_cq), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(end.recv_cq), EBUSY);
    ck_assert_int_eq(ibv_destroy_srq(end.srq), EBUSY);
    ck_assert_int_eq(ibv_dealloc_pd(end.pd), EBUSY);

    /* each of what a PD holds keeps it */
    ck_assert_int_eq(ibv_destroy_qp(end.qp), 0);
    end.qp = NULL;
    ck_assert_int_eq(ibv_destroy_srq(end.srq), 0);
    end.srq = NULL;
    ck_assert_int_eq(ibv_dealloc_pd(end.pd), EBUSY);
    ah = t_create_ah(&end, &own);
    ck_assert_int_eq(ibv_dereg_mr(end.mr), 0);
    end.mr = NULL;
    ck_assert_int_eq(ibv_dealloc_pd(end.pd), EBUSY);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_end_close(&end);
}
END_TEST

/* Each of what can be in a PD keeps it, alone. */
START_TEST(test_pd_in_use)
{
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr init      = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
                    .max_recv_sge = 1}
    };
    struct ibv_srq *srq;
    struct t_end end;
    struct ibv_mr *mr;
    struct ibv_pd *pd;
    struct ibv_qp *qp;

    t_end_open(&end, NULL);
    init.send_cq = end.send_cq;
    init.recv_cq = end.recv_cq;
    pd           = ibv_alloc_pd(end.context);
    ck_assert_ptr_nonnull(pd);

    qp = ibv_create_qp(pd, &init);
    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);

    srq = ibv_create_srq(pd, &srq_init);
    ck_assert_ptr_nonnull(srq);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);

    mr = ibv_reg_mr(pd, end.buf, 64, 0);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);

    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    t_end_close(&end);
}
END_TEST

START_TEST(test_qp_numbers)
{
    enum { COUNT = 300 };
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = 1,
                    .max_send_sge = 1, .max_recv_sge = 1}
    };
    static uint32_t seen[2 * COUNT];
    struct ibv_qp *qps[COUNT];
    struct t_end end;
    int round, i, j;

    t_end_open(&end, NULL);
    init.send_cq = end.send_cq;
    init.recv_cq = end.recv_cq;
    for (round = 0; round < 2; ++round) {
        for (i = 0; i < COUNT; ++i) {
            qps[i] = ibv_create_qp(end.pd, &init);
            ck_assert_ptr_nonnull(qps[i]);
            ck_assert_uint_lt(qps[i]->qp_num, 1u << 24);
            for (j = 0; j < round * COUNT + i; ++j) {
                ck_assert_uint_ne(qps[i]->qp_num, seen[j]);
            }
            seen[round * COUNT + i] = qps[i]->qp_num;
        }
        for (i = 0; i < COUNT; ++i) {
            ck_assert_int_eq(ibv_destroy_qp(qps[i]), 0);
        }
    }
    t_end_close(&end);
}
END_TEST

START_TEST(test_many_qps)
{
    const struct t_make make = {.depth = 1};
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = 1,
                    .max_send_sge = 1, .max_recv_sge = 1}
    };
    struct ibv_device_attr device;
    struct ibv_qp **qps;
    struct t_end end;
    int count = 0;

    t_end_open(&end, &make);
    init.send_cq = end.send_cq;
    init.recv_cq = end.recv_cq;
    ck_assert_int_eq(ibv_query_device(end.context, &device), 0);
    if (device.max_qp > 10000) {
        t_skip("max_qp is %d: the limit is too far away", device.max_qp);
    }

    qps = calloc(device.max_qp + 1, sizeof(*qps));
    while ((count <= device.max_qp) &&
           ((qps[count] = ibv_create_qp(end.pd, &init)) != NULL)) {
        ++count;
    }
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(count, device.max_qp - 1); /* one is in `end` */

    /* one given back is one that can be had */
    ck_assert_int_eq(ibv_destroy_qp(qps[count / 2]), 0);
    qps[count / 2] = ibv_create_qp(end.pd, &init);
    ck_assert_ptr_nonnull(qps[count / 2]);
    while (count > 0) {
        ck_assert_int_eq(ibv_destroy_qp(qps[--count]), 0);
    }
    free(qps);
    t_end_close(&end);
}
END_TEST

/* ---- as many as there can be ---- */

static void *make_pd(struct t_end *end)
{
    return ibv_alloc_pd(end->context);
}

static int drop_pd(void *object)
{
    return ibv_dealloc_pd(object);
}

static void *make_ah(struct t_end *end)
{
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = 1};

    return ibv_create_ah(end->pd, &attr);
}

static int drop_ah(void *object)
{
    return ibv_destroy_ah(object);
}

static void *make_cq(struct t_end *end)
{
    return ibv_create_cq(end->context, 1, NULL, NULL, 0);
}

static int drop_cq(void *object)
{
    return ibv_destroy_cq(object);
}

static void *make_srq(struct t_end *end)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

    return ibv_create_srq(end->pd, &init);
}

static int drop_srq(void *object)
{
    return ibv_destroy_srq(object);
}

static void *make_mr(struct t_end *end)
{
    return ibv_reg_mr(end->pd, end->buf, 64, 0);
}

static int drop_mr(void *object)
{
    return ibv_dereg_mr(object);
}

struct kind {
    void *(*make)(struct t_end *end);
    int (*drop)(void *object);
    int  in_end; /* how many of them an end has */
};

static const struct kind kinds[] = {
    {make_pd, drop_pd, 1},
    {make_ah, drop_ah, 0},
    {make_cq, drop_cq, 2},
    {make_srq, drop_srq, 0},
    {make_mr, drop_mr, 1}
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static int limit_of(int kind, const struct ibv_device_attr *device)
{
    const int limits[KINDS] = {device->max_pd, device->max_ah, device->max_cq,
                               device->max_srq, device->max_mr};

    return limits[kind];
}

/* As many as the device says, then ENOMEM; one given back is one that can be
 * had. */
START_TEST(test_many)
{
    const struct kind *kind = &kinds[_i];
    struct ibv_device_attr device;
    void **objects;
    struct t_end end;
    int limit, count = 0;

    t_softverbs_only("its limits are too far away");
    t_end_open(&end, NULL);
    ck_assert_int_eq(ibv_query_device(end.context, &device), 0);
    limit   = limit_of(_i, &device) - kind->in_end;
    objects = calloc(limit + 1, sizeof(*objects));
    ck_assert_ptr_nonnull(objects);
    errno = 0;
    while ((count <= limit) && ((objects[count] = kind->make(&end)) != NULL)) {
        ++count;
    }
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(count, limit);

    ck_assert_int_eq(kind->drop(objects[count / 2]), 0);
    objects[count / 2] = kind->make(&end);
    ck_assert_ptr_nonnull(objects[count / 2]);
    while (count > 0) {
        ck_assert_int_eq(kind->drop(objects[--count]), 0);
    }
    free(objects);
    t_end_close(&end);
}
END_TEST

START_TEST(test_resize_cq)
{
    const struct t_make make = {.depth = 8, .cqe = 64, .sig_all = true};
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &make, NULL);
    for (i = 0; i < 8; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 16), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 16, 0), 0);
    }
    /* until all eight are there, without taking one */
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_resize_cq(ends[0].send_cq, 256), 0);
    ck_assert_int_ge(ends[0].send_cq->cqe, 256);
    for (i = 1; i < 8; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* What softverbs leaves to the child of a fork: everything refuses, nothing
 * crashes, and the parent's side of it is unharmed. With other devices a child
 * must not touch what it inherits. */
static void use_inherited(struct t_end ends[2])
{
    struct t_address to = {0};

    if (strcmp(ibv_get_device_name(ends[0].context->device), "softverbs0")) {
        return;
    }

    ck_assert_int_ne(t_post_send(&ends[0], 1, 0, 8, 0), 0);
    ck_assert_int_ne(t_post_rdma(&ends[0], IBV_WR_RDMA_READ, 1, 0, 8, &to, 0),
                     0);
    ck_assert_int_ne(t_post_recv(&ends[0], 1, 0, 8), 0);
    t_poll_none(ends[0].send_cq);
    ck_assert_int_ne(ibv_req_notify_cq(ends[0].send_cq, 0), 0);
    ck_assert_int_ne(ibv_modify_qp(ends[0].qp, &(struct ibv_qp_attr){0},
                                   IBV_QP_STATE), 0);
    ck_assert_ptr_null(ibv_reg_mr(ends[0].pd, ends[0].buf, 64, 0));
    ck_assert_ptr_null(ibv_create_cq(ends[0].context, 8, NULL, NULL, 0));
    t_pair_close(ends);
}

START_TEST(test_fork)
{
    struct t_end ends[2];
    int status;
    pid_t pid;

    ibv_fork_init();
    t_pair_open(ends, NULL, NULL);
    t_check_link(&ends[0], &ends[1]);
    pid = t_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        use_inherited(ends);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
}
END_TEST

/* The child may have a device of its own. */
START_TEST(test_fork_opens)
{
    struct t_end ends[2], own[2];
    int status;
    pid_t pid;

#ifdef __SANITIZE_THREAD__
    t_skip("the sanitizer ends a forked child that starts a thread");
#endif
    ibv_fork_init();
    t_pair_open(ends, NULL, NULL);
    pid = t_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        t_pair_open(own, NULL, NULL);
        t_check_link(&own[0], &own[1]);
        t_pair_close(own);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_objects(void)
{
    Suite *suite = t_suite("objects",
                           "device", test_list_and_open,
                           "device", test_attributes,
                           "limits", test_cq_limits,
                           "limits", test_qp_limits,
                           "types", test_qp_types,
                           "limits", test_qp_capabilities,
                           "limits", test_srq_limits,
                           "limits", test_many_qps,
                           "others", test_other_verbs,
                           "others", test_buffers,
                           "others", test_other_settings,
                           "others", test_other_port,
                           "regions", test_mr_refusals,
                           "regions", test_mr_access,
                           "regions", test_mr_keys,
                           "regions", test_mr_pages,
                           "regions", test_mr_pages_on_demand,
                           "in_use", test_in_use,
                           "in_use", test_pd_in_use,
                           "numbers", test_qp_numbers,
                           "resize", test_resize_cq,
                           "fork", test_fork,
                           "fork", test_fork_opens,
                           NULL);
    TCase *tcase = tcase_create("limits");

    tcase_set_timeout(tcase, T_TIMEOUT);
    tcase_add_loop_test(tcase, test_many, 0, KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_objects)
