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

# comes_and_goes MPI FORM CHILDREN [ROUNDS]
comes_and_goes()
{
    local rounds=${T_ROUNDS:-${4:-3}}
    local carriers

    need_mpi "$1"
    [ "$2" != stay ] || [ "$rounds" -le 16 ] || rounds=16
    JOB_LIMIT=$((90 + rounds * 10)) job_ok "$2.$3" daqiri "$1" 1 \
        "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-$1" "$2" "$3" "$rounds"
    grep -q "^mt-spawn: $2, $3 children, $rounds rounds" "$job/out"

    # the parent, and the children of each round
    carriers=$(grep -l '^am_tx [1-9]' "$job/counters"/* | wc -l)
    [ "$carriers" -gt $((rounds * $3)) ]
    if grep -E '^(sq_in_use|rx_held|tx_buffers_out)_at_close [1-9]|^(rx_dropped|rx_overrun|rx_out_of_order|rx_duplicates|stray_completions|losses) [1-9]' \
            "$job/counters"/*; then
        echo 'the counters above must be 0'
        return 1
    fi
}

@test "Open MPI: spawn, 1 child" { comes_and_goes ompi spawn 1 5; }
@test "Open MPI: spawn, 7 children" { comes_and_goes ompi spawn 7; }
@test "Open MPI: spawn_multiple" { comes_and_goes ompi multiple 1; }
@test "Open MPI: spawn and merge, collectives, a window" { comes_and_goes ompi merge 2; }
@test "Open MPI: accept and connect" { comes_and_goes ompi connect 2; }
@test "Open MPI: the last thing is a message that nobody answers" { comes_and_goes ompi silent 2; }
@test "Open MPI: children that part in turns" { comes_and_goes ompi stay 2; }
@test "Open MPI: the parent leaves first" { comes_and_goes ompi leave 2 1; }

@test "Open MPI: two halves of a job connect and part" {
    need_mpi ompi
    job_ok halves daqiri ompi 4 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-ompi" \
        halves 0 "${T_ROUNDS:-3}"
}

# What MPI cannot do over tcp either is not the transport's to try.
@test "MPICH: spawn, 2 children" {
    need_mpi mpich
    job_run probe tcp mpich 1 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-spawn-mpich" spawn 1 1 ||
        skip 'this MPICH starts no processes, over tcp either'
    comes_and_goes mpich spawn 2
}
