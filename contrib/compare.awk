# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f compare.awk daqiri=FILE NAME=FILE...
#
# Puts tables of the MPI sweep side by side. The first one is compared with
# each of the others: the ratio says how many times better it is, for
# latencies theirs / its own, for bandwidths and rates its own / theirs. Of a
# table with two columns (MB/s, messages/s) the last one is shown.

function read_table(n, file,    test, unit, size)
{
    while ((getline line < file) > 0) {
        count = split(line, field, " ")
        if (line ~ /^# [a-z]+: /) {
            test = substr(field[2], 1, length(field[2]) - 1)
            title = substr(line, index(line, ": ") + 2)
        } else if (line ~ /^# (Size|Avg)/) {
            unit = (line ~ /Latency/) ? "us" : (line ~ /Messages/) ? "msg/s" : "MB/s"
            if (n == 1) {
                order[++tests] = test
                heading[test] = title
                units[test] = unit
            }
        } else if (line ~ /^ *[0-9.]+( |$)/ && test != "") {
            size = (count == 1) ? "-" : field[1]
            if (n == 1) {
                sizes[test, ++rows[test]] = size
            }
            value[n, test, size] = field[count]
        }
    }
    close(file)
}

function print_test(test,    i, n, size)
{
    printf "\n%s, %s: %s\n%-10s", test, units[test], heading[test], "size"
    for (n = 1; n <= columns; ++n) {
        printf "%14s", name[n]
    }
    for (n = 2; n <= columns; ++n) {
        printf "%14s", "vs " name[n]
    }
    printf "\n"
    for (i = 1; i <= rows[test]; ++i) {
        size = sizes[test, i]
        printf "%-10s", size
        for (n = 1; n <= columns; ++n) {
            printf "%14s", ((n, test, size) in value) ? value[n, test, size] : "-"
        }
        for (n = 2; n <= columns; ++n) {
            print_ratio(value[1, test, size], value[n, test, size], units[test])
        }
        printf "\n"
    }
}

function print_ratio(own, theirs, unit)
{
    if (own <= 0 || theirs <= 0) {
        printf "%14s", "-"
    } else {
        printf "%13.2fx", (unit == "us") ? theirs / own : own / theirs
    }
}

BEGIN {
    for (i = 1; i < ARGC; ++i) {
        cut = index(ARGV[i], "=")
        name[++columns] = substr(ARGV[i], 1, cut - 1)
        read_table(columns, substr(ARGV[i], cut + 1))
    }
    for (i = 1; i <= tests; ++i) {
        print_test(order[i])
    }
    exit tests == 0
}
