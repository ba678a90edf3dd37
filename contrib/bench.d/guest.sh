# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: the bed softroce. This script runs once more, inside
# of a virtual machine, and everything that is timed in one boot of it: times of
# two boots cannot be compared, only their ratios. How busy the machine is only
# the host knows. What is counted has a boot of its own, with another clock.
# shellcheck shell=bash

# What may pass until the machine is ended: each pair takes seconds, on a busy
# machine some tens.
guest_limit()
{
    local pairs

    # shellcheck disable=SC2086
    set -- $tests
    pairs=$(((runs + 1) * $# * 2))
    echo $((300 + pairs * 40))
}

# watch_guest: passes on what the guest says, and after each round what others
# have used of the CPUs. Counting, which comes last, they cannot disturb.
watch_guest()
{
    local line
    local timing=no

    while IFS= read -r line; do
        [ "$timing" = no ] || case $line in
            "$me: round "* | "$me: counting "* | "$me: timed") tell_foreign ;;
        esac
        case $line in
            "$me: round "*) timing=yes; mark_machine ;;
            "$me: counting "* | "$me: timed") timing=no ;;
        esac
        [ "$line" = "$me: timed" ] || printf '%s\n' "$line"
    done
}

# Where a library happens to lie is worth several percent to an emulated
# processor. So each process lies elsewhere, and medians are not of one place.
# boot_guest OPTION... -- ARGUMENT...: options of contrib/vm/run, arguments of ours
boot_guest()
{
    local run=$top/contrib/vm/run
    local options=(--env BENCH_INSIDE=yes)
    local command status name

    [ -x "$run" ] || die 1 "$run is not there: it boots the virtual machine"
    for name in BENCH_PERCENT BENCH_VERBS_COUNTER BENCH_LINE_PROGRAM "${!UCX_@}"; do
        options+=(--env "$name")
    done
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    printf -v command '%q ' "$top/contrib/bench" transports "$@"
    shopt -s lastpipe
    "$run" --network pair --memory 1536 --random-addresses \
        --time-limit "$(guest_limit)" "${options[@]}" "$command" |
        watch_guest
    status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] || die 1 "it failed in the virtual machine (status $status)"
}

# Where instructions are counted: whether the kernel's thread that does the device's
# work interrupts the processes that wait for it is chance, worth 5000 instructions
# of a READ and a tenth of a message of 256 KiB. So it always does.
put_device_first()
{
    local threads

    [ "$counted" = yes ] || return 0
    mapfile -t threads < <(pgrep '^ksoftirqd/')
    [ ${#threads[@]} -gt 0 ] && renice -n -20 -p "${threads[@]}" >/dev/null ||
        die 1 'the kernel of the virtual machine has no ksoftirqd to put first'
}

run_in_guest()
{
    if does time || does calls; then
        boot_guest -- "$@"
    fi
    ! does instructions || boot_guest --count --env BENCH_COUNTED=yes -- "$@"
    print_machine
}

# run_in_guests ARGUMENT...: one boot after the other.
run_in_guests()
{
    local boot

    if [ "$boots" -eq 1 ]; then
        run_in_guest "$@"
        return
    fi
    for ((boot = 1; boot <= boots; boot++)); do
        say "boot $boot of $boots"
        run_in_guest "$@" | tee "$work/boot.$boot"
        [ "${PIPESTATUS[0]}" -eq 0 ] || exit 1
    done
    print_boots
}

# Of each row of their tables the least, the median and the greatest ratio, and
# the z of all together: the sum of as many has so much more spread.
print_boots()
{
    local title z

    # NAME, numbers | numbers | ratio | z: a row, and not a heading
    awk -F '|' 'NF == 4 && ($3 + 0 > 0) {
        printf "%s\t%.2f\t%s\n", substr($0, 1, 30), $3, $4
    }' "$work"/boot.* > "$work/ratios"
    printf '\n%-30s%10s%10s%10s%10s%10s\n' 'ratios of all boots' minimum \
        median maximum boots z
    cut -f 1 "$work/ratios" | awk '!seen[$0]++' | while IFS= read -r title; do
        awk -F '\t' -v title="$title" '$1 == title { print $2 }' \
            "$work/ratios" > "$work/row"
        z=$(awk -F '\t' -v title="$title" '
            $1 == title && $3 ~ /[0-9]/ { sum += $3; ++n }
            END { if (n) printf "%.1f", sum / sqrt(n); else print "-" }' \
            "$work/ratios")
        # shellcheck disable=SC2046
        printf '%-30s%10.2f%10.2f%10.2f%10d%10s\n' "$title" \
            $(spread "$work/row") "$(wc -l < "$work/row")" "$z"
    done
}
