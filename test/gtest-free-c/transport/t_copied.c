/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that reads objects of UCX's libraries, as UCX's inline functions of time
 * and of its log do, has these objects itself (copy relocations), and UCX uses them
 * there. The plugin, which is linked with no UCX, must use them there, too: of the
 * clock it would have another unit than UCX, and no time of its own would ever pass.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "t_uct.h"

#include <dlfcn.h>

/* How large they are tells the linker the library. */
extern char ucs_global_opts[];
#ifdef __x86_64__
extern char ucs_arch_x86_enable_rdtsc[];
#endif

static int is_own(const char *object)
{
    static const char ours;
    Dl_info of_object, of_us;

    ck_assert_int_ne(dladdr(object, &of_object), 0);
    ck_assert_int_ne(dladdr(&ours, &of_us), 0);
    return of_object.dli_fbase == of_us.dli_fbase;
}


/* Code that names them, not a table, makes the linker copy them. */
static int are_own(void)
{
    int are = is_own(ucs_global_opts);

#ifdef __x86_64__
    are = are && is_own(ucs_arch_x86_enable_rdtsc);
#endif
    return are;
}


/* Nobody answers: that is an error after CONN_TIMEOUT, measured by the plugin's clock,
 * and not before. */
START_TEST(test_time_passes)
{
    t_end_t *end;
    t_address_t nobody;
    double begin;

    t_only_daqiri("is linked with no UCX");
    if (!are_own()) {
        t_skip("this linker leaves the objects in the library");
    }
    end    = t_end_open("");
    nobody = end->address;
    t_end_close(end);

    t_expect_log("did not answer the handshake");
    end   = t_end_open("CONN_TIMEOUT=300ms CONN_RETRY=5ms RECOVERY=n");
    begin = t_ucx_seconds();
    (void)t_link_open(end, &nobody, 1);
    T_WAIT(end->errors == 1);
    ck_assert_int_eq(end->error, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert(t_ucx_seconds() - begin > 0.25);
}
END_TEST


static Suite *suite_copied(void)
{
    Suite *suite = suite_create("copied");
    TCase *tcase = t_uct_case("objects");

    tcase_add_test(tcase, test_time_passes);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_copied)
