# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: Open MPI's latency and bandwidth by size, with the
# sweep that comes with daqiri. It checks every byte. Of each size the median round
# counts: a host that takes the processor away spoils few.
# shellcheck shell=bash

# A run that takes longer hangs, seconds.
mpi_limit=180

# Two ranks start also where there is one CPU, and as root. ssh is asked for
# even if every rank is here.
prepare_mpi()
{
    export OMPI_MCA_rmaps_base_oversubscribe=1
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # from Open MPI 5 on
    export OMPI_MCA_plm_rsh_agent=/bin/false
    export PRTE_MCA_plm_ssh_agent=/bin/false
    export OMPI_MCA_hwloc_base_binding_policy=none
    export PRTE_MCA_hwloc_default_binding_policy=none
    export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx,sm
    export OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
    # two ranks that poll, and one CPU: who finds nothing lets the other one run
    [ "$counted" = no ] || export OMPI_MCA_mpi_yield_when_idle=1
    if [ "$(id -u)" -eq 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# write_rank SIDE DEVICE0 DEVICE1: the program that each rank starts.
write_rank()
{
    local setting

    {
        echo '#!/bin/bash'
        echo 'devices=('"$2 $3"')'
        # shellcheck disable=SC2016
        echo 'rank=$OMPI_COMM_WORLD_LOCAL_RANK'
        # shellcheck disable=SC2016
        echo 'export UCX_NET_DEVICES=${devices[rank]}'
        printf 'export UCX_TLS=%s UCX_LOG_LEVEL=warn\n' "$(tls_of "$1")"
        echo 'export UCX_UD_VERBS_ETH_DGID_CHECK=n'
        for setting in $(settings_of "$1"); do
            printf 'export %q\n' "$setting"
        done
        printf 'export LD_PRELOAD=%q DAQIRI_STATS_DIR=%q\n' \
            "$(preload_of "$1")" "$work/stats"
        # shellcheck disable=SC2016
        echo 'exec taskset -c $((rank % $(nproc))) "$@"'
    } > "$work/rank"
    chmod +x "$work/rank"
}

# run_mpi NAME SIDE: the sweep once; what it prints is in $work/mpi.
run_mpi()
{
    local second=$device
    local seconds=$((4 * ${BENCH_PERCENT:-100} / 100 + 1))

    # Counted, a longer run repeats itself; what differs does so from run to run.
    [ "$counted" = no ] || [ "$seconds" -lt 3 ] || seconds=3
    [ "$1" != mpi_wire ] || second=${device/0/1}
    clear_stats
    write_rank "$2" "$device" "$second"
    if ! timeout "$mpi_limit" mpirun.openmpi -np 2 "$work/rank" \
            "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi" \
            --tests latency,bw --min 8 --max 2M --step 8 --median \
            --seconds "$seconds" >"$work/mpi" 2>"$work/mpi.err" </dev/null; then
        tail -n 20 "$work/mpi.err" "$work/mpi" | sed 's/^/    /' >&2
        die 1 "the MPI sweep did not run over $2 on $device and $second"
    fi
    [ "$(transport_of "$2")" != daqiri ] || mpi_carried
}

mpi_carried()
{
    shopt -s nullglob
    awk -f "$bench_d/carried.awk" "$work/mpi" "$work/stats"/* \
        > "$work/carried" || {
        sed 's/^/    /' "$work/carried" >&2
        die 1 'something else than daqiri carried MPI messages'
    }
}

# time_mpi NAME SIDE: files NAME.latency.SIZE and NAME.bw.SIZE; their
# order in the table is that of $work/NAME.rows.
time_mpi()
{
    steadily run_mpi "$1" "$2"
    awk '/^# (latency|bw): / { test = $2; sub(/:/, "", test) }
         /^ *[0-9]+ / { print test, $1, $2 }' "$work/mpi" > "$work/figures"
    while read -r test size value; do
        echo "$value" >> "$work/$1.$test.$size.$2"
    done < "$work/figures"
    cut -d' ' -f1,2 "$work/figures" > "$work/$1.rows"
}
