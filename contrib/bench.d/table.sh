# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: the tables.
# shellcheck shell=bash

# spread FILE -> "minimum median maximum"
spread()
{
    sort -g "$1" | awk '
        { v[NR] = $1 }
        END {
            m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
            print v[1], m, v[NR]
        }'
}

# What is farther from chance than this is no luck. Eight rounds that all say the
# same are no farther: it takes nine.
luck=2.5
least_runs=9

# An instruction is a nanosecond where they are counted.
if [ "$counted" = yes ]; then
    us='1000 instr.' per_s='/G instr.'
else
    us=us per_s=/s
fi

# row TITLE NAME smaller|bigger: one line of the table; $work/behind gets the
# titles of those in which $theirs is better, and not by luck.
row()
{
    local ratio z

    read -r ratio z < <(awk -v better="$3" -v least="$least_runs" \
        -f "$bench_d/pairs.awk" "$work/$2.$ours" "$work/$2.$theirs")
    echo "$(spread "$work/$2.$ours") $(spread "$work/$2.$theirs")" |
        awk -v title="$1" -v ratio="$ratio" -v z="$z" '{
            line = sprintf("%-30s", title)
            for (i = 1; i <= 6; i++)
                line = line sprintf(($i >= 1000) ? "%10.0f" : "%10.3f", $i) \
                       (i == 3 ? "  |" : "")
            printf "%s  | %6.2f | %5s\n", line, ratio, z
        }'
    ! is_behind "$z" "$ratio" || echo "$1" >> "$work/behind"
}

# is_behind Z RATIO; in what is counted 2 instructions more of 6000 are no luck
# either, and yet as good as none.
is_behind()
{
    awk -v z="$1" -v luck="$luck" -v ratio="$2" -v counted="$counted" \
        'BEGIN { exit !(z + 0 < -luck && (counted == "no" || ratio < 0.995)) }'
}

print_behind()
{
    local how='better, and not by luck,'

    [ "$counted" = no ] || how='better by half a per cent, and not by luck,'
    if [ "$runs" -lt "$least_runs" ]; then
        printf 'Fewer than nine runs do not tell what is luck.\n'
    elif [ -s "$work/behind" ]; then
        printf '%s is %s in:\n' "$theirs" "$how"
        sed 's/^/    /' "$work/behind"
    else
        printf '%s is %s in no row.\n' "$theirs" "$how"
    fi
}

print_heading()
{
    printf '\n%-30s%-30s  |%-30s  |  ratio |     z\n' "$device" \
        "           $ours" "            $theirs"
    printf '%-30s%10s%10s%10s  |%10s%10s%10s  |        |\n' '' \
        minimum median maximum minimum median maximum
}

print_uct_rows()
{
    local name title

    for name in $(chosen_uct_tests); do
        load_test "$name"
        fit_test "$name" || continue
        title="$name, $size B"
        case $kind in
            latency)
                # ucx_perftest's medians come in steps of a half
                [ "$counted" = yes ] ||
                    row "$title, $us, median" "$name.median" smaller
                row "$title, $us, mean" "$name.mean" smaller
                ;;
            rate) row "$title, messages$per_s" "$name.rate" bigger ;;
            bandwidth) row "$title, MB$per_s" "$name.bandwidth" bigger ;;
        esac
    done
}

print_mpi_rows()
{
    local name test size

    for name in $mpi_tests; do
        has_test "$name" || continue
        while read -r test size; do
            case $test in
                latency) row "$name, $size B, $us" "$name.$test.$size" smaller ;;
                bw) row "$name, $size B, Gb$per_s" "$name.$test.$size" bigger ;;
            esac
        done < "$work/$name.rows"
    done
}

print_instruction_rows()
{
    row 'instructions, am_lat, 8 B' ir_am_lat smaller
    row 'instructions, am_rate, 8 B' ir_am_bw smaller
}

print_where()
{
    printf '\nInstructions per message, by shared object:\n'
    sed 's/^/    /' "$work/where"
}

print_ratios()
{
    print_heading
    if does time; then
        print_uct_rows
        print_mpi_rows
    fi
    ! does instructions || print_instruction_rows
    printf '\nratio: the median of those of the rounds; more than 1.00 means that %s\n' "$ours"
    printf 'is better.\n'
    ! does time || print_luck
}

# Of what is counted as well as of what is timed.
print_luck()
{
    printf 'z: how far these are from chance, in standard deviations; positive if\n'
    printf '%s is better. From -%s to %s it may be luck.\n' \
        "$ours" "$luck" "$luck"
    print_behind
    printf 'Runs of each, the two in turns: %s.\n' "$runs"
    if [ "$counted" = yes ]; then
        print_counted
    else
        print_steadiness
    fi
}

print_counted()
{
    cat <<- 'END'
	Instructions of the whole machine, its kernel included, are counted here, not
	timed: what one process spends that talks to itself, or, of MPI, two ranks on
	one CPU, of which who finds nothing lets the other one run. G are 10^9.
	END
}

print_tables()
{
    ! does time && ! does instructions || print_ratios
    [ ! -s "$work/notes" ] || { echo; cat "$work/notes"; }
    ! does calls || print_calls
    ! does instructions || print_where
}
