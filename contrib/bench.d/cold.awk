# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v size=BYTES -v timed=N -v before=N -f column.awk -f cold.awk
#
# Two columns, the times of two transports, a line for each pair of runs. Prints one
# row of the table of contrib/bench cold.

NF == 2 {
    take_pair()
    ratio[rounds] = $2 / $1
}

END {
    printf "%8d %7d %7d  %-26s %-26s ", size, timed, before, spread(ours, 2, 7),
           spread(theirs, 2, 7)
    text = spread(ratio, 2)
    mark = verdict_of(rounds, median(rounds))
    printf "%s%s\n", text, mark == " " ? "" : " " mark
}
