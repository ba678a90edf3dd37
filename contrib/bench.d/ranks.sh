# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench peers and jobs, behind pair.sh and mpi.sh: MPI jobs of many ranks
# on softverbs.
# shellcheck shell=bash

counted=no # for prepare_mpi

# need_mpi MPI: it is installed, and jobs may have more ranks than there are processors.
need_mpi()
{
    local program

    for program in "mpicc.$1" "mpirun.$1"; do
        command -v "$program" >/dev/null ||
            die 1 "$program is not installed (Debian: $1)"
    done
    prepare_mpi
}

# compile_ranks MPI NAME: test/bench/NAME.c
compile_ranks()
{
    "mpicc.$1" -O2 -o "$work/$2" "$top/test/bench/$2.c" ||
        die 1 "$top/test/bench/$2.c cannot be compiled"
}

# device_of SIDE
device_of()
{
    case $(transport_of "$1") in
        tcp) echo lo ;;
        *) echo softverbs0:1 ;;
    esac
}

# run_ranks MPI SIDE NP NAME ARGUMENT...: what it prints is in $work/out and $work/err. A
# job that takes longer than $seconds is ended.
run_ranks()
{
    local settings

    read -r -a settings < <(settings_of "$2")
    timeout -k 5 "$seconds" "mpirun.$1" -np "$3" env "UCX_TLS=$(tls_of "$2"),self" \
        "UCX_NET_DEVICES=$(device_of "$2")" "LD_PRELOAD=$(preload_of "$2")" \
        ${settings[@]+"${settings[@]}"} "$work/$4" "${@:5}" \
        >"$work/out" 2>"$work/err" </dev/null
}
