# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v size=BYTES -v timed=N -v before=N -f column.awk -f cold.awk
#
# Two columns, the times of two transports, a line for each pair of runs. Prints one
# row of the table of contrib/bench cold.

NF == 2 {
    ++rounds
    ours[rounds] = $1 + 0
    theirs[rounds] = $2 + 0
    ratio[rounds] = $2 / $1
}

# take(VALUES): into `column`, sorted
function take(values,    i)
{
    for (i = 1; i <= rounds; ++i) {
        column[i] = values[i]
    }
    sort_column(rounds)
}

function spread(values)
{
    take(values)
    return sprintf("%7.2f (%.2f to %.2f)", median(rounds), column[1], column[rounds])
}

END {
    printf "%8d %7d %7d  %-26s %-26s ", size, timed, before, spread(ours), spread(theirs)
    take(ratio)
    mark = verdict_of(rounds, median(rounds))
    printf "%.2f (%.2f to %.2f)%s\n", median(rounds), column[1], column[rounds],
           mark == " " ? "" : " " mark
}
