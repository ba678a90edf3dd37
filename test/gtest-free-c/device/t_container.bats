# SPDX-License-Identifier: BSD-3-Clause
#
# softverbs where the kernel allows less: seccomp profiles and namespaces as
# containers have them. The small /dev/shm is in t_segment.bats.

bats_require_minimum_version 1.5.0
load programs.bash

setup()
{
    softverbs_setup
    tests=$T_TOP_BUILDDIR/test/gtest-free-c/device
    deny=$tests/deny
    status=0
    "$deny" process_vm_readv true || status=$?
    [ "$status" -ne 77 ] || skip "this kernel has no seccomp"
    [ "$status" -eq 0 ]
}

no_copies=process_vm_readv,process_vm_writev

@test "without process_vm_*: whatever goes through rings works" {
    two_sides -p "$deny" $no_copies ibv_rc_pingpong -c
    two_sides -p "$deny" $no_copies ibv_rc_pingpong -e
    two_sides -p "$deny" $no_copies ibv_ud_pingpong
    two_sides -p "$deny" $no_copies ibv_srq_pingpong
    "$deny" $no_copies "$tests/t_send"
    "$deny" $no_copies "$tests/t_long"
}

@test "without process_vm_*: RDMA in one process works" {
    "$deny" $no_copies "$tests/t_rdma"
}

@test "without process_vm_*: RDMA between processes is refused with a sentence" {
    local test

    for test in ib_write_bw ib_read_bw ib_atomic_bw; do
        run two_sides -p "$deny" $no_copies $test -n 100
        [ "$status" -ne 0 ]
        [[ $output == *"RDMA between processes is impossible"*seccomp* ]]
    done
}

@test "without membarrier: all of it works" {
    two_sides -p "$deny" membarrier ibv_rc_pingpong -e
    "$deny" membarrier "$tests/t_many"
    "$deny" membarrier "$tests/t_event"
    T_KILLS=20 "$deny" membarrier "$tests/t_kill"
}

@test "without membarrier on one side only" {
    # what two_sides gives to both, only one of them gets
    cat >"$BATS_TEST_TMPDIR/one" <<-END
	#!/bin/sh
	case \$* in
	    *localhost) exec "$deny" membarrier ibv_rc_pingpong "\$@" ;;
	esac
	exec ibv_rc_pingpong "\$@"
	END
    chmod +x "$BATS_TEST_TMPDIR/one"
    two_sides -p "$BATS_TEST_TMPDIR/one" -e -n 3000
    [[ $output == *" iters in "* ]]
}

@test "separate PID namespaces are refused with a sentence" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    unshare -p -f --mount-proc true 2>/dev/null ||
        skip "PID namespaces are not allowed here"
    cat >"$BATS_TEST_TMPDIR/apart" <<-END
	#!/bin/sh
	case \$* in
	    *localhost) exec unshare -p -f --mount-proc ibv_rc_pingpong "\$@" ;;
	esac
	exec ibv_rc_pingpong "\$@"
	END
    chmod +x "$BATS_TEST_TMPDIR/apart"
    run two_sides -p "$BATS_TEST_TMPDIR/apart" -n 100
    [ "$status" -ne 0 ]
    [[ $output == *"transport retry counter exceeded"* ]]
    [ "$(grep -c 'softverbs: .* another PID namespace' <<<"$output")" -ge 1 ]
}
