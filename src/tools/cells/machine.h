/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A look at the machine before the first run: who else uses the CPUs that this
 * process may use. Everything that the kernel does not tell is null.
 */

#ifndef DAQIRI_MACHINE_H
#define DAQIRI_MACHINE_H

#include <jansson.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/* Ticks of those CPUs since boot. */
typedef struct daqiri_machine_times {
    uint64_t busy, stolen, all;
} daqiri_machine_times_t;

/* Below `root` are proc and sys. */
void daqiri_machine_read_times(const char *root, const cpu_set_t *cpus,
                               daqiri_machine_times_t *times);

/* {"host", "cpus", "load", "busy_percent", "steal_percent", "ghz", "ghz_most"},
 * of the time between the two. The caller owns it. */
json_t *daqiri_machine_report(const char *root, const cpu_set_t *cpus,
                              const daqiri_machine_times_t *before,
                              const daqiri_machine_times_t *after);

/* Takes 0.1 s. */
json_t *daqiri_machine_look(void);

/* "2 CPUs, load 0.1, others use 3 % of them"; a warning if fewer CPUs are idle
 * than the ends want. Returns text. */
const char *daqiri_machine_text(const json_t *machine, unsigned wanted, char *text,
                                size_t length);

#endif
