# SPDX-License-Identifier: BSD-3-Clause
#
# Processes that come and go (MPI's dynamic processes) over UCX_TLS=daqiri: a peer
# that leaves in order ends nobody's job. The program checks every byte; here, that
# daqiri carried them, and that nobody complained. T_ROUNDS=100 makes it more than a
# look.

bats_require_minimum_version 1.5.0
load jobs

setup()
{
    jobs_setup
}

# Processes of this job that have not opened UCX: without its thread `async` they are
# still in the hands of MPI's starter.
not_started()
{
    local pid

    for pid in $(grep -l -z -x "MT_JOB=$1" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in mt-spawn* | lt-mt-spawn*) ;; *) continue ;; esac
        grep -q -x async /proc/"$pid"/task/*/comm 2>/dev/null || echo "$pid"
    done
}

# spawn_ok NAME NP ARGUMENT...: as job_ok, and again if Open MPI's starter hangs. In 4 of
# 127 jobs over tcp a child did, in PMIx_Init(), and its parent in PMIx_Lookup() (Open MPI
# 4.1.4, PMIx 4.2.2, busy machine). A job in which every process has opened UCX is
# never made again.
spawn_ok()
{
    local name=$1 np=$2 tries pid waited

    shift 2
    for tries in 1 2 3 4 5; do
        export MT_JOB=$BATS_TEST_TMPDIR/$name.$tries
        job_ok "$name.$tries" daqiri ompi "$np" "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-ompi" "$@" 3>&- &
        pid=$!
        waited=0
        while kill -0 "$pid" 2>/dev/null && [ "$waited" -lt $((JOB_LIMIT - 20)) ]; do
            sleep 1
            waited=$((waited + 1))
        done
        if kill -0 "$pid" 2>/dev/null && [ -n "$(not_started "$MT_JOB")" ]; then
            echo "# Open MPI's starter hangs: $(not_started "$MT_JOB") has not opened UCX; once more" >&3
            wait "$pid" || true
            continue
        fi
        wait "$pid" || return 1
        job=$BATS_TEST_TMPDIR/$name.$tries.$np
        return 0
    done
    echo 'the starter hangs each time'
    return 1
}

# Of Open MPI 5.0.7 (Debian 13) the starter crashes in MPI_Comm_spawn_multiple, also
# without UCX. In a window of children that have merged with their parent its osc/ucx
# sends a rank the address of another rank's memory (ompi_osc_ucx_lock_all), over tcp and
# rc_verbs as well; its windows without UCX hang there.
need_spawn()
{
    need_mpi ompi
    case $1/$(ompi_major) in
        multiple/5 | merge/5) skip "Open MPI 5.0 fails in \"$1\", over tcp and rc_verbs as well" ;;
    esac
}

# comes_and_goes FORM CHILDREN [ROUNDS]
comes_and_goes()
{
    local rounds=${T_ROUNDS:-${3:-3}}
    local carriers

    need_spawn "$1"
    [ "$1" != stay ] || [ "$rounds" -le 16 ] || rounds=16
    export JOB_LIMIT=$((60 + rounds * 10))
    spawn_ok "$1.$2" 1 "$1" "$2" "$rounds"
    grep -q "^mt-spawn: $1, $2 children, $rounds rounds" "$job/out"

    # the parent, and the children of each round
    carriers=$(grep -l '^am_tx [1-9]' "$job/counters"/* | wc -l)
    [ "$carriers" -gt $((rounds * $2)) ]
    if grep -E '^(sq_in_use|rx_held|tx_buffers_out)_at_close [1-9]|^(rx_dropped|rx_overrun|rx_out_of_order|rx_duplicates|stray_completions|qp_failures) [1-9]' \
            "$job/counters"/*; then
        echo 'the counters above must be 0'
        return 1
    fi
}

@test "Open MPI: spawn, 1 child" { comes_and_goes spawn 1 5; }
@test "Open MPI: spawn, 7 children" { comes_and_goes spawn 7; }
@test "Open MPI: spawn_multiple" { comes_and_goes multiple 1; }
@test "Open MPI: spawn and merge, collectives, a window" { comes_and_goes merge 2; }
@test "Open MPI: accept and connect" { comes_and_goes connect 2; }
@test "Open MPI: the last thing is a message that nobody answers" { comes_and_goes silent 2; }
@test "Open MPI: children that part in turns" { comes_and_goes stay 2; }
@test "Open MPI: the parent leaves first" { comes_and_goes leave 2 1; }

@test "Open MPI: two halves of a job connect and part" {
    need_mpi ompi
    export JOB_LIMIT=90
    spawn_ok halves 4 halves 0 "${T_ROUNDS:-3}"
}

# What MPI cannot do over tcp either is not the transport's to try.
@test "MPICH: spawn, 2 children" {
    need_mpi mpich
    job_run probe tcp mpich 1 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-mpich" spawn 1 1 ||
        skip 'this MPICH starts no processes, over tcp either'
    job_ok spawn daqiri mpich 1 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-mpich" spawn 2 3
}
