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
    ck_assert_int_ne(qp_refusal(&end, cap, IBV_QPT_RC), 0);
    cap             = good;
    cap.max_recv_wr = device.max_qp_wr + 1;
    ck_assert_int_ne(qp_refusal(&end, cap, IBV_QPT_RC), 0);
    cap              = good;
    cap.max_send_sge = device.max_sge + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap              = good;
    cap.max_recv_sge = device.max_sge + 1;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    cap                 = good;
    cap.max_inline_data = 1 << 20;
    ck_assert_int_eq(qp_refusal(&end, cap, IBV_QPT_RC), EINVAL);
    ck_assert_int_ne(qp_refusal(&end, good, IBV_QPT_DRIVER), 0);
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
    init.attr.max_wr  = 8;
    init.attr.max_sge = device.max_srq_sge + 1;
    ck_assert_ptr_null(ibv_create_srq(end.pd, &init));
    ck_assert_int_eq(errno, EINVAL);
    t_end_close(&end);
}
END_TEST

START_TEST(test_mr_refusals)
{
    struct t_end end;
    void *hole;

    t_end_open(&end, NULL);
    /* remote writing needs local writing */
    ck_assert_ptr_null(ibv_reg_mr(end.pd, end.buf, end.size,
                                  IBV_ACCESS_REMOTE_WRITE));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_reg_mr(end.pd, end.buf, end.size,
                                  IBV_ACCESS_REMOTE_ATOMIC));
    ck_assert_int_eq(errno, EINVAL);

    /* memory that is not there; page 0 never is */
    hole = (void*)4096;
    ck_assert_ptr_null(ibv_reg_mr(end.pd, hole, 4096, T_ACCESS_ALL));
    ck_assert_int_eq(errno, EFAULT);
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
    pid = fork();
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
    pid = fork();
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
    return t_suite("objects",
                   "device", test_list_and_open,
                   "device", test_attributes,
                   "limits", test_cq_limits,
                   "limits", test_qp_limits,
                   "limits", test_qp_capabilities,
                   "limits", test_srq_limits,
                   "limits", test_many_qps,
                   "regions", test_mr_refusals,
                   "regions", test_mr_keys,
                   "in_use", test_in_use,
                   "numbers", test_qp_numbers,
                   "resize", test_resize_cq,
                   "fork", test_fork,
                   "fork", test_fork_opens,
                   NULL);
}

T_MAIN(suite_objects)
