#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# With the chain on, which is otherwise for devices that the kernel emulates,
# everything else that is promised of sending must hold as well.

setup()
{
    here=$T_TOP_BUILDDIR/test/gtest-free-c/transport
    export UCX_DAQIRI_TX_BATCH=on UCX_DAQIRI_TX_BATCH_TIMEOUT=100us
}

chained()
{
    run timeout $((300 * T_TIMEOUT_MULTIPLIER)) "$here/$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "active messages, chained" { chained t_am; }
@test "credits and pending requests, chained" { chained t_flow; }
@test "flushes, chained" { chained t_flush; }
@test "one-sided operations, chained" { chained t_rma; }
@test "dead peers, chained" { chained t_death; }
@test "many processes, chained" { chained t_team; }
