/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that is forked while its parent uses UCX, and opens UCX anew: UCX's
 * thread, which makes connections, is in the parent alone. So the child is told,
 * in a sentence and at once, and the parent notices nothing. Where UCX was not in
 * use when it was forked the child has all that anybody has.
 */
#include "t_stuck.h"
#include "t_uct.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKED "this process was forked while its parent used UCX"

enum { MESSAGES = 200 };


static int child_status(pid_t child)
{
    int status;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}


/* Of a memory domain: how many of its transports and devices are daqiri's. */
static unsigned child_count(uct_md_h md)
{
    uct_tl_resource_desc_t *tls;
    unsigned count, i, found = 0;

    if (uct_md_query_tl_resources(md, &tls, &count) != UCS_OK) {
        return 0;
    }
    for (i = 0; i < count; i++) {
        found += strcmp(tls[i].tl_name, t_tl()) == 0;
    }
    uct_release_tl_resource_list(tls);
    return found;
}


/* What a program finds that looks for transports anew; its memory domain opens. */
static unsigned child_look(t_end_t *old)
{
    uct_md_config_t *config;
    uct_md_h md;
    unsigned found;

    ck_assert_int_eq(uct_md_config_read(old->component, NULL, NULL, &config),
                     UCS_OK);
    ck_assert_int_eq(uct_md_open(old->component, "softverbs0", config, &md),
                     UCS_OK);
    uct_config_release(config);
    found = child_count(md);
    uct_md_close(md);
    return found;
}


static ucs_status_t child_open(t_end_t *old)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = t_tl(),
        .mode.device.dev_name = "softverbs0:1"
    };
    ucs_async_context_t *async;
    uct_iface_config_t *config;
    uct_worker_h worker;
    uct_iface_h iface;
    ucs_status_t status;

    ck_assert_int_eq(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                              &async), UCS_OK);
    ck_assert_int_eq(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker),
                     UCS_OK);
    ck_assert_int_eq(uct_md_iface_config_read(old->md, t_tl(), NULL, NULL,
                                              &config), UCS_OK);
    status = uct_iface_open(old->md, worker, &params, config, &iface);
    uct_config_release(config);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    return status;
}


/* The parent goes on before, between and after. */
START_TEST(test_while_used)
{
    t_stream_t stream;
    t_end_t *a, *b;
    t_link_t *link;
    pid_t child;
    unsigned i;

    t_only_daqiri("looks whether it was forked");
    if (t_is_softroce()) {
        t_skip("the name of the device is softverbs'");
    }
#ifdef __SANITIZE_THREAD__
    t_skip("the thread sanitizer has no new threads after a fork");
#endif
    t_expect_log(FORKED);
    a    = t_end_open("");
    b    = t_end_open("");
    link = t_link_up(a, b, 1, &stream);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        t_unmarked = 1;
        if (child_look(a) != 0) {
            _exit(1);
        }
        _exit((child_open(a) == UCS_ERR_UNSUPPORTED) ? 0 : 2);
    }
    for (i = 0; i < MESSAGES; i++) {
        t_send(link, T_SHORT, 32);
    }
    ck_assert_int_eq(child_status(child), 0);
    T_WAIT(stream.got == link->sent);

    /* another connection, for which the thread is needed */
    link = t_link_up(b, a, 2, &stream);
    t_send(link, T_SHORT, 32);
    T_WAIT(stream.got == link->sent);
    t_end_close_all();
    ck_assert_uint_eq(t_log_count(FORKED), 1);
}
END_TEST


static void child_talk(void)
{
    t_stream_t stream;
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_link_t *link;

    link = t_link_up(a, b, 1, &stream);
    t_send(link, T_SHORT, 32);
    T_WAIT(stream.got == link->sent);
    t_end_close_all();
}


START_TEST(test_after_use)
{
    pid_t child;

    child_talk();
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        t_unmarked = 1;
        child_talk();
        _exit(0);
    }
    ck_assert_int_eq(child_status(child), 0);
    child_talk();
}
END_TEST


/* ---- Of the tests themselves ---- */

static void *wait_for_ever(void *arg)
{
    prctl(PR_SET_NAME, "waits");
    for (;;) {
        pause();
    }
    return arg;
}


/* A process that is stuck says where each of its threads is. */
START_TEST(test_stuck)
{
    char text[8192];
    size_t length = 0;
    ssize_t got;
    pthread_t thread;
    pid_t child;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_NAME, "main");
        t_stuck_arm(100, fds[1]);
        (void)pthread_create(&thread, NULL, wait_for_ever, NULL);
        for (;;) {
            pause();
        }
    }
    close(fds[1]);
    memset(text, 0, sizeof(text));
    while (strstr(text, "thread waits:\n") == NULL) {
        got = read(fds[0], text + length, sizeof(text) - 1 - length);
        ck_assert_int_gt(got, 0);
        length += got;
    }
    ck_assert_ptr_nonnull(strstr(text, "still running, and soon out of time"));
    ck_assert_ptr_nonnull(strstr(text, "t_forked"));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(fds[0]);
}
END_TEST


static Suite *suite_forked(void)
{
    Suite *suite = suite_create("forked");
    TCase *used  = t_uct_case("while_used");
    TCase *after = t_uct_case("after_use");
    TCase *stuck = t_uct_case("stuck");

    tcase_add_test(used, test_while_used);
    suite_add_tcase(suite, used);
    tcase_add_test(after, test_after_use);
    suite_add_tcase(suite, after);
    tcase_add_test(stuck, test_stuck);
    suite_add_tcase(suite, stuck);
    return suite;
}


T_UCT_MAIN(suite_forked)
