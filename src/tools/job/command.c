/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/job/command.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whether it is there ---- */

/* 0, or the errno for which this file cannot be executed. */
static int command_check_file(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return EISDIR;
    }
    return (access(path, X_OK) == 0) ? 0 : errno;
}

/* The first that can be executed. */
int daqiri_command_find(const char *name, char *path)
{
    const char *folder = getenv("PATH");
    size_t length;
    int found = ENOENT;
    int ret;

    if (strchr(name, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", name);
        return command_check_file(name);
    }
    folder = (folder != NULL) ? folder : "/bin:/usr/bin";
    for (;;) {
        length = strcspn(folder, ":");
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folder,
                 (length > 0) ? "/" : "", name);
        ret = command_check_file(path);
        if (ret == 0) {
            return 0;
        }
        if (ret == EACCES) {
            found = EACCES;
        }
        if (folder[length] == '\0') {
            return found;
        }
        folder += length + 1;
    }
}

int daqiri_command_check(const char *name)
{
    char path[PATH_MAX];

    return daqiri_command_find(name, path);
}

static int command_is_one_of(const char *word, const char *const *list)
{
    while ((*list != NULL) && (strcmp(word, *list) != 0)) {
        ++list;
    }
    return *list != NULL;
}

static const char *command_base(const char *name)
{
    const char *slash = strrchr(name, '/');

    return (slash != NULL) ? slash + 1 : name;
}

int daqiri_command_is_starter(const char *name)
{
    static const char *const names[] = {
        "mpirun", "mpiexec", "orterun", "prterun", "mpirun.openmpi",
        "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra",
        "prun", NULL
    };

    return command_is_one_of(command_base(name), names);
}

int daqiri_command_is_srun(const char *name)
{
    return strcmp(command_base(name), "srun") == 0;
}

/* What starts the command that follows its own options. */
static int command_is_wrapper(const char *name)
{
    static const char *const names[] = {
        "chrt", "env", "ionice", "nice", "nohup", "numactl", "setsid", "srun",
        "stdbuf", "taskset", "time", "timeout", NULL
    };

    return command_is_one_of(command_base(name), names);
}

const char *daqiri_command_program(char *const *command,
                                   const char **starter_p)
{
    *starter_p = NULL;
    for (; *command != NULL; ++command) {
        if (daqiri_command_is_starter(*command)) {
            *starter_p = *command;
        } else if ((**command != '-') && !command_is_wrapper(*command) &&
                   (daqiri_command_check(*command) == 0)) {
            return *command;
        }
    }
    return NULL;
}

/* ---- the options of what starts the ranks ---- */

/* From there on, or where the line ends. */
static char *const *command_at_starter(char *const *command)
{
    int is_program = 0;

    for (; *command != NULL; ++command) {
        if (!is_program && (daqiri_command_is_starter(*command) ||
                            daqiri_command_is_srun(*command))) {
            return command;
        }
        /* what comes behind it is its own */
        is_program = is_program ||
                     ((**command != '-') && !command_is_wrapper(*command) &&
                      (daqiri_command_check(*command) == 0));
    }
    return command;
}

const char *daqiri_command_starter(char *const *command)
{
    return *command_at_starter(command);
}

int daqiri_command_is_open_mpi(char *const *command)
{
    const char *starter = daqiri_command_starter(command);

    return (starter != NULL) && daqiri_command_is_starter(starter) &&
           (strstr(starter, "mpich") == NULL) &&
           (strstr(starter, "hydra") == NULL);
}

/* One word of them after the other. Options behind the program are the program's; a
 * colon begins another one. */
typedef struct options {
    char *const *word; /* at first the starter */
    int is_behind;
} options_t;

/* The words behind an option that may be names of commands, such as -launcher ssh. */
static int options_skip(const char *word)
{
    static const char *const two[] = {
        "mca", "gmca", "omca", "prtemca", "pmixmca", "env", "genv", NULL
    };
    static const char *const one[] = {
        "launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "x",
        "host", "H", "hosts", "hostfile", "machinefile", "f", "wdir", "path",
        "launch-agent", "mpi", "task-prolog", "task-epilog", "prolog", "epilog",
        "bcast", "J", "job-name", NULL
    };

    word += (word[0] == '-') + ((word[0] == '-') && (word[1] == '-'));
    return command_is_one_of(word, two) ? 2 : command_is_one_of(word, one);
}

static int options_next(options_t *options)
{
    const char *word = *options->word;
    int skip         = 0;

    if ((word != NULL) && (word[0] == '-') && !options->is_behind) {
        skip = options_skip(word);
    }
    while (*options->word != NULL) {
        word = *++options->word;
        if (word == NULL) {
            break;
        }
        if (strcmp(word, ":") == 0) {
            options->is_behind = 0;
        } else if (skip > 0) {
            --skip;
        } else if (!options->is_behind && (word[0] != '-')) {
            options->is_behind = (daqiri_command_check(word) == 0);
        } else if (!options->is_behind) {
            return 1;
        }
    }
    return 0;
}

/* An option, or the option and its value in one word, with one dash or two. */
static const char *options_value(const options_t *options,
                                 const char *const *names)
{
    const char *word = *options->word;
    char name[32];
    size_t length;

    word  += (word[0] == '-') + ((word[0] == '-') && (word[1] == '-'));
    length = strcspn(word, "=");
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    if ((length >= sizeof(name)) || !command_is_one_of(name, names)) {
        return NULL;
    }
    if (word[length] == '=') {
        return word + length + 1;
    }
    return (options->word[1] != NULL) ? options->word[1] : "";
}

const char *daqiri_command_option(char *const *command,
                                  const char *const *names)
{
    options_t options = {.word = command_at_starter(command)};
    const char *value;

    while (options_next(&options)) {
        value = options_value(&options, names);
        if (value != NULL) {
            return value;
        }
    }
    return NULL;
}

int daqiri_command_exports(char *const *command, const char *name)
{
    static const char *const names[] = {"x", NULL};
    options_t options = {.word = command_at_starter(command)};
    size_t length     = strlen(name);
    const char *value;

    while (options_next(&options)) {
        value = options_value(&options, names);
        if ((value != NULL) && (strncmp(value, name, length) == 0) &&
            ((value[length] == '\0') || (value[length] == '='))) {
            return 1;
        }
    }
    return 0;
}

/* ---- a set of hosts ---- */

#define HOSTS_MAX  256 /* beyond them nobody counts */
#define HOSTS_SHOW 3
#define HOST_MAX   256 /* bytes of a name */

typedef struct hosts {
    size_t count;
    char   names[HOSTS_MAX][HOST_MAX];
} hosts_t;

static int host_is_number(const char *name)
{
    unsigned char address[16];

    return (inet_pton(AF_INET, name, address) == 1) ||
           (inet_pton(AF_INET6, name, address) == 1);
}

/* n1 and n1.cluster are one; 10.0.0.1 and 10.0.0.2 are not. */
static int host_is_same(const char *a, const char *b)
{
    size_t length = strcspn(a, ".");

    return (strcasecmp(a, b) == 0) ||
           (!host_is_number(a) && !host_is_number(b) &&
            (length == strcspn(b, ".")) && (strncasecmp(a, b, length) == 0));
}

/* The one that this runs on has a name of its own, and others that all have. */
static const char *host_or_here(const char *name)
{
    static char here[HOST_MAX];

    if ((here[0] == '\0') && (gethostname(here, sizeof(here) - 1) != 0)) {
        return name;
    }
    return ((strncmp(name, "127.", 4) == 0) || (strcmp(name, "::1") == 0) ||
            host_is_same(name, "localhost")) ? here : name;
}

static void hosts_add(hosts_t *hosts, const char *name)
{
    size_t i;

    name = host_or_here(name);
    for (i = 0; i < hosts->count; ++i) {
        if (host_is_same(hosts->names[i], name)) {
            return;
        }
    }
    if (hosts->count < HOSTS_MAX) {
        snprintf(hosts->names[hosts->count++], HOST_MAX, "%s", name);
    }
}

/* A word of a list or a file: user@host, host:2 (slots). Others that are allowed
 * there, such as +n1 and slots=2, name no host. */
static void hosts_add_word(hosts_t *hosts, const char *word, size_t length)
{
    char name[HOST_MAX];
    char *at, *colon;

    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    at    = strrchr(name, '@');
    at    = (at != NULL) ? at + 1 : name;
    colon = strchr(at, ':');
    if ((colon != NULL) && (strchr(colon + 1, ':') == NULL)) {
        *colon = '\0'; /* with more of them it is IPv6 */
    }
    if ((at[0] != '\0') && (at[0] != '+') && (strchr(at, '=') == NULL)) {
        hosts_add(hosts, at);
    }
}

static void hosts_add_list(hosts_t *hosts, const char *list,
                           const char *separators)
{
    size_t length;

    for (;; list += length) {
        list  += strspn(list, separators);
        length = strcspn(list, separators);
        if (length == 0) {
            return;
        }
        hosts_add_word(hosts, list, length);
    }
}

/* The first word of each line, up to a comment. */
static void hosts_add_file(hosts_t *hosts, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    char *word;

    if (file == NULL) {
        return; /* whose file it is will say so */
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        word = line + strspn(line, " \t");
        hosts_add_word(hosts, word, strcspn(word, " \t\r\n#"));
    }
    fclose(file);
}

static void hosts_print(const hosts_t *hosts, char *text, size_t size)
{
    size_t used = 0;
    size_t i;

    text[0] = '\0';
    for (i = 0; (i < hosts->count) && (used < size); ++i) {
        if (i == HOSTS_SHOW) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%.60s",
                                 (i > 0) ? ", " : "", hosts->names[i]);
    }
}

/* ---- where a job says it ---- */

static void hosts_add_command(hosts_t *hosts, char *const *command)
{
    static const char *const lists[] = {"host", "H", "hosts", NULL};
    static const char *const files[] = {
        "hostfile", "machinefile", "default-hostfile", "f", NULL
    };
    options_t options = {.word = command};
    const char *value;

    while (options_next(&options)) {
        value = options_value(&options, lists);
        if (value != NULL) {
            hosts_add_list(hosts, value, ",");
        }
        value = options_value(&options, files);
        if (value != NULL) {
            hosts_add_file(hosts, value);
        }
    }
}

/* What the MPIs and batch systems keep the hosts in. */
static void hosts_add_environment(hosts_t *hosts)
{
    static const char *const files[] = {
        "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
        "HYDRA_HOST_FILE", "PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE"
    };
    const char *value;
    size_t i;

    for (i = 0; (i < sizeof(files) / sizeof(files[0])) && (hosts->count == 0);
         ++i) {
        value = getenv(files[i]);
        if (value != NULL) {
            hosts_add_file(hosts, value);
        }
    }
}

/* Slurm says how many, and writes the names in a way of its own: n[1-4,7]. */
static size_t hosts_of_slurm(const char *count_name, const char *names_name,
                             char *text, size_t size)
{
    const char *count = getenv(count_name);
    const char *names = getenv(names_name);

    snprintf(text, size, "%.100s", (names != NULL) ? names : "of Slurm");
    return (count != NULL) ? (size_t)strtoul(count, NULL, 10) : 0;
}

static size_t hosts_of_job(char *const *command, char *text, size_t size)
{
    hosts_t *hosts = calloc(1, sizeof(*hosts));
    size_t count   = 0;

    if (hosts == NULL) {
        return 0;
    }
    hosts_add_command(hosts, command);
    if (hosts->count == 0) {
        count = hosts_of_slurm("SLURM_JOB_NUM_NODES", "SLURM_JOB_NODELIST",
                               text, size);
    }
    if ((hosts->count == 0) && (count == 0)) {
        hosts_add_environment(hosts);
    }
    if (hosts->count > 0) {
        count = hosts->count;
        hosts_print(hosts, text, size);
    }
    free(hosts);
    return count;
}

size_t daqiri_command_hosts(char *const *command, char *text, size_t size)
{
    const char *rank = getenv("SLURM_PROCID");

    text[0] = '\0';
    if (command[0] == NULL) {
        return 0;
    }
    if (daqiri_command_is_starter(command[0])) {
        return hosts_of_job(command, text, size);
    }
    if (daqiri_command_is_srun(command[0])) {
        return hosts_of_slurm("SLURM_JOB_NUM_NODES", "SLURM_JOB_NODELIST",
                              text, size);
    }
    return ((rank != NULL) && (strcmp(rank, "0") == 0)) ?
           hosts_of_slurm("SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST", text,
                          size) : 0;
}
