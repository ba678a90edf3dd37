# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/check: the table of parts, what it costs to run them, and
# which of them this call wants.
# shellcheck shell=bash

# table FILE: its lines without comments, fields between "|" without blanks.
table()
{
    sed -e '/^#/d' -e '/^ *$/d' -e 's/ *| */|/g' -e 's/ *$//' "$1"
}

# load_seconds FILE...: what each test or part takes; of two files that say it, the
# last one holds.
declare -A seconds_known=()
load_seconds()
{
    local file name seconds

    for file; do
        [ -f "$file" ] || continue
        while read -r name seconds; do
            case $name in '' | '#'*) ;; *) seconds_known[$name]=$seconds ;; esac
        done < "$file"
    done
}

# seconds_of NAME: what this test or part has taken before, on this machine or,
# if it was never run here, on a quiet one with two cores.
seconds_of()
{
    echo "${seconds_known[$1]:-5}"
}

# Which parts a name of --only or of the file of failures means: the first two
# steps of FLAVOUR/SUITE/TEST.
part_of()
{
    case $1 in
        */*/*) echo "${1%/*}" ;;
        *) echo "$1" ;;
    esac
}

is_wanted_part()
{
    local name=$1 want

    for want in "${only[@]}"; do
        # shellcheck disable=SC2053 # it may be a pattern
        [[ $name != $(part_of "$want") ]] || return 0
    done
    return 1
}

# choose_parts -> $parts, lines NAME|TESTS. With --only a part has the tests that
# --all runs, if that has it.
choose_parts()
{
    local name tiers tests

    load_seconds "$check_d/seconds" "$build_root/log/times"
    if [ "$again" = yes ]; then
        [ -s "$build_root/log/failed" ] || {
            say 'nothing failed last time'
            exit 0
        }
        mapfile -t only < "$build_root/log/failed"
    fi
    parts=()
    while IFS='|' read -r name tiers tests; do
        if [ ${#only[@]} -eq 0 ]; then
            case " $tiers " in *" $tier "*) parts+=("$name|$tests") ;; esac
        elif is_wanted_part "$name" && ! has_part "$name"; then
            parts+=("$name|$tests")
        fi
    done < <(table "$check_d/parts" | sort -s -t'|' -k2,2)
    check_only
}

has_part()
{
    local part

    for part in "${parts[@]}"; do
        [ "${part%%|*}" != "$1" ] || return 0
    done
    return 1
}

# Each --only must mean something.
check_only()
{
    local want part found

    for want in "${only[@]}"; do
        found=no
        for part in "${parts[@]}"; do
            # shellcheck disable=SC2053 # it may be a pattern
            [[ ${part%%|*} != $(part_of "$want") ]] || found=yes
        done
        [ "$found" = yes ] ||
            die 2 "there is no part \"$want\" (try $me --list)"
    done
}

# The flavours that the chosen parts are of; parts without one are of release.
chosen_flavours()
{
    local part name

    for part in "${parts[@]}"; do
        name=${part%%|*}
        case $name in
            */*) echo "${name%%/*}" ;;
            *) echo release ;;
        esac
    done | awk '!seen[$0]++'
}

chosen_suites()
{
    local part

    for part in "${parts[@]}"; do
        case $part in "$1"/*) part=${part%%|*}; echo "${part#*/}" ;; esac
    done
}

# --- what --list and the help print

# tier_seconds TIER: what its parts take when nothing else runs, as many tests at
# a time as there is room for, and what building them takes.
tier_seconds()
{
    local name tiers tests sum=0 flavours=

    while IFS='|' read -r name tiers tests; do
        case " $tiers " in *" $1 "*) ;; *) continue ;; esac
        sum=$((sum + $(part_slot_seconds "$name" "$tests")))
        case $name/$flavours in
            */*/*" ${name%%/*} "*) ;;
            */*/*) flavours="$flavours ${name%%/*} " ;;
        esac
    done < <(table "$check_d/parts")
    # shellcheck disable=SC2086 # words
    set -- $flavours
    echo $((sum / listed_slots + $# * build_seconds))
}

# part_slot_seconds NAME TESTS: seconds times slots, of the file of seconds.
part_slot_seconds()
{
    local name sum=0

    for name in "${!seconds_known[@]}"; do
        case $name in
            "$1") [ "${1#*/}" = "$1" ] || continue ;;
            "$1"/*) takes_test "${name##*/}" "$2" || continue ;;
            *) continue ;;
        esac
        sum=$((sum + seconds_known[$name] * $(weight_of "$name")))
    done
    echo "$sum"
}

# takes_test TEST TESTS: whether the column TESTS of a part has it.
takes_test()
{
    local word taken=no

    set -f # "*" is a word here
    for word in $2; do
        case $word in
            '*' | "$1") taken=yes ;;
            "-$1") taken=no ;;
        esac
    done
    set +f
    [ "$taken" = yes ]
}

minutes()
{
    echo "$((($1 + 59) / 60)) minutes"
}

# Of the file that comes with the sources, not of this machine.
print_check_help()
{
    load_seconds "$check_d/seconds"
    print_help | sed "s/@QUICK@/$(minutes "$(tier_seconds quick)")/
                      s/@ALL@/$(minutes "$(tier_seconds all)")/"
}

list_parts()
{
    local name tiers tests minutes what

    load_seconds "$check_d/seconds"
    printf '%-18s %-12s %8s  %s\n' PART TIERS SECONDS TESTS
    while IFS='|' read -r name tiers tests; do
        printf '%-18s %-12s %8d  %s\n' "$name" "${tiers/ /, }" \
            $((($(part_slot_seconds "$name" "$tests") + listed_slots - 1) / listed_slots)) \
            "${tests:--}"
    done < <(table "$check_d/parts")
    printf '\nquick: contrib/check, %s. all: contrib/check --all, %s.\n' \
        "$(minutes "$(tier_seconds quick)")" "$(minutes "$(tier_seconds all)")"
    printf 'Seconds are of two quiet cores, with other parts beside them.\n'
    printf '\n%-18s %-12s %s\n' 'LONG RUN' MINUTES WHAT
    while IFS='|' read -r name minutes what; do
        printf '%-18s %-12s %s\n' "$name" "$minutes" "$what"
    done < <(table "$check_d/long.list")
}
