# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/check: tests at the same time. A job is one test of a suite, or
# one part that has no suite. There are two slots for each processor, for most
# tests wait for much of their time. A job that keeps a processor busy takes two.
# shellcheck shell=bash

slots_per_cpu=2
most_slots=8 # more gained nothing, and each needs TCP ports of its own
listed_slots=4 # of the machine that contrib/check.d/seconds was made on

# What is run beside something else has a /dev/shm of its own: there all programs
# of a user find each other on softverbs, and some tests count them, or do
# something to all of them. bash has its children in the background ignore SIGINT,
# and here make is such a child itself. Each job is a session, to be ended as a whole
# with this script.
own_world=(setsid env --default-signal unshare --mount
           sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' world)

choose_slots()
{
    slots=$(($(nproc) * slots_per_cpu))
    [ "$slots" -le "$most_slots" ] || slots=$most_slots
    slots=${T_SLOTS:-$slots} # where this is a job of another contrib/check
    if ! ("${own_world[@]}" true) 2>/dev/null; then
        slots=1
        own_world=(setsid env --default-signal)
        say 'tests run one after the other: nothing can be mounted on /dev/shm here'
    fi
}

# weight_of JOB: the slots that it takes. Emulated processors, compilers and what
# starts a process for each processor take a whole one.
weight_of()
{
    case $1 in
        */softroce/* | */vm/* | ucx-* | debian-* | distcheck | cppcheck | fuzz-short | */t_mutants) echo 2 ;;
        *) echo 1 ;;
    esac
}

# slots_of JOB: the same, on this machine.
slots_of()
{
    local weight

    weight=$(weight_of "$1")
    echo $((weight < slots ? weight : slots))
}

# tests_of FLAVOUR SUITE: their names, from automake's list of logs.
tests_of()
{
    make -s -C "$build_root/$1/test/gtest-free-c/$2" \
        --eval='print-logs: ; @echo $(TEST_LOGS:.log=)' print-logs | tr ' ' '\n'
}

# is_wanted_test NAME TESTS: the last is the part's column. Who names a test has it.
is_wanted_test()
{
    local want

    [ ${#only[@]} -gt 0 ] || { takes_test "${1##*/}" "$2"; return; }
    for want in "${only[@]}"; do
        # shellcheck disable=SC2053 # it may be a pattern
        [[ $1 != $want ]] || return 0
        # shellcheck disable=SC2053
        [[ ${1%/*} != $want ]] || { takes_test "${1##*/}" "$2"; return; }
    done
    return 1
}

# list_jobs -> $jobs, the longest first: so the last ones to end are short.
list_jobs()
{
    local part name test

    choose_slots
    for part in "${parts[@]}"; do
        name=${part%%|*}
        [ -z "${broken[${name%%/*}]:-}" ] || continue
        case $name in
            */*)
                for test in $(tests_of "${name%%/*}" "${name#*/}"); do
                    ! is_wanted_test "$name/$test" "${part#*|}" ||
                        echo "$(seconds_of "$name/$test") $name/$test"
                done
                ;;
            *) echo "$(seconds_of "$name") $name" ;;
        esac
    done | sort -s -k1,1nr | cut -d' ' -f2 > "$build_root/log/jobs"
    mapfile -t jobs < "$build_root/log/jobs"
    [ ${#jobs[@]} -gt 0 ] || [ ${#broken[@]} -gt 0 ] ||
        die 2 "no test has that name: ${only[*]}"
    for name in "${jobs[@]}"; do
        part=$(part_of "$name")
        left[$part]=$((${left[$part]:-0} + 1))
    done
}

say_estimate()
{
    local job sum=0 longest=0 seconds

    [ ${#jobs[@]} -gt 0 ] || return 0
    for job in "${jobs[@]}"; do
        seconds=$(seconds_of "$job")
        sum=$((sum + $(slots_of "$job") * seconds))
        [ "$seconds" -le "$longest" ] || longest=$seconds
    done
    sum=$((sum / slots))
    [ "$sum" -ge "$longest" ] || sum=$longest
    say "${#jobs[@]} tests and other jobs, $slots at a time: about $(minutes $sum) on a quiet machine"
}

declare -A left=()     # by part: jobs that have not ended
declare -A running=()  # by pid: JOB, its start, its slots' numbers
free_slots=()

# start_next: the first job that fits. False: none does, now.
start_next()
{
    local i job weight

    for i in "${!jobs[@]}"; do
        job=${jobs[i]}
        weight=$(slots_of "$job")
        [ "$weight" -le ${#free_slots[@]} ] || continue
        unset "jobs[$i]"
        run_job "$job" "${free_slots[0]}" &
        running[$!]="$job $SECONDS ${free_slots[*]:0:weight}"
        free_slots=("${free_slots[@]:weight}")
        return 0
    done
    return 1
}

# wait_for_one: takes its result.
wait_for_one()
{
    local pid status job started numbers

    wait -n -p pid "${!running[@]}"
    status=$?
    read -r job started numbers <<< "${running[$pid]}"
    unset "running[$pid]"
    # shellcheck disable=SC2206 # words
    free_slots+=($numbers)
    take_result "$job" "$status" $((SECONDS - started))
}

# end_jobs: each and all that it has started: its session, for timeout(1) and others
# have a process group of their own. One that has just begun has no session yet.
end_jobs()
{
    local stat line fields

    kill "$watch" "${!running[@]}" 2>/dev/null
    for stat in /proc/[0-9]*/stat; do
        # "pid (name) state parent group session"; the name may have anything in it
        read -r line 2>/dev/null < "$stat" || continue
        read -ra fields <<< "${line##*) }"
        [ -z "${running[${fields[3]}]:-}" ] || kill "${line%% *}" 2>/dev/null
    done
}

watch= # the pid of watch_machine

# A virtual machine may stand still for seconds, and then tests fail that bound a wait.
# Notes when a sleep of half a second was so many milliseconds longer. Ends with us, even
# if we are killed.
late=2000
watch_machine()
{
    local before=${EPOCHREALTIME/[.,]/} now gap

    while sleep 0.5 && kill -0 $$ 2>/dev/null; do
        now=${EPOCHREALTIME/[.,]/}
        gap=$(((now - before) / 1000 - 500))
        [ "$gap" -lt $late ] ||
            printf '%d.%d s until %(%H:%M:%S)T\n' $((gap / 1000)) $((gap % 1000 / 100)) -1
        before=$now
    done > "$build_root/log/stood-still"
}

run_jobs()
{
    mapfile -t free_slots < <(seq 0 $((slots - 1)))
    watch_machine &
    watch=$!
    trap end_jobs EXIT
    trap 'exit 1' HUP INT TERM
    while [ ${#jobs[@]} -gt 0 ] || [ ${#running[@]} -gt 0 ]; do
        start_next || wait_for_one
    done
    trap - EXIT HUP INT TERM
    kill "$watch"
    wait "$watch" 2>/dev/null
    return 0
}
