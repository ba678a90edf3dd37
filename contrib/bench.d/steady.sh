# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: whether the two processors are as near to each other as
# they can be. The host of a virtual machine moves them, for seconds to minutes, and
# what goes between two processes takes up to three times as long meanwhile,
# whoever carries it.
# shellcheck shell=bash

# A line to and fro takes 60 to 95 ns between near ones, 340 to 460 between
# far ones (AMD EPYC, docs/bench.md); in a virtual machine on it 100 to 140.
near_times=2.5
# How often to look until they are near, a second apart, and how often to run.
near_looks=10
steady_runs=4
# How many looks may find them far before nothing is waited for any more: a
# machine that is never near again is measured as it is.
most_far_looks=100

least_line=
far_looks=0
made_runs=0
far_runs=0

# Built where there is a compiler at full speed: outside of a virtual machine.
build_line_program()
{
    [ -z "${BENCH_LINE_PROGRAM:-}" ] || return 0
    export BENCH_LINE_PROGRAM=$work/line_program
    "${CC:-cc}" -O2 -o "$BENCH_LINE_PROGRAM" "$bench_c/line.c" ||
        die 1 "$bench_c/line.c cannot be compiled"
}

# -> nanoseconds; nothing where there is one processor, or no time for it.
line_ns()
{
    [ "$(nproc)" -lt 2 ] || "$BENCH_LINE_PROGRAM"
}

# look_at_line: false if it is far. Of what is not known nothing is said.
look_at_line()
{
    local line

    line=$(line_ns 2>/dev/null)
    [ -n "$line" ] || return 0
    if [ -z "$least_line" ] || [ "$line" -lt "$least_line" ]; then
        least_line=$line
    fi
    awk -v line="$line" -v least="$least_line" -v times="$near_times" \
        'BEGIN { exit line > least * times }' && return 0
    far_looks=$((far_looks + 1))
    return 1
}

await_near()
{
    local looks

    for ((looks = 1; looks <= near_looks; looks++)); do
        [ "$far_looks" -lt "$most_far_looks" ] || return 0
        ! look_at_line || return 0
        sleep 1
    done
}

# steadily COMMAND...: and once more if they are far afterwards; what was written
# by the run before is written anew.
steadily()
{
    local tries

    if [ "$counted" = yes ]; then
        "$@"
        return
    fi
    for ((tries = 1; tries <= steady_runs; tries++)); do
        await_near
        "$@"
        made_runs=$((made_runs + 1))
        ! look_at_line || return 0
        [ "$far_looks" -lt "$most_far_looks" ] || break
    done
    far_runs=$((far_runs + 1))
}

print_steadiness()
{
    [ -n "$least_line" ] || return 0
    printf 'CPUs near to each other: a line of memory takes %s ns there and back. Of %s\n' \
        "$least_line" "$made_runs"
    printf 'runs those were made again that ended far from that; of the last ones %s did.\n' \
        "$far_runs"
}
