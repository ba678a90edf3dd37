# SPDX-License-Identifier: BSD-3-Clause
#
# Other people's programs run unmodified on softverbs.

bats_require_minimum_version 1.5.0
load programs.bash

setup()
{
    softverbs_setup
}

@test "ibv_devices and ibv_devinfo" {
    run soft ibv_devices
    [ "$status" -eq 0 ]
    [[ $output == *softverbs0* ]]
    run soft ibv_devinfo -v
    [ "$status" -eq 0 ]
    [[ $output == *"PORT_ACTIVE (4)"* ]]
    [[ $output == *"GID[  0]"* ]]
    [[ $output == *"InfiniBand"* ]]
}

@test "ibv_rc_pingpong" {
    pingpong ibv_rc_pingpong
}

@test "ibv_rc_pingpong, asleep" {
    pingpong ibv_rc_pingpong -e
}

@test "ibv_rc_pingpong, long messages, asleep" {
    pingpong ibv_rc_pingpong -e -s 1000000 -n 50
}

@test "ibv_rc_pingpong, long messages" {
    pingpong ibv_rc_pingpong -s 1000000 -n 50
}

@test "ibv_rc_pingpong, data checked" {
    pingpong ibv_rc_pingpong -c -n 200
}

@test "ibv_ud_pingpong" {
    pingpong ibv_ud_pingpong
}

@test "ibv_ud_pingpong, asleep" {
    pingpong ibv_ud_pingpong -e
}

@test "ibv_srq_pingpong" {
    pingpong ibv_srq_pingpong
}

@test "ibv_srq_pingpong, asleep" {
    pingpong ibv_srq_pingpong -e
}

@test "ibv_uc_pingpong is refused with a reason" {
    run two_sides -p ibv_uc_pingpong
    [ "$status" -ne 0 ]
    [[ $output == *"Couldn't create QP"* ]]
    [[ $output == *"softverbs: a queue pair of type 3 (UC) cannot be created: this device has RC and UD"* ]]
}

# All of what follows with all options: contrib/check --long programs.

@test "perftest: SEND" {
    ib_perftest ib_send_bw -n 1000 -b -q 4
    ib_perftest ib_send_bw -n 1000 --use-srq -q 4
    ib_perftest ib_send_bw -n 1000 -e
    ib_perftest ib_send_lat -n 2000 -e
}

@test "perftest: datagrams" {
    ib_perftest ib_send_bw -n 1000 -c UD -s 2048 -q 4
    ib_perftest ib_send_lat -n 1000 -c UD -e
}

@test "perftest: WRITE and READ" {
    ib_perftest ib_write_bw -n 1000 -b -q 4
    ib_perftest ib_write_lat -n 1000
    ib_perftest ib_read_bw -n 1000 -e
    ib_perftest ib_read_lat -n 1000 -e
}

@test "perftest: atomics" {
    ib_perftest ib_atomic_bw -n 1000 -q 4 -A CMP_AND_SWAP
    ib_perftest ib_atomic_lat -n 1000 -e -A FETCH_AND_ADD
}

@test "ucx_info lists both transports" {
    run soft ucx_info -d
    [ "$status" -eq 0 ]
    [ "$(grep -c 'Device: softverbs0:1' <<<"$output")" -ge 2 ]
    [[ $output == *"Transport: rc_verbs"* ]]
    [[ $output == *"Transport: ud_verbs"* ]]
}

@test "ucx_perftest rc_verbs: active messages" {
    perftest rc_verbs am_lat
    perftest rc_verbs am_bw
    perftest rc_verbs am_lat -D bcopy -s 4000
    perftest rc_verbs am_bw -D bcopy -s 8000
    perftest rc_verbs am_bw -D zcopy -s 8000
}

@test "ucx_perftest rc_verbs: put and get" {
    perftest rc_verbs put_lat
    perftest rc_verbs put_bw -D bcopy -s 4000
    perftest rc_verbs put_bw -D zcopy -s 1000000 -n 200
    perftest rc_verbs get -D bcopy -s 4000
    perftest rc_verbs get -D zcopy -s 1000000 -n 200
}

@test "ucx_perftest rc_verbs: atomics" {
    perftest rc_verbs add_lat
    perftest rc_verbs fadd
    perftest rc_verbs cswap
}

@test "ucx_perftest ud_verbs" {
    perftest ud_verbs am_lat
    perftest ud_verbs am_bw
    perftest ud_verbs am_bw -D bcopy -s 3000
}

@test "ucx_perftest on top of both: tags, streams, memory" {
    export UCX_TLS=rc_verbs,ud_verbs

    ucp_perftest tag_lat -n 2000
    ucp_perftest tag_bw -n 200 -s 1000000
    ucp_perftest stream_lat -n 2000
    ucp_perftest ucp_put_bw -s 100000
    ucp_perftest ucp_get -s 100000
    ucp_perftest ucp_fadd -s 8
}

@test "ucx_perftest on top of both, asleep" {
    export UCX_TLS=rc_verbs,ud_verbs

    ucp_perftest tag_lat -n 1000 -E sleep
}

# mpi_job STARTER SWEEP NP
mpi_job()
{
    case $T_FLAVOUR in
        asan|tsan)
            skip "flavour $T_FLAVOUR: an MPI would have to be built with that sanitizer"
            ;;
    esac
    [ -n "$1" ] || skip "this MPI is not installed"
    run mpi_sweep "$@" rc_verbs,ud_verbs
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "Open MPI over rc_verbs and ud_verbs, 2 ranks" {
    mpi_job "$T_MPIRUN_OMPI" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi" 2
}

@test "Open MPI over rc_verbs and ud_verbs, 4 ranks" {
    mpi_job "$T_MPIRUN_OMPI" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi" 4
}

@test "Open MPI over rc_verbs and ud_verbs, 8 ranks" {
    mpi_job "$T_MPIRUN_OMPI" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-ompi" 8
}

@test "MPICH over rc_verbs and ud_verbs, 2 ranks" {
    mpi_job "$T_MPIRUN_MPICH" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-mpich" 2
}

@test "MPICH over rc_verbs and ud_verbs, 4 ranks" {
    mpi_job "$T_MPIRUN_MPICH" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-mpich" 4
}

@test "MPICH over rc_verbs and ud_verbs, 8 ranks" {
    mpi_job "$T_MPIRUN_MPICH" "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-mpich" 8
}

@test "librdmacm says what it says on a machine without RDMA: ENODEV" {
    [ ! -e /dev/infiniband/rdma_cm ] || skip 'this machine has the RDMA CM'
    [ -x /usr/bin/python3 ] || skip 'python3 is not installed'
    ldconfig -p | grep -q 'librdmacm\.so\.1' || skip 'librdmacm is not installed'
    run -0 soft /usr/bin/python3 "$T_TOP_SRCDIR/test/gtest-free-c/device/rdmacm_errno.py"
    grep -v 'No RDMA devices' <<<"$output" >"$BATS_TEST_TMPDIR/said"
    diff "$BATS_TEST_TMPDIR/said" - <<'EOF'
rdma_create_event_channel ENODEV
rsocket ENODEV
rdma_create_ep ENODEV
EOF
}
