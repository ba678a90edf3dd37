/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The clients of `daqiri serve` as its first process sees them: who has a place,
 * since when, and who is refused one. A place is a process.
 *
 * Who is refused is told why. A connection that is closed while there is
 * something to be read is reset, and the sentence may be lost with it; so it is
 * read for a second more, which costs a descriptor and no process.
 */

#ifndef DAQIRI_CLIENTS_H
#define DAQIRI_CLIENTS_H

#include "tools/base/failure.h"
#include "tools/peer/net.h"
#include "tools/peer/quota.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DAQIRI_CLIENTS_LEAVING 32

typedef struct daqiri_client {
    pid_t           pid; /* 0: nobody has it */
    struct in6_addr address;
    char            name[DAQIRI_NET_NAME_MAX];
    uint64_t        end_ns; /* when its time is over; later, when it is killed */
    int             is_told; /* that it is over */
} daqiri_client_t;

typedef struct daqiri_leaving {
    int      fd; /* -1: none */
    uint64_t end_ns;
} daqiri_leaving_t;

typedef struct daqiri_clients {
    /* in */
    const char     *speaker;
    size_t         count;           /* most clients at once */
    size_t         max_per_address;
    daqiri_quota_t quota;
    /* out */
    daqiri_client_t *list;
    size_t         running;
    uint64_t       taken;  /* clients, ever */
    int            last;   /* exit status of the last that has ended; 0 */
    uint64_t       failed; /* of those, and those that were refused */
    /* between */
    daqiri_leaving_t leaving[DAQIRI_CLIENTS_LEAVING];
    size_t         next_leaving;
    uint64_t       said_ns;
    uint64_t       unsaid;
} daqiri_clients_t;

/* Returns 0 or -1: no memory. */
int daqiri_clients_open(daqiri_clients_t *clients);
/* When nobody is there any more. */
void daqiri_clients_close(daqiri_clients_t *clients);

/* A place for who is at the other end, or -1 and a failure. */
int daqiri_clients_find(const daqiri_clients_t *clients, int fd,
                        daqiri_failure_t *failure);

/* Notes the process that serves it, which may stay until then. */
void daqiri_clients_note(daqiri_clients_t *clients, int place, int fd, pid_t pid,
                         uint64_t end_ns);

/* Tells the client, and the user, at most once a second; takes the
 * connection. */
void daqiri_clients_refuse(daqiri_clients_t *clients, int fd,
                           daqiri_failure_t *failure);

/* Something went wrong that is nobody's in particular: said, once a second. */
void daqiri_clients_say(daqiri_clients_t *clients, const char *text);

/* Children that have ended, time that is over, connections that can be closed.
 * To be called several times a second; does not wait. */
void daqiri_clients_look(daqiri_clients_t *clients);

/* Asks all to stop: a terminal has told them, too; kill(1) has not. */
void daqiri_clients_stop(const daqiri_clients_t *clients);

/* In the process of a client: what belongs to the others. */
void daqiri_clients_leave(daqiri_clients_t *clients);

#endif
