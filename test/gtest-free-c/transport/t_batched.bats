#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# With the chain on, which is otherwise for devices that the kernel emulates,
# everything else that is promised of sending must hold as well.

load programs.bash

setup()
{
    export UCX_DAQIRI_TX_BATCH=on UCX_DAQIRI_TX_BATCH_TIMEOUT=100us
}

@test "active messages, chained" { passes 300 t_am; }
@test "credits and pending requests, chained" { passes 300 t_flow; }
@test "flushes, chained" { passes 300 t_flush; }
@test "one-sided operations, chained" { passes 300 t_rma; }
@test "dead peers, chained" { passes 300 t_death; }
@test "many processes, chained" { passes 300 t_team; }
