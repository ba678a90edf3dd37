#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# Processes that send to each other over UCP, without error handling, while
# queue pairs die by the thousand; and that the campaign of faults sees what
# it must see. contrib/check --long faults does the same for as long as is wanted.

setup()
{
    export DAQIRI_STATS_DIR=$BATS_TEST_TMPDIR/stats
    export SOFTVERBS_FAULTS_LOG=$BATS_TEST_TMPDIR/faults.%d
    export UCX_DAQIRI_TIMEOUT=8ms UCX_DAQIRI_RETRY_COUNT=3 UCX_DAQIRI_CONN_RETRY=5ms
    mkdir "$DAQIRI_STATS_DIR"
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: contrib/check --long faults --build, for hours" ;;
    esac
}

# storm ARG...: it ends well, and says nothing but that queue pairs are lost and
# back.
storm()
{
    timeout $((240 * T_TIMEOUT_MULTIPLIER)) \
        "$T_TOP_BUILDDIR/test/gtest-free-c/storm/storm" "$@" >"$BATS_TEST_TMPDIR/out" ||
        { tail -n 20 "$BATS_TEST_TMPDIR/out"; return 1; }
    if grep -vE '; lost, connecting again|daqiri: back, with |^storm: .* all as sent$' \
            "$BATS_TEST_TMPDIR/out"; then
        echo 'the above was not expected'
        return 1
    fi
}

sum()
{
    awk -v key="$1" '$1 == key { n += $2 } END { print n + 0 }' "$DAQIRI_STATS_DIR"/*
}

nothing_is_left()
{
    local key

    for key in sq_in_use_at_close rx_held_at_close tx_buffers_out_at_close rx_dropped \
            rx_overrun rx_out_of_order rx_duplicates stray_completions; do
        [ "$(sum "$key")" -eq 0 ] || { echo "$key is $(sum "$key")"; return 1; }
    done
    [ "$(sum am_tx)" -eq "$(sum am_rx)" ]
}

@test "10000 queue pairs die: every message comes once, nothing is left over" {
    SOFTVERBS_FAULTS='qp-error qp=rc p=0.1 times=2500' \
        storm --ranks 4 --messages 3000 --rma 300 --largest 1000
    [ "$(cat "$BATS_TEST_TMPDIR"/faults.* | grep -c '^[0-9]')" -eq 10000 ]
    nothing_is_left
    [ "$(sum recoveries)" -ge 10000 ]
    [ "$(sum am_tx)" -gt 48000 ]
}

# Idle closes and recoveries cross, because each connection may be in either.
@test "queue pairs die while connections take turns with two of them" {
    UCX_DAQIRI_MAX_QPS=2 SOFTVERBS_FAULTS='qp-error qp=rc p=0.02 times=100' \
        storm --ranks 4 --messages 200 --rma 20 --amo 20 --largest 1000
    nothing_is_left
    [ "$(sum idle_closes)" -gt 100 ]
    [ "$(sum recoveries)" -gt 50 ]
}

@test "without faults storm is quiet, atomics and all" {
    storm --ranks 3 --messages 200 --amo 100
    [ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -eq 1 ]
    nothing_is_left
    [ "$(sum qp_failures)" -eq 0 ]
}

@test "contrib/check --long faults: some runs of a campaign" {
    run "$T_TOP_SRCDIR/contrib/check" --long faults --build "$T_TOP_BUILDDIR" --seed 1 --runs 8 --no-mpi
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} == *'no deviation' ]]
}

@test "contrib/check --long faults: stops at a deviation and says how to repeat it" {
    UCX_DAQIRI_RECOVERY=n run "$T_TOP_SRCDIR/contrib/check" --long faults --build "$T_TOP_BUILDDIR" \
        --seed 1 --runs 8 --no-mpi
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[-1]} == *'to repeat it: contrib/check --long faults --seed '*'SOFTVERBS_FAULTS='* ]]
}
