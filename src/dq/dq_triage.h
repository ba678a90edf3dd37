/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triage: turns facts into a message for a person.
 *
 * The input are facts: a completion status, an errno, the settings in force. The
 * output says what happened, whose doing it probably is, whether a new QP can help,
 * and what to check. A check is printed only if the input has the fact that makes it
 * true. dq_triage.c has every sentence about an error that users read; the plugin and
 * the tools share it.
 *
 * Threads: any; no state is kept.
 */
#ifndef DQ_TRIAGE_H
#define DQ_TRIAGE_H

#include "dq.h"

/* Whose doing the error is. */
typedef enum {
    DQ_CLASS_LOCAL,   /* this program, or this transport                     */
    DQ_CLASS_PEER,    /* the other program                                   */
    DQ_CLASS_PATH,    /* what lies between                                   */
    DQ_CLASS_CONFIG,  /* how this machine, or the job, is set up             */
    DQ_CLASS_FLUSH,   /* the echo of an earlier error                        */
    DQ_CLASS_UNKNOWN,
    DQ_CLASS_LAST
} dq_class_t;

/* The cause. The first ones have the values of enum ibv_wc_status. */
typedef enum {
    DQ_CAUSE_NONE = 0,
    DQ_CAUSE_LOC_LEN,
    DQ_CAUSE_LOC_QP_OP,
    DQ_CAUSE_LOC_EEC_OP,
    DQ_CAUSE_LOC_PROT,
    DQ_CAUSE_WR_FLUSH,
    DQ_CAUSE_MW_BIND,
    DQ_CAUSE_BAD_RESP,
    DQ_CAUSE_LOC_ACCESS,
    DQ_CAUSE_REM_INV_REQ,
    DQ_CAUSE_REM_ACCESS,
    DQ_CAUSE_REM_OP,
    DQ_CAUSE_RETRY_EXC,
    DQ_CAUSE_RNR_RETRY_EXC,
    DQ_CAUSE_LOC_RDD_VIOL,
    DQ_CAUSE_REM_INV_RD_REQ,
    DQ_CAUSE_REM_ABORT,
    DQ_CAUSE_INV_EECN,
    DQ_CAUSE_INV_EEC_STATE,
    DQ_CAUSE_FATAL,
    DQ_CAUSE_RESP_TIMEOUT,
    DQ_CAUSE_GENERAL,
    /* from here on: not completions */
    DQ_CAUSE_NO_DEVICE = 64, /* no RDMA device at all                        */
    DQ_CAUSE_DEVICE_OPEN,    /* the device cannot be opened                  */
    DQ_CAUSE_PORT_DOWN,
    DQ_CAUSE_NO_SRQ,         /* the device has no shared receive queue       */
    DQ_CAUSE_NO_GID,         /* the GID index that was asked for is empty    */
    DQ_CAUSE_GID_LOST,       /* the interface's own GID is there no more     */
    DQ_CAUSE_BAD_OPTION,
    DQ_CAUSE_VERB,           /* a verb failed: errno, and its name           */
    DQ_CAUSE_POST,           /* ibv_post_send() refused what the ledger let  */
    DQ_CAUSE_NO_ANSWER,      /* the handshake ran out of time                */
    DQ_CAUSE_REFUSED,        /* the peer refused                             */
    DQ_CAUSE_PEER_GONE,      /* the peer ended the connection, in order      */
    DQ_CAUSE_PEER_FORGOT,    /* the peer opened anew what was open           */
    DQ_CAUSE_LEFT,           /* an endpoint was destroyed with sends under way */
    DQ_CAUSE_UCX_VERSION,    /* a UCX that the plugin does not know          */
    DQ_CAUSE_TWICE,          /* two copies of the plugin in one process      */
    DQ_CAUSE_DEVICE_GONE,    /* the device answers no verb any more          */
    DQ_CAUSE_GIVEN_UP,       /* UCX invalidated an endpoint                  */
    DQ_CAUSE_PEER_LOST,      /* the peer's queue pair died                   */
    DQ_CAUSE_NO_QP,          /* one died, or was none, before it was up      */
    DQ_CAUSE_ATOMIC,         /* a QP died with an atomic under way           */
    DQ_CAUSE_MISMATCH,       /* the ends disagree about what was delivered   */
    DQ_CAUSE_STUCK,          /* a request neither completes nor fails        */
    DQ_CAUSE_QP_EVENT,       /* an event says that a queue pair has failed   */
    DQ_CAUSE_CQ_BROKEN,      /* ... that a completion queue has              */
    DQ_CAUSE_SRQ_BROKEN,     /* ... the shared receive queue                 */
    DQ_CAUSE_DEVICE_FATAL,   /* ... the device                               */
    DQ_CAUSE_PEER_UNRESPONSIVE, /* the peer's device answers, its process not */
    DQ_CAUSE_CARRIER,        /* the handshake's completion queue has failed  */
    DQ_CAUSE_GAP,            /* a message has not come, but a later one has  */
    DQ_CAUSE_PEER_FAILED,    /* the connection has failed at the peer's end  */
    DQ_CAUSE_FORKED,         /* UCX's async thread is the parent's alone     */
    DQ_CAUSE_OTHER_FABRIC,   /* beyond a device in user space                */
    DQ_CAUSE_OTHER_NET,      /* no way from this port to the peer's          */
    DQ_CAUSE_LAST
} dq_cause_t;

/* What is known. Zero or NULL means: not known, and is not mentioned. */
typedef struct {
    dq_cause_t  cause;
    int         error;         /* errno value                                */
    const char  *verb;         /* of DQ_CAUSE_VERB                           */
    const char  *subject;      /* device, option or version that it is about */
    const char  *detail;       /* what was asked for, or found               */
    uint32_t    vendor_err;
    uint32_t    qpn, peer_qpn;
    const char  *peer_host;
    uint32_t    peer_pid;
    const char  *down_port;    /* our own port, if it is down                */
    uint32_t    outstanding;   /* requests posted and not over               */
    uint32_t    depth;         /* of the send queue                          */
    double      ack_timeout_ms;
    double      rnr_timer_ms;
    uint32_t    retry_cnt;
    double      waited_ms;     /* time spent before giving up                */
    double      tried_ms;      /* time spent on another queue pair, in vain  */
    const char  *lost_gid;     /* the interface's own, that is there no more */
    uint32_t    gid_index;     /* where it was                               */
    uint64_t    memlock_limit; /* bytes; UINT64_MAX for no limit             */
    const char  *port;         /* our own, DEVICE:NUMBER                     */
    const char  *gid, *peer_gid; /* of the two ends                          */
    const char  *hw_changes;   /* of the port's error counters, in words ... */
    int         hw_since_up;   /* ... since the connection was up            */
} dq_facts_t;

/* Does a connection that ends by this cause end in order? Then the peer has received,
 * or does not want, everything that was sent. */
int dq_triage_is_parting(dq_cause_t cause);

dq_class_t dq_triage_class(dq_cause_t cause);
const char *dq_class_name(dq_class_t class_id);

/* Its name in dq_cause_t, and one sentence about it. */
const char *dq_cause_name(dq_cause_t cause);
const char *dq_triage_what(dq_cause_t cause);

/* Can a new QP help? */
int dq_triage_new_qp_helps(dq_cause_t cause);

/* Writes the message: one line of fact, then lines of checks, each behind a
 * newline and two spaces. Always terminated. Returns @a buf. */
char *dq_triage_message(const dq_facts_t *facts, char *buf, size_t size);

/* A connection that goes on over another queue pair. */
typedef struct {
    const char *peer_host;
    uint32_t   peer_pid;
    double     down_ms;   /* since it was lost                               */
    uint32_t   resent;    /* requests sent again                             */
    uint32_t   delivered; /* messages that the peer turned out to have       */
} dq_recovered_t;

/* One line each: a queue pair is lost and will be replaced; the connection is back.
 * Always terminated. Return @a buf. */
char *dq_triage_recovering(const dq_facts_t *facts, char *buf, size_t size);
char *dq_triage_recovered(const dq_recovered_t *back, char *buf, size_t size);
/* One line: a peer cannot be reached from here, and what to check. */
char *dq_triage_unreachable(const dq_facts_t *facts, char *buf, size_t size);
/* One line: the handshake's own queue pair had failed, and works again. */
char *dq_triage_carrier(const dq_facts_t *facts, char *buf, size_t size);

/* A connection on which nothing moves. Zero or NULL: not known. */
typedef struct {
    int        is_waiting;   /* nothing may be posted; else: a request that was
                                does not complete                            */
    int        is_no_credit; /* for want of credits                          */
    int        is_put_off;   /* for want of a queue pair, which a call of the
                                peer's program would bring                   */
    const char *reason;      /* why nothing may be posted, in a word         */
    double     for_ms, give_up_ms;
    uint32_t   oldest_id;
    const char *oldest_kind;
    uint32_t   credits, window;
    const char *qp_state;
} dq_stall_t;

/* The message about it, with what to check. Always terminated. Returns @a buf. */
char *dq_triage_stall(const dq_facts_t *facts, const dq_stall_t *stall,
                      char *buf, size_t size);

enum { DQ_TRIAGE_MESSAGE_MAX = 1152 };

#endif
