/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri faults`: tells processes that have the software device open what is
 * to go wrong. The device's library knows the plans and the way to the
 * processes; it is loaded here and asked, and opens no device.
 */

#include "tools/base/args.h"
#include "tools/base/locate.h"
#include "tools/base/parse.h"
#include "tools/cmd/cmd.h"

#include <dlfcn.h>
#include <errno.h>
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

/* ---- the request ---- */

static int faults_is_action(const char *word)
{
    return (strcmp(word, "set") == 0) || (strcmp(word, "clear") == 0) ||
           (strcmp(word, "show") == 0) || (strcmp(word, "check") == 0);
}

static const struct argp_option faults_options[] = {
    {"rules", 'e', "RULES", 0,
     "The plan itself, with semicolons between rules, in place of FILE"},
    {NULL}
};

/* The words that are no options: ACTION [WHOM] [FILE]. */
static void faults_word(faults_request_t *request, char *word,
                        struct argp_state *state)
{
    if (request->action == NULL) {
        if (!faults_is_action(word)) {
            argp_error(state, "the first word is none of set, clear, show, check");
        }
        request->action = word;
    } else if ((request->whom == NULL) && (strcmp(request->action, "check") != 0)) {
        request->whom = word;
    } else if (request->file == NULL) {
        request->file = word;
    } else {
        argp_error(state, "there are too many words");
    }
}

static void faults_judge(const faults_request_t *request, struct argp_state *state)
{
    int has_whom, has_plan;

    if (request->action == NULL) {
        argp_error(state, "nothing is asked for");
    }
    has_whom = (strcmp(request->action, "check") != 0);
    has_plan = (strcmp(request->action, "set") == 0) || !has_whom;
    if (has_whom && (request->whom == NULL)) {
        argp_error(state, "a process number or all is missing");
    }
    if (has_plan && (request->file == NULL) && (request->rules == NULL)) {
        argp_error(state, "a plan is missing");
    }
    if (((request->file != NULL) && (!has_plan || (request->rules != NULL))) ||
        (!has_plan && (request->rules != NULL))) {
        argp_error(state, "there are too many words");
    }
    if (has_whom && (strcmp(request->whom, "all") != 0) &&
        (daqiri_parse_pid(request->whom, &(uint32_t){0}) != 0)) {
        argp_error(state, "the second word is neither a process number nor all");
    }
}

static error_t faults_parse(int key, char *arg, struct argp_state *state)
{
    faults_request_t *request = state->input;

    switch (key) {
    case 'e':
        if (request->rules != NULL) {
            argp_error(state, "--rules is there twice; rules have semicolons "
                       "between them");
        }
        request->rules = arg; /* empty is a plan, too */
        return 0;
    case ARGP_KEY_ARG:
        faults_word(request, arg, state);
        return 0;
    case ARGP_KEY_END:
        faults_judge(request, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child faults_children[] = {
    {&daqiri_args_help}, {NULL}
};

static const struct argp faults_argp = {
    faults_options, faults_parse,
    "set PID|all FILE\nclear PID|all\nshow PID|all\ncheck FILE",
    "Makes things go wrong on purpose in processes that use the software "
    "device: set a plan, set none (clear), show the plan and its effects, or "
    "check whether a file is a plan. PID is a process of this user, all are all "
    "of them. FILE has one rule a line; - is standard input.\v"
    "Rules, and how to start a program with a plan: daqiri-faults(1).",
    faults_children
};

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
    uint32_t pid = 0;

    if (request->whom == NULL) {
        return faults_check(device, request);
    }
    if (strcmp(request->whom, "all") == 0) {
        return faults_ask_all(device, request);
    }

    daqiri_parse_pid(request->whom, &pid); /* faults_judge() has looked */
    return faults_ask(device, request, (int)pid);
}

int daqiri_faults(int argc, char **argv)
{
    faults_request_t request = {.speaker = argv[0]};
    faults_device_t device;
    int status;

    daqiri_args_parse(&faults_argp, argc, argv, &request);
    status = faults_compose(&request);
    if (status == 0) {
        status = faults_load(&device, request.speaker);
    }
    return (status == 0) ? faults_do(&device, &request) : status;
}
