/* SPDX-License-Identifier: BSD-3-Clause */

#include "flow.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int flow_device_is_in(const char *list, const char *device)
{
    size_t length;

    for (; list != NULL; list += length + 1) {
        length = strcspn(list, ",");
        if ((length == strlen(device)) &&
            (memcmp(list, device, length) == 0)) {
            return 1;
        }
        if (list[length] == '\0') {
            return 0;
        }
    }
    return 1;
}

/* As an address of IPv6, which every one of IPv4 can be written as. Returns 0,
 * or -1 if it is of another family. */
static int device_address(const struct sockaddr *address,
                          struct in6_addr *ip)
{
    if (address->sa_family == AF_INET6) {
        *ip = ((const struct sockaddr_in6*)address)->sin6_addr;
        return 0;
    }
    if (address->sa_family != AF_INET) {
        return -1;
    }
    memset(ip, 0, sizeof(*ip));
    memset(&ip->s6_addr[10], 0xff, 2);
    memcpy(&ip->s6_addr[12],
           &((const struct sockaddr_in*)address)->sin_addr, 4);
    return 0;
}

int flow_device_of_socket(int fd, char *device)
{
    struct sockaddr_storage mine;
    socklen_t length = sizeof(mine);
    struct ifaddrs *list, *i;
    struct in6_addr ip, other;

    if ((getsockname(fd, (struct sockaddr*)&mine, &length) != 0) ||
        (device_address((const struct sockaddr*)&mine, &ip) != 0) ||
        (getifaddrs(&list) != 0)) {
        return -1;
    }
    for (i = list; i != NULL; i = i->ifa_next) {
        if ((i->ifa_addr != NULL) &&
            (device_address(i->ifa_addr, &other) == 0) &&
            (memcmp(&ip, &other, sizeof(ip)) == 0)) {
            snprintf(device, FLOW_DEVICE_MAX, "%.*s", IF_NAMESIZE,
                     i->ifa_name);
            break;
        }
    }
    freeifaddrs(list);
    return (i != NULL) ? 0 : -1;
}
