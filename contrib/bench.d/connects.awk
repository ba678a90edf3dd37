# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f column.awk -f connects.awk
#
# Two columns, the rates of two transports, a line for each pair of runs. Prints the row of
# the table of contrib/bench connects.

NF == 2 {
    ++rounds
    ours[rounds] = $1 + 0
    theirs[rounds] = $2 + 0
    ratio[rounds] = $1 / $2
}

END {
    printf "%-28s %-28s %s\n", spread(ours, 0), spread(theirs, 0),
           spread(ratio, 2)
}
