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

teardown()
{
    softverbs_teardown
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

# apart WAY...: a command, $apart, that starts what it is given, the client by WAY
apart()
{
    apart=$BATS_TEST_TMPDIR/apart
    {
        printf '#!/bin/sh\ncase $* in\n*localhost) exec'
        printf ' %q' "$@"
        printf ' "$@" ;;\nesac\nexec "$@"\n'
    } >"$apart"
    chmod +x "$apart"
}

# A /dev/shm of its own.
own_shm=(unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh)

need_root()
{
    [ "$(id -u)" -eq 0 ] || skip "needs root"
}

need_own_shm()
{
    need_root
    "${own_shm[@]}" true 2>/dev/null ||
        skip "mounting in a namespace is not allowed here"
}

# gid_by WAY...: the GID and the LID of who starts it that way
gid_by()
{
    soft "$@" ibv_devinfo -v | awk '$1 == "port_lid:" || $1 ~ /^GID/ { print $NF }'
}

# in one sentence, whatever the program does with it, by each of the two
both_say_limit()
{
    [ "$(grep -c 'softverbs: ' <<<"$output")" -eq 2 ]
    [ "$(grep -c "softverbs: nobody can be reached at $1.* from here (.*): softverbs0 connects processes of one user on one host that share /dev/shm and the PID namespace; others are reached over an RDMA NIC or Soft-RoCE" <<<"$output")" -eq 2 ]
}

@test "another /dev/shm is another fabric: a sentence at once, by LID and by GID, and nothing arrives" {
    need_own_shm
    apart "${own_shm[@]}"
    run two_sides -p "$apart" ibv_rc_pingpong -n 100
    [ "$status" -eq 1 ]
    both_say_limit LID
    [[ $output == *"transport retry counter exceeded"* ]]
    run two_sides -p "$apart" ibv_rc_pingpong -g 0 -n 100
    [ "$status" -eq 1 ]
    both_say_limit 'GID fd[0-9a-f:]*'
    [[ $output == *"transport retry counter exceeded"* ]]
}

# The device where nobody, too, may look.
copy_for_nobody()
{
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
    soft_dir=$(mktemp -d)
    chmod 755 "$soft_dir"
    install -m 755 "$T_SOFTVERBS" "$soft_dir/libsoftverbs.so"
    soft_lib=$soft_dir/libsoftverbs.so
}

@test "another user is on another fabric" {
    need_root
    copy_for_nobody
    apart setpriv --reuid=65534 --regid=65534 --clear-groups
    run two_sides -p "$apart" ibv_rc_pingpong -n 100
    [ "$status" -eq 1 ]
    both_say_limit LID
}

@test "root of a user namespace is who he is outside of it" {
    need_root
    copy_for_nobody
    unshare -U --map-root-user true 2>/dev/null || skip "user namespaces are not allowed here"
    apart unshare -U --map-root-user
    two_sides -p "$apart" ibv_rc_pingpong -n 100
    two_sides -p "$apart" ibv_rc_pingpong -g 0 -n 100
    two_sides -p unshare -U --map-root-user ibv_ud_pingpong -n 100
    # the kernel lets neither of two such look into the other
    run two_sides -p unshare -U --map-root-user ib_write_bw -n 100
    [ "$status" -ne 0 ]
    [[ $output == *"RDMA between processes is impossible"*"its user namespace"* ]]
    # two of them who have the same number, and are not the same
    apart setpriv --reuid=65534 --regid=65534 --clear-groups unshare -U --map-root-user
    run two_sides -p "$apart" ibv_rc_pingpong -n 100
    [ "$status" -eq 1 ]
    both_say_limit LID
}

@test "UCX's own verbs transports: another fabric is unreachable, at once" {
    local transport

    need_own_shm
    command -v ucx_perftest >/dev/null || skip "ucx_perftest is not installed"
    apart "${own_shm[@]}"
    for transport in rc_verbs ud_verbs; do
        run two_sides -p "$apart" $T_PERFTEST -d softverbs0:1 -x $transport -t am_lat -n 100
        [ "$status" -ne 0 ]
        [ "$status" -lt 124 ]
        [ "$(grep -c 'libperf.*Destination is unreachable' <<<"$output")" -ge 2 ]
        export UCX_TLS=$transport
        run two_sides -p "$apart" $T_PERFTEST -t tag_lat -n 100
        [ "$status" -ne 0 ]
        [ "$status" -lt 124 ]
        [[ $output == *"no active messages transport to "*" $transport/softverbs0:1 - Destination is unreachable"* ]]
        # with another one beside it, that
        export UCX_TLS=$transport,tcp
        two_sides -p "$apart" $T_PERFTEST -t tag_lat -n 100
        [[ $output == *"Final:"* ]]
    done
}

@test "the same place has the same GID, in other namespaces, too, and another place has another" {
    local here there

    need_own_shm
    here=$(gid_by env)
    [[ $here == [1-9]*$'\n'fd* ]]
    [ "$(gid_by env)" = "$here" ]
    [ "$(gid_by unshare -m)" = "$here" ]
    [ "$(gid_by unshare -n)" = "$here" ]
    [ "$(gid_by unshare -u)" = "$here" ]
    # root of this namespace there, too: whose segments are that user's
    [ "$(gid_by unshare -U --map-root-user)" = "$here" ]
    there=$(gid_by "${own_shm[@]}")
    [ "${there%%$'\n'*}" != "${here%%$'\n'*}" ]
    [ "${there##*$'\n'}" != "${here##*$'\n'}" ]
    # the same LID: who shares /dev/shm finds the segment and says what is wrong
    there=$(gid_by unshare -p -f --mount-proc)
    [ "${there%%$'\n'*}" = "${here%%$'\n'*}" ]
    [ "${there##*$'\n'}" != "${here##*$'\n'}" ]
    # a folder of the user's own is the same place, unless it is mounted there
    mkdir -m 700 "/dev/shm/softverbs-$(id -u)"
    there=$(gid_by env)
    rmdir "/dev/shm/softverbs-$(id -u)"
    [ "$there" = "$here" ]
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
