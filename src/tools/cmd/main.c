/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cmd/cmd.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef struct daqiri_subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} daqiri_subcommand_t;

static const daqiri_subcommand_t daqiri_subcommands[] = {
    {"run", daqiri_run, "run a command with daqiri as its MPI transport"},
    {"interfaces", daqiri_interfaces,
     "list network interfaces, RDMA ports and GIDs"},
    {"probe", daqiri_probe, "try whether RDMA and UCX are usable here"},
    {"pingpong", daqiri_pingpong, "send messages to and fro over raw verbs"},
    {"serve", daqiri_serve, "serve tcp, pingpong, sweep and drop-curve"},
    {"tcp", daqiri_tcp, "measure TCP, for comparison"},
    {"sweep", daqiri_sweep, "measure sizes, transports and patterns"},
    {"drop-curve", daqiri_drop_curve, "measure whether paces are kept without loss"},
    {"mpi-sweep", daqiri_mpi_sweep, "measure MPI by message size"},
    {"stats", daqiri_stats, "print counters of running jobs"},
    {"top", daqiri_top, "watch connections of running jobs"},
    {"faults", daqiri_faults, "make the software device fail on purpose"}
};

#define DAQIRI_NUM_SUBCOMMANDS \
    (sizeof(daqiri_subcommands) / sizeof(daqiri_subcommands[0]))

static void main_usage(FILE *stream)
{
    size_t i;

    fprintf(stream, "Usage: daqiri SUBCOMMAND [ARG]...\n"
                    "       daqiri help [SUBCOMMAND]\n"
                    "       daqiri [--help|--version]\n"
                    "\n"
                    "Subcommands:\n");
    for (i = 0; i < DAQIRI_NUM_SUBCOMMANDS; ++i) {
        fprintf(stream, "  %-12s %s\n", daqiri_subcommands[i].name,
                daqiri_subcommands[i].help);
    }
    fprintf(stream, "\n'daqiri help SUBCOMMAND' says more about one.\n");
}

static int main_subcommand(const daqiri_subcommand_t *subcommand, int argc,
                           char **argv)
{
    char name[64];

    snprintf(name, sizeof(name), "daqiri %s", subcommand->name);
    argv[0] = name;
    return subcommand->run(argc, argv);
}

static const daqiri_subcommand_t *main_find(const char *name)
{
    size_t i;

    for (i = 0; i < DAQIRI_NUM_SUBCOMMANDS; ++i) {
        if (strcmp(name, daqiri_subcommands[i].name) == 0) {
            return &daqiri_subcommands[i];
        }
    }
    return NULL;
}

static int main_refuse(const char *name)
{
    fprintf(stderr, "daqiri: there is no %s '%s'; 'daqiri --help' lists what "
            "there is\n", (name[0] == '-') ? "option" : "subcommand", name);
    return DAQIRI_EXIT_USAGE;
}

/* `daqiri help sweep` is `daqiri sweep --help`. */
static int main_help(int argc, char **argv)
{
    char option[] = "--help";
    char *words[] = {argv[0], option, NULL};
    const daqiri_subcommand_t *subcommand;

    if (argc == 1) {
        main_usage(stdout);
        return DAQIRI_EXIT_OK;
    }
    subcommand = main_find(argv[1]);
    if (subcommand == NULL) {
        return main_refuse(argv[1]);
    }
    if (argc > 2) {
        fprintf(stderr, "daqiri help: there are too many words; 'daqiri help "
                "SUBCOMMAND' says more about one\n");
        return DAQIRI_EXIT_USAGE;
    }
    return main_subcommand(subcommand, 2, words);
}

int main(int argc, char **argv)
{
    const daqiri_subcommand_t *subcommand;

    setlocale(LC_CTYPE, ""); /* of tables: which bytes are a character */
    if (argc < 2) {
        main_usage(stderr);
        return DAQIRI_EXIT_USAGE;
    }
    if ((strcmp(argv[1], "--help") == 0) || (strcmp(argv[1], "-h") == 0)) {
        main_usage(stdout);
        return DAQIRI_EXIT_OK;
    }
    if ((strcmp(argv[1], "--version") == 0) || (strcmp(argv[1], "-V") == 0)) {
        printf("daqiri %s (commit %s)\n", DAQIRI_VERSION, daqiri_commit);
        return DAQIRI_EXIT_OK;
    }
    if (strcmp(argv[1], "help") == 0) {
        return main_help(argc - 1, argv + 1);
    }
    subcommand = main_find(argv[1]);
    return (subcommand != NULL) ? main_subcommand(subcommand, argc - 1, argv + 1) :
                                  main_refuse(argv[1]);
}
