# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v better=smaller|bigger -v least=ROUNDS -f pairs.awk OURS THEIRS
#
# Two files with a figure a line, as many in each: line n of both are of round n,
# one right after the other, and so of a machine that was as fast for both. What
# is printed is "RATIO Z": the median of the rounds' ratios, more than 1 if ours
# are better, and how far they are from chance, in standard deviations, positive
# if ours are better (Wilcoxon's signed ranks, of the ratios' logarithms, without
# those that are 1). Z is "-" of fewer rounds than the least.

FNR == NR {
    ours[FNR] = $1
    next
}

{
    ratio = better == "smaller" ? $1 / ours[FNR] : ours[FNR] / $1
    far = log(ratio)
    distance[FNR] = far < 0 ? -far : far
    sign[FNR] = far < 0 ? -1 : far > 0
    for (i = FNR; i > 1 && sorted[i - 1] > ratio; i--) {
        sorted[i] = sorted[i - 1]
    }
    sorted[i] = ratio
    rounds = FNR
}

# equal distances have the mean of the ranks that they take together
function rank_of(i,    j, below, same)
{
    for (j = 1; j <= rounds; j++) {
        below += sign[j] && distance[j] < distance[i]
        same += sign[j] && distance[j] == distance[i]
    }
    return below + (same + 1) / 2
}

END {
    for (i = 1; i <= rounds; i++) {
        if (sign[i]) {
            rank = rank_of(i)
            sum += sign[i] * rank
            squares += rank * rank
        }
    }
    middle = (sorted[int((rounds + 1) / 2)] + sorted[int(rounds / 2) + 1]) / 2
    z = rounds < least ? "-" : sprintf("%.1f", squares ? sum / sqrt(squares) : 0)
    print middle, z
}
