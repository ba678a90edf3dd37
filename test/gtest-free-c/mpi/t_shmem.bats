#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# OpenSHMEM over daqiri, with Open MPI's oshmem, and that its puts and gets are
# RDMA WRITEs and READs.

load jobs

setup()
{
    jobs_setup
    program=$T_TOP_BUILDDIR/test/gtest-free-c/mpi/mt-shmem
    [ -x "$program" ] || skip 'Open MPI has come without OpenSHMEM (oshcc)'
    # the memory of a PE; the default is 256 MB for each
    export SMA_SYMMETRIC_SIZE=16M
    # Open MPI 5 takes what is free in its first PE, and ends where that is not free in
    # another, by chance; this address was the default before
    [ "$(ompi_major)" -lt 5 ] || export OMPI_MCA_sshmem_base_start_address=$((0xFF000000))
}

@test "OpenSHMEM: hello, put, get and atomics" {
    local np

    for np in 1 2 4 8; do
        job_ok shmem daqiri ompi "$np" "$program"
        [ "$(grep -c '^# hello from PE' "$job/out")" -eq "$np" ]
        job_carried
        [ "$np" -eq 1 ] || job_was_one_sided
    done
}
