# SPDX-License-Identifier: BSD-3-Clause
#
# Microseconds, ascending, one a line -> one line of the table, in milliseconds:
# least, median, 99 % (so many are no longer), most, and how many are above the
# limit. The exit status is 1 if that of 99 % is, 2 if there is nothing.
{
    ms[NR] = $1 / 1000
    above += ms[NR] > limit
}

END {
    if (NR == 0)
        exit 2
    p99 = ms[int((99 * NR + 99) / 100)]
    printf "%-46s%9.2f%9.2f%9.2f%9.2f%9.3g %%\n", title, ms[1], \
        ms[int((NR + 1) / 2)], p99, ms[NR], 100 * above / NR
    exit p99 > limit
}
