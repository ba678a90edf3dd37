/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/job/travel.h"

#include "tools/job/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What begins so is for UCX, the plugin or the device, so every rank needs it. It is
 * also in docs/cluster.md and daqiri-run(1). */
static const char *const travel_prefixes[] = {"UCX_", "DAQIRI_", "SOFTVERBS_"};

/* What separates the names in Open MPI's list, whatever its delimiter is set to. */
#define TRAVEL_SEPARATOR ';'

static int travel_is_needed(const char *entry)
{
    size_t i;

    for (i = 0; i < sizeof(travel_prefixes) / sizeof(travel_prefixes[0]); ++i) {
        if (strncmp(entry, travel_prefixes[i], strlen(travel_prefixes[i])) == 0) {
            return 1;
        }
    }
    return strncmp(entry, "LD_PRELOAD", strlen("LD_PRELOAD")) == 0;
}

/* ---- Open MPI's list ---- */

/* Open MPI takes what is before the = in a value for a name, unless the entry has a =
 * of its own. */
static void travel_list(FILE *stream, char separator, const char *name,
                        size_t length, const char *value)
{
    if (strchr(value, separator) != NULL) {
        return;
    }
    if (ftell(stream) > 0) {
        fputc(separator, stream);
    }
    fprintf(stream, "%.*s", (int)length, name);
    if (strchr(value, '=') != NULL) {
        fprintf(stream, "=%s", value);
    }
}

static void travel_list_all(const daqiri_env_list_t *env_list, char separator,
                            FILE *stream)
{
    char name[256];
    size_t i, length;
    char **entry;

    for (i = 0; i < env_list->count; ++i) {
        travel_list(stream, separator, env_list->list[i].name,
                    strlen(env_list->list[i].name), env_list->list[i].value);
    }
    for (entry = environ; *entry != NULL; ++entry) {
        length = strcspn(*entry, "=");
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        if (((*entry)[length] == '=') && (length < sizeof(name)) &&
            travel_is_needed(name) && (strcmp(name, "LD_PRELOAD") != 0) &&
            (daqiri_env_list_get(env_list, name) == NULL)) {
            travel_list(stream, separator, name, length, *entry + length + 1);
        }
    }
}

/*
 * Open MPI's mpirun gives remote ranks its own variables only. A list of others may be
 * given in mca_base_env_list, but that excludes -x on mpirun's command line; the list
 * that Open MPI 4 makes of -x lines in its parameter files does not. A user who has set
 * the former has it added to.
 */
static void travel_add_open_mpi(daqiri_env_list_t *env_list)
{
    const char *user      = getenv("OMPI_MCA_mca_base_env_list");
    const char *delimiter = getenv("OMPI_MCA_mca_base_env_list_delimiter");
    char separator        = TRAVEL_SEPARATOR;
    char *names           = NULL;
    size_t length;
    FILE *stream;

    stream = open_memstream(&names, &length);
    if (stream == NULL) {
        return;
    }
    if (user != NULL) {
        if ((delimiter != NULL) && (strlen(delimiter) == 1)) {
            separator = delimiter[0];
        }
        fputs(user, stream);
    }
    travel_list_all(env_list, separator, stream);
    fclose(stream);
    daqiri_env_list_add(env_list,
                        (user != NULL) ? "OMPI_MCA_mca_base_env_list" :
                                         "OMPI_MCA_mca_base_env_list_internal",
                        names);
    free(names);
}

void daqiri_travel_stuck(char *const *command, size_t hosts, char *text,
                         size_t size)
{
    size_t length;
    char name[256];
    char **entry;

    text[0] = '\0';
    if ((hosts < 2) || !daqiri_command_is_open_mpi(command)) {
        return;
    }
    for (entry = environ; *entry != NULL; ++entry) {
        length = strcspn(*entry, "=");
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        if (travel_is_needed(*entry) &&
            (strchr(*entry + length, TRAVEL_SEPARATOR) != NULL) &&
            !daqiri_command_exports(command, name)) {
            snprintf(text, size, "%s does not get to other hosts by itself with "
                     "Open MPI 4, because there is a semicolon in it: give "
                     "%.60s the option -x %s", name, daqiri_command_starter(command),
                     name);
            return;
        }
    }
}

/* ---- lists of what is to travel ---- */

/* NAME, NAME=VALUE and, if `all` is not NULL, that. */
static int travel_has(const char *list, const char *name, const char *all)
{
    size_t length, name_length;

    for (; *list != '\0'; list += length + (list[length] == ',')) {
        length      = strcspn(list, ",");
        name_length = strcspn(list, "=,");
        if ((all != NULL) && (length == strlen(all)) &&
            (strncasecmp(list, all, length) == 0)) {
            return 1;
        }
        if ((name_length == strlen(name)) &&
            (memcmp(list, name, name_length) == 0)) {
            return 1;
        }
    }
    return 0;
}

/* Those of ours that ranks need and that this list has not, with commas between. */
static size_t travel_missing(const daqiri_env_list_t *env_list, const char *list,
                             const char *all, char *names, size_t size)
{
    size_t count = 0;
    size_t used  = 0;
    size_t i;

    names[0] = '\0';
    for (i = 0; (i < env_list->count) && (used < size); ++i) {
        if (travel_is_needed(env_list->list[i].name) &&
            !travel_has(list, env_list->list[i].name, all)) {
            used += (size_t)snprintf(names + used, size - used, "%s%s",
                                     (count > 0) ? ", " : "",
                                     env_list->list[i].name);
            ++count;
        }
    }
    return count;
}

/* ---- Slurm ---- */

static void travel_add_slurm(daqiri_env_list_t *env_list)
{
    const char *user = getenv("SLURM_EXPORT_ENV");
    char names[256];
    char *all;

    if ((user == NULL) ||
        (travel_missing(env_list, user, "ALL", names, sizeof(names)) == 0)) {
        return;
    }
    if ((strcasecmp(user, "NONE") == 0) || (strcasecmp(user, "NIL") == 0)) {
        daqiri_env_list_add(env_list, "SLURM_EXPORT_ENV", "ALL");
    } else if (asprintf(&all, "ALL,%s", user) > 0) {
        daqiri_env_list_add(env_list, "SLURM_EXPORT_ENV", all);
        free(all);
    }
}

static int travel_check_slurm(const daqiri_env_list_t *env_list,
                              char *const *command, char *why, size_t size)
{
    /* as short as srun still knows it */
    static const char *const names[] = {"export", "expor", "expo", "exp", NULL};
    const char *value = daqiri_command_option(command, names);
    char missing[256];

    if ((value == NULL) ||
        (travel_missing(env_list, value, "ALL", missing, sizeof(missing)) == 0)) {
        return 0;
    }
    snprintf(why, size, "srun --export=%.100s keeps %s from the ranks: give it "
             "--export=ALL, or ALL and more", value, missing);
    return -1;
}

/* ---- MPICH ---- */

static void travel_add_mpich(daqiri_env_list_t *env_list)
{
    const char *user = getenv("HYDRA_ENV");

    if ((user != NULL) && (strcmp(user, "all") != 0)) {
        daqiri_env_list_add(env_list, "HYDRA_ENV", "all");
    }
}

/* What is on the host of mpiexec inherits all of it in any case. */
static int travel_check_mpich(const daqiri_env_list_t *env_list,
                              char *const *command, char *why, size_t size)
{
    static const char *const none[] = {"genvnone", "envnone", NULL};
    static const char *const list[] = {"genvlist", "envlist", NULL};
    const char *value = (daqiri_command_option(command, none) != NULL) ?
                        "" : daqiri_command_option(command, list);
    char missing[256];

    if ((value == NULL) ||
        (travel_missing(env_list, value, NULL, missing, sizeof(missing)) == 0)) {
        return 0;
    }
    snprintf(why, size, "the options of %.60s keep %s from ranks on other hosts: "
             "leave out -genvnone, -envnone, -genvlist and -envlist",
             daqiri_command_starter(command), missing);
    return -1;
}

/* ---- all of them ---- */

void daqiri_travel_add(daqiri_env_list_t *env_list)
{
    travel_add_open_mpi(env_list);
    travel_add_slurm(env_list);
    travel_add_mpich(env_list);
    if (getenv("PRTE_MCA_prte_fwd_environment") == NULL) {
        daqiri_env_list_add(env_list, "PRTE_MCA_prte_fwd_environment", "1");
    }
}

int daqiri_travel_check(const daqiri_env_list_t *env_list, char *const *command,
                        size_t hosts, char *why, size_t size)
{
    const char *starter = daqiri_command_starter(command);

    if (starter == NULL) {
        return 0;
    }
    if (daqiri_command_is_srun(starter)) {
        return travel_check_slurm(env_list, command, why, size);
    }
    return (hosts > 1) ? travel_check_mpich(env_list, command, why, size) : 0;
}
