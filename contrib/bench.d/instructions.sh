# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: instructions per message, in one process that talks
# to itself. The count holds on a busy machine, too.
# shellcheck shell=bash

# instructions SIDE TEST COUNT -> $collected, and "instructions object"
# for every shared object in the file $work/objects.COUNT
instructions()
{
    clear_stats
    perftest "$1" client timeout 300 valgrind --fair-sched=yes \
        --tool=callgrind --callgrind-out-file="$work/callgrind" \
        $T_PERFTEST -l -x "$(transport_of "$1")" -d "$device" -t "$2" \
        -D short -s 8 -w 100 -n "$3" -f -v >"$work/valgrind" 2>&1 </dev/null ||
        give_up "$1" "$work/valgrind"
    collected=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/valgrind")
    [ -n "$collected" ] || give_up "$1" "$work/valgrind"
    carried "$1" am_short "$3"
    awk -f "$bench_d/objects.awk" "$work/callgrind" > "$work/objects.$3"
}

# Which object spends them, per message, from the two runs.
per_object()
{
    awk -v n=$((long_count - short_count)) '
        NR == FNR { few[$2] = $1; next }
        {
            cost = ($1 - few[$2]) / n
            if (cost >= 0.5) printf "%7.0f %s\n", cost, $2
        }' "$work/objects.$short_count" "$work/objects.$long_count" |
        sort -rn
}

count_instructions()
{
    local side test few many

    for side in $ours $theirs; do
        for test in am_lat am_bw; do
            say "counting instructions: $side, $test"
            instructions "$side" "$test" "$short_count"
            few=$collected
            instructions "$side" "$test" "$long_count"
            many=$collected
            awk -v n=$((long_count - short_count)) -v d=$((many - few)) \
                'BEGIN { print d / n }' > "$work/ir_$test.$side"
            { echo "$side, $test:"; per_object; } >> "$work/where"
        done
    done
}
