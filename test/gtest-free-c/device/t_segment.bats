# SPDX-License-Identifier: BSD-3-Clause
#
# softverbs and /dev/shm: what is left behind, and what happens when it is full.
# Each test has a /dev/shm of its own, in a mount namespace.

bats_require_minimum_version 1.5.0
load programs.bash

setup()
{
    softverbs_setup
    tests=$T_TOP_BUILDDIR/test/gtest-free-c/device
    if [ "$(id -u)" -eq 0 ]; then
        own_mounts=(unshare -m)
    else
        own_mounts=(unshare -rm)
    fi
    "${own_mounts[@]}" mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
        skip "mounting in a namespace is not allowed here"
}

# with_shm SIZE SCRIPT: runs it with a /dev/shm of SIZE; `soft` works in there
with_shm()
{
    local size=$1 script=$2

    run "${own_mounts[@]}" bash -c "
        mount -t tmpfs -o size=$size tmpfs /dev/shm || exit 99
        $(declare -f soft is_listening two_sides)
        soft_as=() soft_env=() soft_lib='$soft_lib' tests='$tests'
        $script"
    echo "$output"
    [ "$status" -ne 99 ]
}

@test "nothing is left behind" {
    with_shm 100% '
        two_sides -p ibv_rc_pingpong -n 100 >&2 || exit 1
        soft ibv_devinfo >/dev/null || exit 2
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [[ $output != *softverbs* ]]
}

@test "exit() without ibv_close_device() leaves nothing behind" {
    # the client opens the device, finds no server, and calls exit()
    with_shm 100% '
        soft ibv_rc_pingpong -p 1 localhost >&2
        soft ibv_rc_pingpong -e -p 1 localhost >&2
        ls /dev/shm'
    [[ $output != *softverbs* ]]
}

# Starts a process that has the device and a channel open until it is killed:
# $holder.
# shellcheck disable=SC2016
hold='
    env LD_PRELOAD="$T_SAN_PRELOAD $soft_lib" ibv_rc_pingpong -e -p 0 \
        >/dev/null 2>&1 &
    holder=$!
    trap "kill -KILL $holder 2>/dev/null" EXIT
    until compgen -G "/dev/shm/softverbs-*.*.*" ||
        compgen -G "/dev/shm/softverbs-*/*.*"; do
        kill -0 $holder || exit 9
        sleep 0.02
    done >/dev/null'

@test "the segment of a killed process is gone after the next open" {
    with_shm 100% "$hold"'
        kill -KILL $holder
        wait $holder 2>/dev/null
        ls /dev/shm/softverbs-* >/dev/null || exit 2
        soft ibv_devinfo >/dev/null || exit 3
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [[ $output != *softverbs* ]]
}

@test "processes are killed and stopped in all they do, and nothing is left of them" {
    with_shm 64m '
        T_KILLS=${T_KILLS:-20} $tests/t_kill >&2 || exit 1
        soft ibv_devinfo >/dev/null || exit 2
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [[ $output != *softverbs-* ]]
}

@test "the segment of a stopped process stays, and so do the names of its channels" {
    with_shm 100% "$hold"'
        kill -STOP $holder
        soft ibv_devinfo >/dev/null || exit 3
        ls /dev/shm'
    [[ $output =~ softverbs-[0-9]+\.1$'\n' ]]
    [[ $output =~ softverbs-[0-9]+\.1\.[0-9a-f]{16} ]]
}

@test "the segment of a living process stays, also for who has no descriptor to see that it lives" {
    with_shm 100% "$hold"'
        for n in {4..16}; do
            (ulimit -n $n; soft ibv_devinfo >&2)
        done
        soft ibv_devinfo >/dev/null || exit 3
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [[ $output =~ softverbs-[0-9]+\.1$'\n' ]]
    [[ $output =~ softverbs-[0-9]+\.1\.[0-9a-f]{16} ]]
}

@test "names of channels go when their slot is empty or has another owner" {
    with_shm 100% "$hold"'
        own=$(echo /dev/shm/softverbs-*.1.*)
        for name in 1.0010000000000000 2.0020000000000000 3.zz; do
            python3 -c "import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1])" \
                "/dev/shm/softverbs-$(id -u).$name" || exit 4
        done
        echo precious >"/dev/shm/softverbs-$(id -u).4.0040000000000000"
        soft ibv_devinfo >/dev/null || exit 3
        [ -S "$own" ] || exit 5
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [[ $output != *.00[12]0000000000000* ]]
    # neither of these can be one
    [[ $output == *".3.zz"* && $output == *".4.0040000000000000"* ]]
}

@test "a foreign file in our place is left alone" {
    with_shm 100% '
        echo precious >/dev/shm/softverbs-$(id -u).1
        mkdir /dev/shm/softverbs-$(id -u).2
        soft ibv_devinfo >/dev/null || exit 3
        cat /dev/shm/softverbs-$(id -u).1'
    [ "$status" -eq 0 ]
    [[ $output == *precious* ]]
}

@test "a /dev/shm without room: one sentence and a failed open" {
    with_shm 4k '
        head -c 4096 /dev/zero >/dev/shm/fill
        soft ibv_devinfo'
    [ "$status" -eq 255 ] || [ "$status" -eq 1 ]
    [ "$(grep -c 'softverbs: ' <<<"$output")" -eq 1 ]
    [[ $output == *"no room for a segment in /dev/shm"* ]]
}

# A sanitizer takes more address space than any limit has.
need_limits()
{
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: its programs cannot run with such a limit" ;;
    esac
}

@test "address space for one segment and not for two: a sentence, and the verb fails at once" {
    need_limits
    with_shm 100% '
        ulimit -v 1364000
        two_sides -p ibv_rc_pingpong -n 100'
    [ "$status" -ne 0 ]
    [ "$status" -lt 124 ]
    [[ $output == *"softverbs: another process cannot be reached: its segment cannot be mapped: Cannot allocate memory"*"(ulimit -v)"* ]]
    [[ $output == *"Failed to modify QP to RTR"* ]]
    with_shm 100% '
        ulimit -v 1364000
        two_sides -p ibv_ud_pingpong -n 100'
    [ "$status" -ne 0 ]
    [ "$status" -lt 124 ]
    [[ $output == *"softverbs: another process cannot be reached: its segment cannot be mapped: Cannot allocate memory"* ]]
    [[ $output == *"t post send"* ]]
    # with room for two it works
    with_shm 100% '
        ulimit -v 2630000
        two_sides -p ibv_rc_pingpong -n 100 && two_sides -p ibv_ud_pingpong -n 100'
    [ "$status" -eq 0 ]
}

@test "a limit on files below the size of a segment: a sentence and EFBIG, no signal" {
    with_shm 100% '
        ulimit -f 1000
        soft ibv_devinfo'
    [ "$status" -eq 255 ] || [ "$status" -eq 1 ]
    [ "$(grep -c 'softverbs: ' <<<"$output")" -eq 1 ]
    [[ $output == *"softverbs: no room for a segment: this process may write files of "*" KiB (ulimit -f), and a segment is a file of "*" KiB"* ]]
    [[ $output == *"ailed to open device"* ]]
}

@test "no /dev/shm at all" {
    with_shm 4k '
        mount -o remount,ro /dev/shm
        soft ibv_devinfo'
    [ "$status" -eq 255 ] || [ "$status" -eq 1 ]
    [[ $output == *"softverbs: cannot create /dev/shm/softverbs-"* ]]
}

@test "whatever the size of /dev/shm, it ends in success or in a sentence" {
    with_shm 4k '
        good=0 bad=0
        for pages in $(seq 3 3 60) 100 200; do
            mount -o remount,size=$((pages * 4))k /dev/shm || exit 99
            two_sides -p ibv_rc_pingpong -n 100 -r 50 >/tmp/out.$$ 2>&1
            status=$?
            [ $status -lt 124 ] || { cat /tmp/out.$$; exit 1; }
            if grep -q "iters in" /tmp/out.$$; then
                good=$((good + 1))
            elif grep -q "softverbs: " /tmp/out.$$; then
                bad=$((bad + 1))
            else
                cat /tmp/out.$$
                exit 2
            fi
        done
        rm -f /tmp/out.$$
        echo "good $good bad $bad"
        [ $good -gt 0 ] && [ $bad -gt 0 ]'
    [ "$status" -eq 0 ]
}

@test "a /dev/shm as small as a container's default carries everything" {
    with_shm 64m '$tests/t_send && $tests/t_process && $tests/t_srq'
    [ "$status" -eq 0 ]
    [[ $output != *"not ok"* ]]
}

@test "senders make do with the small ring when there is no room for the large" {
    with_shm 300k '
        for size in 1 1000 100000 1000000; do
            two_sides -p ibv_rc_pingpong -c -s $size -n 50 -r 20 || exit 1
        done'
    [ "$status" -eq 0 ]
}

# --- other users, who may make files in /dev/shm as well

as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'

need_nobody()
{
    [ "$(id -u)" -eq 0 ] || skip 'only root can become another user'
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
}

# Another user has every name that is this user's.
squat="$as_nobody bash -c 'for i in {1..1023}; do : >/dev/shm/softverbs-0.\$i; done'"

@test "others have all our names: we have a folder of our own" {
    need_nobody
    with_shm 64m "$squat"'
        soft ibv_devinfo | grep -c PORT_ACTIVE || exit 2
        stat -c "%n %u %a" /dev/shm/softverbs-0
        two_sides -p ibv_rc_pingpong -n 100 || exit 3
        ls -A /dev/shm/softverbs-0 | wc -l
        ls /dev/shm/softverbs-0.* | wc -l'
    [ "$status" -eq 0 ]
    # said once, by the process that has made it
    [ "$(grep -c 'softverbs: ' <<<"$output")" -eq 1 ]
    [[ $output == *"softverbs: 1023 of this user's 1023 places in /dev/shm are files of others, as /dev/shm/softverbs-0.1023 of user 65534: the folder /dev/shm/softverbs-0 is used from now on"* ]]
    [[ $output == *$'\n/dev/shm/softverbs-0 0 700\n'* ]]
    [[ $output == *$'\n0\n1023' ]]
}

@test "others have all our names and that of the folder: it is said whose they are" {
    need_nobody
    with_shm 64m "$squat
        $as_nobody mkdir /dev/shm/softverbs-0
        soft ibv_devinfo"
    [ "$status" -ne 0 ]
    [ "$(grep -c 'softverbs: ' <<<"$output")" -eq 1 ]
    [[ $output == *"softverbs: no place is left for this user on softverbs0: 1023 of 1023 are files of others, as /dev/shm/softverbs-0.1023 of user 65534, and /dev/shm/softverbs-0 is not a folder of this user alone"* ]]
}

@test "a folder that others may write to, or a symbolic link to one, is not used" {
    need_nobody
    with_shm 64m "mkdir -m 777 /dev/shm/softverbs-0
        $hold"'
        until [ -e /dev/shm/softverbs-0.1 ]; do kill -0 $holder || exit 2; sleep 0.02; done
        ls -A /dev/shm/softverbs-0
        rmdir /dev/shm/softverbs-0
        mkdir -m 700 /dev/shm/mine
        ln -s mine /dev/shm/softverbs-0
        first=$holder'"
        $hold"'
        until [ -e /dev/shm/softverbs-0.2 ]; do kill -0 $holder || exit 3; sleep 0.02; done
        ls -A /dev/shm/mine
        kill $first $holder'
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "a folder of the user's own comes first, and reaches who was there before it" {
    with_shm 64m '
        id=$(id -u)
        while :; do
            port=$((${T_PORTS:-20000} + RANDOM % 1200))
            is_listening $port || break
        done
        soft_exec=exec
        soft ibv_rc_pingpong -p $port -n 100 >/dev/null 2>&1 &
        server=$!
        until is_listening $port; do kill -0 $server || exit 2; sleep 0.02; done
        ls /dev/shm/softverbs-$id.1 || exit 3
        mkdir -m 700 /dev/shm/softverbs-$id
        '"$hold"'
        until [ -e /dev/shm/softverbs-$id.2 ] || ls /dev/shm/softverbs-$id/*; do
            kill -0 $holder || exit 4
            sleep 0.02
        done 2>/dev/null
        soft_exec=
        soft ibv_rc_pingpong -p $port -n 100 localhost || exit 5
        wait $server || exit 6
        kill -KILL $holder
        wait $holder 2>/dev/null
        soft ibv_devinfo >/dev/null || exit 7
        ls -A /dev/shm /dev/shm/softverbs-$id'
    [ "$status" -eq 0 ]
    # slot 1 was taken, in the other place
    [[ $output == "/dev/shm/softverbs-"*".1"$'\n'"/dev/shm/softverbs-"*"/2"$'\n'* ]]
    [[ $output == *" iters in "* ]]
    # what a killed process leaves in the folder goes, too
    [[ $output == *"/dev/shm/softverbs-$(id -u):" ]]
}

@test "two /dev/shm with the same folder of the user in both are one place" {
    with_shm 64m '
        id=$(id -u)
        mkdir -m 700 /dev/shm/shared "$BATS_TEST_TMPDIR/shared"
        cat >"$BATS_TEST_TMPDIR/alike" <<-END
	#!/bin/sh -e
	mount --bind /dev/shm/shared "$BATS_TEST_TMPDIR/shared"
	mount -t tmpfs tmpfs /dev/shm
	mkdir -m 700 /dev/shm/softverbs-$id
	mount --bind "$BATS_TEST_TMPDIR/shared" /dev/shm/softverbs-$id
	exec ibv_rc_pingpong -n 100 "\$@"
	END
        chmod +x "$BATS_TEST_TMPDIR/alike"
        two_sides -p unshare -m "$BATS_TEST_TMPDIR/alike" || exit 1
        two_sides -p unshare -m "$BATS_TEST_TMPDIR/alike" -g 0'
    [ "$status" -eq 0 ]
    [ "$(grep -c ' iters in ' <<<"$output")" -eq 4 ]
    [[ $output != *"softverbs: "* ]]
}

# segment SLOT VERSION SIZE PID START: what a process of that version has left
# shellcheck disable=SC2016
segment='
    le() {
        local n=$1 v=$2
        while [ $n -gt 0 ]; do
            printf "\\x$(printf %02x $((v & 255)))"
            v=$((v >> 8)) n=$((n - 1))
        done
    }
    segment() {
        {
            printf sftverbs
            le 4 $2; le 4 $1; le 4 $4; le 4 0; le 8 $5
            le 8 $(stat -L -c %i /proc/self/ns/pid); le 4 1
        } >/dev/shm/softverbs-$(id -u).$1
        [ $3 -eq 0 ] || truncate -s $3 /dev/shm/softverbs-$(id -u).$1
    }'

@test "segments of other versions and sizes: the dead are removed, the living stay" {
    with_shm 64m "$segment"'
        sleep 1000 &
        holder=$!
        trap "kill $holder" EXIT
        start=$(sed "s/.*) //" /proc/$holder/stat | cut -d " " -f 20)
        segment 1 3 1000000 2147483647 1
        segment 2 4 4096 2147483647 1
        segment 3 77 0 2147483647 1
        segment 4 3 1000000 $holder $((start + 1))
        segment 5 3 1000000 $holder $start
        segment 6 77 0 $holder $start
        truncate -s 123456 /dev/shm/softverbs-$(id -u).7
        soft ibv_devinfo >/dev/null || exit 3
        ls /dev/shm'
    [ "$status" -eq 0 ]
    [ "$output" = "softverbs-$(id -u).5"$'\n'"softverbs-$(id -u).6" ]
}
