#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# A test of the tests: they also hold for a transport that others wrote, UCX's
# own ud_verbs, over the same device. What fails here fails daqiri for a reason
# of the test's or of the device's.

setup()
{
    if [ "$T_FLAVOUR" != release ]; then
        skip 'UCX itself is the same in every flavour'
    fi
    here=$T_TOP_BUILDDIR/test/gtest-free-c/transport
    export T_TL=ud_verbs
}

@test "active messages over ud_verbs" {
    run timeout 120 "$here/t_am"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "flushes over ud_verbs" {
    run timeout 120 "$here/t_flush"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "many processes over ud_verbs" {
    run timeout 120 "$here/t_team"
    echo "$output"
    [ "$status" -eq 0 ]
}
