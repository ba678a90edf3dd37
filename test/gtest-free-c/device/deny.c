/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deny CALL[,CALL]... COMMAND...: runs a command to which the kernel answers
 * EPERM when it makes one of these system calls, as a container's seccomp
 * profile does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned    number;
} calls[] = {
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"membarrier", SYS_membarrier},
    {"set_robust_list", SYS_set_robust_list}
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Number of the call with this name, or -1. */
static long find(const char *name)
{
    unsigned i;

    for (i = 0; i < CALLS; ++i) {
        if (strcmp(calls[i].name, name) == 0) {
            return calls[i].number;
        }
    }
    return -1;
}

static int deny(long number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    struct sock_fprog program = {
        .len = sizeof(code) / sizeof(code[0]), .filter = code
    };

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    char *name;
    long number;

    if ((argc < 3) || (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)) {
        return 99;
    }

    for (name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ",")) {
        number = find(name);
        if (number < 0) {
            fprintf(stderr, "deny: unknown call \"%s\"\n", name);
            return 99;
        }
        if (deny(number) != 0) {
            perror("deny: seccomp");
            return 77;
        }
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 99;
}
