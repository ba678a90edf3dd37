/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts become a message in UCX's log. Messages that others can cause often are limited.
 *
 * Threads: any; each limit has one owner.
 */
#ifndef UCT_DAQIRI_LOG_H
#define UCT_DAQIRI_LOG_H

#include "daqiri.h"
#include "dq/dq_triage.h"

/* Seconds between two lines of a kind that unknown peers can cause at will. */
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
/* Logs that a verb failed, with its errno and what may have caused it. */
void uct_daqiri_log_verb(ucs_log_level_t level, const char *subject,
                         const char *verb, int error);
/* Returns non-zero if a line that unknown peers can cause at will may be logged now:
 * one in UCT_DAQIRI_LOG_LIMIT_SEC. The others are counted. @a more is text to append to
 * the line, with that count. Threads: one at a time for each @a limit. */
int uct_daqiri_may_log(uct_daqiri_log_limit_t *limit,
                       char more[UCT_DAQIRI_MORE_MAX]);
/* The same for a line about a conn. There is no limit if an endpoint here uses the conn
 * (@a is_wanted): only its peer can end such a conn repeatedly, and is known. */
int uct_daqiri_may_log_of(int is_wanted, uct_daqiri_log_limit_t *limit,
                          char more[UCT_DAQIRI_MORE_MAX]);
/* As uct_daqiri_log() and uct_daqiri_log_verb(), within a limit. */
void uct_daqiri_log_rarely(uct_daqiri_log_limit_t *limit, ucs_log_level_t level,
                           const dq_facts_t *facts);
void uct_daqiri_log_verb_rarely(uct_daqiri_log_limit_t *limit,
                                ucs_log_level_t level, const char *subject,
                                const char *verb, int error);
/* Warns that a peer has another version of the wire; 0 stands for 5 or less. @a more is
 * that of uct_daqiri_may_log(), or "". */
void uct_daqiri_log_version(const char *port_name, unsigned version,
                            const char *more);
ucs_status_t uct_daqiri_cause_status(dq_cause_t cause);

#endif
