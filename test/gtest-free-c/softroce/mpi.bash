# SPDX-License-Identifier: BSD-3-Clause
#
# Read by the beds that run MPI in the virtual machine, on one device and over
# the wire. The programs check every byte; here, that daqiri carried them, and
# that those between the ends went over the wire. A bed sets JOB_LIMIT, the
# seconds of a job.
# shellcheck shell=bash disable=SC2154

one_device()
{
    bed_run "$1, $2 ranks, one device: ${*:3}" $((JOB_LIMIT + 10)) job "$@"
}

on_wire()
{
    bed_run "$1, $2 ranks, on the wire: ${*:3}" $((JOB_LIMIT + 10)) \
        wire_job "$@"
}

job_setup()
{
    . "$bed_source/mpi/jobs.bash"
    BATS_TEST_TMPDIR=$(mktemp -d)
    T_DEVICE=rxe0
    jobs_setup
}

# job MPI NP CASE...
job()
{
    local mpi=$1 np=$2

    shift 2
    job_setup
    job_ok one "daqiri" "$mpi" "$np" "$bed_tests/mpi/mt-$mpi" "$@" &&
        job_carried
}

# over_wire NAME MPI NP PROGRAM [ARGUMENT...]: a job whose ranks take rxe0 and
# rxe1 in turn, and what went over the wire is no less than the job's bytes,
# halved: the ranks of one side may have sent much to each other.
over_wire()
{
    local name=$1 mpi=$2 np=$3
    local before

    shift 3
    before=$(bed_received bytes)
    # shellcheck disable=SC2016 # for that shell to expand
    job_ok "$name" daqiri "$mpi" "$np" bash -c \
        'UCX_NET_DEVICES=rxe$((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % 2)):1 \
             exec "$@"' rank "$@" &&
        job_carried &&
        on_both_ends &&
        crossed $(($(bed_received bytes) - before))
}

wire_job()
{
    local mpi=$1 np=$2

    shift 2
    job_setup
    over_wire wire "$mpi" "$np" "$bed_tests/mpi/mt-$mpi" "$@"
}

on_both_ends()
{
    local device

    # shellcheck disable=SC2154 # job_run sets $job
    for device in rxe0 rxe1; do
        grep -q "^device $device\$" "$job/counters"/* || {
            echo "no rank has used $device"
            return 1
        }
    done
}

crossed()
{
    local carried

    carried=$(awk '/^(am_tx|rma)_bytes / { n += $2 } END { print n }' \
              "$job/counters"/*)
    echo "daqiri carried $carried bytes; $1 crossed the wire"
    [ "$1" -ge $((carried / 2)) ]
}
