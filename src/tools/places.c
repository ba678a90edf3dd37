/* SPDX-License-Identifier: BSD-3-Clause */

#include "places.h"

#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES_SECOND_NS 1000000000ull

/* What a client has to end in, that was told that its time is over. */
#define PLACES_GRACE_NS (10 * PLACES_SECOND_NS)

int daqiri_places_open(daqiri_places_t *places)
{
    size_t i;

    places->list         = calloc(places->count, sizeof(*places->list));
    places->quota.taken  = daqiri_quota_share(places->count);
    places->quota.places = places->count;
    for (i = 0; i < DAQIRI_PLACES_LEAVING; ++i) {
        places->leaving[i].fd = -1;
    }
    return ((places->list == NULL) || (places->quota.taken == NULL)) ? -1 : 0;
}

void daqiri_places_close(daqiri_places_t *places)
{
    daqiri_places_leave(places);
    daqiri_quota_unshare(places->quota.taken, places->count);
    free(places->list);
}

/* ---- who comes ---- */

/* All zero, if it cannot be had. */
static struct in6_addr places_address(int fd)
{
    struct in6_addr address = {0};
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (getpeername(fd, (struct sockaddr*)&peer, &length) == 0) {
        daqiri_net_address((struct sockaddr*)&peer, &address);
    }
    return address;
}

/* A host has all addresses of its IPv6 network: that is one. A link-local network
 * has all hosts of a wire. */
static int places_is_same(const struct in6_addr *a, const struct in6_addr *b)
{
    size_t length = (IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_LINKLOCAL(a) ||
                     IN6_IS_ADDR_LOOPBACK(a)) ? 16 : 8;

    return (memcmp(a, b, length) == 0) &&
           (IN6_IS_ADDR_V4MAPPED(a) == IN6_IS_ADDR_V4MAPPED(b));
}

int daqiri_places_find(const daqiri_places_t *places, int fd,
                       daqiri_failure_t *failure)
{
    const struct in6_addr address = places_address(fd);
    size_t same = 0;
    int free_one = -1;
    size_t i;

    for (i = 0; i < places->count; ++i) {
        if (places->list[i].pid == 0) {
            free_one = (free_one < 0) ? (int)i : free_one;
        } else {
            same += places_is_same(&address, &places->list[i].address);
        }
    }
    if (free_one < 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "this "
                           "server has its %zu clients, and takes no more "
                           "meanwhile (-max-clients)", places->count);
    }
    if (same >= places->max_per_address) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "this "
                           "server has %zu of %zu clients from this address, "
                           "and takes no more meanwhile (-max-per-address)",
                           same, places->max_per_address);
    }
    return free_one;
}

void daqiri_places_note(daqiri_places_t *places, int place, int fd, pid_t pid,
                        uint64_t end_ns)
{
    daqiri_place_t *noted = &places->list[place];

    *noted = (daqiri_place_t){
        .pid     = pid,
        .address = places_address(fd),
        .end_ns  = end_ns
    };
    daqiri_net_name(fd, 1, noted->name);
    ++places->taken;
    ++places->running;
}

/* ---- who is refused ---- */

void daqiri_places_say(daqiri_places_t *places, const char *text)
{
    uint64_t now_ns = daqiri_now_ns();

    if ((places->said_ns != 0) &&
        (now_ns - places->said_ns < PLACES_SECOND_NS)) {
        ++places->unsaid;
        return;
    }
    if (places->unsaid > 0) {
        fprintf(stderr, "%s: %s (and %llu times before, unsaid)\n",
                places->speaker, text, (unsigned long long)places->unsaid);
    } else {
        fprintf(stderr, "%s: %s\n", places->speaker, text);
    }
    places->said_ns = now_ns;
    places->unsaid  = 0;
}

void daqiri_places_refuse(daqiri_places_t *places, int fd,
                          daqiri_failure_t *failure)
{
    daqiri_leaving_t *leaving = &places->leaving[places->next_leaving];
    char name[DAQIRI_NET_NAME_MAX];
    char text[sizeof(name) + sizeof(failure->text) + 32];

    snprintf(text, sizeof(text), "%s is refused: %s",
             daqiri_net_name(fd, 1, name), failure->text);
    daqiri_places_say(places, text);
    ++places->failed;
    failure->stage = "control";
    daqiri_net_abort(fd, failure);
    shutdown(fd, SHUT_WR);
    if (leaving->fd >= 0) {
        close(leaving->fd);
    }
    leaving->fd     = fd;
    leaving->end_ns = daqiri_now_ns() + PLACES_SECOND_NS;
    places->next_leaving = (places->next_leaving + 1) % DAQIRI_PLACES_LEAVING;
}

/* Until it has heard us: it closes, or a second has passed. */
static void places_see_off(daqiri_leaving_t *leaving, uint64_t now_ns)
{
    char bytes[4096];
    ssize_t got;

    do {
        got = recv(leaving->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    } while ((got > 0) && (daqiri_now_ns() < leaving->end_ns));
    if ((got == 0) || ((got < 0) && (errno != EAGAIN) && (errno != EINTR)) ||
        (now_ns >= leaving->end_ns)) {
        close(leaving->fd);
        leaving->fd = -1;
    }
}

/* ---- who goes ---- */

static void places_reap(daqiri_places_t *places)
{
    int status;
    pid_t pid;
    size_t i;

    while ((places->running > 0) &&
           ((pid = waitpid(-1, &status, WNOHANG)) > 0)) {
        for (i = 0; i < places->count; ++i) {
            if (places->list[i].pid == pid) {
                places->list[i].pid    = 0;
                places->quota.taken[i] = 0;
            }
        }
        --places->running;
        places->failed += !WIFEXITED(status) || (WEXITSTATUS(status) != 0);
    }
}

static void places_end(daqiri_places_t *places, daqiri_place_t *place,
                       uint64_t now_ns)
{
    if (place->is_told) {
        kill(place->pid, SIGKILL);
    } else {
        fprintf(stderr, "%s: %s has been here for as long as it may "
                "(-max-duration), and is asked to leave\n", places->speaker,
                place->name);
        daqiri_stop_tell(place->pid);
    }
    place->is_told = 1;
    place->end_ns  = now_ns + PLACES_GRACE_NS;
}

void daqiri_places_look(daqiri_places_t *places)
{
    uint64_t now_ns = daqiri_now_ns();
    size_t i;

    places_reap(places);
    for (i = 0; i < places->count; ++i) {
        if ((places->list[i].pid != 0) && (now_ns >= places->list[i].end_ns)) {
            places_end(places, &places->list[i], now_ns);
        }
    }
    for (i = 0; i < DAQIRI_PLACES_LEAVING; ++i) {
        if (places->leaving[i].fd >= 0) {
            places_see_off(&places->leaving[i], now_ns);
        }
    }
}

void daqiri_places_stop(const daqiri_places_t *places)
{
    size_t i;

    for (i = 0; i < places->count; ++i) {
        if (places->list[i].pid != 0) {
            daqiri_stop_tell(places->list[i].pid);
        }
    }
}

void daqiri_places_leave(daqiri_places_t *places)
{
    size_t i;

    for (i = 0; i < DAQIRI_PLACES_LEAVING; ++i) {
        if (places->leaving[i].fd >= 0) {
            close(places->leaving[i].fd);
        }
    }
}
