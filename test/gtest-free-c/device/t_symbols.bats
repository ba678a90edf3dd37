# SPDX-License-Identifier: BSD-3-Clause
#
# The names that softverbs has in common with libibverbs, and their versions.

# symbols FILE: a line "name version" for each it defines, by default version.
symbols()
{
    nm -D --defined-only --with-symbol-versions "$1" |
        awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | sort -u
}

@test "a function of libibverbs has its version, or none where that is private" {
    local libibverbs

    [ -n "$T_SOFTVERBS" ] || skip 'softverbs is not the device here'
    command -v nm || skip 'nm is not installed'
    libibverbs=$(ldd "$T_TOP_BUILDDIR/src/uct/daqiri/.libs/libuct_daqiri.so.0" |
        awk '$1 == "libibverbs.so.1" { print $3 }')
    symbols "$T_SOFTVERBS" > "$BATS_TEST_TMPDIR/softverbs"
    nm -D --defined-only --with-symbol-versions "$libibverbs" |
        awk '$3 ~ /@@/ { sub(/@@/, " ", $3); print $3 }' | sort -u \
        > "$BATS_TEST_TMPDIR/libibverbs"

    run join "$BATS_TEST_TMPDIR/softverbs" "$BATS_TEST_TMPDIR/libibverbs"
    echo "$output"
    [ "${#lines[@]}" -gt 40 ]
    [ "$(awk 'NF == 2' <<< "$output" | wc -l)" -eq 1 ]
    [[ $output == *$'\nibv_query_gid_type IBVERBS_PRIVATE_'* ]]
    [ -z "$(awk 'NF == 3 && $2 != $3' <<< "$output")" ]
}
