/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device tests share: ends, links between them, posting and polling.
 *
 * The tests speak verbs and nothing else, so that the same source runs on any
 * device; where devices legitimately differ, a test takes either answer and
 * says so. Where one is known to be wrong, or to say less than it could, the
 * test asks t_differs(). Every helper asserts that what it does succeeds,
 * unless it returns what the verb answered.
 *
 * An end is a QP with what belongs to it. Two ends of a test may live in one
 * process or in two (t_peer_start).
 */
#ifndef T_DEVICE_H
#define T_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "t.h"

/* How an end is made. Zero in a count means the default. */
struct t_make {
    enum ibv_qp_type type;      /* default RC */
    uint32_t         depth;     /* of each queue; default 16 */
    uint32_t         max_sge;   /* default 4 */
    uint32_t         max_inline;
    int              cqe;       /* of each CQ; default twice the depth */
    size_t           size;      /* of the buffer; default 64 KiB */
    int              access;    /* of the MR; default everything */
    bool             srq;       /* receive through an SRQ */
    bool             one_cq;    /* one CQ for both directions */
    bool             channel;   /* both CQs on a completion channel */
    bool             sig_all;
};

struct t_end {
    struct t_make            make; /* with the defaults filled in */
    struct ibv_context      *context;
    struct ibv_pd           *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq           *send_cq;
    struct ibv_cq           *recv_cq;
    struct ibv_srq          *srq;
    struct ibv_qp           *qp;
    struct ibv_mr           *mr;
    uint8_t                 *buf;
    size_t                   size;
};

/* What one end has to know of the other. */
struct t_address {
    uint32_t      qpn;
    uint32_t      psn;
    uint16_t      lid;
    uint32_t      rkey;
    uint64_t      buf;
    union ibv_gid gid;
    bool          is_routed; /* by its GID, on InfiniBand, too */
};

/* The same in another subnet, or at another LID. Skips where addresses are not
 * those of InfiniBand. */
struct t_address t_address_elsewhere(const struct t_end *end,
                                     struct t_address address, bool is_routed);

/* Settings of a connection. */
struct t_link {
    uint8_t  timeout;   /* code; 0 is not for ever but the default */
    uint8_t  retry_cnt;
    uint8_t  rnr_retry;
    uint8_t  min_rnr;   /* code of the RNR timer */
    int      access;    /* of the QP; default everything remote */
    uint32_t psn_error; /* added to the PSN that the receiver expects */
};

#define T_QKEY    0x11223344u

/* Everything an MR or a QP may allow. */
#define T_ACCESS_ALL                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                 \
     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define T_ACCESS_REMOTE    (T_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE)

/*
 * What Soft-RoCE does otherwise than softverbs and the hardware that softverbs
 * stands for; docs/softroce.md says of each why, and of which kernel. A test
 * that asks for one goes on to assert the other answer: an entry that is no
 * longer true makes it fail.
 */
enum t_difference {
    T_DIFF_ASYNC_EVENTS,
    T_DIFF_ASYNC_ACCESS,
    T_DIFF_ASYNC_LAST_WQE,
    T_DIFF_ERROR_SILENT,
    T_DIFF_ERROR_SOLICITED,
    T_DIFF_RANGES,
    T_DIFF_OPCODE,
    T_DIFF_STALE_COMPLETION,
    T_DIFF_SEND_SLOT,
    T_DIFF_SQD_RESUME,
    T_DIFF_SENDER,
    T_DIFF_MISALIGNED,
    T_DIFF_RNR_TIMER,
    T_DIFF_JIFFIES,
    T_DIFF_UC,
    T_DIFF_RTS_ATTRIBUTES,
    T_DIFF_LOCAL_FLUSHED,
    T_DIFFERENCES
};

/* True where the device under test is Soft-RoCE (t_is_softroce), of a kernel in
 * which that is so. */
bool t_differs(enum t_difference difference);

/* Skips the test where the device is Soft-RoCE. Of what softverbs says to
 * requests that make no sense, and that other devices need not look at. */
void t_softverbs_only(const char *why);

/*
 * How long a wait may last that ends in success however slow the machine: the
 * code of the ACK timer that stands for `code` on this bed. In a virtual
 * machine whose processor is emulated, each is 16 times longer: an answer that
 * is late would be one that is lost.
 */
uint8_t t_timeout(uint8_t code);

/* How often a test that takes long does something that it would do `count`
 * times on a quick machine. */
unsigned t_times(unsigned count);

/* The first device there is; skips the test where there is none. */
struct ibv_context *t_open_device(void);

void t_end_open(struct t_end *end, const struct t_make *make);
void t_end_close(struct t_end *end);
/* The same in two steps: all that tells of completions, then the rest. */
void t_end_close_queues(struct t_end *end);
void t_end_close_memory(struct t_end *end);
struct t_address t_end_address(const struct t_end *end);
/* One more QP of an end. Its receives complete in the end's CQ, or in one of its
 * own on the same channel. */
struct t_end t_sibling_open(const struct t_end *end, bool own_cq);
void t_sibling_close(struct t_end *sibling, const struct t_end *end);

/* One step of the QP's life. t_end_rts() begins at INIT, all in one. NULL link
 * means the defaults: half a second until RETRY_EXC, no RNR retry. */
void t_end_init(struct t_end *end, const struct t_link *link);
void t_end_rtr(struct t_end *end, const struct t_address *to,
               const struct t_link *link);
void t_end_rts(struct t_end *end, const struct t_link *link);
void t_end_up(struct t_end *end, const struct t_address *to,
              const struct t_link *link);
void t_end_move(struct t_end *end, enum ibv_qp_state state);
enum ibv_qp_state t_end_state(struct t_end *end);
/* Until the device has moved the QP there. */
void t_end_wait(struct t_end *end, enum ibv_qp_state state);
/* After a change to SQD: waits until the send queue is drained. Soft-RoCE takes
 * no other change before, but to ERR. t_end_move() waits by itself. */
void t_end_drain(struct t_end *end);

/* Two ends of this process, connected. */
void t_pair_open(struct t_end ends[2], const struct t_make *make,
                 const struct t_link *link);
void t_pair_close(struct t_end ends[2]);

/* Posting. Offsets are from the start of the end's buffer. What the verb
 * answered is returned. */
int t_post_recv(struct t_end *end, uint64_t wr_id, size_t offset,
                size_t length);
int t_post_send(struct t_end *end, uint64_t wr_id, size_t offset,
                size_t length, unsigned flags);
int t_post_rdma(struct t_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
                size_t offset, size_t length, const struct t_address *to,
                size_t to_offset);
int t_post_atomic(struct t_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
                  size_t offset, const struct t_address *to, size_t to_offset,
                  uint64_t compare_add, uint64_t swap);
int t_post_datagram(struct t_end *end, struct ibv_ah *ah, uint32_t qpn,
                    uint32_t qkey, uint64_t wr_id, size_t offset,
                    size_t length);
struct ibv_ah *t_create_ah(struct t_end *end, const struct t_address *to);

/* Waits for one completion. */
struct ibv_wc t_poll(struct ibv_cq *cq);
/* Waits for one completion and asserts what it is. */
struct ibv_wc t_poll_is(struct ibv_cq *cq, uint64_t wr_id,
                        enum ibv_wc_status status);
/* The same of one that failed: softverbs says `status`; where the device is
 * Soft-RoCE, it may be `elsewhere` as well. */
struct ibv_wc t_poll_fails(struct ibv_cq *cq, uint64_t wr_id,
                           enum ibv_wc_status status,
                           enum ibv_wc_status elsewhere);

/* The same of a request to send that this end finds wrong by itself: of its memory
 * it may not have what is to be sent. */
struct ibv_wc t_poll_refused(struct ibv_cq *cq, uint64_t wr_id);
/* Asserts that none is there now. */
void t_poll_none(struct ibv_cq *cq);
/* Sends one message from one end to another and checks what arrives. */
void t_check_link(struct t_end *from, struct t_end *to);

uint64_t t_now_ns(void);

/* The file in which softverbs keeps what the process of this QP shares. */
enum { T_SEGMENT_PATH = 64 };
void t_segment_path(char path[T_SEGMENT_PATH], uint32_t qpn);
/* Bytes of memory in that file. Skips if the device keeps nothing there. */
size_t t_segment_bytes(const struct t_end *end);

/*
 * fork(), by who has opened the device. A child inherits nothing of what the
 * device has mapped, but valgrind, which does not know that, would look for
 * leaks in it: half a gigabyte, a fault for each word.
 */
pid_t t_fork(void);

/* A second process. The child runs `run` with its side of a socket and then
 * leaves with status 0, unless an assertion ends it. */
struct t_peer {
    pid_t pid;
    int   fd;
};

typedef void (*t_peer_func_t)(int fd);

/* Call before the device is opened: nothing of it survives a fork. */
void t_peer_start(struct t_peer *peer, t_peer_func_t run);
/* Waits for the child and asserts that it was content. */
void t_peer_join(struct t_peer *peer);
/* SIGKILL, and waits until the process is gone. */
void t_peer_kill(struct t_peer *peer);

/* All of it, over the socket; the other side going away is a failure. */
void t_tell(int fd, const void *data, size_t length);
void t_hear(int fd, void *data, size_t length);
/* Both sides come here. */
void t_meet(int fd);
/* Makes an end's address known and learns the other's. */
struct t_address t_swap(int fd, const struct t_end *end);

#endif
