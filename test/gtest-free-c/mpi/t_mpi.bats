#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# MPI programs over UCX_TLS=daqiri, under both MPIs, with 1, 2, 4 and 8 ranks
# on whatever cores there are. Every payload is checked by the program; here,
# that daqiri carried it, and that nothing was left behind or complained about.
# T_NP="1 2" has the cases run with these numbers of ranks instead.

load jobs

setup()
{
    jobs_setup
}

# every_np MPI CASE
every_np()
{
    local np

    need_mpi "$1"
    for np in ${T_NP:-1 2 4 8}; do
        job_ok "$2" daqiri "$1" "$np" \
            "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" "$2"
        job_carried
        if grep '^# skip' "$job/out"; then
            skip "$(sed -n 's/^# skip: //p' "$job/out")"
        fi
    done
}

# mpich_apart: MPICH 4.0 ends such a job with UCX 1.16 and newer, unless
# UCX_PROTO_ENABLE=n, over UCX's own shared memory and rc_verbs as well.
mpich_apart()
{
    need_mpi mpich
    case $T_UCX_VERSION in
        1.13.* | 1.14.* | 1.15.*) return ;;
    esac
    mpiexec.mpich --version | grep -q 'Version: *4\.0' || return 0
    job_run probe posix,sysv mpich 2 \
        "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-mpich" types ||
        ! grep 'Fatal error in internal_Waitall' "$job/err" ||
        skip "MPICH 4.0 with UCX $T_UCX_VERSION does not carry them over posix,sysv either"
}

# The same for a case that puts and gets: by Open MPI's osc/ucx, and by MPICH,
# these are RDMA WRITEs and READs.
every_np_one_sided()
{
    local np

    every_np "$@"
    for np in ${T_NP:-1 2 4 8}; do
        [ "$np" -gt 1 ] || continue
        job=$BATS_TEST_TMPDIR/$2.$np
        job_was_one_sided
    done
}

@test "Open MPI: blocking, 0 B to 16 MiB" { every_np ompi blocking; }
@test "Open MPI: nonblocking, all to all" { every_np ompi nonblocking; }
@test "Open MPI: any source, order of each sender" { every_np ompi any_source; }
@test "Open MPI: messages to oneself" { every_np ompi self; }
@test "Open MPI: truncation is seen and survived" { every_np ompi truncation; }
@test "Open MPI: probe and matched probe" { every_np ompi probe; }
@test "Open MPI: thousands of unexpected messages" { every_np ompi unexpected; }
@test "Open MPI: random traffic" { every_np ompi random; }
@test "Open MPI: MPI_THREAD_MULTIPLE" { every_np ompi threads; }
@test "Open MPI: elements that lie apart" { every_np ompi types; }
@test "Open MPI: one-sided windows" { every_np_one_sided ompi windows; }
@test "Open MPI: a window in memory that the ranks share" { every_np ompi shared_window; }
@test "Open MPI: one-sided atomics" { every_np ompi atomics; }
@test "Open MPI: collectives" { every_np ompi collectives; }

@test "MPICH: blocking, 0 B to 16 MiB" { every_np mpich blocking; }
@test "MPICH: nonblocking, all to all" { every_np mpich nonblocking; }
@test "MPICH: any source, order of each sender" { every_np mpich any_source; }
@test "MPICH: messages to oneself" { every_np mpich self; }
@test "MPICH: truncation is seen and survived" { every_np mpich truncation; }
@test "MPICH: probe and matched probe" { every_np mpich probe; }
@test "MPICH: thousands of unexpected messages" { every_np mpich unexpected; }
@test "MPICH: random traffic" { every_np mpich random; }
@test "MPICH: MPI_THREAD_MULTIPLE" { every_np mpich threads; }
# MPICH 4.2 looks for its place in the elements anew for each fragment: two ranks take 13 s
# of each processor, over tcp as well.
@test "MPICH: elements that lie apart" { mpich_apart; JOB_LIMIT=300 every_np mpich types; }
@test "MPICH: one-sided windows" { every_np_one_sided mpich windows; }
@test "MPICH: a window in memory that the ranks share" { every_np mpich shared_window; }
@test "MPICH: one-sided atomics" { every_np mpich atomics; }
@test "MPICH: collectives" { every_np mpich collectives; }

# threads_share_cpu MPI TLS: all threads of two ranks on one CPU, as those of a
# rank are where Open MPI binds it to a core. Who polls holds the MPI's lock, and
# must not give the CPU only to threads that spin on that lock. No rank yields on
# its own: that would hide it.
threads_share_cpu()
{
    local cpu

    need_mpi "$1"
    need_tls "$2"
    cpu=$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    OMPI_MCA_mpi_yield_when_idle=0 \
        job_ok thread_pairs "$2" "$1" 2 taskset -c "$cpu" \
        "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" thread_pairs
    if grep '^# skip' "$job/out"; then
        skip "$(sed -n 's/^# skip: //p' "$job/out")"
    fi
}

@test "Open MPI: threads of two ranks share one CPU" { threads_share_cpu ompi daqiri; job_carried; }
@test "MPICH: threads of two ranks share one CPU" { threads_share_cpu mpich daqiri; job_carried; }
@test "Open MPI: threads of two ranks share one CPU, rc_verbs" { threads_share_cpu ompi rc_verbs,ud_verbs; }
@test "MPICH: threads of two ranks share one CPU, rc_verbs" { threads_share_cpu mpich rc_verbs,ud_verbs; }

# The device has to carry UCX's own transports too.
other_transports()
{
    need_mpi "$1"
    need_tls rc_verbs,ud_verbs
    job_ok random rc_verbs,ud_verbs "$1" 2 \
        "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" random collectives
    run grep -h '^am_tx ' "$job/counters"/*
    [ "$status" -ne 0 ]
}

@test "Open MPI: rc_verbs,ud_verbs on the same device, without daqiri" { other_transports ompi; }
@test "MPICH: rc_verbs,ud_verbs on the same device, without daqiri" { other_transports mpich; }

# Ranks may be given different latencies. However different these are, both ranks
# choose daqiri, and understand each other.
different_estimates()
{
    need_mpi "$1"
    # shellcheck disable=SC2016
    job_ok estimates daqiri,rc_verbs,ud_verbs "$1" 2 sh -c '
        case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in
            0) UCX_DAQIRI_LATENCY=105ns ;;
            1) UCX_DAQIRI_LATENCY=570ns ;;
        esac
        export UCX_DAQIRI_LATENCY
        exec "$@"' sh "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" blocking
    job_carried
}

@test "Open MPI: ranks with different latencies" { different_estimates ompi; }
@test "MPICH: ranks with different latencies" { different_estimates mpich; }

# with_budget MPI CASE...: 8 ranks that may have two queue pairs each take turns.
with_budget()
{
    local mpi=$1 case

    need_mpi "$mpi"
    shift
    for case in "$@"; do
        UCX_DAQIRI_MAX_QPS=2 JOB_LIMIT=180 job_ok "$case" daqiri "$mpi" 8 \
            "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$mpi" "$case"
        job_carried
        grep -q '^idle_closes [1-9]' "$job/counters"/*
    done
}

@test "Open MPI: two queue pairs for 8 ranks, point to point" { with_budget ompi blocking nonblocking any_source random; }
@test "Open MPI: two queue pairs for 8 ranks, the rest" { with_budget ompi self truncation probe unexpected types windows atomics collectives; }
@test "MPICH: two queue pairs for 8 ranks, point to point" { with_budget mpich blocking nonblocking any_source random; }
@test "MPICH: two queue pairs for 8 ranks, the rest" { with_budget mpich self truncation probe unexpected windows atomics collectives; }

# --- several cases in one job

# What one case leaves behind, wide windows for one, is what the next one begins with.
in_a_row()
{
    need_mpi "$1"
    job_ok row daqiri "$1" 4 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" \
        any_source unexpected random windows shared_window collectives random
    job_carried
}

@test "Open MPI: many cases in one job" { in_a_row ompi; }
@test "MPICH: many cases in one job" { in_a_row mpich; }

# --- several devices

# two_rails MPI: short messages and long ones, over both devices of each rank.
two_rails()
{
    local JOB_RAILS=2

    need_mpi "$1"
    job_ok rails daqiri "$1" 2 "$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-$1" \
        blocking nonblocking random
    job_carried
    rails_carried 1000000 softverbs0 softverbs1
}

@test "Open MPI: two rails, both carry" { two_rails ompi; }
@test "MPICH: two rails, both carry" { two_rails mpich; }
