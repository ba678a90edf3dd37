# SPDX-License-Identifier: BSD-3-Clause
#
# Read before rounds.awk, cold.awk and ratio.awk: figures of the same thing from so many
# `rounds`, in the array `column`.

# take_pair(): the line has the figures of two transports in one round
function take_pair()
{
    ++rounds
    ours[rounds] = $1 + 0
    theirs[rounds] = $2 + 0
}

# sort_column(COUNT): of `column`, which is small
function sort_column(count,    i, j, x)
{
    for (i = 2; i <= count; ++i) {
        x = column[i]
        for (j = i - 1; j >= 1 && column[j] > x; --j) {
            column[j + 1] = column[j]
        }
        column[j + 1] = x
    }
}

function median(count)
{
    return (column[int((count + 1) / 2)] + column[int(count / 2) + 1]) / 2
}

# spread(VALUES, DIGITS, WIDTH): "MEDIAN (LEAST to MOST)" of `rounds` values, which stay in
# `column`, sorted. WIDTH is the median's, 0 for none.
function spread(values, digits, width,    i, plain)
{
    for (i = 1; i <= rounds; ++i) {
        column[i] = values[i]
    }
    sort_column(rounds)
    plain = "%." digits "f"
    return sprintf("%" (width > 0 ? width : "") "." digits "f (" plain " to " plain ")",
                   median(rounds), column[1], column[rounds])
}

# Of ratios, sorted: "+" or "-" if all rounds have the difference and it is more than
# luck, "?" if there are too few.
function verdict_of(count, middle)
{
    if (count < rounds) {
        return "?"
    }
    if (column[1] > 1 && middle > 1.05) {
        return "+"
    }
    return (column[count] < 1 && middle < 0.95) ? "-" : " "
}
