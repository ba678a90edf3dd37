/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri faults`: tells processes that have the software device open what is
 * to go wrong. The device's library knows the plans and the way to the
 * processes; it is loaded here and asked, and opens no device.
 */

#include "tools/base/locate.h"
#include "tools/base/parse.h"
#include "tools/cmd/cmd.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_TEXT_MAX 8192
#define FAULTS_PIDS_MAX 1023

/* What libsoftverbs.so has for this command. */
typedef struct faults_device {
    int (*control)(int pid, const char *request, char *reply, size_t size);
    int (*processes)(int *pids, int max);
} faults_device_t;

typedef struct faults_request {
    const char *speaker;
    const char *action;  /* set, clear, show, check */
    const char *whom;    /* "all", or a process number; NULL for check */
    const char *file;    /* of the plan, "-" is stdin; NULL: rules */
    const char *rules;
    char        text[FAULTS_TEXT_MAX + 16]; /* for the process */
} faults_request_t;

static void faults_usage(const char *speaker, FILE *stream)
{
    fprintf(stream,
            "Usage: %s set PID|all FILE        use this plan from now on\n"
            "       %s set PID|all -e RULES\n"
            "       %s clear PID|all           use no plan from now on\n"
            "       %s show PID|all            print the plan and its effects\n"
            "       %s check FILE              check whether it is a plan\n"
            "       %s check -e RULES\n"
            "\n"
            "Makes things go wrong on purpose in processes that use the "
            "software device.\n"
            "\n"
            "PID is a process of this user, all are all of them. FILE is a "
            "plan, one rule a\n"
            "line; - is standard input.\n"
            "\n"
            "Options:\n"
            "  -e, --rules=RULES  the plan itself, with semicolons between "
            "rules\n"
            "  -h, --help         print this and exit\n"
            "\n"
            "Rules, and how to start a program with a plan: "
            "daqiri-faults(1).\n",
            speaker, speaker, speaker, speaker, speaker, speaker);
}

/* ---- the request ---- */

static int faults_wrong(const faults_request_t *request, const char *what)
{
    fprintf(stderr, "%s: %s; '%s --help' says how it is called\n",
            request->speaker, what, request->speaker);
    return DAQIRI_EXIT_USAGE;
}

static int faults_is_action(const char *word)
{
    return (strcmp(word, "set") == 0) || (strcmp(word, "clear") == 0) ||
           (strcmp(word, "show") == 0) || (strcmp(word, "check") == 0);
}

/* The words that are no options: ACTION [WHOM] [FILE]. */
static int faults_words(faults_request_t *request, int argc, char **argv)
{
    int has_whom, has_plan;

    if (argc == 0) {
        return faults_wrong(request, "nothing is asked for");
    }
    if (!faults_is_action(argv[0])) {
        return faults_wrong(request, "the first word is none of set, clear, "
                            "show, check");
    }
    request->action = *argv++;
    --argc;

    has_whom = (strcmp(request->action, "check") != 0);
    if (has_whom) {
        if (argc == 0) {
            return faults_wrong(request, "a process number or all is missing");
        }
        request->whom = *argv++;
        --argc;
    }

    has_plan = (strcmp(request->action, "set") == 0) || !has_whom;
    if (has_plan && (request->rules == NULL)) {
        if (argc == 0) {
            return faults_wrong(request, "a plan is missing");
        }
        request->file = *argv++;
        --argc;
    }
    if ((argc > 0) || (!has_plan && (request->rules != NULL))) {
        return faults_wrong(request, "there are too many words");
    }
    return 0;
}

/* 0, or the exit status; with `done`, nothing else is wanted. */
static int faults_parse(faults_request_t *request, int argc, char **argv,
                        int *done)
{
    static const struct option options[] = {
        {"rules", required_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    char what[128];
    int c;

    /* One dash or two, as everywhere. */
    while ((c = getopt_long_only(argc, argv, ":e:h", options, NULL)) != -1) {
        switch (c) {
        case 'e':
            if (request->rules != NULL) {
                return faults_wrong(request, "-e is there twice; rules have "
                                    "semicolons between them");
            }
            request->rules = optarg;
            break;
        case 'h':
            faults_usage(request->speaker, stdout);
            *done = 1;
            return DAQIRI_EXIT_OK;
        default:
            snprintf(what, sizeof(what), "option '%s' %s", argv[optind - 1],
                     (c == ':') ? "requires an argument" : "is not known");
            return faults_wrong(request, what);
        }
    }
    return faults_words(request, argc - optind, argv + optind);
}

static int faults_read_file(faults_request_t *request, char *text, size_t size)
{
    int is_stdin = (strcmp(request->file, "-") == 0);
    FILE *file   = is_stdin ? stdin : fopen(request->file, "r");
    int failed;
    size_t used;

    if (file == NULL) {
        fprintf(stderr, "%s: cannot read %s: %s\n", request->speaker,
                request->file, strerror(errno));
        return DAQIRI_EXIT_FAILED;
    }

    used       = fread(text, 1, size - 1, file);
    text[used] = '\0';
    failed     = ferror(file) || (strlen(text) != used);
    if (!is_stdin) {
        fclose(file);
    }
    if (failed) {
        fprintf(stderr, "%s: %s is not a file of text\n", request->speaker,
                request->file);
        return DAQIRI_EXIT_FAILED;
    }
    return 0;
}

/* Fills in the text for the process; for check, it is the plan alone. */
static int faults_compose(faults_request_t *request)
{
    char plan[FAULTS_TEXT_MAX + 1] = "";
    int is_check = (strcmp(request->action, "check") == 0);

    if (request->file != NULL) {
        int status = faults_read_file(request, plan, sizeof(plan));

        if (status != 0) {
            return status;
        }
    } else if (request->rules != NULL) {
        snprintf(plan, sizeof(plan), "%s", request->rules);
    }

    snprintf(request->text, sizeof(request->text), "%s%s%s",
             is_check ? "" : request->action, is_check ? "" : "\n", plan);
    return 0;
}

/* ---- the device's library ---- */

static int faults_load(faults_device_t *device, const char *speaker)
{
    char path[PATH_MAX], tried[PATH_MAX];
    void *library;

    if (daqiri_locate_library(&daqiri_library_softverbs, path, tried) != 0) {
        fprintf(stderr, "%s: %s is in none of: %s\n", speaker,
                daqiri_library_softverbs.file, tried);
        return DAQIRI_EXIT_FAILED;
    }

    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s: %s\n", speaker, dlerror());
        return DAQIRI_EXIT_FAILED;
    }

    *(void**)&device->control   = dlsym(library, "softverbs_control");
    *(void**)&device->processes = dlsym(library, "softverbs_processes");
    if ((device->control == NULL) || (device->processes == NULL)) {
        fprintf(stderr, "%s: %s is of another version\n", speaker, path);
        return DAQIRI_EXIT_FAILED;
    }
    return 0;
}

/* ---- doing it ---- */

/* Each line of the answer with the process number before it. */
static void faults_print(int pid, char *reply)
{
    char *line, *rest = reply;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line != '\0') {
            printf("%d: %s\n", pid, line);
        }
    }
}

static int faults_ask(const faults_device_t *device,
                      const faults_request_t *request, int pid)
{
    char reply[FAULTS_TEXT_MAX] = "";

    if (device->control(pid, request->text, reply, sizeof(reply)) != 0) {
        fprintf(stderr, "%s: process %d: %s\n", request->speaker, pid, reply);
        return DAQIRI_EXIT_FAILED;
    }
    faults_print(pid, (reply[0] != '\0') ? reply : strcpy(reply, "done"));
    return 0;
}

static int faults_ask_all(const faults_device_t *device,
                          const faults_request_t *request)
{
    int pids[FAULTS_PIDS_MAX];
    int status = 0;
    int count, i;

    count = device->processes(pids, FAULTS_PIDS_MAX);
    if (count == 0) {
        fprintf(stderr, "%s: no process of this user has the software device "
                "open\n", request->speaker);
        return DAQIRI_EXIT_FAILED;
    }
    for (i = 0; i < count; ++i) {
        if (faults_ask(device, request, pids[i]) != 0) {
            status = DAQIRI_EXIT_FAILED;
        }
    }
    return status;
}

static int faults_check(const faults_device_t *device,
                        const faults_request_t *request)
{
    char reply[FAULTS_TEXT_MAX] = "";
    int ret;

    ret = device->control(0, request->text, reply, sizeof(reply));
    if (ret != 0) {
        fprintf(stderr, "%s: %s\n", request->speaker, reply);
        return DAQIRI_EXIT_FAILED;
    }
    fputs(reply, stdout);
    return 0;
}

static int faults_do(const faults_device_t *device,
                     const faults_request_t *request)
{
    uint32_t pid;

    if (request->whom == NULL) {
        return faults_check(device, request);
    }
    if (strcmp(request->whom, "all") == 0) {
        return faults_ask_all(device, request);
    }

    if (daqiri_parse_pid(request->whom, &pid) != 0) {
        return faults_wrong(request, "the second word is neither a process "
                            "number nor all");
    }
    return faults_ask(device, request, (int)pid);
}

int daqiri_faults(int argc, char **argv)
{
    faults_request_t request = {.speaker = argv[0]};
    faults_device_t device;
    int done = 0;
    int status;

    opterr = 0;
    status = faults_parse(&request, argc, argv, &done);
    if ((status != 0) || done) {
        return status;
    }

    status = faults_compose(&request);
    if (status == 0) {
        status = faults_load(&device, request.speaker);
    }
    return (status == 0) ? faults_do(&device, &request) : status;
}
