/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration with UCX when the plugin is loaded, unless that would crash
 * the process: into another version of UCX, or beside another copy of itself.
 * Then one sentence, and the job goes on without daqiri.
 *
 * UCX never unlinks a component: hence -z nodelete in the Makefile.
 */
#include "daqiri.h"

extern uct_tl_t uct_daqiri_tl;

uct_component_t uct_daqiri_component = {
    .query_md_resources = uct_daqiri_query_md_resources,
    .md_open            = uct_daqiri_md_open,
    .cm_open            = ucs_empty_function_return_unsupported,
    .rkey_unpack        = uct_daqiri_rkey_unpack,
    .rkey_ptr           = ucs_empty_function_return_unsupported,
    .rkey_release       = ucs_empty_function_return_success,
    .name               = UCT_DAQIRI_NAME,
    .md_config          = {
        .name   = "daqiri memory domain",
        .prefix = "DAQIRI_MD_",
        .table  = uct_daqiri_md_config_table,
        .size   = sizeof(uct_daqiri_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(
            &uct_daqiri_component),
    .flags              = 0,
    .md_vfs_init        = (uct_component_md_vfs_init_func_t)
            ucs_empty_function,
};

UCT_TL_DEFINE_ENTRY(&uct_daqiri_component, daqiri, uct_daqiri_query_devices,
                    uct_daqiri_iface_t, "DAQIRI_",
                    uct_daqiri_iface_config_table, uct_daqiri_iface_config_t);


int uct_daqiri_is_asked_for(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strstr(tls, UCT_DAQIRI_NAME) != NULL);
}


/* Before UCX's log may be trusted: what it is made of may be another. */
static void uct_daqiri_stay_out(const dq_facts_t *facts)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];

    fprintf(stderr, "%s\n",
            dq_triage_message(facts, message, sizeof(message)));
}


static int uct_daqiri_is_right_ucx(void)
{
    char detail[128];
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_UCX_VERSION,
        .subject = UCT_DAQIRI_NAME,
        .detail  = detail,
    };

    if (uct_daqiri_compat_fits(detail, sizeof(detail))) {
        return 1;
    }
    uct_daqiri_stay_out(&facts);
    return 0;
}


static int uct_daqiri_is_alone(void)
{
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_TWICE,
        .subject = UCT_DAQIRI_NAME,
    };
    uct_component_t *component;

    ucs_list_for_each(component, &uct_components_list, list) {
        if (strcmp(component->name, UCT_DAQIRI_NAME) == 0) {
            uct_daqiri_stay_out(&facts);
            return 0;
        }
    }
    return 1;
}


UCS_STATIC_INIT {
    if (uct_daqiri_is_right_ucx() && uct_daqiri_is_alone()) {
        uct_component_register(&uct_daqiri_component);
        uct_tl_register(&uct_daqiri_component, &uct_daqiri_tl);
    }
}
