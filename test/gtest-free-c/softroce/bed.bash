#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bed.bash T-ENV FILE.bed FUNCTION [ARGUMENT...]
#
# The half of run-bed that runs in the virtual machine: reads the bed file,
# calls its function, and has what that function needs. Results are printed as
# TAP without numbers, each named `NAME: case`.
#
#   bed_test NAME LIMIT       the test program NAME of this build's tests, say
#                             device/t_send
#   bed_wire_test NAME LIMIT [HOW]
#                             one of the transport, its two ends on the two ends
#                             of a wire; `NAME, on the wire` in the log, or HOW
#   bed_received bytes|packets
#                             what has come out at either end of the wire
#   bed_program NAME LIMIT COMMAND...
#                             any other program
#   bed_run NAME LIMIT FUNCTION [ARGUMENT...]
#                             a function of the bed file, in a shell of its own
#
# What runs may print TAP, then every case counts, or anything else, then its
# status is the one case. It has LIMIT seconds. What is still there then is
# shown (bed_state) and ended, and so is what is left behind at the end. New
# lines in the kernel's log that tell of a defect are a failing case too.

set -u

bed_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bed_t_env=$1
bed_file=$2
shift 2
. "$bed_t_env"
bed_tests=$T_TOP_BUILDDIR/test/gtest-free-c
# shellcheck disable=SC2034 # bed files use it
bed_source=$T_TOP_SRCDIR/test/gtest-free-c

# Lines in the kernel's log that must not be there.
bed_defects='WARNING:|BUG:|Oops|general protection fault|Call Trace:|refcount_t:|INFO: task .* blocked|detected stall|self-detected|soft lockup|hard LOCKUP|list_(add|del) corruption|Kernel panic'

# The tests are linked with softverbs in front of libibverbs. This puts the
# library that speaks with the kernel before both.
bed_kernel=(env LD_PRELOAD=libibverbs.so.1)

bed_test()
{
    bed_program "$1" "$2" "${bed_kernel[@]}" "$bed_tests/$1"
}

bed_wire_test()
{
    bed_program "$1, ${3:-on the wire}" "$2" "${bed_kernel[@]}" \
        T_DEVICES='rxe0:1 rxe1:1' "$bed_tests/$1"
}

bed_received()
{
    cat /sys/class/net/v[ab]/statistics/rx_"$1" |
        awk '{ n += $1 } END { print n }'
}

bed_run()
{
    local name=$1 limit=$2

    shift 2
    bed_program "$name" "$limit" bash "$bed_here/bed.bash" "$bed_t_env" \
        "$bed_file" "$@"
}

bed_is_wanted()
{
    local pattern

    if [ -n "${T_CASE:-}" ]; then
        # "NAME: what of it failed", as the log says it
        [[ $T_CASE == "$1" || $T_CASE == "$1: "* ]]
        return
    fi
    [ -n "${T_ONLY:-}" ] || return 0
    for pattern in $T_ONLY; do
        # shellcheck disable=SC2053 # they are patterns
        [[ $1 != $pattern && ${1##*/} != $pattern ]] || return 0
    done
    return 1
}

bed_program()
{
    local name=$1 limit=$(($2 * T_TIMEOUT_MULTIPLIER))
    local reader status started=$SECONDS busy

    bed_is_wanted "$name" || return 0
    shift 2
    bed_job=$((${bed_job:-0} + 1))
    busy=$(bed_busy)
    awk -v name="$name" -v sums="$bed_tmp/sums" -f "$bed_here/merge.awk" \
        <"$bed_tmp/tap" &
    reader=$!
    BED_JOB=$bed_job setsid "$@" </dev/null >"$bed_tmp/tap" \
        2>"$bed_tmp/stderr" &
    bed_wait "$!" "$limit"
    status=$?
    bed_kill
    wait "$reader"
    sed 's/^/# stderr: /' "$bed_tmp/stderr"
    bed_verdict "$name" "$limit" "$status"
    bed_check_kernel "$name"
    busy=$(($(bed_busy) - busy))
    echo "# $name took $((SECONDS - started)) of $limit s, and $((busy / 100)).$((busy % 100 / 10)) s of processors"
}

# The time in which the guest's processors were not idle, in 10 ms: what a test
# costs, where the time that it takes has its pauses in it.
bed_busy()
{
    local user nice system idle iowait irq softirq

    read -r _ user nice system idle iowait irq softirq _ </proc/stat
    echo $((user + nice + system + irq + softirq))
}

# bed_wait PID LIMIT: its status, or 124 after showing what goes on.
bed_wait()
{
    local pid=$1 alarm ended status

    sleep "$2" &
    alarm=$!
    wait -n -p ended "$pid" "$alarm"
    status=$?
    if [ "$ended" = "$alarm" ]; then
        bed_state 2>&1 | sed 's/^/# state: /'
        return 124
    fi
    kill "$alarm"
    wait "$alarm" 2>/dev/null
    return "$status"
}

# The processes of the running test: the environment tells, whatever they did
# about sessions, groups and parents.
bed_pids()
{
    grep -l -z -x "BED_JOB=$bed_job" /proc/[0-9]*/environ 2>/dev/null |
        sed 's|/proc/\([0-9]*\)/.*|\1|'
}

bed_kill()
{
    local pids

    while pids=$(bed_pids) && [ -n "$pids" ]; do
        # shellcheck disable=SC2086 # several words
        kill -KILL $pids 2>/dev/null
        wait $pids 2>/dev/null
    done
}

bed_cmdline()
{
    tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" || echo 'is gone'
}

# The guest as a hang is: for whom has to find its cause.
bed_state()
{
    local pid task started=$SECONDS

    echo '---- kernel log, last lines'
    dmesg | tail -n 30
    echo '---- rdma link, rdma resource'
    rdma link show
    for task in qp cq mr; do
        rdma resource show $task | head -n 60
    done
    echo '---- processes'
    for pid in $(bed_pids); do
        echo "-- $pid: $(bed_cmdline "$pid")"
        for task in /proc/"$pid"/task/*; do
            echo "thread ${task##*/}: $(cut -d ' ' -f 3 "$task/stat") $(cat "$task/syscall")"
            cat "$task/stack"
        done
    done
    command -v gdb >/dev/null || return 0
    # A debugger takes its time here; half a minute is enough for one or two.
    for pid in $(bed_pids); do
        [ $((SECONDS - started)) -lt 30 ] || break
        echo "-- $pid: stacks"
        timeout 30 gdb -nx -batch -p "$pid" -ex 'thread apply all bt 12' 2>&1 |
            grep -E '^(#|Thread)'
    done
}

# What the program's end says beside its own results; $bed_tmp/sums has how
# many results, failed ones and planned ones there were.
bed_verdict()
{
    local name=$1 limit=$2 status=$3
    local ran failed planned

    read -r ran failed planned <"$bed_tmp/sums"
    if [ "$status" -eq 124 ]; then
        echo "not ok - $name: ends within $limit s"
    elif [ "$planned" = none ] && [ $((ran + failed)) -eq 0 ]; then
        [ "$status" -eq 0 ] && echo "ok - $name" ||
            echo "not ok - $name: status $status"
    elif [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
        echo "not ok - $name: status $status, without a failing case"
    elif [ "$ran" != "$planned" ] && [ "$failed" -eq 0 ]; then
        echo "not ok - $name: $ran cases of $planned planned"
    fi
}

# Reads what the kernel's log has got since the last call.
bed_check_kernel()
{
    local name=$1

    dmesg --read-clear >"$bed_tmp/dmesg"
    grep -q -E "$bed_defects" "$bed_tmp/dmesg" || return 0
    sed 's/^/# kernel: /' "$bed_tmp/dmesg" | head -n 200
    echo "not ok - $name: the kernel's log shows no defect"
}

. "$bed_file"
if [ -n "${BED_JOB:-}" ]; then
    # a function called by bed_run
    "$@"
    exit
fi

bed_tmp=$(mktemp -d)
mkfifo "$bed_tmp/tap"
bed_check_kernel 'the boot'
"$@"
exit 0
