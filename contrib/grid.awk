# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v want=target -v size=S -v window=W -v pace=PERCENT -f grid.awk RUNS
# awk -v want=verdict -v repeats=N -f grid.awk RUNS
# awk -v want=header -f grid.awk
#
# What contrib/grid says of its runs. RUNS has a line for each:
#
#   repeat,size,window,pace,FLOW
#
# where pace is "max" or a percentage, and FLOW the line that daqiri-flow -csv
# has printed, or nothing if it failed.

BEGIN {
    FS = ","
    if (want == "header") {
        print "repeat,size,window,pace,transport,device,bytes,window,target_gbps," \
              "gbps,messages_per_s,deviation_percent,sent,received,disorder," \
              "seconds,cpu_tx_s,cpu_rx_s"
        done = 1
        exit
    }
}

function median_of(name,    n, i, j, v, list)
{
    n = count[name]
    for (i = 1; i <= n; ++i) {
        v = value[name, i]
        for (j = i - 1; (j > 0) && (list[j] > v); --j) {
            list[j + 1] = list[j]
        }
        list[j + 1] = v
    }
    return (n % 2) ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

function add(name, v)
{
    value[name, ++count[name]] = v
}

{
    row = $2 SUBSEP $3 SUBSEP $4
    if (!(row in known)) {
        known[row] = 1
        order[++rows] = row
    }
    if ((NF < 18) || ($10 !~ /^[0-9]/)) {
        ++failed[row]
        next
    }
    add("gbps" SUBSEP row, $10)
    add("rate" SUBSEP row, $11)
    if ($12 != "") {
        add("deviation" SUBSEP row, $12)
    }
    bytes[$2] = $7
}

function say(name, what)
{
    verdict = verdict ((verdict == "") ? "" : ", ") what
    ++found[name]
}

function judge(row, part,    key, median, i, least, deviation)
{
    verdict = ""
    if ((count["gbps", row] + 0 < repeats) || failed[row]) {
        say("missing", "missing: " (repeats - count["gbps", row]) " of " repeats)
    }
    if (count["gbps", row] + 0 == 0) {
        printf "%6s %7s %6s %32s  %s\n", part[1], part[2], part[3], "", verdict
        return
    }

    key    = "gbps" SUBSEP row
    median = median_of(key)
    least  = most = value[key, 1]
    for (i = 2; i <= count[key]; ++i) {
        least = (value[key, i] + 0 < least + 0) ? value[key, i] : least
        most  = (value[key, i] + 0 > most + 0) ? value[key, i] : most
    }
    if (least < 0.9 * median) {
        say("cliff", sprintf("cliff: %.2f of the median", least / median))
    }

    deviation = ""
    if (part[3] != "max") {
        deviation = median_of("deviation" SUBSEP row)
        if ((part[3] + 0 <= 75) && ((deviation > 0.05) || (deviation < -0.05))) {
            say("pace", "pace missed")
        }
        deviation = sprintf("%+.4f %%", deviation)
    } else {
        rate = median_of("rate" SUBSEP row)
        if ((part[2] in slower) && (slower[part[2]] > 1.05 * rate)) {
            say("rate", sprintf("rate: %.2f of that of %s bytes",
                                rate / slower[part[2]], whose[part[2]]))
        }
        if (!(part[2] in slower) || (rate > slower[part[2]])) {
            slower[part[2]] = rate
            whose[part[2]]  = part[1]
        }
    }
    printf "%6s %7s %6s %10.4f %10.4f %10.4f %11s  %s\n", part[1], part[2],
           part[3], least, median, most, deviation, verdict
}

END {
    if (done) {
        exit
    }
    if (want == "target") {
        row = size SUBSEP window SUBSEP "max"
        if (count["gbps", row] + 0 > 0) {
            printf "%.9g\n", median_of("gbps" SUBSEP row) * pace / 100
        }
        exit
    }

    print ""
    printf "%6s %7s %6s %10s %10s %10s %11s\n", "size", "window", "pace",
           "least", "median", "most", "deviation"
    printf "%6s %7s %6s %10s %10s %10s %11s\n\n", "", "", "%", "Gb/s", "Gb/s",
           "Gb/s", "of median"
    # from long messages to short ones, for the rate
    for (i = rows; i >= 1; --i) {
        split(order[i], part, SUBSEP)
        judge(order[i], part)
    }
    bad = found["cliff"] + found["rate"] + found["pace"] + found["missing"]
    printf "\n%d rows: %d with a cliff, %d with a rate below that of longer messages, " \
           "%d with a pace missed, %d with runs missing\n", rows, found["cliff"],
           found["rate"], found["pace"], found["missing"]
    exit (bad > 0) || (rows == 0)
}
