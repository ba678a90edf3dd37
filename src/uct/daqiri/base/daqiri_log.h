/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts become a message in UCX's log; what others can cause often is limited.
 *
 * Threads: any; of a limit, its owner.
 */
#ifndef UCT_DAQIRI_LOG_H
#define UCT_DAQIRI_LOG_H

#include "daqiri.h"
#include "dq/dq_triage.h"

/* How often a line is said that strangers can cause as often as they like. */
enum {
    UCT_DAQIRI_LOG_LIMIT_SEC = 1, /* a reader keeps up with that             */
    UCT_DAQIRI_MORE_MAX      = 40
};

typedef struct {
    ucs_time_t until;
    uint32_t   suppressed; /* lines since the last                           */
} uct_daqiri_log_limit_t;

/* Facts -> message -> UCX's log. */
void uct_daqiri_log(ucs_log_level_t level, const dq_facts_t *facts);
/* A verb failed: names it, errno, and what may be behind it. */
void uct_daqiri_log_verb(ucs_log_level_t level, const char *subject,
                         const char *verb, int error);
/* May a line be said now of what strangers can bring about as often as they like?
 * Once in UCT_DAQIRI_LOG_LIMIT_SEC; else it is counted. @a more: what to put behind
 * the line, with that count. Threads: one at a time for each @a quiet. */
int uct_daqiri_may_log(uct_daqiri_log_limit_t *limit,
                       char more[UCT_DAQIRI_MORE_MAX]);
/* The same of a line about a conn. There is no limit if an endpoint here wants the
 * conn: only its peer, who has heard us, can end that again and again. */
int uct_daqiri_may_log_of(int is_wanted, uct_daqiri_log_limit_t *limit,
                          char more[UCT_DAQIRI_MORE_MAX]);
/* As uct_daqiri_log() and uct_daqiri_log_verb(), if it may be said. */
void uct_daqiri_log_rarely(uct_daqiri_log_limit_t *limit, ucs_log_level_t level,
                           const dq_facts_t *facts);
void uct_daqiri_log_verb_rarely(uct_daqiri_log_limit_t *limit,
                                ucs_log_level_t level, const char *subject,
                                const char *verb, int error);
/* That a peer has another version of the wire; 0: 5 or less. @a more: as of
 * uct_daqiri_may_log(), or "". */
void uct_daqiri_log_version(const char *port_name, unsigned version,
                            const char *more);
ucs_status_t uct_daqiri_cause_status(dq_cause_t cause);

#endif
