#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# What the subcommands print with --json is what docs/schema says, when all goes
# well and when it does not; and the schemas are strict enough to tell.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
}

@test "every schema is one, and allows nothing that it does not name" {
    need_jq
    for schema in "$T_TOP_SRCDIR"/docs/schema/*.json; do
        jq -e '."$schema" == "http://json-schema.org/draft-07/schema#" and .title != null' "$schema"
        jq -e '[.. | objects | select(.type == "object") | .additionalProperties == false] | all' "$schema"
    done
}

@test "a report that lacks something, or has too much, is refused" {
    need_jq
    daqiri interfaces --json
    valid interfaces
    jq 'del(.gids)' <<<"$output" > less.json
    run valid interfaces less.json
    [ "$status" -ne 0 ]
    jq '.more = 1' valid.json > more.json
    run valid interfaces more.json
    [ "$status" -ne 0 ]
}

@test "interfaces" {
    daqiri interfaces --json
    valid interfaces
    daqiri interfaces --device soft --json
    valid interfaces
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=active mlx5_1=denied'
          FAKE_GIDS='v1=fe80::1 v2=::ffff:192.0.2.1')
    daqiri interfaces --json
    valid interfaces
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    daqiri interfaces --json
    valid interfaces
}

@test "probe" {
    daqiri probe --device soft --json
    valid probe
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS=)
    daqiri probe --json
    valid probe
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=die:ibv_create_qp)
    daqiri probe --no-ucx --json
    valid probe
}
