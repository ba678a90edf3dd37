/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test that is about to run out of time says where its threads are. Check ends it with
 * SIGKILL, and then nobody can tell any more what it waited for.
 */
#ifndef T_STUCK_H
#define T_STUCK_H

/*
 * In so many milliseconds from now, unless this process has ended by then, each of its
 * threads writes its name and its return addresses to @a fd (addr2line reads them). The
 * calling thread writes first. The process goes on. Children do not inherit it.
 */
void t_stuck_arm(unsigned milliseconds, int fd);

#endif
