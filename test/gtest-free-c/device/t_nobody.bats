# SPDX-License-Identifier: BSD-3-Clause
#
# The same as an ordinary user: nothing that the device does takes root.

bats_require_minimum_version 1.5.0
load programs.bash

setup()
{
    softverbs_setup nobody
}

teardown()
{
    softverbs_teardown
}

@test "ibv_devinfo" {
    run soft ibv_devinfo
    [ "$status" -eq 0 ]
    [[ $output == *PORT_ACTIVE* ]]
}

@test "ibv_rc_pingpong" {
    pingpong ibv_rc_pingpong
}

@test "ibv_rc_pingpong, asleep" {
    pingpong ibv_rc_pingpong -e
}

@test "ibv_ud_pingpong, asleep" {
    pingpong ibv_ud_pingpong -e
}

@test "ibv_srq_pingpong, long messages" {
    pingpong ibv_srq_pingpong -s 300000 -n 200
}

@test "ucx_perftest: SEND, WRITE, READ, atomics" {
    perftest rc_verbs am_lat
    perftest rc_verbs put_bw -D zcopy -s 100000 -n 200
    perftest rc_verbs get -D zcopy -s 100000 -n 200
    perftest rc_verbs fadd
    perftest ud_verbs am_lat
}

@test "users do not see each other" {
    # a segment of root's is there all the time
    env LD_PRELOAD="$T_SAN_PRELOAD $T_SOFTVERBS" timeout 60 \
        ibv_rc_pingpong -p 0 >/dev/null 2>&1 &
    root=$!
    while kill -0 $root 2>/dev/null &&
        ! ls /dev/shm/softverbs-0.* >/dev/null 2>&1; do
        sleep 0.02
    done
    pingpong ibv_rc_pingpong -n 100
    kill $root
}
