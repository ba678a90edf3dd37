# SPDX-License-Identifier: BSD-3-Clause
#
# Microseconds, ascending, and for how many of them a CPU stood still (less than
# 0: not known), one a line -> one line of the table, in milliseconds: least,
# median, 99 % (so many are no longer), most, how many are above the limit, and of
# those how many would not be without that. The exit status is 1 if that of 99 % is,
# 2 if there is nothing.
{
    ms[NR] = $1 / 1000
    if (ms[NR] > limit) {
        above++
        unknown += $2 < 0
        excused += $2 >= 0 && ms[NR] - $2 / 1000 <= limit
    }
}

END {
    if (NR == 0)
        exit 2
    p99 = ms[int((99 * NR + 99) / 100)]
    printf "%-46s%9.2f%9.2f%9.2f%9.2f%9.3g %%%9s\n", title, ms[1], \
        ms[int((NR + 1) / 2)], p99, ms[NR], 100 * above / NR, \
        !above ? "-" : unknown ? "?" : excused "/" above
    exit p99 > limit
}
