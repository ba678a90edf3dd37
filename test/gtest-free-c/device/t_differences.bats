# SPDX-License-Identifier: BSD-3-Clause
#
# What the tests know of, and the pages that speak of it: the differences between
# the devices, and the table of refusals.

@test "each difference has its line in docs/softroce.md, in the same order" {
    local device=$T_TOP_SRCDIR/test/gtest-free-c/device

    sed -n 's/^ *T_DIFF_\([A-Z_]*\),.*/\1/p' "$device/t_device.h" \
        > "$BATS_TEST_TMPDIR/known"
    # behind its name: the kernels that have it, if not all do
    sed -nE 's/^\| ([A-Z_]+)( \([0-9., ]+\))? \|.*/\1/p' "$T_TOP_SRCDIR/docs/softroce.md" \
        > "$BATS_TEST_TMPDIR/explained"
    diff "$BATS_TEST_TMPDIR/known" "$BATS_TEST_TMPDIR/explained"
    [ -s "$BATS_TEST_TMPDIR/known" ]
}

@test "each difference is asked for by some test" {
    local device=$T_TOP_SRCDIR/test/gtest-free-c/device
    local name

    for name in $(sed -n 's/^ *\(T_DIFF_[A-Z_]*\),.*/\1/p' "$device/t_device.h"); do
        # in the table of t_device.c it is in brackets
        grep -q "$name)" "$device"/t_*.c || { echo "$name"; false; }
    done
}

@test "each test that the table of refusals names is there" {
    local device=$T_TOP_SRCDIR/test/gtest-free-c/device
    local word file= rows=0

    # the last column of each row: "t_file: name, name, t_file: name"
    while IFS='|' read -r _ _ _ tests _; do
        rows=$((rows + 1))
        for word in $tests; do
            case $word in
                t_*) file=$(ls "$device/${word%[:,]}".*) ;;
                *)
                    grep -q -e "(test_${word%,})" -e "\"${word%,}\"" "$file" ||
                        { echo "$file has no ${word%,}"; false; }
                    ;;
            esac
        done
    done < <(sed -n '/^## What it refuses/,/^Limits/p' \
                 "$T_TOP_SRCDIR/docs/softverbs.md" | grep '^| .* | t_.* |$')
    [ "$rows" -gt 30 ]
}
