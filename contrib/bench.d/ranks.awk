# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v better=smaller|bigger -f ranks.awk OURS THEIRS
#
# Two files with a figure a line. How far their ranks are from those of figures
# that are mixed at random (Mann and Whitney's U, with the correction for equal
# ones), in standard deviations; positive if ours are better. "-" of fewer than
# four a side, of which nothing can be said.

FNR == 1 {
    side++
}

{
    value[++count] = $1 + 0
    is_ours[count] = side == 1
    of[side]++
}

END {
    if (of[1] < 4 || of[2] < 4) {
        print "-"
        exit
    }
    for (i = 1; i <= count; i++) {
        rank = 1
        same = 0
        for (j = 1; j <= count; j++) {
            rank += value[j] < value[i]
            same += value[j] == value[i]
        }
        if (is_ours[i]) {
            sum += rank + (same - 1) / 2
        }
        ties += same * same - 1
    }
    pairs = of[1] * of[2]
    variance = pairs / 12 * (count + 1 - ties / (count * (count - 1)))
    above = sum - of[1] * (of[1] + 1) / 2 - pairs / 2
    if (better == "smaller") {
        above = -above
    }
    printf "%.1f\n", (variance > 0) ? above / sqrt(variance) : 0
}
