# SPDX-License-Identifier: BSD-3-Clause
#
# awk [-v digits=N] -f column.awk -f ratio.awk
#
# Two columns, the figures of two transports, a line for each pair of runs. Prints both
# and their ratio, a row of the table of contrib/bench connects, streams and jobs; the
# figures with so many digits behind the point.

NF == 2 {
    take_pair()
    ratio[rounds] = $1 / $2
}

END {
    if (rounds == 0) {
        print "no pair of runs has given two figures" >"/dev/stderr"
        exit 1
    }
    printf "%-28s %-28s %s\n", spread(ours, digits), spread(theirs, digits),
           spread(ratio, 2)
}
