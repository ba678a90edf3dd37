# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f boots.awk FILE...: each FILE is what contrib/bench printed for one boot.
# Of each row of their tables the least, the median and the greatest ratio.

# NAME | six numbers | ratio: a row, and not a heading
/\|.*\|/ && ($NF + 0 > 0) {
    name = substr($0, 1, 30)
    if (!(name in count)) {
        order[++rows] = name
    }
    ratio[name, ++count[name]] = $NF
}

# The ratios of this row, least first.
function sort_ratios(name,    i, j, r) {
    for (i = 2; i <= count[name]; i++) {
        r = ratio[name, i]
        for (j = i - 1; (j > 0) && (ratio[name, j] > r); j--) {
            ratio[name, j + 1] = ratio[name, j]
        }
        ratio[name, j + 1] = r
    }
}

function median(name,    half) {
    half = int(count[name] / 2)
    return (count[name] % 2) ? ratio[name, half + 1] \
                             : (ratio[name, half] + ratio[name, half + 1]) / 2
}

END {
    printf "\n%-30s%10s%10s%10s%10s\n", "ratios of all boots", "minimum", \
           "median", "maximum", "boots"
    for (i = 1; i <= rows; i++) {
        name = order[i]
        sort_ratios(name)
        printf "%-30s%10.2f%10.2f%10.2f%10d\n", name, ratio[name, 1], \
               median(name), ratio[name, count[name]], count[name]
    }
}
