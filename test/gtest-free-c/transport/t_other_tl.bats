#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# A test of the tests: they also hold for a transport that others wrote, UCX's
# own ud_verbs, over the same device. What fails here fails daqiri for a reason
# of the test's or of the device's.

load programs.bash

setup()
{
    if [ "$T_FLAVOUR" != release ]; then
        skip 'UCX itself is the same in every flavour'
    fi
    export T_TL=ud_verbs
}

@test "active messages over ud_verbs" { passes 120 t_am; }
@test "flushes over ud_verbs" { passes 120 t_flush; }
@test "many processes over ud_verbs" { passes 120 t_team; }
