# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/check: what came of each job, and what is said of it.
# shellcheck shell=bash

passed=0
failed=0
skipped=0
failed_jobs=()        # names for --again
declare -A part_sums=() # by part: passed failed skipped seconds
declare -A took=()      # by job and part: seconds

# add_result PART PASSED FAILED SKIPPED SECONDS
add_result()
{
    local p f s t

    read -r p f s t <<< "${part_sums[$1]:-0 0 0 0}"
    part_sums[$1]="$((p + $2)) $((f + $3)) $((s + $4)) $((t + $5))"
    passed=$((passed + $2))
    failed=$((failed + $3))
    skipped=$((skipped + $4))
}

# A check of this script's own, which counts as one.
step_passed()
{
    passed=$((passed + 1))
    say "passed: $1"
}

# step_failed NAME AGAIN LOG
step_failed()
{
    failed=$((failed + 1))
    tell_failure "$@"
}

# tell_failure NAME AGAIN LOG [WORDS]: what failed, what it said at last, how to repeat
# that alone, and where all of its output is. Once more at the end of all.
tell_failure()
{
    local lines said=

    [ -z "${4:-}" ] || said=$(sed "s/^/$me:     said:  /" <<< "$4")$'\n'
    printf -v lines '%s: FAILED: %s\n%s%s:     again: %s\n%s:     log:   %s' \
        "$me" "$1" "$said" "$me" "$2" "$me" "$3"
    failures+=("$lines")
    printf '%s\n' "$lines"
}

failures=()

# What to type to run one of these tests once more: this script, or the one that runs
# it with another UCX.
check_as=${T_CHECK_AS:-contrib/check}

no_warnings()
{
    local found

    found=$(grep -n -i 'warning' "$2")
    if [ -z "$found" ]; then
        step_passed "$1"
    else
        printf '%s\n' "$found" | head -n 20 | sed 's/^/    /'
        step_failed "$1" "$3" "$2"
    fi
}

# --- a test of a suite

# count RESULT FILE: how many results of that name automake noted.
count()
{
    grep -c "^:test-result: $1\\b" "$2"
}

# A log holds much that passed: of each case that failed its line, and the
# comments before it, back to the case before, and after it. What a program that
# a case started says has passed is as little of use there. A log without such a
# line is of a program that died; there the first lines tell most.
show_failures()
{
    local log=$1

    {
        awk '
            /^(ok |PASS: |SKIP: )/ { n = 0; after = 0; next }
            /^(FAIL: |# ok )/ { next }
            /^not ok / {
                for (i = (n > 30 ? n - 30 : 0); i < n; i++) {
                    print before[i]
                }
                print
                n = 0
                after = 20
                next
            }
            after > 0 { print; after--; next }
            { before[n++] = $0 }' "$log" |
            head -n 120 | grep . ||
            grep -vE '^(PASS|SKIP|ok |# seed)' "$log" | head -n 60
        grep -E '^# seed' "$log"
    } | sed 's/^/        /'
}

# failed_cases LOG: a line for each, its description.
failed_cases()
{
    sed -n 's/^not ok *\([0-9]* \)\? *\(- *\)\?//p' "$1"
}

# last_words LOG DESCRIPTION: the last lines of what that case said when it failed.
last_words()
{
    CASE=$2 awk '
        /^(not )?ok / {
            at = length($0) - length(ENVIRON["CASE"]) + 1
            on = /^not / && (substr($0, at) == ENVIRON["CASE"])
            next
        }
        on && sub(/^# */, "") && !/^(ok |PASS: |SKIP: |$)/' "$1" |
        tail -n 16
}

# quoted TEXT: as a shell reads it back.
quoted()
{
    printf "'%s'" "${1//\'/\'\\\'\'}"
}

# case_of JOB DESCRIPTION: what --case selects it by. check names file, case and
# test; of the others, a bed's among them, the description is the name.
case_of()
{
    local rest=${2#*:}

    if [[ $1 != */softroce/* && $2 == *.c:*:* ]]; then
        echo "${rest%%:*}"
    else
        echo "$2"
    fi
}

# tell_cases JOB LOG: the failed cases, at most so many.
most_told=10
tell_cases()
{
    local job=$1 log=$2
    local description again told=0

    while read -r description; do
        [ "$told" -lt "$most_told" ] || break
        told=$((told + 1))
        again="$check_as --only $job --case $(quoted "$(case_of "$job" "$description")")"
        tell_failure "$job: $description" "$again" "$log" \
            "$(last_words "$log" "$description")"
    done < <(failed_cases "$log")
    [ "$told" -gt 0 ] ||
        tell_failure "$job" "$check_as --only $job" "$log"
}

# --case: whether a test that was run has it. Nothing that ran is nothing that passed.
has_case=
check_case()
{
    [ -n "$T_CASE" ] && [ -z "$has_case" ] || return 0
    failed=$((failed + 1))
    failures+=("$me: FAILED: no test of these has the case $(quoted "$T_CASE")")
}

# take_test JOB STATUS SECONDS
take_test()
{
    local job=$1
    local part=${job%/*}
    local file=$build_root/${part%%/*}/test/gtest-free-c/${part#*/}/${job##*/}
    local p=0 f=0 s=0

    if [ -n "$T_CASE" ] && [ "$(sed '/^#/d;/^SKIP: /d' "$file.log" 2>/dev/null)" = 1..0 ]; then
        add_result "$part" 0 0 0 "$3" # it has no such case
        return
    fi
    has_case=yes
    if [ -f "$file.trs" ]; then
        p=$(($(count PASS "$file.trs") + $(count XFAIL "$file.trs")))
        s=$(count SKIP "$file.trs")
        f=$(($(count FAIL "$file.trs") + $(count XPASS "$file.trs") +
             $(count ERROR "$file.trs")))
    fi
    [ $((p + f + s)) -gt 0 ] || f=1 # it has no result: that is one
    add_result "$part" "$p" "$f" "$s" "$3"
    note_skips "$part" "$file.log"
    [ "$f" -gt 0 ] || return 0
    failed_jobs+=("$job")
    if [ -f "$file.log" ]; then
        show_failures "$file.log"
        tell_cases "$job" "$file.log"
    else
        file=$build_root/log/${job//\//-}.log
        tail -n 40 "$file" | sed 's/^/        /'
        tell_failure "$job" "$check_as --only $job" "$file"
    fi
}

# The reasons of what is skipped, for the end.
note_skips()
{
    [ -f "$2" ] || return 0
    sed -n 's/^\(ok\|1\.\.0\)\b.*# *[Ss][Kk][Ii][Pp][^ ]* *//p' "$2" |
        sed "s|^|$1: |" >> "$build_root/log/skips"
}

# --- a part without a suite

# take_part JOB STATUS SECONDS: its last line may be a sum. Without one it counts
# as one.
take_part()
{
    local job=$1 status=$2
    local log=$build_root/log/$job.log
    local p=0 f=0 s=0

    note_part_skips "$job" "$log"
    read -r p f s < <(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed,.* \([0-9]*\) skipped.*/\1 \2 \3/p' "$log")
    if [ "$status" -eq 0 ]; then
        add_result "$job" "${p:-1}" "${f:-0}" "${s:-0}" "$3"
        return
    fi
    [ "${f:-0}" -gt 0 ] || f=1
    add_result "$job" "${p:-0}" "$f" "${s:-0}" "$3"
    tail -n 40 "$log" | sed 's/^/        /'
    failed_jobs+=("$job")
    tell_part "$job" "$log"
}

# in_debian JOB: whose folder of results a job of contrib/check-debian leaves
in_debian()
{
    case $1 in
        debian-*-all) echo "$top/build/$1/ucx-daqiri/build/log" ;;
        debian-*) echo "$top/build/$1/log" ;;
        *) return 1 ;;
    esac
}

# note_part_skips JOB LOG: why it was skipped as a whole, or what in it.
note_part_skips()
{
    local dir

    {
        sed -n "s|^[a-z -]*: skipped: |$1: |p" "$2"
        if dir=$(in_debian "$1") && grep -q '^check: skipped, and why:' "$2"; then
            sed "s|^|$1: |" "$dir/skips"
        fi
    } >> "$build_root/log/skips"
}

# UCX's suite names the cases that failed, and contrib/check says all in another Debian.
tell_part()
{
    local name told=no options=

    if in_debian "$1" > /dev/null && grep -q '^check: seconds of each part' "$2"; then
        failures+=("$(sed -n "1,/^check: seconds of each part/d
                              s/^check: FAILED: /$me: FAILED: $1: /p
                              s/^check:     \(said\|again\|log\): /$me:     \1: /p" "$2")")
        printf '%s\n' "${failures[-1]}"
        return
    fi
    [ "$1" != ucx-budget ] || options=' --budget'
    while read -r name; do
        told=yes
        tell_failure "$1 $name" "contrib/check --long ucx$options --filter '$name/*'" "$2"
    done < <(sed -n 's/^FAILED: \(daqiri\/\)/\1/p' "$2" | head -n "$most_told")
    [ "$told" = yes ] || tell_failure "$1" "contrib/check --only $1" "$2"
}

# --- all

# take_result JOB STATUS SECONDS
take_result()
{
    local part p f s t

    part=$(part_of "$1")
    took[$1]=$3
    case $1 in
        */*) take_test "$@" ;;
        *) take_part "$@" ;;
    esac
    left[$part]=$((left[$part] - 1))
    [ "${left[$part]}" -eq 0 ] || return 0
    read -r p f s t <<< "${part_sums[$part]}"
    took[$part]=$t
    say "$part: $p passed, $f failed, $s skipped"
}

# keep_times: of parts and tests; what did not run this time stays.
keep_times()
{
    local times=$build_root/log/times name

    {
        for name in "${!took[@]}"; do
            echo "$name ${took[$name]}"
        done
        [ ! -f "$times" ] || cat "$times"
    } | awk '!seen[$1]++' | LC_ALL=C sort > "$times.new" && mv "$times.new" "$times"
}

print_times()
{
    local part

    say "seconds of each part, those of its tests added up ($slots at a time):"
    for part in "${!took[@]}"; do
        case $part in */*/*) continue ;; esac
        printf '%s:     %6d %s\n' "$me" "${took[$part]}" "$part"
    done | sort -k2,2nr
}

print_skips()
{
    [ -s "$build_root/log/skips" ] || return 0
    say 'skipped, and why:'
    sort "$build_root/log/skips" | uniq -c | sort -k1,1nr |
        sed "s/^/$me: /"
}

print_stops()
{
    [ -s "$build_root/log/stood-still" ] || return 0
    say 'this machine stood still, which fails tests that bound a wait:'
    sed "s/^/$me:     /" "$build_root/log/stood-still"
}

print_results()
{
    keep_times
    check_case
    [ -n "${T_CHECK_AS:-}" ] ||
        printf '%s\n' "${failed_jobs[@]}" | grep . > "$build_root/log/failed"
    print_skips
    print_times
    print_stops
    [ ${#failures[@]} -eq 0 ] || printf '%s\n' "${failures[@]}"
    [ ${#failed_jobs[@]} -eq 0 ] || [ -n "${T_CHECK_AS:-}" ] ||
        say 'all that failed, once more: contrib/check --again'
    say "took $((SECONDS / 60)) min $((SECONDS % 60)) s; logs are in $build_root/log"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
