# SPDX-License-Identifier: BSD-3-Clause
#
# The libibverbs.so.1 that brings softverbs, found by LD_LIBRARY_PATH.

bats_require_minimum_version 1.5.0
load programs.bash

setup()
{
    softverbs_setup
    softverbs_by_replacement
}

@test "a program that loads libibverbs by name finds softverbs in it" {
    run soft "$T_TOP_BUILDDIR/test/gtest-free-c/device/by_name"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"softverbs0 opened, status 0 is success"* ]]
}

@test "programs that are linked with libibverbs run on it, too" {
    run soft ibv_devices
    [ "$status" -eq 0 ]
    [[ $output == *softverbs0* ]]
    pingpong ibv_rc_pingpong -c
    pingpong ibv_srq_pingpong -e
    # which needs all that drivers of libibverbs need, too
    ib_perftest ib_send_bw -n 1000
}

@test "it has all versions that the libibverbs of this machine has" {
    local mine theirs

    command -v readelf >/dev/null || skip 'readelf is not installed'
    mine=$T_TOP_BUILDDIR/src/softverbs/replacement/libibverbs.so.1
    theirs=$(readelf -d "$mine" | sed -n 's/.*NEEDED.*\[\(\/.*\)\]/\1/p')
    [ -f "$theirs" ]
    run comm -13 <(versions "$mine") <(versions "$theirs")
    [ -z "$output" ]
    [ "$(versions "$mine" | wc -l)" -gt 10 ]
}

@test "and those that a newer libibverbs may bring with its drivers" {
    command -v readelf >/dev/null || skip 'readelf is not installed'
    mine=$T_TOP_BUILDDIR/src/softverbs/replacement/libibverbs.so.1
    run -0 versions "$mine"
    [[ $output == *IBVERBS_1.18$'\n'* ]]
    [[ $output == *IBVERBS_PRIVATE_65$'\n'* ]]
}

versions()
{
    readelf -V "$1" | sed -n 's/.* Name: \(IBVERBS_.*\)/\1/p' | sort -u
}
