/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/peer/clients.h"

#include "tools/base/clock.h"
#include "tools/base/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS_SECOND_NS 1000000000ull

/* What a client has to end in, that was told that its time is over. */
#define CLIENTS_GRACE_NS (10 * CLIENTS_SECOND_NS)

int daqiri_clients_open(daqiri_clients_t *clients)
{
    size_t i;

    clients->list         = calloc(clients->count, sizeof(*clients->list));
    clients->quota.taken  = daqiri_quota_share(clients->count);
    clients->quota.places = clients->count;
    for (i = 0; i < DAQIRI_CLIENTS_LEAVING; ++i) {
        clients->leaving[i].fd = -1;
    }
    return ((clients->list == NULL) || (clients->quota.taken == NULL)) ? -1 : 0;
}

void daqiri_clients_close(daqiri_clients_t *clients)
{
    daqiri_clients_leave(clients);
    daqiri_quota_unshare(clients->quota.taken, clients->count);
    free(clients->list);
}

/* ---- who comes ---- */

/* All zero, if it cannot be had. */
static struct in6_addr clients_address(int fd)
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
static int clients_is_same(const struct in6_addr *a, const struct in6_addr *b)
{
    size_t length = (IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_LINKLOCAL(a) ||
                     IN6_IS_ADDR_LOOPBACK(a)) ? 16 : 8;

    return (memcmp(a, b, length) == 0) &&
           (IN6_IS_ADDR_V4MAPPED(a) == IN6_IS_ADDR_V4MAPPED(b));
}

int daqiri_clients_find(const daqiri_clients_t *clients, int fd,
                        daqiri_failure_t *failure)
{
    const struct in6_addr address = clients_address(fd);
    size_t same = 0;
    int free_one = -1;
    size_t i;

    for (i = 0; i < clients->count; ++i) {
        if (clients->list[i].pid == 0) {
            free_one = (free_one < 0) ? (int)i : free_one;
        } else {
            same += clients_is_same(&address, &clients->list[i].address);
        }
    }
    if (free_one < 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "this "
                           "server has its %zu clients, and takes no more "
                           "meanwhile (--max-clients)", clients->count);
    }
    if (same >= clients->max_per_address) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "this "
                           "server has %zu of %zu clients from this address, "
                           "and takes no more meanwhile (--max-per-address)",
                           same, clients->max_per_address);
    }
    return free_one;
}

void daqiri_clients_note(daqiri_clients_t *clients, int place, int fd, pid_t pid,
                         uint64_t end_ns)
{
    daqiri_client_t *noted = &clients->list[place];

    *noted = (daqiri_client_t){
        .pid     = pid,
        .address = clients_address(fd),
        .end_ns  = end_ns
    };
    daqiri_net_name(fd, 1, noted->name);
    ++clients->taken;
    ++clients->running;
}

/* ---- who is refused ---- */

void daqiri_clients_say(daqiri_clients_t *clients, const char *text)
{
    uint64_t now_ns = daqiri_now_ns();

    if ((clients->said_ns != 0) &&
        (now_ns - clients->said_ns < CLIENTS_SECOND_NS)) {
        ++clients->unsaid;
        return;
    }
    if (clients->unsaid > 0) {
        fprintf(stderr, "%s: %s (and %llu times before, unsaid)\n",
                clients->speaker, text, (unsigned long long)clients->unsaid);
    } else {
        fprintf(stderr, "%s: %s\n", clients->speaker, text);
    }
    clients->said_ns = now_ns;
    clients->unsaid  = 0;
}

void daqiri_clients_refuse(daqiri_clients_t *clients, int fd,
                           daqiri_failure_t *failure)
{
    daqiri_leaving_t *leaving = &clients->leaving[clients->next_leaving];
    char name[DAQIRI_NET_NAME_MAX];
    char text[sizeof(name) + sizeof(failure->text) + 32];

    snprintf(text, sizeof(text), "%s is refused: %s",
             daqiri_net_name(fd, 1, name), failure->text);
    daqiri_clients_say(clients, text);
    ++clients->failed;
    failure->stage = "control";
    daqiri_net_abort(fd, failure);
    shutdown(fd, SHUT_WR);
    if (leaving->fd >= 0) {
        close(leaving->fd);
    }
    leaving->fd     = fd;
    leaving->end_ns = daqiri_now_ns() + CLIENTS_SECOND_NS;
    clients->next_leaving = (clients->next_leaving + 1) % DAQIRI_CLIENTS_LEAVING;
}

/* Until it has heard us: it closes, or a second has passed. */
static void clients_see_off(daqiri_leaving_t *leaving, uint64_t now_ns)
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

static void clients_reap(daqiri_clients_t *clients)
{
    int status;
    pid_t pid;
    size_t i;

    while ((clients->running > 0) &&
           ((pid = waitpid(-1, &status, WNOHANG)) > 0)) {
        for (i = 0; i < clients->count; ++i) {
            if (clients->list[i].pid == pid) {
                clients->list[i].pid    = 0;
                clients->quota.taken[i] = 0;
            }
        }
        --clients->running;
        clients->last    = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        clients->failed += !WIFEXITED(status) || (WEXITSTATUS(status) != 0);
    }
}

static void clients_end(daqiri_clients_t *clients, daqiri_client_t *place,
                        uint64_t now_ns)
{
    if (place->is_told) {
        kill(place->pid, SIGKILL);
    } else {
        fprintf(stderr, "%s: %s has been here for as long as it may "
                "(--max-duration), and is asked to leave\n", clients->speaker,
                place->name);
        daqiri_stop_tell(place->pid);
    }
    place->is_told = 1;
    place->end_ns  = now_ns + CLIENTS_GRACE_NS;
}

void daqiri_clients_look(daqiri_clients_t *clients)
{
    uint64_t now_ns = daqiri_now_ns();
    size_t i;

    clients_reap(clients);
    for (i = 0; i < clients->count; ++i) {
        if ((clients->list[i].pid != 0) && (now_ns >= clients->list[i].end_ns)) {
            clients_end(clients, &clients->list[i], now_ns);
        }
    }
    for (i = 0; i < DAQIRI_CLIENTS_LEAVING; ++i) {
        if (clients->leaving[i].fd >= 0) {
            clients_see_off(&clients->leaving[i], now_ns);
        }
    }
}

void daqiri_clients_stop(const daqiri_clients_t *clients)
{
    size_t i;

    for (i = 0; i < clients->count; ++i) {
        if (clients->list[i].pid != 0) {
            daqiri_stop_tell(clients->list[i].pid);
        }
    }
}

void daqiri_clients_leave(daqiri_clients_t *clients)
{
    size_t i;

    for (i = 0; i < DAQIRI_CLIENTS_LEAVING; ++i) {
        if (clients->leaving[i].fd >= 0) {
            close(clients->leaving[i].fd);
        }
    }
}
