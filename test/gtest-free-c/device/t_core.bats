# SPDX-License-Identifier: BSD-3-Clause
#
# The device without the room fault/: its hooks are empty, and it works.

load programs.bash

setup()
{
    [ -n "$T_SOFTVERBS" ] || skip 'softverbs is not the device here'
    [ -z "$T_SAN_PRELOAD" ] || skip "flavour $T_FLAVOUR: its objects link with its own flags only"
    softverbs_setup
    soft_lib=$BATS_TEST_TMPDIR/libsoftverbs.so
    "${CC:-gcc}" -shared -o "$soft_lib" -Wl,-z,defs \
        -Wl,--version-script="$T_TOP_SRCDIR/src/softverbs/softverbs.map" \
        "$T_TOP_BUILDDIR"/src/softverbs/{base,fabric,objects,engine,verbs}/.libs/*.o
}

@test "the core links without faults" {
    run nm "$soft_lib"
    [ "$status" -eq 0 ]
    [[ $output == *' sv_hooks'* ]]
    [[ $output != *' sv_plan_'* ]]
    [[ $output != *' softverbs_control'* ]]
}

@test "the core runs without faults, and knows no plan" {
    export SOFTVERBS_FAULTS='verb name=any errno=EIO'

    pingpong ibv_rc_pingpong
    [[ $output != *faults* ]]
    pingpong ibv_ud_pingpong
}
