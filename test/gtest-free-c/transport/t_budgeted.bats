#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# With one queue pair for each interface, which is closed after 10 ms without use,
# everything that is promised must hold as well: whatever is under way, waits, is flushed
# or fails finds the connection in each state of an idle close.

load programs.bash

setup()
{
    export UCX_DAQIRI_MAX_QPS=1 UCX_DAQIRI_IDLE_TIMEOUT=10ms
}

@test "active messages, with a budget" { passes 300 t_am; }
@test "flushes and fences, with a budget" { passes 300 t_flush; }
@test "one-sided operations, with a budget" { passes 300 t_rma; }
@test "atomics, with a budget" { passes 300 t_amo; }
@test "connecting and closing, with a budget" { passes 300 t_connect; }
@test "dead peers, with a budget" { passes 300 t_death; }
@test "lost queue pairs, with a budget" { passes 300 t_recover; }
@test "many processes, with a budget" { passes 300 t_team; }
