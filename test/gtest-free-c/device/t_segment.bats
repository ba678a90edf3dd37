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
        ls /dev/shm'
    [[ $output != *softverbs* ]]
}

# Starts a process that has the device open until it is killed: $holder.
# shellcheck disable=SC2016
hold='
    env LD_PRELOAD="$T_SAN_PRELOAD $soft_lib" ibv_rc_pingpong -p 0 \
        >/dev/null 2>&1 &
    holder=$!
    trap "kill -KILL $holder 2>/dev/null" EXIT
    while ! ls /dev/shm/softverbs-* >/dev/null 2>&1; do sleep 0.02; done'

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

@test "the segment of a stopped process stays" {
    with_shm 100% "$hold"'
        kill -STOP $holder
        soft ibv_devinfo >/dev/null || exit 3
        ls /dev/shm'
    [[ $output == *softverbs* ]]
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
