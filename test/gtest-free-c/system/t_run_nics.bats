#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri run on a machine with several NICs: which one it takes, and that it says why.
# fake_verbs plays the NICs, and a tree of the test's own is their sysfs.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    fake=$shims/fake_verbs.so
    for name in OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_RANK MPI_LOCALRANKID \
            PMIX_LOCAL_RANK PMIX_RANK PMI_RANK SLURM_LOCALID SLURM_PROCID; do
        unset "$name"
    done
    read -r cpu0 cpu1 <<<"$(allowed_cpus)"
}

# The first two processors that this test may run on.
allowed_cpus()
{
    local list word cpu

    list=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
    for word in ${list//,/ }; do
        for ((cpu = ${word%-*}; cpu <= ${word#*-}; ++cpu)); do
            echo "$cpu"
        done
    done | head -n 2 | tr '\n' ' '
}

need_two_cpus()
{
    command -v taskset >/dev/null || skip 'taskset (util-linux) is not installed'
    [ -n "$cpu1" ] || skip 'this test may run on one processor only, so nothing is far'
}

# machine NAME=NODE...: a sysfs in which the first processor is in node 0 and the second
# in node 2, for node 1 is not online; and these NICs.
machine()
{
    local nodes=sys/devices/system/node word

    mkdir -p "$nodes/node0" "$nodes/node2"
    echo 0,2 >"$nodes/online"
    echo "$cpu0" >"$nodes/node0/cpulist"
    echo "$cpu1" >"$nodes/node2/cpulist"
    echo '10 21' >"$nodes/node0/distance"
    echo '21 10' >"$nodes/node2/distance"
    for word; do
        mkdir -p "sys/class/infiniband/${word%=*}/device"
        echo "${word#*=}" >"sys/class/infiniband/${word%=*}/device/numa_node"
    done
}

# on CPUS DEVICES ARG...: daqiri ARG... there, on a machine with these.
on()
{
    local cpus=$1
    local with=(FAKE_VERBS="$2" FAKE_SYSFS="$PWD/sys" LD_PRELOAD="$fake" "${rank[@]}")

    shift 2
    run --separate-stderr taskset -c "$cpus" timeout 100 env "${with[@]}" "$T_DAQIRI" "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}
rank=()

takes()
{
    [ "$status" -eq 0 ]
    grep -q -x -F -- "UCX_NET_DEVICES=$1" <<<"$output"
}

two='a0=active b0=active'

@test "the nearest NIC to the processors of this process, and it says so" {
    need_two_cpus
    machine a0=0 b0=2
    on "$cpu0" "$two" run env
    takes a0:1
    says 'daqiri run: device a0:1: the nearest of 2 usable RDMA devices (NUMA node 0)'
    on "$cpu1" "$two" run env
    takes b0:1
    says 'daqiri run: device b0:1: the nearest of 2 usable RDMA devices (NUMA node 2)'
}

@test "equally near: the first, and it says so" {
    need_two_cpus
    machine a0=0 b0=2
    on "$cpu0,$cpu1" "$two" run env
    takes a0:1
    says 'device a0:1: the first of 2 usable RDMA devices, which are equally near'
    machine a0=2 b0=2
    on "$cpu0" "$two" run env
    takes a0:1
    says 'device a0:1: the first of 2 usable RDMA devices, which are equally near'
}

@test "a NIC whose node is not known comes last; none is known: the first" {
    need_two_cpus
    machine a0=-1 b0=2
    on "$cpu0" "$two" run env
    takes b0:1
    says 'device b0:1: the nearest of 2 usable RDMA devices (NUMA node 2)'
    machine a0=-1 b0=-1
    on "$cpu0" "$two" run env
    takes a0:1
    says 'device a0:1: the first of 2 usable RDMA devices (the kernel does not say how near they are)'
}

@test "a sysfs that makes no sense is one that says nothing" {
    local value

    need_two_cpus
    for value in '' nonsense 1 99999999999999999999 -7 2000; do
        machine "a0=$value" "b0=$value"
        on "$cpu0" "$two" run env
        takes a0:1
        says '(the kernel does not say how near they are)'
    done
    for value in '' 'x y' 10; do
        machine a0=0 b0=2
        echo "$value" >sys/devices/system/node/node0/distance
        on "$cpu0" "$two" run env
        [ "$status" -eq 0 ]
    done
    machine a0=0 b0=2
    rm sys/devices/system/node/online
    on "$cpu0" "$two" run env
    takes a0:1
}

@test "the nearest is not usable: that is said, and the next one is taken" {
    need_two_cpus
    machine a0=0 b0=2 c0=2
    on "$cpu1" 'a0=active b0=down c0=active' run env
    takes c0:1
    says 'device b0 is not usable: its port 1 is down, not active'
    says 'device c0:1: the nearest of 2 usable RDMA devices (NUMA node 2)'
    on "$cpu1" 'a0=active b0=down' run env
    takes a0:1
    says 'device a0:1: the only usable RDMA device'
}

@test "a list: the nearest of those in it; those that are equally near in turn" {
    need_two_cpus
    machine a0=0 b0=0 c0=2 d0=2
    all='a0=active b0=active c0=active d0=active'
    on "$cpu0" "$all" run --device d0,b0 env
    takes b0:1
    says 'device b0:1: the nearest of 2 devices of --device (NUMA node 0)'
    on "$cpu0" "$all" run --device c0,d0 env
    takes c0:1
    says 'device c0:1: the first of 2 devices of --device, which are equally near'
    # a name twice is one device
    on "$cpu0" "$all" run --device d0,d0 env
    takes d0:1
    says 'device d0:1: asked for with --device'
    for local in 0 1 2 3; do
        rank=(OMPI_COMM_WORLD_LOCAL_RANK=$local OMPI_COMM_WORLD_RANK=7)
        on "$cpu1" "$all" run --device a0,d0,c0 env
        case $local in 0 | 2) takes d0:1 ;; *) takes c0:1 ;; esac
        says "daqiri run: rank 7 on $(uname -n): device "
        says "of 2 devices of --device that are equally near, by local rank $local"
    done
}

@test "a rank says which one it takes, by the variables of each launcher" {
    local words

    need_two_cpus
    machine a0=0 b0=2
    for words in 'OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_RANK=5' 'MPI_LOCALRANKID=1 PMI_RANK=5' \
            'PMIX_LOCAL_RANK=1 PMIX_RANK=5' 'SLURM_LOCALID=1 SLURM_PROCID=5'; do
        read -r -a rank <<<"$words"
        on "$cpu1" "$two c0=down" run env
        takes b0:1
        says "daqiri run: rank 5 on $(uname -n): device b0:1: the nearest of 2 usable RDMA devices (NUMA node 2)"
        # what is the same for all ranks of a host, its first one says
        [[ $stderr != *'c0 is not usable'* && $stderr != *'way into UCX'* ]]
    done
    rank=(SLURM_LOCALID=0 SLURM_PROCID=0)
    on "$cpu1" "$two c0=down" run env
    says 'c0 is not usable'
    says 'way into UCX'
}

@test "before the ranks start there is one NIC for all, and it says how there are more" {
    local starter

    need_two_cpus
    machine a0=0 b0=2
    mkdir bin
    for starter in mpirun mpiexec.hydra srun; do
        printf '#!/bin/sh\nexec env\n' >"bin/$starter"
        chmod +x "bin/$starter"
        # in a script that Slurm has started, these are of the script
        rank=(PATH="$PWD/bin:$PATH" SLURM_LOCALID=0 SLURM_PROCID=0)
        on "$cpu1" "$two" run "$starter" -n 2 ./a.out
        takes b0:1
        says 'daqiri run: device b0:1: the nearest of 2'
        says "all ranks use this one of 2 devices: for the nearest to each rank, let the ranks be started so: $starter ... daqiri run PROGRAM"
        on "$cpu1" 'a0=active' run "$starter" -n 2 ./a.out
        [[ $stderr != *'all ranks use'* ]]
    done
}

@test "a list that is wrong: a sentence, and nothing is run" {
    need_two_cpus
    machine a0=0 b0=2
    for list in ,a0 a0, a0,,b0 ,; do
        on "$cpu0" "$two" run --device "$list" env
        refused 2 'daqiri run: --device has an empty name in its list'
    done
    for name in soft auto softverbs0; do
        on "$cpu0" "$two" run --device "a0,$name" env
        refused 2 "daqiri run: --device $name cannot be in a list"
    done
    on "$cpu0" "$two" run --device a0,b1 env
    refused 1 "daqiri run: there is no device 'b1'; there are: a0, b0, soft"
    on "$cpu0" 'a0=active b0=down' run --device a0,b0 env
    refused 1 'daqiri run: device b0 cannot be used: its port 1 is down, not active'
}

@test "--rails: the nearest ones, the first of them as without it" {
    local three='a0=active b0=active c0=active'

    need_two_cpus
    machine a0=0 b0=2 c0=2
    on "$cpu1" "$three" run --rails 2 env
    takes b0:1,c0:1
    says 'daqiri run: device b0:1: the nearest of 3 usable RDMA devices (NUMA node 2)'
    says 'daqiri run: device c0:1: rail 2 of 2'
    grep -q -x UCX_MAX_EAGER_LANES=2 <<<"$output"
    grep -q -x UCX_MAX_RNDV_RAILS=2 <<<"$output"
    on "$cpu0" "$three" run --rails 3 env
    takes a0:1,b0:1,c0:1
    on "$cpu0" "$three" run env
    takes a0:1
    run ! grep RAILS= <<<"$output"
    # local ranks do not all begin with the same one
    rank=(OMPI_COMM_WORLD_LOCAL_RANK=1)
    on "$cpu1" "$three" run --device b0,c0 --rails 2 env
    takes c0:1,b0:1
    rank=()
    on "$cpu0" "$three" run --rails 4 env
    [ "$status" -eq 1 ]
    says 'daqiri run: --rails 4 needs as many devices, and there are 3'
    on "$cpu0" "$three" run --device b0 --rails 2 env
    [ "$status" -eq 1 ]
    says 'daqiri run: --rails 2 needs as many devices, and there is 1'
    on "$cpu0" "$three" run --rails 5 env
    [ "$status" -eq 2 ]
    on "$cpu0" "$three" run --rails 2 --tls tcp env
    [ "$status" -eq 2 ]
    says '--rails 2 needs a transport that uses an RDMA device, and --tls tcp names none'
}

# In a rank that daqiri run starts, where the software device is there already.
@test "the devices of softverbs are no NICs, however many there are" {
    need_two_cpus
    machine softverbs0=0 softverbs1=0
    on "$cpu0" 'softverbs0=active softverbs1=active' run env
    takes softverbs0:1
    says 'device softverbs0:1, in software and for this host only: there is no RDMA device'
}
