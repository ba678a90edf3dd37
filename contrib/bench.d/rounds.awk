# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v rounds=N -v data=FILE -v title=MPI -f column.awk -f rounds.awk NAME=PREFIX...
#
# Tables of the MPI sweep, N of each NAME, in the files PREFIX.1 to PREFIX.N. Those
# of one round were made one right after the other. The first NAME is compared with
# each of the others: a ratio says how many times better it is, for latencies
# theirs / its own, for bandwidths and rates its own / theirs. What is printed is the
# median of the rounds' own ratios, and from the least to the most of them, for a
# host that is slower for a minute is slower for all of a round.
#
# A difference is more than luck if every round has it on the same side and the
# median is more than 5 % away from 1: "+" if the first is better, "-" if it is worse.
# Chance alone has N rounds on one side once in 2^(N-1) cells.
#
# At the end comes one line that begins with "summary: ", about the second NAME. DATA
# gets a line for each cell: NAME TEST SIZE LEAST MEDIAN MOST.

function read_table(n, round, file,    line, field, count, test, unit, heading, size)
{
    while ((getline line < file) > 0) {
        count = split(line, field, " ")
        if (line ~ /^# [a-z]+: /) {
            test = substr(field[2], 1, length(field[2]) - 1)
            heading = substr(line, index(line, ": ") + 2)
        } else if (line ~ /^# (Size|Mean)/) {
            unit = (line ~ /\(us\)/) ? "us" : (line ~ /Messages/) ? "msg/s" : "Gb/s"
            if (!(test in units)) {
                order[++tests] = test
                headings[test] = heading
                units[test] = unit
            }
        } else if (line ~ /^ *[0-9.]+( |$)/ && test != "") {
            size = (count == 1) ? "-" : field[1]
            if (!((test, size) in known)) {
                known[test, size] = 1
                sizes[test, ++rows[test]] = size
            }
            value[n, test, size, round] = field[count]
        }
    }
    close(file)
}

# The values of a cell into `column`, sorted; how many there are.
function take_values(n, test, size,    round, count)
{
    for (round = 1; round <= rounds; ++round) {
        if ((n, test, size, round) in value) {
            column[++count] = value[n, test, size, round] + 0
        }
    }
    sort_column(count)
    return count
}

# The same of the ratios.
function take_ratios(n, test, size,    round, count, own, theirs)
{
    for (round = 1; round <= rounds; ++round) {
        own = value[1, test, size, round] + 0
        theirs = value[n, test, size, round] + 0
        if (own > 0 && theirs > 0) {
            column[++count] = (units[test] == "us") ? theirs / own : own / theirs
        }
    }
    sort_column(count)
    return count
}

function print_ratio(n, test, size,    count, middle, verdict)
{
    count = take_ratios(n, test, size)
    if (count == 0) {
        printf "%24s", "-"
        return
    }
    middle = median(count)
    verdict = verdict_of(count, middle)
    printf "%8.2fx (%.2f-%.2f) %s", middle, column[1], column[count], verdict
    if (n == 2) {
        logs[test] += log(middle)
        ++compared[test]
        if (verdict == "-") {
            slower = slower (slower == "" ? "" : ", ") test (size == "-" ? "" : " " size)
        }
    }
}

function print_value(n, test, size,    count)
{
    count = take_values(n, test, size)
    if (count == 0) {
        printf "%13s", "-"
        return
    }
    printf (median(count) >= 1000) ? "%13.0f" : "%13.2f", median(count)
    if (data != "") {
        print name[n], test, size, column[1], median(count), column[count] > data
    }
}

function print_test(test,    i, n, size)
{
    printf "\n%s, %s: %s\n%-8s", test, units[test], headings[test], "size"
    for (n = 1; n <= columns; ++n) {
        printf "%13s", name[n]
    }
    for (n = 2; n <= columns; ++n) {
        printf "%24s", "vs " name[n] " (range)  "
    }
    printf "\n"
    for (i = 1; i <= rows[test]; ++i) {
        size = sizes[test, i]
        printf "%-8s", size
        for (n = 1; n <= columns; ++n) {
            print_value(n, test, size)
        }
        for (n = 2; n <= columns; ++n) {
            print_ratio(n, test, size)
        }
        printf "\n"
    }
}

function print_summary(    i, test, line)
{
    for (i = 1; i <= tests; ++i) {
        test = order[i]
        if (compared[test] > 0) {
            line = line (line == "" ? "" : ", ") \
                   sprintf("%s %.2fx", test, exp(logs[test] / compared[test]))
        }
    }
    printf "summary: %s, %s / %s: %s; slower than %s by more than luck: %s\n", \
           title, name[1], name[2], line, name[2], slower == "" ? "none" : slower
}

BEGIN {
    for (i = 1; i < ARGC; ++i) {
        cut = index(ARGV[i], "=")
        name[++columns] = substr(ARGV[i], 1, cut - 1)
        for (round = 1; round <= rounds; ++round) {
            read_table(columns, round, substr(ARGV[i], cut + 1) "." round)
        }
    }
    for (i = 1; i <= tests; ++i) {
        print_test(order[i])
    }
    if (tests > 0 && columns > 1) {
        print_summary()
    }
    exit tests == 0
}
