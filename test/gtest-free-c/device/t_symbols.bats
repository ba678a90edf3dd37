# SPDX-License-Identifier: BSD-3-Clause
#
# The names that softverbs has in common with libibverbs, and their versions.

# symbols FILE: a line "name version" for each it defines, by default version.
symbols()
{
    nm -D --defined-only --with-symbol-versions "$1" |
        awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | sort -u
}

# libibverbs: the one that is installed
libibverbs()
{
    ldd "$T_TOP_BUILDDIR/src/uct/daqiri/.libs/libuct_daqiri.so.0" |
        awk '$1 == "libibverbs.so.1" { print $3 }'
}

setup()
{
    [ -n "$T_SOFTVERBS" ] || skip 'softverbs is not the device here'
    command -v nm || skip 'nm is not installed'
}

@test "a function of libibverbs has its version, or none where that is private" {
    symbols "$T_SOFTVERBS" > "$BATS_TEST_TMPDIR/softverbs"
    nm -D --defined-only --with-symbol-versions "$(libibverbs)" |
        awk '$3 ~ /@@/ { sub(/@@/, " ", $3); print $3 }' | sort -u \
        > "$BATS_TEST_TMPDIR/libibverbs"

    run join "$BATS_TEST_TMPDIR/softverbs" "$BATS_TEST_TMPDIR/libibverbs"
    echo "$output"
    [ "${#lines[@]}" -gt 40 ]
    [ "$(awk 'NF == 2' <<< "$output" | wc -l)" -eq 1 ]
    [[ $output == *$'\nibv_query_gid_type IBVERBS_PRIVATE_'* ]]
    [ -z "$(awk 'NF == 3 && $2 != $3' <<< "$output")" ]
}

# libibverbs' own would look for private parts in an object of ours.
@test "softverbs has every function of the installed libibverbs that is given an object" {
    # words and numbers; a driver's; those of objects that softverbs refuses to create
    local others='ibv_(copy_.*|do(nt)?fork_range|register_driver|get_sysfs_path|resolve_eth_l2_from_gid)
ibv_(event_type|node_type|port_state|wc_status|wc_opcode)_str
(ibv_rate_to_mbps|ibv_rate_to_mult|mbps_to_ibv_rate|mult_to_ibv_rate)
ibv_(dealloc_dmah|dm_export_dmabuf_fd)
ibv_((destroy|set|set_err|inc|inc_err|read|read_err)_comp_cntr|qp_attach_comp_cntr)'

    symbols "$T_SOFTVERBS" | cut -d ' ' -f 1 | sort -u > "$BATS_TEST_TMPDIR/softverbs"
    nm -D --defined-only --with-symbol-versions "$(libibverbs)" |
        sed -n 's/.* T \(.*\)@@IBVERBS_[0-9].*/\1/p' | sort -u > "$BATS_TEST_TMPDIR/libibverbs"
    [ "$(wc -l < "$BATS_TEST_TMPDIR/libibverbs")" -gt 60 ]
    run comm -13 "$BATS_TEST_TMPDIR/softverbs" "$BATS_TEST_TMPDIR/libibverbs"
    [ "$status" -eq 0 ]
    run grep -vxE "$others" <<< "$output"
    echo "$output"
    [ -z "$output" ]
}
