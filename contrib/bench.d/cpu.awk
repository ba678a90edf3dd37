# SPDX-License-Identifier: BSD-3-Clause
#
# cat /proc/stat /proc/[0-9]*/stat | awk -f cpu.awk -v root=PID -v hz=HZ
#
# Seconds that all CPUs were busy, and seconds used by process PID and all
# below it, those included that have ended and were waited for.

$1 == "cpu" {
    busy = $2 + $3 + $4 + $7 + $8
}

# pid (name) state ppid ... utime stime cutime cstime; names may hold spaces
# and parentheses.
/^[0-9]+ \(/ {
    pid = $1
    sub(/^.*\) /, "")
    parent[pid] = $2
    used[pid]   = $12 + $13 + $14 + $15
}

function is_below(pid)
{
    while (pid > 1) {
        if (pid == root) {
            return 1
        }
        pid = parent[pid] + 0
    }
    return 0
}

END {
    for (pid in used) {
        if (is_below(pid)) {
            own += used[pid]
        }
    }
    print busy / hz, own / hz
}
