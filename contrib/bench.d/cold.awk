# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v size=BYTES -v timed=N -v before=N -f cold.awk
#
# Two columns, the times of two transports, a line for each pair of runs. Prints one
# row of the table of contrib/bench cold.

# sort_into SORTED FROM COUNT
function sort_into(sorted, from, count,    i, j, value)
{
    for (i = 1; i <= count; i++) {
        value = from[i]
        for (j = i - 1; j >= 1 && sorted[j] > value; j--) {
            sorted[j + 1] = sorted[j]
        }
        sorted[j + 1] = value
    }
}

function median(sorted, count)
{
    return (sorted[int((count + 1) / 2)] + sorted[int(count / 2) + 1]) / 2
}

function spread(from, count,    sorted)
{
    sort_into(sorted, from, count)
    return sprintf("%7.2f (%.2f to %.2f)", median(sorted, count), sorted[1],
                   sorted[count])
}

NF == 2 {
    rows++
    ours[rows] = $1 + 0
    theirs[rows] = $2 + 0
    ratio[rows] = $2 / $1
}

END {
    sort_into(ratios, ratio, rows)
    middle = median(ratios, rows)
    mark = ""
    if (ratios[1] > 1 && middle > 1.05) {
        mark = " +"
    } else if (ratios[rows] < 1 && middle < 0.95) {
        mark = " -"
    }
    printf "%8d %7d %7d  %-26s %-26s %.2f (%.2f to %.2f)%s\n", size, timed, before,
           spread(ours, rows), spread(theirs, rows), middle, ratios[1], ratios[rows],
           mark
}
