/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints one row of `contrib/bench scale`, which checks the arguments:
 *
 *   scale INTERFACES DISTANCES LOSS QP_US SEED [star] [in-order] [no-PART]...
 *
 * The columns: frames and repeated frames of a connection; frames lost where no receive
 * buffer was free, of a thousand connections; time until all are up, s; the time that
 * half, 99.9 % and all of the connections took, ms; connections that failed; records at a
 * time; memory, MB.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_word(sim_settings_t *set, const char *word)
{
    set->no_pace     |= strcmp(word, "no-pace") == 0;
    set->no_jitter   |= strcmp(word, "no-jitter") == 0;
    set->no_backlog  |= strcmp(word, "no-backlog") == 0;
    set->no_learning |= strcmp(word, "no-learning") == 0;
    set->in_order    |= strcmp(word, "in-order") == 0;
    if (strcmp(word, "star") == 0) {
        set->distances = SIM_STAR;
    }
}

int main(int argc, char **argv)
{
    sim_settings_t set = sim_defaults();
    sim_result_t result;
    uint64_t qp;
    int i;

    if (argc < 6) {
        fprintf(stderr, "scale: contrib/bench scale runs this\n");
        return 2;
    }
    set.ifaces    = strtoul(argv[1], NULL, 10);
    set.distances = strtoul(argv[2], NULL, 10);
    set.loss      = strtod(argv[3], NULL) / 100;
    qp            = strtoul(argv[4], NULL, 10) * 1000;
    set.create    = qp * 6 / 10;
    set.connect   = qp - set.create;
    set.seed      = strtoull(argv[5], NULL, 10);
    for (i = 6; i < argc; i++) {
        set_word(&set, argv[i]);
    }
    if (sim_run(&set, &result) != 0) {
        fprintf(stderr, "scale: there is not enough memory for %u interfaces\n",
                set.ifaces);
        return 1;
    }
    printf("%7s %10.3f %9.3f %8.1f %10.3f %9.2f %9.2f %9.1f %8llu %9llu %6llu\n",
           argv[3], (double)result.frames / result.wanted,
           (double)result.repeated / result.wanted,
           1000.0 * result.overrun / result.wanted, result.seconds,
           1000 * result.took[0], 1000 * result.took[2], 1000 * result.took[3],
           (unsigned long long)result.failed, (unsigned long long)result.most_alive,
           (unsigned long long)(result.bytes >> 20));
    return 0;
}
