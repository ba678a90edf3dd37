#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri faults: how it is called, plans that it refuses, running processes that
# take them; and a queue pair that is killed in a running program.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
    esac
    unset LD_PRELOAD UCX_TLS UCX_NET_DEVICES
    unset SOFTVERBS_FAULTS SOFTVERBS_FAULTS_LOG SOFTVERBS_PROCESS
    holders=() inside=()
}

teardown()
{
    local pid

    for pid in "${holders[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# faults ARG...: stdout in $output, stderr in $stderr, status in $status.
faults()
{
    run --separate-stderr timeout 60 "${inside[@]}" "$T_DAQIRI" faults "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}

# refused STATUS SENTENCE: that is all it says.
refused()
{
    [ "$status" -eq "$1" ]
    [ -z "$output" ]
    [ "$(grep -v -c '^Try ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == "daqiri faults: "*"$2"* ]]
}

# From here on hold and faults have a /dev/shm that nobody else is in: what is
# done to all processes of the user is done to none of another test's. Where
# mounting is not allowed they have the one of all.
own_shm()
{
    local place=(unshare -m) enter=(nsenter -m)

    if [ "$(id -u)" -ne 0 ]; then
        place=(unshare -rm) enter=(nsenter -U --preserve-credentials -m)
    fi
    "${place[@]}" mount -t tmpfs tmpfs /dev/shm 2>/dev/null || return 0
    "${place[@]}" sh -c 'mount -t tmpfs tmpfs /dev/shm && : >ready &&
        exec sleep 1000' >/dev/null 2>&1 3>&- &
    holders+=($!)
    inside=("${enter[@]}" -t $!)
    while [ ! -e ready ]; do
        kill -0 "${holders[0]}"
        sleep 0.02
    done
}

# Starts a program that has the device open until it is killed: $holder.
hold()
{
    "${inside[@]}" env LD_PRELOAD="$T_SOFTVERBS" ibv_rc_pingpong -p 0 \
        >/dev/null 2>&1 3>&- &
    holder=$!
    holders+=("$holder")
    while ! "${inside[@]}" "$T_DAQIRI" faults show "$holder" \
        >/dev/null 2>&1; do
        kill -0 "$holder"
        sleep 0.02
    done
}

# --- how it is called

@test "called wrongly: status 2 and a sentence" {
    faults
    refused 2 'nothing is asked for'
    faults break all
    refused 2 'the first word is none of set, clear, show, check'
    faults set
    refused 2 'a process number or all is missing'
    faults show
    refused 2 'a process number or all is missing'
    faults set all
    refused 2 'a plan is missing'
    faults check
    refused 2 'a plan is missing'
    faults clear all plan
    refused 2 'there are too many words'
    faults show all -e drop
    refused 2 'there are too many words'
    faults set all plan -e drop
    refused 2 'there are too many words'
    faults check --rule
    refused 2 "option '--rules' requires an argument"
    faults check -x
    refused 2 "invalid option -- 'x'"
    faults check -e
    refused 2 "option requires an argument -- 'e'"
    for pid in 0 12x all, ' 1' +5 99999999999; do
        faults clear "$pid"
        refused 2 'the second word is neither a process number nor all'
    done
}

@test "--help says how" {
    faults --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == 'Usage: daqiri faults [OPTION...] set PID|all FILE'* ]]
}

# --- plans

@test "check prints a plan as it is understood" {
    printf '# a plan\nseed 9\n\n  drop   p=0.50;link down=2s at=0ms # both\n' > plan
    faults check plan
    [ "$status" -eq 0 ]
    [ "$output" = $'seed 9\ndrop p=0.5\nlink down=2000ms at=0ms' ]
    run --separate-stderr "$T_DAQIRI" faults check - < plan
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = 'drop p=0.5' ]
    faults check --rules 'lose-ack n=3'
    [ "$status" -eq 0 ]
    [ "$output" = $'seed 1\nlose-ack n=3' ]
}

@test "check refuses what is no plan" {
    faults check -e 'drop; explode'
    refused 1 "line 1, 'explode': there is no fault 'explode'; there are: post, "
    printf 'seed 1\n\ndelay\n' > plan
    faults check plan
    refused 1 "line 3, 'delay': delay needs time="
    faults check nowhere
    refused 1 'cannot read nowhere: No such file or directory'
    faults check /dev/zero
    refused 1 '/dev/zero is not a file of text'
    faults check .
    refused 1 '. is not a file of text'
    yes '#' | head -c 9000 > plan
    faults check plan
    refused 1 'the plan is longer than 7999 bytes'
    : > plan
    faults check plan
    refused 1 'the plan has no rule'
}

# --- processes

@test "a running process takes a plan, shows it, and gives it back" {
    hold
    faults show $holder
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "$holder: process 0, no plan" ]
    [[ $output == *"$holder: qp=rc.0 is QP 0x"*', INIT, requests 0' ]]

    echo 'seed 5; gid-change at=0ms' > plan
    faults set $holder plan
    [ "$status" -eq 0 ]
    [ "$output" = "$holder: done" ]
    until [[ $output == *'rule 1 fired 1: gid-change at=0ms'* ]]; do
        faults show $holder
        [ "$status" -eq 0 ]
    done
    [[ ${lines[0]} == "$holder: process 0, seed 5, rules 1, decisions so far 1" ]]

    faults set $holder -e 'explode'
    refused 1 "process $holder: line 1, 'explode': there is no fault 'explode'"
    faults show $holder
    [[ $output == *'rule 1 fired 1: gid-change at=0ms'* ]]

    faults clear $holder
    [ "$status" -eq 0 ]
    faults show $holder
    [ "${lines[0]}" = "$holder: process 0, no plan" ]
}

@test "all are all" {
    own_shm
    hold
    first=$holder
    hold
    faults set all -e 'delay time=1ms'
    [[ $output == *"$first: done"* ]]
    [[ $output == *"$holder: done"* ]]
    for pid in $first $holder; do
        faults show $pid
        [[ $output == *'rule 1 fired 0: delay time=1ms'* ]]
    done
}

@test "a process that is not there, has no device, or is stopped" {
    faults show 2147483647
    refused 1 'process 2147483647: it has no softverbs device open, or is not yours'
    faults clear $$
    refused 1 "process $$: it has no softverbs device open"
    hold
    kill -STOP $holder
    faults show $holder
    refused 1 "process $holder: it does not answer: it is stopped, or has just ended"
    kill -CONT $holder
    faults show $holder
    [ "$status" -eq 0 ]
}

# Another user has a file under a name of ours, and a lease on it: who opens it
# waits until the kernel takes the lease away.
lease='
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
import signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
print(os.fstat(fd).st_ino, flush=True)
signal.pause()
'

@test "a lease of another user's on one of our names is not waited for" {
    [ "$(id -u)" -eq 0 ] || skip 'only root can become another user'
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
    [ -x /usr/bin/python3 ] || skip 'python3 is not installed'
    own_shm
    [ ${#inside[@]} -gt 0 ] || skip 'mounting in a namespace is not allowed here'
    hold
    : >inode
    "${inside[@]}" setpriv --reuid=65534 --regid=65534 --clear-groups \
        /usr/bin/python3 -c "$lease" /dev/shm/softverbs-0.9 >inode 2>lease.err 3>&- &
    holders+=($!)
    while [ ! -s inode ]; do
        kill -0 "${holders[-1]}"
        sleep 0.02
    done
    faults show all
    [ "$status" -eq 0 ]
    [[ $output == "$holder: process 0, no plan"* ]]
    faults show 2147483647
    refused 1 'process 2147483647: it has no softverbs device open'
    # the kernel has not taken it away
    grep "LEASE .*:$(cat inode) " /proc/locks
}

# --- programs

# no_log PATH WHY: the device does not open with this log.
no_log()
{
    SOFTVERBS_FAULTS='delay time=1us n=1' SOFTVERBS_FAULTS_LOG=$1 LD_PRELOAD=$T_SOFTVERBS \
        run --separate-stderr timeout 60 ibv_devinfo
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    grep -F "softverbs: SOFTVERBS_FAULTS_LOG: cannot write $1: $2" <<<"$stderr"
}

@test "a log that others may have put there: no link is followed, no FIFO waited for" {
    echo precious > target
    ln -s target link
    ln -s nothing dangling
    ln target again
    mkfifo fifo
    mkdir folder
    no_log "$PWD/link" 'it is a symbolic link'
    no_log "$PWD/dangling" 'it is a symbolic link'
    no_log "$PWD/again" 'it has another name, too'
    no_log "$PWD/fifo" 'it is no regular file'
    exec 8<>fifo
    no_log "$PWD/fifo" 'it is no regular file'
    exec 8>&-
    no_log "$PWD/folder" 'Is a directory'
    if [ "$(id -u)" -eq 0 ]; then
        echo precious > other
        chown 65534 other
        no_log "$PWD/other" "it is another user's"
        [ "$(cat other)" = precious ]
    fi
    [ "$(cat target)" = precious ]
    [ ! -e nothing ]
    # a file of one's own is appended to
    echo mine > log
    SOFTVERBS_FAULTS='delay time=1us n=1' SOFTVERBS_FAULTS_LOG=$PWD/log LD_PRELOAD=$T_SOFTVERBS \
        ibv_devinfo
    [ "$(head -n 1 log)" = mine ]
    grep '^# plan 1 ' log
}

@test "a plan that is wrong: the device does not open" {
    SOFTVERBS_FAULTS='qp-eror n=1' LD_PRELOAD=$T_SOFTVERBS \
        run --separate-stderr ibv_devinfo
    [ "$status" -ne 0 ]
    [[ $stderr == *"softverbs: SOFTVERBS_FAULTS: line 1, 'qp-eror n=1': there is no fault 'qp-eror'; there are: "* ]]
}

@test "ucx_perftest over rc_verbs reports the error that was planned" {
    command -v ucx_perftest || skip 'ucx_perftest is not installed'
    SOFTVERBS_FAULTS='complete qp=rc status=REM_OP_ERR n=500 times=1' \
        SOFTVERBS_FAULTS_LOG=log.%d LD_PRELOAD=$T_SOFTVERBS \
        run timeout 100 ucx_perftest -l -x rc_verbs -d softverbs0:1 -t am_lat -n 20000
    echo "$output"
    [ "$status" -ne 0 ]
    [[ $output == *'remote operation error'* ]]
    cat log.0
    [ "$(grep -c '^[0-9]' log.0)" -eq 1 ]
    grep -q '^1 qp=rc\.[0-9]* n=500 rule 1: complete ' log.0
}

# killed_job OPTION: an MPI job one of whose queue pairs is killed, once.
killed_job()
{
    sweep=$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi
    [ -x "$sweep" ] || skip 'there is no Open MPI'
    echo 'complete process=1 qp=rc status=RETRY_EXC_ERR n=300 times=1' > plan
    SOFTVERBS_FAULTS=@$PWD/plan SOFTVERBS_FAULTS_LOG=$PWD/log.%d \
        UCX_DAQIRI_RECOVERY=$1 UCX_LOG_FILE=$PWD/ucx.%p \
        run timeout 100 "$T_DAQIRI" run --device soft "$T_MPIRUN_OMPI" \
        --allow-run-as-root --oversubscribe -np 2 "$sweep" -t latency -T 3
    echo "$output"
    # A starter may drop what ranks say last; a file does not (README.md).
    cat ucx.* - <<<"$output" >said
    cat ucx.*
    cat log.*
    [ "$(cat log.* | grep -c '^[0-9]')" -eq 1 ]
    grep -q '^1 qp=rc\.[0-9]* n=300 rule 1: complete ' log.1
}

@test "a queue pair is killed in a running MPI job, which goes on over another one" {
    killed_job y
    [ "$status" -eq 0 ]
    [ "$(grep -c '; lost, connecting again' said)" -eq 2 ]
    [ "$(grep -c 'daqiri: back, with' said)" -eq 2 ]
}

@test "a queue pair is killed in a running MPI job that may not recover, and it ends with the cause" {
    killed_job n
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    grep 'daqiri: ' said
}
