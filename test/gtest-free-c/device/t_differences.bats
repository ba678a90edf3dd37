# SPDX-License-Identifier: BSD-3-Clause
#
# The differences between the devices that the tests know of, and the page that
# explains them.

@test "each difference has its line in docs/softroce.md, in the same order" {
    local device=$T_TOP_SRCDIR/test/gtest-free-c/device

    sed -n 's/^ *T_DIFF_\([A-Z_]*\),.*/\1/p' "$device/t_device.h" \
        > "$BATS_TEST_TMPDIR/known"
    sed -n 's/^| \([A-Z_]*\) |.*/\1/p' "$T_TOP_SRCDIR/docs/softroce.md" \
        > "$BATS_TEST_TMPDIR/explained"
    diff "$BATS_TEST_TMPDIR/known" "$BATS_TEST_TMPDIR/explained"
    [ -s "$BATS_TEST_TMPDIR/known" ]
}

@test "each difference is asked for by some test" {
    local device=$T_TOP_SRCDIR/test/gtest-free-c/device
    local name

    for name in $(sed -n 's/^ *\(T_DIFF_[A-Z_]*\),.*/\1/p' "$device/t_device.h"); do
        grep -q "t_differs($name)" "$device"/t_*.c || { echo "$name"; false; }
    done
}
