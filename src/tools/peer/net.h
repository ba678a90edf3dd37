/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * TCP between the two processes of a test. Everything is bounded by a deadline
 * (daqiri_now_ns(); UINT64_MAX is none) and ends when the user asks to stop;
 * functions return -1 and a failure then. Sockets do not block.
 */

#ifndef DAQIRI_NET_H
#define DAQIRI_NET_H

#include "tools/base/failure.h"
#include "tools/base/progress.h"
#include "tools/peer/peer.h"

#include <argp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DAQIRI_NET_PORT "9000"

/* The value of an option that is an address, or a usage error (args.h). Whether
 * there is such a host is not asked yet. Returns text. */
const char *daqiri_net_args_address(struct argp_state *state, const char *name,
                                    const char *text);

/* "host:port" of a socket, both as numbers. */
#define DAQIRI_NET_NAME_MAX 80

/* [HOST][:PORT], [IPv6]:PORT, or :PORT; digits alone are a port. Port 0 is any.
 * The first looks at how it is written, and returns 0 or -1; the others return
 * a socket. Without a host it listens on all addresses, of IPv4 and, where there
 * is that, of IPv6. */
int daqiri_net_check(const char *address, daqiri_failure_t *failure);
int daqiri_net_listen(const char *address, daqiri_failure_t *failure);
int daqiri_net_connect(const char *address, uint64_t deadline_ns,
                       daqiri_failure_t *failure);
/* Returns a connection. */
int daqiri_net_accept(int listener, uint64_t deadline_ns,
                      daqiri_failure_t *failure);

/* What it listens on, in the same form: how many names. */
#define DAQIRI_NET_NAMES 2
int daqiri_net_listens_on(int listener, char (*names)[DAQIRI_NET_NAME_MAX]);

/* As an address of IPv6, which every one of IPv4 can be written as. Returns 0,
 * or -1 if it is of another family. */
int daqiri_net_address(const struct sockaddr *address, struct in6_addr *ip);

/* Of this end, or of the other. Returns name, DAQIRI_NET_NAME_MAX long. */
char *daqiri_net_name(int fd, int is_peer, char *name);

int daqiri_net_send(int fd, const void *bytes, size_t length,
                    uint64_t deadline_ns, daqiri_failure_t *failure);
int daqiri_net_recv(int fd, void *bytes, size_t length, uint64_t deadline_ns,
                    daqiri_failure_t *failure);

int daqiri_net_send_frame(int fd, const daqiri_peer_frame_t *frame,
                          uint64_t deadline_ns, daqiri_failure_t *failure);

/* Any frame but ABORT, which is a failure of class PEER_FAILED. */
int daqiri_net_recv_frame(int fd, daqiri_peer_frame_t *frame,
                          uint64_t deadline_ns, daqiri_failure_t *failure);

/* This kind of frame; any other is a failure, too. */
int daqiri_net_expect(int fd, daqiri_peer_kind_t kind,
                      daqiri_peer_frame_t *frame, uint64_t deadline_ns,
                      daqiri_failure_t *failure);

/* Both HELLOs; fails if there is no version of the protocol that both speak. `version`
 * (DAQIRI_PEER_WORD_MAX) is the other's, of ucx-daqiri. */
int daqiri_net_hello(int fd, daqiri_peer_service_t service, char *version,
                     uint64_t deadline_ns, daqiri_failure_t *failure);

/* The same for who takes any service: waits for the peer's HELLO, and offers
 * what it wants. */
int daqiri_net_hello_any(int fd, daqiri_peer_service_t *service, char *version,
                         uint64_t deadline_ns, daqiri_failure_t *failure);

/* Tells the peer of our failure, if it listens; never fails itself. */
void daqiri_net_abort(int fd, const daqiri_failure_t *failure);

/* Returns whether something happened. */
typedef int (*daqiri_net_work_t)(void *arg);

/* From now on this is called while the other side is waited for, until it is
 * called with NULL. */
void daqiri_net_meanwhile(daqiri_net_work_t work, void *arg);

/* From now on what waits for the other side shows that, until it is called with
 * NULL. */
void daqiri_net_show(daqiri_progress_t *progress);


#endif
