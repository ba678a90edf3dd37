/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From facts to UCX's log.
 */
#include "base/daqiri_log.h"

#include "dq/dq_wire.h"

#include <sys/resource.h>

/* dq_triage.h has its own numbers, so that it need not know verbs. */
DQ_STATIC_ASSERT((int)DQ_CAUSE_LOC_LEN == IBV_WC_LOC_LEN_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_LOC_PROT == IBV_WC_LOC_PROT_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_WR_FLUSH == IBV_WC_WR_FLUSH_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_REM_ACCESS == IBV_WC_REM_ACCESS_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_RETRY_EXC == IBV_WC_RETRY_EXC_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_RNR_RETRY_EXC == IBV_WC_RNR_RETRY_EXC_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_FATAL == IBV_WC_FATAL_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_GENERAL == IBV_WC_GENERAL_ERR, "wc status");


void uct_daqiri_log(ucs_log_level_t level, const dq_facts_t *facts)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];

    ucs_log(level, "%s", dq_triage_message(facts, message, sizeof(message)));
}


static uint64_t uct_daqiri_memlock_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        return 0;
    }
    return (limit.rlim_cur == RLIM_INFINITY) ? UINT64_MAX : limit.rlim_cur;
}


static dq_facts_t uct_daqiri_verb_facts(const char *subject, const char *verb,
                                        int error)
{
    return (dq_facts_t){
        .cause         = DQ_CAUSE_VERB,
        .subject       = subject,
        .verb          = verb,
        .error         = error,
        .memlock_limit = uct_daqiri_memlock_limit(),
    };
}


void uct_daqiri_log_verb(ucs_log_level_t level, const char *subject,
                         const char *verb, int error)
{
    const dq_facts_t facts = uct_daqiri_verb_facts(subject, verb, error);

    uct_daqiri_log(level, &facts);
}


int uct_daqiri_may_log(uct_daqiri_log_limit_t *limit,
                       char more[UCT_DAQIRI_MORE_MAX])
{
    ucs_time_t now = ucs_get_time();

    if (now < limit->until) {
        limit->suppressed++;
        return 0;
    }
    more[0] = '\0';
    if (limit->suppressed > 0) {
        snprintf(more, UCT_DAQIRI_MORE_MAX, " (and %u more like it before)",
                 limit->suppressed);
    }
    limit->suppressed = 0;
    limit->until      = now + ucs_time_from_sec(UCT_DAQIRI_LOG_LIMIT_SEC);
    return 1;
}


int uct_daqiri_may_log_of(int is_wanted, uct_daqiri_log_limit_t *limit,
                          char more[UCT_DAQIRI_MORE_MAX])
{
    more[0] = '\0';
    return is_wanted || uct_daqiri_may_log(limit, more);
}


void uct_daqiri_log_rarely(uct_daqiri_log_limit_t *limit, ucs_log_level_t level,
                           const dq_facts_t *facts)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];
    char more[UCT_DAQIRI_MORE_MAX];

    if (level >= UCS_LOG_LEVEL_INFO) {
        uct_daqiri_log(level, facts);
    } else if (uct_daqiri_may_log(limit, more)) {
        ucs_log(level, "%s%s",
                dq_triage_message(facts, message, sizeof(message)), more);
    }
}


void uct_daqiri_log_verb_rarely(uct_daqiri_log_limit_t *limit,
                                ucs_log_level_t level, const char *subject,
                                const char *verb, int error)
{
    const dq_facts_t facts = uct_daqiri_verb_facts(subject, verb, error);

    uct_daqiri_log_rarely(limit, level, &facts);
}


void uct_daqiri_log_version(const char *port_name, unsigned version,
                            const char *more)
{
    enum { ADDRESSES_SAY = 6 }; /* from this one on */

    ucs_warn("daqiri: %s does not connect to a peer with version %u%s of "
             "daqiri's wire, for here it is %u: install the same ucx-daqiri on "
             "both sides%s", port_name,
             (version == 0) ? ADDRESSES_SAY - 1 : version,
             (version == 0) ? " or less" : "", DQ_WIRE_VERSION, more);
}


ucs_status_t uct_daqiri_cause_status(dq_cause_t cause)
{
    switch (cause) {
    case DQ_CAUSE_NONE:
        return UCS_OK;
    case DQ_CAUSE_RETRY_EXC:
    case DQ_CAUSE_RESP_TIMEOUT:
    case DQ_CAUSE_RNR_RETRY_EXC:
    case DQ_CAUSE_NO_ANSWER:
    case DQ_CAUSE_REM_OP: /* a process that dies may lose its memory first */
    case DQ_CAUSE_REM_ACCESS: /* so may a peer that closes by force */
    case DQ_CAUSE_REFUSED:
    case DQ_CAUSE_PEER_GONE:
    case DQ_CAUSE_PEER_FAILED:
    case DQ_CAUSE_PEER_FORGOT:
    case DQ_CAUSE_WR_FLUSH:
    case DQ_CAUSE_STUCK:
    case DQ_CAUSE_PEER_UNRESPONSIVE:
        /* UCP answers later sends with this status, so the program sees one status
         * and not two. The message in the log says more. */
        return UCS_ERR_ENDPOINT_TIMEOUT;
    case DQ_CAUSE_GIVEN_UP:
        return UCS_ERR_CANCELED;
    default:
        return UCS_ERR_IO_ERROR;
    }
}
