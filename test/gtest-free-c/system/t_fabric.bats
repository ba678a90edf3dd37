#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# The tools on softverbs, whose other end is beyond it: each names the device's
# limit in one sentence, at once, and has a status of its own.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    need_jq
    own_shm=(unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh)
    own_pids=(unshare -p -f --mount-proc)
}

limit='softverbs0:1: the peer is on another fabric: a device in user space connects processes of one user on one host that share /dev/shm and the PID namespace'
advice='check for an RDMA NIC or Soft-RoCE at both ends, or for another transport to go there (UCX_TLS=daqiri,tcp)'

# elsewhere WAY...: from here on that is where the other end is
elsewhere()
{
    [ "$(id -u)" -eq 0 ] || skip 'not root, so there is no other place'
    "$@" true 2>/dev/null || skip "$1 $2 is not allowed here"
    way=("$@")
}

# there ARG...: daqiri in that place, otherwise as daqiri().
there()
{
    run --separate-stderr timeout 100 "${way[@]}" "$T_DAQIRI" "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}

# Both ends of a ping-pong say it, and know the other's GID.
apart_by_pingpong()
{
    local mine='GID fd[0-9a-f:]*, here fd[0-9a-f:]*'

    start server timeout 100 "$T_DAQIRI" pingpong --device soft --listen 127.0.0.1:0 --json
    server=$pid
    running+=("$pid")
    listening server
    there pingpong --device soft --addr "$addr" --json
    [ "$status" -eq 3 ]
    valid pingpong
    run_is '.ok == false and .failure_class == "other_fabric" and .stage == "connect-rdma"'
    run_is '.local.gid != .remote.gid'
    says "daqiri pingpong: failed in stage connect-rdma (other_fabric): $limit ("
    says "$advice"
    grep -q "($mine)" <<<"$stderr"
    ended "$server"
    cat server.out server.err
    [ "$ended" -eq 3 ]
    valid flow server.out
    holds server.out '.failure_class == "other_fabric" and .stage == "connect-rdma"'
    [ "$(grep -c -F "$limit" server.out)" -eq 1 ]
}

@test "pingpong: another /dev/shm" { elsewhere "${own_shm[@]}"; apart_by_pingpong; }
@test "pingpong: another PID namespace" { elsewhere "${own_pids[@]}"; apart_by_pingpong; }

@test "pingpong by hand: another /dev/shm" {
    elsewhere "${own_shm[@]}"
    mkfifo to_a
    timeout 100 "$T_DAQIRI" pingpong --device soft --by-hand server --iters 100 --json \
        < to_a > a.out 2> a.err 3>&- &
    running+=("$!")
    local a=$!
    exec 7> to_a
    wait_for 60 grep -q '^dq1:' a.err
    run --separate-stderr bash -c 'grep "^dq1:" a.err | timeout 100 "$@"' - \
        "${way[@]}" "$T_DAQIRI" pingpong --device soft --by-hand client --iters 100 --json
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
    [ "$status" -eq 3 ]
    run_is '.failure_class == "other_fabric"'
    says "$limit"
    grep '^dq1:' <<<"$stderr" >&7
    exec 7>&-
    ended "$a"
    [ "$ended" -eq 3 ]
    run_of a.out '.failure_class == "other_fabric"'
    [ "$(grep -c -F "$limit" a.err)" -eq 1 ]
}

# A server here, and a sweep of both kinds from there: what needs the device is
# asked for once, and what does not is measured.
apart_by_sweep()
{
    local calm=(--device soft --duration 10ms --repeats 1 --collapse 1 --rate 100)

    serve --json --device soft --timeout 20s
    grep -q 'daqiri serve: RDMA goes over softverbs0, which connects processes of one user on one host that share /dev/shm and the PID namespace' serve.err
    there sweep "${calm[@]}" --addr "$addr" --transports "$1,tcp" --patterns stream --sizes 64,4K --json
    [ "$status" -eq 3 ]
    valid sweep
    says "daqiri sweep: $limit"
    has '[.rows[] | select(.transport == "tcp") | .runs_ok == 1] | length == 2 and all'
    has '[.rows[] | select(.transport != "tcp") | .verdict == "missing" and (.why | contains("the peer is on another fabric: a device in user space connects"))] | length >= 2 and all'
    wait_for 60 said 3
    valid_each flow < serve.out
    # each client has a process of its own there, so the order is nobody's
    [ "$(jq -s 'map(select(.ok == false and .failure_class == "other_fabric" and (.stage | startswith("connect")))) | length' serve.out)" -eq 1 ]
    [ "$(jq -s 'map(select(.ok and .transport == "tcp")) | length' serve.out)" -eq 2 ]
    # nothing but what needs it
    there drop-curve "${calm[@]}" --addr "$addr" --transports "$1" --sizes 4K --targets 25,50 --json
    [ "$status" -eq 3 ]
    valid drop-curve
    says "daqiri drop-curve: $limit"
    has '.rows[0].verdict == "missing"'
    line 4 '.failure_class == "other_fabric"'
    [ "$(wc -l < serve.out)" -eq 4 ]
    there pingpong --device soft --addr "$addr"
    [ "$status" -eq 3 ]
    says "$limit"
    line 5 '.pattern == "pingpong" and .failure_class == "other_fabric"'
}

@test "sweep, drop-curve, serve: another /dev/shm, raw verbs" { elsewhere "${own_shm[@]}"; apart_by_sweep verbs; }
@test "sweep, drop-curve, serve: another /dev/shm, daqiri" { elsewhere "${own_shm[@]}"; apart_by_sweep daqiri; }
@test "sweep, drop-curve, serve: another /dev/shm, rc_verbs" { elsewhere "${own_shm[@]}"; apart_by_sweep rc_verbs; }
@test "sweep, drop-curve, serve: another PID namespace" { elsewhere "${own_pids[@]}"; apart_by_sweep daqiri,verbs; }

@test "another reason to be unreachable is not taken for that" {
    serve_with=(env UCX_DAQIRI_SEG_SIZE=4k)
    serve --json --device soft --timeout 20s
    daqiri sweep --device soft --duration 10ms --repeats 1 --addr "$addr" --transports daqiri --patterns stream --sizes 64 --json
    [ "$status" -eq 1 ]
    has '.rows[0].why | contains("another fabric") | not'
    has '.rows[0].why | contains("this transport cannot reach the other end from here")'
    line 1 '.ok == false and (.failure_class == "peer_unreachable" or .failure_class == "peer_failed")'
}

@test "probe and interfaces say always whom the device connects" {
    local reach='processes of one user on one host that share /dev/shm and the PID namespace'

    daqiri probe --device soft --no-ucx --json
    [ "$status" -eq 0 ]
    valid probe
    has ".reach == \"$reach\""
    has ".steps[] | select(.name == \"port\") | .detail | contains(\"it connects $reach\")"
    daqiri probe --device soft --no-ucx
    [ "$(grep -c "$reach" <<<"$output")" -ge 2 ]
    daqiri interfaces --device soft --json
    valid interfaces
    has ".devices[0].why | endswith(\"it connects $reach\")"
    with=(FAKE_VERBS='mlx5_0=active' LD_PRELOAD="$shims/fake_verbs.so")
    daqiri probe --no-ucx --json
    has '.reach == null'
}

# --- daqiri run, which sees the hosts of a job before it starts

# several N NAMES ARG...: with these it says that the job has N hosts
several()
{
    local count=$1 names=$2

    shift 2
    daqiri run --device soft "$@"
    [ "$status" -eq 0 ]
    says "daqiri run: device softverbs0:1 connects processes of one user on one host that share /dev/shm and the PID namespace, and this job has $count hosts ($names): "
}

one()
{
    daqiri run --device soft "$@"
    [ "$status" -eq 0 ]
    [ "$(grep -c hosts <<<"$stderr")" -eq 0 ]
}

@test "run: a job of several hosts: a sentence before it starts" {
    local starter

    for starter in mpirun mpiexec.hydra srun; do
        printf '#!/bin/sh\n:\n' > $starter
        chmod +x $starter
    done
    printf 'n1 slots=2\nn2:3 # two\n\n# n3\nme@n1.cluster\n' > hosts
    printf 'n1\nn1\n' > same
    with=(PATH="$PWD:$PATH")
    several 2 'n1, n2' mpirun --host n1,n2 true
    several 2 'n1, n2' mpirun -np 4 -H n1:2,n2:2 true
    several 2 'n1, n2' mpiexec.hydra -hosts n1,n2 true
    several 2 'n1, n2' mpiexec.hydra -f hosts -n 2 true
    several 2 'n1, n2' ./mpirun --hostfile hosts true
    several 2 'n1, n2' mpirun -machinefile=hosts true
    several 5 'n1, n2, n3, ...' mpirun --host n1,n2,n3,n4,n5 true
    several 2 '10.0.0.1, 10.0.0.2' mpirun --host 10.0.0.1,10.0.0.2 true
    several 2 'n1, n2' mpirun -np 1 --host n1 true : -np 1 --host n2 true
    says 'over it no rank reaches those of another host; an RDMA NIC or Soft-RoCE does (--device), and tcp beside it (--tls daqiri,tcp)'
    several 2 'n1, n2' --tls daqiri,tcp mpirun --host n1,n2 true
    says 'what goes from one to another goes over the other transports of --tls'
    with+=(SLURM_JOB_NUM_NODES=2 'SLURM_JOB_NODELIST=n[1-2]')
    several 2 'n[1-2]' mpirun true
    several 2 'n[1-2]' srun true
    # whom the command line names go before the environment's
    one mpirun --host n1 true
    with=(PATH="$PWD:$PATH" HYDRA_HOST_FILE="$PWD/hosts")
    several 2 'n1, n2' mpiexec.hydra true
    with=(PATH="$PWD:$PATH" SLURM_STEP_NUM_NODES=2 SLURM_PROCID=0)
    several 2 'of Slurm' true
}

@test "run: a job of one host, another device, or a command that starts none: no word of hosts" {
    printf '#!/bin/sh\n:\n' > mpirun
    chmod +x mpirun
    printf 'n1\nn1.cluster\n' > same
    with=(PATH="$PWD:$PATH")
    one mpirun -np 2 true
    one mpirun --host "localhost,$(hostname),127.0.0.1,::1" true
    one mpirun --host n1,n1,n1.cluster true
    one mpirun --hostfile same true
    one mpirun --hostfile none true
    # options of the program are its own
    one mpirun true --host n1,n2
    one true --host n1,n2
    with+=(SLURM_JOB_NUM_NODES=2 SLURM_STEP_NUM_NODES=2 SLURM_PROCID=1)
    one true
    with=(PATH="$PWD:$PATH" FAKE_VERBS='mlx5_0=active' LD_PRELOAD="$shims/fake_verbs.so")
    daqiri run mpirun --host n1,n2 true
    [ "$status" -eq 0 ]
    [ "$(grep -c hosts <<<"$stderr")" -eq 0 ]
}
