/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One interface, the hub, with COUNT endpoints, each to an interface of its own.
 *
 *     many DEVICE streams COUNT ROUNDS SIZE
 *
 * All of these send to the hub at once, each ROUNDS messages of SIZE bytes. Prints how
 * many it has received in a second (`contrib/bench streams`).
 *
 *     many DEVICE COUNT ROUNDS
 *
 * What connections cost that are not used. callgrind counts the instructions of the
 * functions measured_*(), and writes one file for each of them and each of three batches
 * of rounds (`contrib/bench many`).
 *
 * The peers are in processes of their own, which valgrind does not see, because softverbs
 * has CQs for some 1,300 interfaces of a process. They do what the hub tells them, one
 * thing at a time, and answer when it is done:
 *
 *     many DEVICE peers COUNT
 *
 *     hub ADDRESS ADDRESS     prints the addresses of all interfaces
 *     connect N               to the hub, with a message
 *     send N                  a message to the hub, which has it when the answer comes
 *     take N                  progress, until the hub's message is there
 *     stream ROUNDS SIZE      all of them, to the hub
 */
#include <uct/api/uct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum {
    AM_ID       = 1,
    MDS_MAX     = 32,
    ADDRESS_MAX = 64,  /* bytes                                              */
    SETTLE      = 64,  /* progress calls after which nothing is under way    */
    REST        = 4,   /* seconds after which the transport has asked what became
                          of the messages of connections that rest           */
    SOME        = 16,  /* peers that send                                    */
    BATCHES     = 3,   /* of all rounds                                      */
    PROCESS     = 1024, /* interfaces of a process of peers                  */
    LINE   = 4 * ADDRESS_MAX + 32
};

typedef struct {
    uct_iface_h iface;
    uct_ep_h    ep;    /* of a peer: to the hub; else: the hub's, to it      */
    unsigned    got;
    size_t      dev_length, addr_length;
    uint8_t     dev[ADDRESS_MAX], addr[ADDRESS_MAX];
} end_t;

static const char *device;
static ucs_async_context_t *async;
static uct_worker_h worker;
static uct_md_h md;


static void need(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "many: %s failed\n", what);
        exit(1);
    }
}


/* ---- Opening ---- */

static int open_md(uct_component_h component, const char *name)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned count, i;
    int found = 0;

    need(uct_md_config_read(component, NULL, NULL, &config) == UCS_OK,
         "uct_md_config_read()");
    if (uct_md_open(component, name, config, &md) != UCS_OK) {
        md = NULL;
    }
    uct_config_release(config);
    if (md == NULL) {
        return 0;
    }
    need(uct_md_query_tl_resources(md, &tls, &count) == UCS_OK,
         "uct_md_query_tl_resources()");
    for (i = 0; i < count; i++) {
        found |= (strcmp(tls[i].tl_name, "daqiri") == 0) &&
                 (strcmp(tls[i].dev_name, device) == 0);
    }
    uct_release_tl_resource_list(tls);
    if (!found) {
        uct_md_close(md);
    }
    return found;
}


static int open_component(uct_component_h component)
{
    uct_md_resource_desc_t mds[MDS_MAX];
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    unsigned i;

    need(uct_component_query(component, &attr) == UCS_OK, "uct_component_query()");
    if (attr.md_resource_count > MDS_MAX) {
        return 0;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = mds;
    need(uct_component_query(component, &attr) == UCS_OK, "uct_component_query()");
    for (i = 0; i < attr.md_resource_count; i++) {
        if (open_md(component, mds[i].md_name)) {
            return 1;
        }
    }
    return 0;
}


static void open_device(void)
{
    uct_component_h *components;
    unsigned count, i;

    need(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async) == UCS_OK,
         "ucs_async_context_create()");
    need(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker) == UCS_OK,
         "uct_worker_create()");
    need(uct_query_components(&components, &count) == UCS_OK,
         "uct_query_components()");
    for (i = 0; (i < count) && !open_component(components[i]); i++) {
    }
    need(i < count, "to find daqiri on that device");
    uct_release_component_list(components);
}


static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    end_t *end = arg;

    (void)data;
    (void)length;
    (void)flags;
    end->got++;
    return UCS_OK;
}


static void open_end(end_t *end)
{
    const uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = "daqiri",
        .mode.device.dev_name = device,
    };
    uct_iface_config_t *config;
    uct_iface_attr_t attr;

    need(uct_md_iface_config_read(md, "daqiri", NULL, NULL, &config) == UCS_OK,
         "uct_md_iface_config_read()");
    need(uct_iface_open(md, worker, &params, config, &end->iface) == UCS_OK,
         "uct_iface_open()");
    uct_config_release(config);
    need(uct_iface_query(end->iface, &attr) == UCS_OK, "uct_iface_query()");
    need((attr.device_addr_len <= ADDRESS_MAX) && (attr.iface_addr_len <= ADDRESS_MAX),
         "to keep an address");
    end->dev_length  = attr.device_addr_len;
    end->addr_length = attr.iface_addr_len;
    need(uct_iface_get_device_address(end->iface, (void *)end->dev) == UCS_OK,
         "uct_iface_get_device_address()");
    need(uct_iface_get_address(end->iface, (void *)end->addr) == UCS_OK,
         "uct_iface_get_address()");
    need(uct_iface_set_am_handler(end->iface, AM_ID, on_message, end, 0) == UCS_OK,
         "uct_iface_set_am_handler()");
    uct_iface_progress_enable(end->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}


static uct_ep_h connect_to(end_t *from, end_t *to)
{
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = from->iface,
        .dev_addr   = (void *)to->dev,
        .iface_addr = (void *)to->addr,
    };
    uct_ep_h ep;

    need(uct_ep_create(&params, &ep) == UCS_OK, "uct_ep_create()");
    return ep;
}


/* ---- Messages ---- */

static void send_word(end_t *from, uct_ep_h ep)
{
    uint64_t word = 1;

    while (uct_ep_am_short(ep, AM_ID, 1, &word, sizeof(word)) == UCS_ERR_NO_RESOURCE) {
        uct_iface_progress(from->iface);
    }
}


static void settle(end_t *end)
{
    unsigned i;

    for (i = 0; i < SETTLE; i++) {
        uct_iface_progress(end->iface);
    }
}


/* ---- A process of peers ---- */

static void print_hex(FILE *to, const uint8_t *bytes, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++) {
        fprintf(to, "%02x", bytes[i]);
    }
    putc(' ', to);
}


static void scan_hex(const char *text, uint8_t bytes[ADDRESS_MAX])
{
    unsigned i, byte;

    for (i = 0; (i < ADDRESS_MAX) && (sscanf(text + 2 * i, "%2x", &byte) == 1); i++) {
        bytes[i] = byte;
    }
}


static void print_address(FILE *to, const end_t *end)
{
    print_hex(to, end->dev, end->dev_length);
    print_hex(to, end->addr, end->addr_length);
    putc('\n', to);
}


static int scan_address(const char *line, end_t *end)
{
    char dev[2 * ADDRESS_MAX + 1], addr[2 * ADDRESS_MAX + 1];

    if (sscanf(line, "%128s %128s", dev, addr) != 2) {
        return 0;
    }
    scan_hex(dev, end->dev);
    scan_hex(addr, end->addr);
    return 1;
}


/* In softverbs a message has been received when its sender knows that it is sent. */
static void send_all_out(end_t *peer)
{
    send_word(peer, peer->ep);
    while (uct_iface_flush(peer->iface, 0, NULL) != UCS_OK) {
        uct_iface_progress(peer->iface);
    }
}


static size_t pack(void *to, void *arg)
{
    size_t length = *(size_t *)arg;

    memset(to, 1, length);
    return length;
}


/* All take turns. Who may not send now loses its turn. */
static void stream_all(end_t *peer, unsigned count, unsigned rounds, size_t size)
{
    unsigned *left = calloc(count, sizeof(*left)), busy = count, i;

    need(left != NULL, "calloc()");
    for (i = 0; i < count; i++) {
        left[i] = rounds;
    }
    while (busy > 0) {
        for (i = 0; i < count; i++) {
            if ((left[i] > 0) &&
                (uct_ep_am_bcopy(peer[i].ep, AM_ID, pack, &size, 0) >= 0)) {
                busy -= --left[i] == 0;
            }
            uct_iface_progress(peer[i].iface);
        }
    }
    free(left);
}


static void obey(const char *line, end_t *hub, end_t *peer, unsigned count)
{
    unsigned i;
    size_t size;

    if (strncmp(line, "hub ", 4) == 0) {
        need(scan_address(line + 4, hub), "to read an address");
        for (i = 0; i < count; i++) {
            print_address(stdout, &peer[i]);
        }
    } else if ((sscanf(line, "connect %u", &i) == 1) && (i < count)) {
        peer[i].ep = connect_to(&peer[i], hub);
        send_all_out(&peer[i]);
        puts("done");
    } else if ((sscanf(line, "send %u", &i) == 1) && (i < count)) {
        send_all_out(&peer[i]);
        puts("done");
    } else if ((sscanf(line, "take %u", &i) == 1) && (i < count)) {
        while (peer[i].got == 0) {
            uct_iface_progress(peer[i].iface);
        }
        peer[i].got = 0;
        settle(&peer[i]);
        puts("done");
    } else if (sscanf(line, "stream %u %zu", &i, &size) == 2) {
        stream_all(peer, count, i, size);
        puts("done");
    } else {
        need(0, "to understand the hub");
    }
    fflush(stdout);
}


static int run_peers(unsigned count)
{
    end_t hub = {0}, *peer = calloc(count, sizeof(*peer));
    char line[LINE];
    unsigned i;

    need(peer != NULL, "calloc()");
    open_device();
    for (i = 0; i < count; i++) {
        open_end(&peer[i]);
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        obey(line, &hub, peer, count);
    }
    _exit(0); /* to close a thousand interfaces takes long */
}


/* ---- The hub's side of it ---- */

static FILE *start_process(const char *self, unsigned count)
{
    char number[16];
    int pair[2];
    FILE *to;

    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair()");
    snprintf(number, sizeof(number), "%u", count);
    switch (fork()) {
    case -1:
        need(0, "fork()");
        break;
    case 0:
        dup2(pair[1], STDIN_FILENO);
        dup2(pair[1], STDOUT_FILENO);
        close(pair[0]);
        close(pair[1]);
        execl(self, self, device, "peers", number, (char *)NULL);
        _exit(127);
    default:
        break;
    }
    close(pair[1]);
    to = fdopen(pair[0], "r+");
    need(to != NULL, "fdopen()");
    return to;
}


static void hear(FILE *from, char line[LINE])
{
    need(fgets(line, LINE, from) != NULL, "a process of peers");
}


/* Has peer number i do it, and waits until it is done. */
static void tell(FILE **process, const char *what, unsigned i)
{
    FILE *to = process[i / PROCESS];
    char line[LINE];

    fprintf(to, "%s %u\n", what, i % PROCESS);
    fflush(to);
    hear(to, line);
}


/* Its addresses are those of the peers from number first on. */
static void learn(FILE *process, const end_t *hub, end_t *peer, unsigned count)
{
    char line[LINE];
    unsigned i;

    fputs("hub ", process);
    print_address(process, hub);
    fflush(process);
    for (i = 0; i < count; i++) {
        hear(process, line);
        need(scan_address(line, &peer[i]), "to read an address");
    }
}


/* ---- What is measured: all that these call, and nothing else ---- */

__attribute__((noinline)) void measured_idle(end_t *hub)
{
    uct_iface_progress(hub->iface);
}


__attribute__((noinline)) ucs_status_t measured_send(end_t *hub, uct_ep_h ep)
{
    uint64_t word       = 1;
    ucs_status_t status = uct_ep_am_short(ep, AM_ID, 1, &word, sizeof(word));

    uct_iface_progress(hub->iface);
    return status;
}


__attribute__((noinline)) void measured_receive(end_t *hub)
{
    uct_iface_progress(hub->iface);
}


/* ---- The rounds ---- */

/* One message each way on each connection. */
static void connect_all(FILE **process, end_t *hub, end_t *peer, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        peer[i].ep = connect_to(hub, &peer[i]);
    }
    for (i = 0; i < count; i++) {
        send_word(hub, peer[i].ep);
        tell(process, "connect", i);
        tell(process, "take", i);
        settle(hub);
    }
    need(hub->got == count, "to receive from each peer");
}


static double seconds(void)
{
    struct timespec now;

    need(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock_gettime()");
    return now.tv_sec + now.tv_nsec * 1e-9;
}


static void rest(end_t *hub)
{
    double end = seconds() + REST;

    while (seconds() < end) {
        settle(hub);
    }
}


static void idle_rounds(end_t *hub, unsigned rounds)
{
    unsigned i;

    for (i = 0; i < rounds; i++) {
        measured_idle(hub);
    }
}


static void send_rounds(FILE **process, end_t *hub, const end_t *peer, unsigned rounds)
{
    unsigned i;

    for (i = 0; i < rounds; i++) {
        need(measured_send(hub, peer->ep) == UCS_OK, "to send at once");
        tell(process, "take", 0);
        settle(hub);
    }
}


/* One by chance, of 16 that lie anywhere among all. So each of them gets as many messages
 * as with 16 endpoints, and the windows of all are alike. */
static unsigned one_of_some(unsigned i, unsigned count)
{
    unsigned some = (count < SOME) ? count : SOME;

    return (i * 2654435761u >> 7) % some * (count / some);
}


static void receive_rounds(FILE **process, end_t *hub, unsigned count, unsigned rounds)
{
    unsigned before, i;

    for (i = 0; i < rounds; i++) {
        before = hub->got;
        tell(process, "send", one_of_some(i, count));
        measured_receive(hub);
        need(hub->got == before + 1, "to receive at once");
        settle(hub);
    }
}


/* Starts the processes, and connects. */
static FILE **open_all(const char *self, end_t *hub, end_t *peer, unsigned count)
{
    unsigned processes = (count + PROCESS - 1) / PROCESS, size, i;
    FILE **process     = calloc(processes, sizeof(*process));

    need((process != NULL) && (peer != NULL), "calloc()");
    for (i = 0; i < processes; i++) {
        size       = count - i * PROCESS;
        process[i] = start_process(self, (size < PROCESS) ? size : PROCESS);
    }
    open_device();
    open_end(hub);
    for (i = 0; i < processes; i++) {
        size = count - i * PROCESS;
        learn(process[i], hub, &peer[i * PROCESS], (size < PROCESS) ? size : PROCESS);
    }
    connect_all(process, hub, peer, count);
    return process;
}


/* The first message of all begins the time. */
static int run_streams(const char *self, unsigned count, unsigned rounds, size_t size)
{
    end_t hub = {0}, *peer = calloc(count, sizeof(*peer));
    FILE **process = open_all(self, &hub, peer, count);
    double begin;
    unsigned i;

    hub.got = 0;
    for (i = 0; i * PROCESS < count; i++) {
        fprintf(process[i], "stream %u %zu\n", rounds, size);
        fflush(process[i]);
    }
    while (hub.got == 0) {
        uct_iface_progress(hub.iface);
    }
    begin = seconds();
    while (hub.got < count * rounds) {
        settle(&hub);
    }
    printf("%.0f\n", count * rounds / (seconds() - begin));
    fflush(stdout);
    _exit(0);
}


static int run_hub(const char *self, unsigned count, unsigned rounds)
{
    end_t hub = {0}, *peer = calloc(count, sizeof(*peer));
    FILE **process = open_all(self, &hub, peer, count);
    unsigned i;

    rest(&hub);
    for (i = 0; i < BATCHES; i++) {
        idle_rounds(&hub, rounds);
        CALLGRIND_DUMP_STATS_AT("idle");
        send_rounds(process, &hub, &peer[0], rounds);
        CALLGRIND_DUMP_STATS_AT("send");
        receive_rounds(process, &hub, count, rounds);
        CALLGRIND_DUMP_STATS_AT("receive");
    }
    printf("%u connected, %u rounds\n", count, rounds);
    fflush(stdout);
    _exit(0);
}


int main(int argc, char **argv)
{
    if ((argc != 4) && (argc != 6)) {
        fprintf(stderr, "many: contrib/bench many and streams run this\n");
        return 2;
    }
    device = argv[1];
    if (argc == 6) {
        return run_streams(argv[0], strtoul(argv[3], NULL, 10),
                           strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10));
    }
    return (strcmp(argv[2], "peers") == 0)
                   ? run_peers(strtoul(argv[3], NULL, 10))
                   : run_hub(argv[0], strtoul(argv[2], NULL, 10),
                             strtoul(argv[3], NULL, 10));
}
