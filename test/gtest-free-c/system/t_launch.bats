#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri run before each launcher that starts ranks on other hosts: the variables get
# there. The other hosts are played by fake_agent, which starts with a clean environment.

bats_require_minimum_version 1.5.0
load ../mpi/jobs
load tools.bash
load ucx.bash

setup()
{
    tools_setup
    jobs_setup
    here=$T_TOP_SRCDIR/test/gtest-free-c/system
    agent=$here/fake_agent
    print_env=$here/print_env
    export OMPI_MCA_plm_rsh_agent=$agent PRTE_MCA_plm_ssh_agent=$agent
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # what the user has set, and what nobody needs
    plan='qp-error qp=rc n=1000 times=1'
    export SOFTVERBS_FAULTS=$plan UCX_LOG_LEVEL=warn DAQIRI_STATS_DIR=$PWD MINE=3
    unset "${!SLURM_@}" HYDRA_ENV
    preload=$T_SOFTVERBS:$T_PLUGIN
    quick=(--tests latency --step 64 --seconds 0.2)
}

teardown()
{
    end_running
}

# launch ARG...: daqiri run ARG... behind which ranks print their variables
launch()
{
    run --separate-stderr timeout 100 "$T_DAQIRI" run --device soft "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}

# each N LINE: of so many ranks each has it
each()
{
    [ "$(grep -c -x -F -- "$2" <<<"$output")" -eq "$1" ] || {
        echo "not $1 times: $2"
        return 1
    }
}

# arrived N [PRELOAD]: so many ranks have all that they need
arrived()
{
    [ "$status" -eq 0 ]
    each "$1" "LD_PRELOAD=${2:-$preload}"
    each "$1" UCX_TLS=daqiri
    each "$1" UCX_NET_DEVICES=softverbs0:1
    each "$1" UCX_LOG_LEVEL=warn
    each "$1" DAQIRI_STATS_DIR="$PWD"
    each "$1" SOFTVERBS_FAULTS="$plan"
}

# --- Open MPI

# in_open_mpi: LD_PRELOAD, for a UCX that loads the plugin itself has it elsewhere
in_open_mpi()
{
    ! has_module_path || preload=$T_SOFTVERBS
}

@test "Open MPI: all arrives on another host, with -x and without, whatever signs are in it" {
    local options

    need_mpi ompi
    in_open_mpi
    for options in '' '-x MINE'; do
        # shellcheck disable=SC2086
        launch "$T_MPIRUN_OMPI" $options -np 2 --host elsewhere:2 "$print_env"
        arrived 2
        each 2 OMPI_MCA_pml=ucx
        ! has_module_path || each 2 "UCX_PLUGIN_PATH=$(dirname "$T_PLUGIN")"
    done
    each 2 MINE=3
    launch "$T_MPIRUN_OMPI" -np 2 --host localhost:1,elsewhere:1 --map-by ppr:1:node "$print_env"
    arrived 2
}

@test "Open MPI: a user's own list of what is to travel is added to" {
    need_mpi ompi
    in_open_mpi
    OMPI_MCA_mca_base_env_list='MINE;TWO=a b' launch "$T_MPIRUN_OMPI" -np 1 --host elsewhere "$print_env"
    arrived 1
    each 1 MINE=3
    each 1 'TWO=a b'
}

@test "Open MPI: a value with a semicolon travels with -x, and without it a sentence says so" {
    need_mpi ompi
    in_open_mpi
    plan='link down=1ms at=9s; link down=1ms at=8s'
    export SOFTVERBS_FAULTS=$plan
    launch "$T_MPIRUN_OMPI" -np 2 --host localhost:1,elsewhere:1 -x SOFTVERBS_FAULTS --map-by ppr:1:node "$print_env"
    arrived 2
    [[ $stderr != *semicolon* ]]
    launch "$T_MPIRUN_OMPI" -np 2 --host localhost:1,elsewhere:1 --map-by ppr:1:node "$print_env"
    [ "$status" -eq 0 ]
    says "daqiri run: SOFTVERBS_FAULTS does not get to other hosts by itself with Open MPI 4, because there is a semicolon in it: give $T_MPIRUN_OMPI the option -x SOFTVERBS_FAULTS"
    each 2 UCX_TLS=daqiri
    # on one host there is nothing to be said
    launch "$T_MPIRUN_OMPI" -np 2 "$print_env"
    arrived 2
    [[ $stderr != *semicolon* ]]
}

@test "Open MPI: a rank that daqiri run starts needs nothing to travel" {
    need_mpi ompi
    run --separate-stderr timeout 100 "$T_MPIRUN_OMPI" -np 2 --host elsewhere:2 \
        "$T_DAQIRI" run --device soft "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi" "${quick[@]}"
    printf '%s\n' "stdout: $output" "stderr: $stderr"
    [ "$status" -eq 0 ]
    [[ $output == *'# sent rank=1'* ]]
    for rank in 0 1; do
        says "daqiri run: rank $rank on $(uname -n): device softverbs0:1, in software and for this host only: asked for with --device"
    done
    says 'daqiri run: way into UCX'
}

# --- PRRTE by itself

need_prrte()
{
    command -v "$1" >/dev/null || skip "$1 (PRRTE) is not installed"
}

@test "prterun: all arrives on another host" {
    need_prrte prterun
    launch prterun -np 2 --host elsewhere:2 "$print_env"
    arrived 2
    launch prterun -np 2 --host elsewhere:2 -x MINE "$print_env"
    arrived 2
    each 2 MINE=3
}

@test "prun: all arrives at a DVM that was started before" {
    need_prrte prun
    start dvm prte --report-uri "$PWD/uri" --host elsewhere:2
    running+=("$pid")
    wait_for 60 test -s uri
    launch prun --dvm-uri "file:$PWD/uri" -np 2 "$print_env"
    arrived 2
}

# --- MPICH

hydra()
{
    launch "$T_MPIRUN_MPICH" -launcher ssh -launcher-exec "$agent" "$@"
}

@test "MPICH: all arrives on another host" {
    need_mpi mpich
    ! has_module_path || preload=$T_SOFTVERBS
    hydra -np 2 -hosts localhost,elsewhere "$print_env"
    arrived 2
    HYDRA_ENV=none hydra -np 2 -hosts localhost,elsewhere "$print_env"
    arrived 2
    says "daqiri run: HYDRA_ENV was 'none', now it is 'all'"
}

@test "MPICH: options that keep the environment from other hosts: a sentence, status 2" {
    local words

    need_mpi mpich
    for words in -genvnone -envnone '-genvlist PATH' '-envlist UCX_TLS,LD_PRELOADS' --genvnone; do
        # shellcheck disable=SC2086
        hydra -np 2 $words -hosts localhost,elsewhere "$print_env"
        refused 2 "daqiri run: the options of $T_MPIRUN_MPICH keep LD_PRELOAD, "
        says 'from ranks on other hosts: leave out -genvnone, -envnone, -genvlist and -envlist'
    done
    # what is here inherits all of it, and the program's options are its own
    hydra -np 2 -genvnone "$print_env"
    [ "$status" -eq 0 ]
    each 2 UCX_TLS=daqiri
    hydra -np 2 -hosts localhost,elsewhere echo -genvnone
    [ "$status" -eq 0 ]
}

# --- Slurm

fake_slurm()
{
    mkdir bin
    ln -s "$here/fake_srun" bin/srun
    PATH=$PWD/bin:$PATH
}

@test "srun: all arrives; --export that keeps it from the ranks: a sentence, status 2" {
    local words names=LD_PRELOAD,UCX_TLS,UCX_NET_DEVICES,UCX_ZCOPY_THRESH

    fake_slurm
    for words in '' '--export=ALL' '--export ALL,MORE=1' "nice srun --export=MORE=1,ALL"; do
        # shellcheck disable=SC2086
        launch srun $words -n 2 "$print_env"
        arrived 2
    done
    for words in NONE NIL PATH,HOME UCX_TLS= XALL all_of_it; do
        launch srun -n 2 "--export=$words" "$print_env"
        refused 2 "daqiri run: srun --export=$words keeps LD_PRELOAD, "
        says 'from the ranks: give it --export=ALL, or ALL and more'
    done
    launch timeout 60 srun --exp NONE "$print_env"
    refused 2 'daqiri run: srun --export=NONE keeps LD_PRELOAD, UCX_TLS, UCX_NET_DEVICES, UCX_ZCOPY_THRESH from the ranks'
    # all names are enough, and the program's options are its own
    launch srun -n 2 "--export=$names,MINE" "$print_env"
    [ "$status" -eq 0 ]
    each 2 UCX_TLS=daqiri
    each 2 MINE=3
    launch srun -n 2 echo --export=NONE
    [ "$status" -eq 0 ]
}

@test "srun in a script of sbatch --export=NONE: SLURM_EXPORT_ENV is mended, and that is said" {
    fake_slurm
    SLURM_EXPORT_ENV=NONE launch srun -n 2 "$print_env"
    arrived 2
    says "daqiri run: SLURM_EXPORT_ENV was 'NONE', now it is 'ALL'"
    SLURM_EXPORT_ENV=PATH,MORE=1 launch srun -n 2 "$print_env"
    arrived 2
    each 2 MORE=1
    says "daqiri run: SLURM_EXPORT_ENV was 'PATH,MORE=1', now it is 'ALL,PATH,MORE=1'"
    SLURM_EXPORT_ENV=ALL launch srun -n 2 "$print_env"
    arrived 2
    [[ $stderr != *SLURM_EXPORT_ENV* ]]
}

@test "srun: a rank that daqiri run starts says its device" {
    fake_slurm
    run --separate-stderr srun -n 2 "$T_DAQIRI" run --device soft env
    arrived 2
    for rank in 0 1; do
        says "daqiri run: rank $rank on $(uname -n): device softverbs0:1"
    done
    says 'way into UCX'
}

# in_slurm COMMAND...: on a cluster of this one node
in_slurm()
{
    local program status=0

    for program in munged slurmctld slurmd srun unshare ip; do
        command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
    [ "$(id -u)" -eq 0 ] || skip 'not root, so slurmd cannot run'
    unshare -m -n -p -f true 2>/dev/null || skip 'namespaces cannot be made here'
    timeout -k 5 120 "$here/slurm_cluster" "$@" >out 2>err || status=$?
    cat out err
    [ "$status" -ne 77 ] || skip "$(head -n 1 out)"
    [ "$status" -eq 0 ]
}

@test "Slurm itself: all arrives" {
    in_slurm "$T_DAQIRI" run --device soft srun -n 2 "$print_env"
    output=$(cat out) status=0
    arrived 2
}

# by_slurm MPI HOW: a job of that MPI, over daqiri
by_slurm()
{
    local program=$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-$1

    need_mpi "$1"
    [ -x "$program" ] || skip "the sweep was not built for $1"
    mkdir counters
    DAQIRI_STATS_DIR=$PWD/counters in_slurm "$T_DAQIRI" run --device soft \
        sh -c 'srun --mpi=list 2>&1 | grep -q -w "$1" || { echo "srun --mpi=$1 is not there"; exit 77; }
            shift; exec "$@"' - "$2" srun "--mpi=$2" -n 2 "$program" "${quick[@]}"
    awk -f "$T_TOP_SRCDIR/contrib/bench.d/carried.awk" out counters/*
}

@test "Slurm itself: a job of Open MPI by PMIx" { by_slurm ompi pmix; }
@test "Slurm itself: a job of MPICH by PMI-2" { by_slurm mpich pmi2; }
