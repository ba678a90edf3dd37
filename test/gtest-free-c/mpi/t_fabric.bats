#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs of two hosts on softverbs, which connects the processes of one. The other
# host is this one, too, with a /dev/shm or a PID namespace of its own: what an
# MPI starts there by ssh, it starts there. Alone daqiri says why it cannot; beside
# tcp it carries what stays on a host.

bats_require_minimum_version 1.5.0
load jobs

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    jobs_setup
    [ "$(id -u)" -eq 0 ] || skip 'not root, so there is no other host'
    own_shm=(unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh)
    own_pids=(unshare -p -f --mount-proc)
    rank=()
}

sentence='softverbs0:1: the peer is on another fabric: a device in user space connects processes of one user on one host that share /dev/shm and the PID namespace (GID fd'

# other_host WAY...: a stand-in for ssh that starts what it is given here, by WAY,
# with nothing of this environment but where the UCX is that is tested, if not the
# system's: every host has to have the same one
other_host()
{
    local name

    "$@" true 2>/dev/null || skip "$1 $2 is not allowed here"
    {
        # options, and the name of the host
        printf '#!/bin/sh\nwhile [ "$1" = -x ]; do shift; done\nshift\nexec env -i PATH="$PATH" HOME="$HOME"'
        printf ' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1'
        for name in LD_LIBRARY_PATH T_UCX_LIB T_UCX_THREADS; do
            [ -z "${!name:-}" ] || printf ' %s=%q' "$name" "${!name}"
        done
        printf ' %q' "$@"
        printf ' sh -c "$*"\n'
    } >ssh
    chmod +x ssh
    export OMPI_MCA_plm_rsh_agent=$PWD/ssh PRTE_MCA_plm_ssh_agent=$PWD/ssh
}

# two_hosts MPI TLS RANKS CASE: half of the ranks are elsewhere; as job_run
two_hosts()
{
    local mpi=$1 tls=$2 np=$3 hosts=localhost:$(($3 / 2)),elsewhere:$(($3 / 2))
    local where=(--host "$hosts")

    need_mpi "$mpi"
    case $mpi.$(ompi_major) in
        ompi.[5-9]) skip "Open MPI $(ompi_major): ranks on the other host do not say why yet" ;;
    esac
    [ "$mpi" = ompi ] ||
        where=(-launcher ssh -launcher-exec "$PWD/ssh" -hosts "$hosts")
    job_run "$mpi" "$tls" "$mpi" "$np" "${where[@]}" \
        "${rank[@]}" "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$mpi" "$4"
}

# What a rank says before it aborts may be lost: MPICH's mpirun ends without it, once
# in some 40 jobs. And what two ranks say at a time may be mixed within a line. So ranks
# write into files of their own.
ranks_keep_what_they_say()
{
    printf '#!/bin/sh\nexec "$@" >>"%s/said.$PMI_RANK$OMPI_COMM_WORLD_RANK" 2>&1\n' "$PWD" >rank
    chmod +x rank
    rank=("$PWD/rank")
}

what_was_said()
{
    cat "$job/out" "$job/err"
    [ ${#rank[@]} -eq 0 ] || cat said.*
}

show_job()
{
    local file

    for file in "$job/out" "$job/err" said.*; do
        [ ! -f "$file" ] || jobs_show "$file"
    done
}

# It has said the sentence so many times, and nothing of what it was not.
said_why()
{
    show_job
    [ "$(what_was_said | grep -c -F "$sentence")" -ge "$1" ]
    [ "$(what_was_said | grep -c -E 'handshake|UD datagrams|cable')" -eq 0 ]
}

# alone MPI WAY...
alone()
{
    local mpi=$1 status=0

    shift
    other_host "$@"
    ranks_keep_what_they_say
    two_hosts "$mpi" daqiri 2 blocking || status=$?
    said_why 1
    job_failed "$mpi" "$status" "$job/out" "$job/err" said.*
    [ "$status" -lt 124 ]
    what_was_said | grep -q 'Destination is unreachable'
}

# Open MPI puts the ssh that it has forked into a process group from both sides,
# and warns where the child was the first and has called exec.
launcher_race='plm:rsh: Warning: setpgid\([0-9,]*\) failed in parent with errno=Permission denied'

# beside_tcp MPI RANKS CASE WAY...
#
# Of MPICH no more than two: where processors are scarce, its MPI_Finalize stands
# still with four, over UCX's tcp alone as well, and now and then with two. One rank
# waits there for an endpoint to close, and the others, in PMI's barrier, let no UCX
# work. By then all ranks have all, and rank 0 has said so.
beside_tcp()
{
    local mpi=$1 ranks=$2 case=$3 status=0

    shift 3
    other_host "$@"
    ranks_keep_what_they_say
    two_hosts "$mpi" daqiri,tcp "$ranks" "$case" || status=$?
    if [ "$mpi" = mpich ] && [ "$status" -eq 124 ]; then
        said_why "$ranks"
        [ "$(what_was_said | grep -c '^# sent ')" -eq "$ranks" ]
        skip 'MPI_Finalize of this MPICH stood still, as it does over tcp alone'
    fi
    [ "$status" -eq 0 ] || { show_job; false; }
    # a line from each rank, and no other
    said_why "$ranks"
    [ "$(what_was_said | grep -c ' UCX  [A-Z]')" -eq "$ranks" ]
    [ "$(grep -c -vE "^daqiri run: (device |way into UCX)|$launcher_race" "$job/err")" -eq 0 ]
    # who has a neighbour on his host has him over daqiri
    [ "$(cat "$job/counters"/* | awk '$1 == "conns_up" { n += $2 } END { print n + 0 }')" -ge $((ranks == 4 ? 4 : 0)) ]
    [ "$(cat "$job/counters"/* | grep -c '^conns_failed [1-9]')" -eq 0 ]
}

@test "Open MPI: another /dev/shm: one sentence says why" { alone ompi "${own_shm[@]}"; }
@test "Open MPI: another PID namespace: one sentence says why" { alone ompi "${own_pids[@]}"; }
@test "Open MPI: another /dev/shm: tcp carries what goes there" { beside_tcp ompi 4 random "${own_shm[@]}"; }
@test "Open MPI: another PID namespace: tcp carries what goes there" { beside_tcp ompi 4 random "${own_pids[@]}"; }
@test "MPICH: another /dev/shm: one sentence says why" { alone mpich "${own_shm[@]}"; }
@test "MPICH: another PID namespace: one sentence says why" { alone mpich "${own_pids[@]}"; }
@test "MPICH: another /dev/shm: tcp carries what goes there" { beside_tcp mpich 2 blocking "${own_shm[@]}"; }
@test "MPICH: another PID namespace: tcp carries what goes there" { beside_tcp mpich 2 blocking "${own_pids[@]}"; }

# To the MPI this is one host.
@test "a rank that was started in another /dev/shm" {
    local status=0

    need_mpi ompi
    "${own_shm[@]}" true 2>/dev/null || skip 'mounting in a namespace is not allowed here'
    {
        printf '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" -ne 1 ] || exec'
        printf ' %q' "${own_shm[@]}"
        printf ' "$@"\nexec "$@"\n'
    } >apart
    chmod +x apart
    job_run apart daqiri ompi 2 ./apart "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-ompi" blocking || status=$?
    said_why 1
    [ "$status" -ne 0 ]
    [ "$status" -lt 124 ]
    job_run beside daqiri,tcp ompi 2 ./apart "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-ompi" blocking
    said_why 2
    [ "$(grep -c ' UCX ' "$job/out")" -eq 2 ]
}
