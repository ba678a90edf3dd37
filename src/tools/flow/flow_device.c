/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/flow/flow.h"
#include "tools/peer/net.h"

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

int flow_device_of_socket(int fd, char *device)
{
    struct sockaddr_storage mine;
    socklen_t length = sizeof(mine);
    struct ifaddrs *list, *i;
    struct in6_addr ip, other;

    if ((getsockname(fd, (struct sockaddr*)&mine, &length) != 0) ||
        (daqiri_net_address((const struct sockaddr*)&mine, &ip) != 0) ||
        (getifaddrs(&list) != 0)) {
        return -1;
    }
    for (i = list; i != NULL; i = i->ifa_next) {
        if ((i->ifa_addr != NULL) &&
            (daqiri_net_address(i->ifa_addr, &other) == 0) &&
            (memcmp(&ip, &other, sizeof(ip)) == 0)) {
            snprintf(device, FLOW_DEVICE_MAX, "%.*s", IF_NAMESIZE,
                     i->ifa_name);
            break;
        }
    }
    freeifaddrs(list);
    return (i != NULL) ? 0 : -1;
}
