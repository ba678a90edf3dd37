/* SPDX-License-Identifier: BSD-3-Clause */
#include "t_fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char t_fault_reply[T_FAULT_TEXT];

static char log_path[64];
static char log_text[4 << 20];

void t_fault_begin(void)
{
    if (dlsym(RTLD_DEFAULT, "softverbs_control") == NULL) {
        t_skip_all("faults on purpose are softverbs' own");
    }
}

void t_fault_plan(const char *plan)
{
    int fd;

    strcpy(log_path, "/tmp/t_fault.XXXXXX");
    fd = mkstemp(log_path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    setenv("SOFTVERBS_FAULTS", plan, 1);
    setenv("SOFTVERBS_FAULTS_LOG", log_path, 1);
}

void t_fault_plan_idle(void)
{
    t_fault_plan("delay time=1ms qp=rc.1000000");
}

void t_fault_expect(struct t_end *end, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        ck_assert_int_eq(t_post_recv(end, i, T_FAULT_RECVS + T_FAULT_RECV * i,
                                     T_FAULT_RECV), 0);
    }
}

void t_fault_pair(struct t_end ends[2], const char *plan, unsigned recvs)
{
    t_fault_plan(plan);
    t_pair_open(ends, NULL, NULL);
    t_fault_expect(&ends[1], recvs);
}

int t_fault_send(struct t_end ends[2], uint8_t id)
{
    memset(ends[0].buf + 64 * id, id, 64);
    return t_post_send(&ends[0], id, 64 * id, 64, IBV_SEND_SIGNALED);
}

int t_fault_ask(const char *request)
{
    int (*control)(int, const char*, char*, size_t);

    *(void**)&control = dlsym(RTLD_DEFAULT, "softverbs_control");
    ck_assert(control != NULL);
    return control(getpid(), request, t_fault_reply, sizeof(t_fault_reply));
}

void t_fault_set(const char *plan)
{
    char request[T_FAULT_TEXT];

    snprintf(request, sizeof(request), "set\n%s", plan);
    ck_assert_msg(t_fault_ask(request) == 0, "%s", t_fault_reply);
}

const char *t_fault_log(void)
{
    char line[2048];
    size_t used = 0;
    FILE *file;

    log_text[0] = '\0';
    file        = fopen(log_path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] != '#') {
            ck_assert_uint_lt(used + strlen(line), sizeof(log_text));
            strcpy(log_text + used, line);
            used += strlen(line);
        }
    }
    fclose(file);
    return log_text;
}

/* Asked at the end of a test: the file goes. */
unsigned t_fault_decisions(void)
{
    const char *at = t_fault_log();
    unsigned count = 0;

    unlink(log_path);
    for (; (at = strchr(at, '\n')) != NULL; ++at) {
        ++count;
    }
    return count;
}

void t_event_is(struct t_end *end, enum ibv_event_type type, void *element)
{
    struct ibv_async_event event;

    ck_assert_int_eq(ibv_get_async_event(end->context, &event), 0);
    ck_assert_msg(event.event_type == type, "event %d, expected %d",
                  event.event_type, type);
    if (element != NULL) {
        ck_assert_ptr_eq(event.element.qp, element);
    } else {
        ck_assert_int_eq(event.element.port_num, 1);
    }
    ibv_ack_async_event(&event);
}

void t_event_none(struct t_end *end)
{
    struct pollfd pfd = {.fd = end->context->async_fd, .events = POLLIN};

    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
}
