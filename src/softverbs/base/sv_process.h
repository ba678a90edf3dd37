/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other processes by their numbers, as /proc shows them.
 */
#ifndef SV_PROCESS_H
#define SV_PROCESS_H

#include <stdint.h>

struct sv_shm_head;

/* Whether the process with this number and start time runs: 1 or 0. -1 and errno if that
 * cannot be told, say because this process has no descriptor left. */
int sv_process_lives(int pid, uint64_t start_time);
/* Fields 3 (state) and 22 (start time) of /proc/<pid>/stat. 0, or -1 and errno. */
int sv_process_stat(int pid, char *state_p, uint64_t *start_time_p);
uint64_t sv_pid_namespace(void);
/* The id of a process in locks between processes; never 0. */
uint32_t sv_lock_id(const struct sv_shm_head *head);

#endif
