/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cmd/cmd.h"

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
    {"faults", daqiri_faults, "make the software device fail on purpose"}
};

#define DAQIRI_NUM_SUBCOMMANDS \
    (sizeof(daqiri_subcommands) / sizeof(daqiri_subcommands[0]))

static void main_usage(FILE *stream)
{
    size_t i;

    fprintf(stream, "Usage: daqiri SUBCOMMAND [ARG]...\n"
                    "       daqiri [--help|--version]\n"
                    "\n"
                    "Subcommands:\n");
    for (i = 0; i < DAQIRI_NUM_SUBCOMMANDS; ++i) {
        fprintf(stream, "  %-12s %s\n", daqiri_subcommands[i].name,
                daqiri_subcommands[i].help);
    }
    fprintf(stream, "\n'daqiri SUBCOMMAND --help' says more about one.\n");
}

static int main_subcommand(const daqiri_subcommand_t *subcommand, int argc,
                           char **argv)
{
    char name[64];

    snprintf(name, sizeof(name), "daqiri %s", subcommand->name);
    argv[0] = name;
    return subcommand->run(argc, argv);
}

int main(int argc, char **argv)
{
    size_t i;

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
    for (i = 0; i < DAQIRI_NUM_SUBCOMMANDS; ++i) {
        if (strcmp(argv[1], daqiri_subcommands[i].name) == 0) {
            return main_subcommand(&daqiri_subcommands[i], argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "daqiri: there is no %s '%s'; 'daqiri --help' lists what "
            "there is\n", (argv[1][0] == '-') ? "option" : "subcommand",
            argv[1]);
    return DAQIRI_EXIT_USAGE;
}
