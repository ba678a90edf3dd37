# SPDX-License-Identifier: BSD-3-Clause
#
# Two UCP workers part in every order (parting.c): nobody is told of an error, and UCX
# has nothing to say. T_ROUNDS does it more than once.

setup()
{
    export UCX_TLS=daqiri UCX_LOG_LEVEL=warn
    export DAQIRI_STATS_DIR=$BATS_TEST_TMPDIR/stats
    mkdir "$DAQIRI_STATS_DIR"
}

@test "parting in every order is no error" {
    timeout $((100 * T_TIMEOUT_MULTIPLIER)) \
        "$T_TOP_BUILDDIR/test/gtest-free-c/storm/parting" "${T_ROUNDS:-1}" \
        >"$BATS_TEST_TMPDIR/out" 2>&1 ||
        { tail -n 20 "$BATS_TEST_TMPDIR/out"; return 1; }
    if grep -v '^parting: [0-9]* times$' "$BATS_TEST_TMPDIR/out"; then
        echo 'the above was not expected'
        return 1
    fi
    [ "$(awk '$1 == "am_tx" { n += $2 } END { print n + 0 }' "$DAQIRI_STATS_DIR"/*)" -gt 300 ]
    ! grep -E '^(sq_in_use|rx_held|tx_buffers_out)_at_close [1-9]' "$DAQIRI_STATS_DIR"/*
}
