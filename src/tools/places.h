/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The clients of `daqiri serve` as its first process sees them: who has a place,
 * since when, and who is refused one. A place is a process.
 *
 * Who is refused is told why. A connection that is closed while there is
 * something to be read is reset, and the sentence may be lost with it; so it is
 * read for a second more, which costs a descriptor and no process.
 */

#ifndef DAQIRI_PLACES_H
#define DAQIRI_PLACES_H

#include "failure.h"
#include "net.h"
#include "quota.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DAQIRI_PLACES_LEAVING 32

typedef struct daqiri_place {
    pid_t           pid; /* 0: nobody has it */
    struct in6_addr address;
    char            name[DAQIRI_NET_NAME_MAX];
    uint64_t        end_ns; /* when its time is over; later, when it is killed */
    int             is_told; /* that it is over */
} daqiri_place_t;

typedef struct daqiri_leaving {
    int      fd; /* -1: none */
    uint64_t end_ns;
} daqiri_leaving_t;

typedef struct daqiri_places {
    /* in */
    const char     *speaker;
    size_t         count;           /* most clients at once */
    size_t         max_per_address;
    daqiri_quota_t quota;
    /* out */
    daqiri_place_t *list;
    size_t         running;
    uint64_t       taken;  /* clients, ever */
    uint64_t       failed; /* of those, and those that were refused */
    /* between */
    daqiri_leaving_t leaving[DAQIRI_PLACES_LEAVING];
    size_t         next_leaving;
    uint64_t       said_ns;
    uint64_t       unsaid;
} daqiri_places_t;

/* Returns 0 or -1: no memory. */
int daqiri_places_open(daqiri_places_t *places);
/* When nobody is there any more. */
void daqiri_places_close(daqiri_places_t *places);

/* A place for who is at the other end, or -1 and a failure. */
int daqiri_places_find(const daqiri_places_t *places, int fd,
                       daqiri_failure_t *failure);

/* Notes the process that serves it, which may stay until then. */
void daqiri_places_note(daqiri_places_t *places, int place, int fd, pid_t pid,
                        uint64_t end_ns);

/* Tells the client, and the user, at most once a second; takes the
 * connection. */
void daqiri_places_refuse(daqiri_places_t *places, int fd,
                          daqiri_failure_t *failure);

/* Something went wrong that is nobody's in particular: said, once a second. */
void daqiri_places_say(daqiri_places_t *places, const char *text);

/* Children that have ended, time that is over, connections that can be closed.
 * To be called several times a second; does not wait. */
void daqiri_places_look(daqiri_places_t *places);

/* Asks all to stop: a terminal has told them, too; kill(1) has not. */
void daqiri_places_stop(const daqiri_places_t *places);

/* In the process of a client: what belongs to the others. */
void daqiri_places_leave(daqiri_places_t *places);

#endif
