/* SPDX-License-Identifier: BSD-3-Clause */
#include "storm.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

storm_t storm;

static const char usage[] =
    "storm [--ranks N] [--seed N] [--messages N] [--rma N] [--amo N]\n"
    "      [--largest BYTES]\n"
    "\n"
    "N processes exchange checked messages, all to all, over UCP. Each sends\n"
    "to each, itself included, that many tagged messages and as many active\n"
    "ones, and does that many one-sided and atomic operations.\n";


/* ---- What went wrong ---- */

void storm_fail(int line, const char *what)
{
    fprintf(stderr, "storm: rank %u: not so: %s (%d)\n", storm.rank, what,
            line);
    _exit(1);
}


static uint64_t storm_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
}


/* The first one is said; then there is some time for UCX to say why. */
int storm_is_ok(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (storm.failed == 0)) {
        fprintf(stderr, "storm: rank %u: %s: %s\n", storm.rank, what,
                ucs_status_string(status));
        storm.failed = storm_now_ms();
    }
    return status == UCS_OK;
}


void storm_check(ucs_status_t status, const char *what)
{
    if (!storm_is_ok(status, what)) {
        _exit(1);
    }
}


/* UCX may refuse one at once, when it has said why. */
void storm_must_start(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_ERR(request)) {
        storm_check(UCS_PTR_STATUS(request), "a request is started");
    }
    STORM_MUST(UCS_PTR_IS_PTR(request));
}


/* ---- Messages ---- */

static uint64_t storm_key(storm_kind_t kind, unsigned from, unsigned to,
                          uint32_t number)
{
    t_rng_t rng = {.state = storm.options.seed};

    rng.state = t_rng_next(&rng) + (((uint64_t)number << 16) | (kind << 8) |
                                    (from << 4) | to);
    return t_rng_next(&rng);
}


/* Most are small, some are for rendezvous, and edges are frequent. */
size_t storm_length(storm_kind_t kind, unsigned from, unsigned to,
                    uint32_t number)
{
    static const size_t edges[] = {0,    1,    8,     120,   127,    128,
                                   4096, 8191, 8192,  8200,  8252,   8256,
                                   8257, 16384, 65536, 131072, 262144};
    enum { EDGES = sizeof(edges) / sizeof(edges[0]) };
    t_rng_t rng = {.state = storm_key(kind, from, to, number)};
    size_t most = storm_min(storm.options.largest,
                          (kind == STORM_RMA) ? STORM_SLOT : STORM_MAX);
    unsigned dice = t_rng_below(&rng, 100);
    size_t length;

    length = (dice < 50) ? t_rng_below(&rng, 128) :
             (dice < 80) ? t_rng_below(&rng, 8300) :
             (dice < 90) ? edges[t_rng_below(&rng, EDGES)] :
             (dice < 98) ? t_rng_below(&rng, 65536) :
                           t_rng_below(&rng, STORM_MAX);
    length = storm_min(length, most);
    return ((length == 0) && (kind == STORM_RMA)) ? 1 : length;
}


/* Bytes that depend on all of what they are for. */
static uint64_t storm_word(uint64_t key, size_t index)
{
    uint64_t x = key + index * UINT64_C(0x9e3779b97f4a7c15);

    return (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}


void storm_fill(void *data, size_t length, storm_kind_t kind, unsigned from,
                unsigned to, uint32_t number)
{
    uint64_t key = storm_key(kind, from, to, number) + length;
    uint64_t word;
    size_t i;

    for (i = 0; i < length; i += sizeof(word)) {
        word = storm_word(key, i);
        memcpy((uint8_t*)data + i, &word, storm_min(length - i, sizeof(word)));
    }
}


void storm_verify(const void *data, size_t length, storm_kind_t kind,
                  unsigned from, unsigned to, uint32_t number)
{
    uint64_t key = storm_key(kind, from, to, number) + length;
    uint64_t word;
    size_t i;

    for (i = 0; i < length; i += sizeof(word)) {
        word = storm_word(key, i);
        if (memcmp((const uint8_t*)data + i, &word,
                   storm_min(length - i, sizeof(word))) != 0) {
            fprintf(stderr, "storm: rank %u: wrong data: kind %d from %u to "
                    "%u, number %u, %zu bytes, near byte %zu\n", storm.rank,
                    kind, from, to, number, length, i);
            _exit(1);
        }
    }
    storm.messages++;
    storm.bytes += length;
}


storm_op_t *storm_op_get(storm_peer_t *peer, storm_kind_t kind,
                         uint32_t number, size_t length)
{
    storm_op_t *op = malloc(sizeof(*op));

    STORM_MUST(op != NULL);
    *op = (storm_op_t){
        .peer   = peer,
        .kind   = kind,
        .number = number,
        .length = length,
        .data   = malloc(length + 1),
    };
    STORM_MUST(op->data != NULL);
    return op;
}


void storm_op_put(storm_op_t *op)
{
    /* whoever still reads from here reads this */
    memset(op->data, 0xdd, op->length);
    free(op->data);
    free(op);
}


/* ---- Together ---- */

void storm_progress(void)
{
    if ((storm.failed != 0) &&
        (storm_now_ms() - storm.failed > STORM_LAST_WORDS_MS)) {
        _exit(1);
    }
    storm_flush_puts();
    if (ucp_worker_progress(storm.worker) == 0) {
        sched_yield();
    }
}


static void storm_barrier(void)
{
    storm.phase++;
    __atomic_add_fetch(&storm.shared->arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&storm.shared->arrived, __ATOMIC_ACQUIRE) <
           storm.phase * storm.options.ranks) {
        storm_progress();
    }
}


static void storm_publish(void)
{
    storm_shared_t *shared = storm.shared;
    unsigned rank          = storm.rank;
    ucp_address_t *address;
    void *key;

    storm_check(ucp_worker_get_address(storm.worker, &address,
                                       &shared->address_length[rank]),
                "ucp_worker_get_address");
    STORM_MUST(shared->address_length[rank] <= STORM_ADDRESS);
    memcpy(shared->address[rank], address, shared->address_length[rank]);
    ucp_worker_release_address(storm.worker, address);

    storm_check(ucp_rkey_pack(storm.context, storm.memory, &key,
                              &shared->key_length[rank]), "ucp_rkey_pack");
    STORM_MUST(shared->key_length[rank] <= STORM_ADDRESS);
    memcpy(shared->key[rank], key, shared->key_length[rank]);
    ucp_rkey_buffer_release(key);
    shared->window[rank] = (uintptr_t)storm.window;
}


static void storm_open(void)
{
    static const size_t bytes = STORM_RANKS * (STORM_SLOT + sizeof(uint64_t));
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA |
                      UCP_FEATURE_AMO64,
    };
    const ucp_worker_params_t worker = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = bytes,
    };

    storm.window = calloc(1, bytes);
    STORM_MUST(storm.window != NULL);
    map.address = storm.window;
    storm_check(ucp_init(&params, NULL, &storm.context), "ucp_init");
    storm_check(ucp_worker_create(storm.context, &worker, &storm.worker),
                "ucp_worker_create");
    storm_check(ucp_mem_map(storm.context, &map, &storm.memory),
                "ucp_mem_map");
    storm_traffic_init();
    storm_publish();
}


static void storm_connect(void)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
    };
    storm_peer_t *peer;
    unsigned i;

    for (i = 0; i < storm.options.ranks; i++) {
        /* each begins with another one */
        peer           = &storm.peer[(storm.rank + i) % storm.options.ranks];
        params.address = (const ucp_address_t*)
                storm.shared->address[peer->rank];
        storm_check(ucp_ep_create(storm.worker, &params, &peer->ep),
                    "ucp_ep_create");
        storm_check(ucp_ep_rkey_unpack(peer->ep,
                                       storm.shared->key[peer->rank],
                                       &peer->key), "ucp_ep_rkey_unpack");
    }
}


static void storm_wait(ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        storm_check(UCS_PTR_STATUS(request), what);
        return;
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        storm_progress();
    }
    ucp_request_free(request);
    storm_check(status, what);
}


/* Nothing may be under way when the first one closes. */
static void storm_close(void)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned i;

    storm_wait(ucp_worker_flush_nbx(storm.worker, &param), "the last flush");
    storm_barrier();
    for (i = 0; i < storm.options.ranks; i++) {
        ucp_rkey_destroy(storm.peer[i].key);
        storm_wait(ucp_ep_close_nbx(storm.peer[i].ep, &param),
                   "an endpoint is closed");
    }
    storm_barrier();
    storm_check(ucp_mem_unmap(storm.context, storm.memory), "ucp_mem_unmap");
    ucp_worker_destroy(storm.worker);
    ucp_cleanup(storm.context);
    storm_traffic_cleanup();
    free(storm.window);
}


static void storm_rank(void)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", storm.rank);
    STORM_MUST(setenv("SOFTVERBS_PROCESS", number, 1) == 0);
    storm.rng.state = storm.options.seed * STORM_RANKS + storm.rank;
    storm_open();
    storm_barrier();
    storm_connect();
    storm_traffic();
    storm.shared->messages[storm.rank] = storm.messages;
    storm.shared->bytes[storm.rank]    = storm.bytes;
    storm_barrier();
    storm_close();
}


/* ---- The parent ---- */

static void storm_say_how(int status)
{
    fprintf(stderr, "storm: a process ended with %s %d\n",
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}


/* Its number may soon be somebody else's. */
static void storm_forget(pid_t *pids, pid_t pid)
{
    unsigned i;

    for (i = 0; i < storm.options.ranks; i++) {
        pids[i] = (pids[i] == pid) ? 0 : pids[i];
    }
}


/* Others that fail of it, or before it, may say what they know. */
static unsigned storm_wait_grace(pid_t *pids, unsigned left)
{
    uint64_t end = storm_now_ms() + 2 * STORM_LAST_WORDS_MS;
    pid_t pid;

    while ((left > 0) && (storm_now_ms() < end)) {
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid > 0) {
            storm_forget(pids, pid);
            left--;
        } else {
            usleep(10000);
        }
    }
    return left;
}


/* One that fails takes the others with it: they would wait for it. */
static int storm_wait_all(pid_t *pids)
{
    unsigned left = storm.options.ranks, i;
    int failed    = 0;
    int status;
    pid_t pid;

    while (left > 0) {
        pid = wait(&status);
        if (pid < 0) {
            return 1;
        }
        storm_forget(pids, pid);
        left--;
        if ((status != 0) && !failed) {
            failed = 1;
            storm_say_how(status);
            left = storm_wait_grace(pids, left);
            for (i = 0; i < storm.options.ranks; i++) {
                if (pids[i] != 0) {
                    kill(pids[i], SIGKILL);
                }
            }
        }
    }
    return failed;
}


static int storm_run(void)
{
    uint64_t messages = 0, bytes = 0;
    pid_t pids[STORM_RANKS];
    unsigned i;

    storm.shared = mmap(NULL, sizeof(*storm.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (storm.shared == MAP_FAILED) {
        perror("storm: mmap");
        return 1;
    }
    for (i = 0; i < storm.options.ranks; i++) {
        pids[i] = fork();
        STORM_MUST(pids[i] >= 0);
        if (pids[i] == 0) {
            storm.rank = i;
            storm_rank();
            exit(0);
        }
    }
    if (storm_wait_all(pids)) {
        return 1;
    }
    for (i = 0; i < storm.options.ranks; i++) {
        messages += storm.shared->messages[i];
        bytes    += storm.shared->bytes[i];
    }
    printf("storm: %u ranks, %" PRIu64 " messages, %" PRIu64 " bytes, all as "
           "sent\n", storm.options.ranks, messages, bytes);
    return 0;
}


static int storm_read_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"messages", required_argument, NULL, 'm'},
        {"rma", required_argument, NULL, 'r'},
        {"amo", required_argument, NULL, 'a'},
        {"largest", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    storm_options_t *to = &storm.options;
    uint64_t value;
    char *end;
    int c;

    *to = (storm_options_t){2, 1, {1000, 1000, 100, 0}, STORM_MAX};
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if ((c == '?') || (c == 'h')) {
            return -1;
        }
        errno = 0;
        value = strtoull(optarg, &end, 0);
        if ((errno != 0) || (end == optarg) || (*end != '\0')) {
            return -1;
        }
        switch (c) {
        case 'n':
            to->ranks = value;
            break;
        case 's':
            to->seed = value;
            break;
        case 'm':
            to->count[STORM_TAG] = to->count[STORM_AM] = value;
            break;
        case 'r':
            to->count[STORM_RMA] = value;
            break;
        case 'a':
            to->count[STORM_AMO] = value;
            break;
        default:
            to->largest = value;
            break;
        }
    }
    return ((to->ranks < 1) || (to->ranks > STORM_RANKS) || (optind < argc))
                   ? -1 : 0;
}


/* Lines of several processes, UCX's among them, stay whole in one file. */
static void storm_share_output(void)
{
    int flags = fcntl(STDOUT_FILENO, F_GETFL);

    if (flags >= 0) {
        (void)fcntl(STDOUT_FILENO, F_SETFL, flags | O_APPEND);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}


int main(int argc, char **argv)
{
    static const char mark[] = "STORM_STARTED";

    if (getenv(mark) == NULL) {
        (void)setenv("UCX_TLS", "daqiri", 0);
        t_ucx_restart(mark, argv);
        return 1;
    }
    t_ucx_check();
    if (storm_read_options(argc, argv) != 0) {
        fputs(usage, stderr);
        return 2;
    }
    storm_share_output();
    return storm_run();
}
