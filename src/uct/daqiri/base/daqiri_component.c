/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the plugin gets into UCX. It stays out of a UCX that it does not know, and out of
 * the way of another copy of itself: either would crash the process. It then says one
 * sentence, and the job goes on without daqiri.
 *
 * LD_PRELOAD loads the plugin, or UCX itself as a module (from 1.22 on), or a program.
 * The plugin is linked with no UCX, which could be another one than the job uses. There
 * are three ways in, and the first that leads to a UCX counts:
 *
 *   at load      the program is linked with a UCX that all objects of the process see
 *   as a module  UCX calls ucs_module_global_init() of each module that it has loaded
 *   preloaded    A part of the program loads a UCX later that this part alone sees.
 *                That UCX asks which transports there are by uct_query_components(),
 *                and the plugin's is the first of that name.
 *
 * UCX never unlinks a component: hence -z nodelete in the Makefile.
 */
#include "base/daqiri_md.h"
#include "dq/dq_triage.h"

#include <pthread.h>

#define UCT_DAQIRI_EXPORTED __attribute__((visibility("default")))

static struct {
    pthread_mutex_t lock;
    const void      *libuct; /* the first that was tried, or NULL            */
} uct_daqiri_joined = {.lock = PTHREAD_MUTEX_INITIALIZER};


static int uct_daqiri_is_in(const char *value, const char *text)
{
    return (value != NULL) && (strstr(value, text) != NULL);
}


/* UCX's log cannot be used yet: this UCX may have another one. A user who only has the
 * plugin among UCX's modules is not told. */
static void uct_daqiri_stay_out(const dq_facts_t *facts)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];

    if (uct_daqiri_is_asked_for() ||
        uct_daqiri_is_in(getenv("LD_PRELOAD"), "libuct_" UCT_DAQIRI_NAME)) {
        fprintf(stderr, "%s\n",
                dq_triage_message(facts, message, sizeof(message)));
    }
}


static void uct_daqiri_join_first(const void *libuct)
{
    char detail[256];
    dq_facts_t facts = {
        .cause   = DQ_CAUSE_UCX_VERSION,
        .subject = UCT_DAQIRI_NAME,
        .detail  = detail,
    };

    if (!uct_daqiri_ucx_find(libuct, detail, sizeof(detail))) {
        uct_daqiri_stay_out(&facts);
    } else if (uct_daqiri_ucx_is_taken()) {
        facts.cause  = DQ_CAUSE_TWICE;
        facts.detail = NULL;
        uct_daqiri_stay_out(&facts);
    } else if (!uct_daqiri_ucx_register()) {
        snprintf(detail, sizeof(detail), "%s", strerror(ENOMEM));
        uct_daqiri_stay_out(&facts);
    }
}


/* The plugin serves one UCX. If a process has two, the second goes without. */
static void uct_daqiri_join(const void *libuct)
{
    if (libuct == NULL) {
        return;
    }
    pthread_mutex_lock(&uct_daqiri_joined.lock);
    if (uct_daqiri_joined.libuct == NULL) {
        uct_daqiri_joined.libuct = libuct;
        uct_daqiri_join_first(libuct);
    }
    pthread_mutex_unlock(&uct_daqiri_joined.lock);
}


UCS_STATIC_INIT {
    uct_daqiri_join(uct_daqiri_ucx_global());
}


UCT_DAQIRI_EXPORTED ucs_status_t ucs_module_global_init(void);

UCT_DAQIRI_EXPORTED ucs_status_t ucs_module_global_init(void)
{
    uct_daqiri_join(uct_daqiri_ucx_of(__builtin_return_address(0)));
    return UCS_OK;
}


UCT_DAQIRI_EXPORTED ucs_status_t
uct_query_components(uct_component_h **components_p, unsigned *num_components_p)
{
    const void *libuct = uct_daqiri_ucx_of(__builtin_return_address(0));
    __typeof__(uct_query_components) *theirs;

    uct_daqiri_join(libuct);
    theirs = uct_daqiri_ucx_symbol(libuct, "uct_query_components");
    return (theirs == NULL) ? UCS_ERR_UNSUPPORTED
                            : theirs(components_p, num_components_p);
}
