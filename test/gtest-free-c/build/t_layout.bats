# SPDX-License-Identifier: BSD-3-Clause
#
# What the plugin declares of UCX is what a source tree of UCX has. For whoever has
# one: configure --with-ucx-source=DIR; any version from 1.13 to 1.23 will do.

bats_require_minimum_version 1.5.0

setup()
{
    [ -n "$T_UCX_SOURCE" ] ||
        skip 'no source tree of UCX was given (configure --with-ucx-source=DIR)'
}

@test "sizes, offsets, slots, constants and prototypes" {
    run -0 "$T_TOP_SRCDIR/contrib/check-ucx-layout" "$T_UCX_SOURCE"
    echo "$output"
    [[ $output == *'facts hold'* ]]
}

@test "a number that is wrong is found" {
    local copy=$BATS_TEST_TMPDIR/top
    local rows=$copy/src/uct/daqiri/compat/ucx_layout.def
    local line

    mkdir -p "$copy/contrib" "$copy/src/uct/daqiri"
    cp "$T_TOP_SRCDIR"/contrib/{lib.sh,check-ucx-layout} "$copy/contrib/"
    cp -r "$T_TOP_SRCDIR/src/uct/daqiri/compat" "$copy/src/uct/daqiri/"
    for line in 20 24 50 80; do
        awk -v from="$line" 'NR >= from && !done && /\{13, [0-9]+\}\)/ {
            sub(/\{13, [0-9]+\}/, "{13, 4096}"); done = 1 } { print }' \
            "$T_TOP_SRCDIR/src/uct/daqiri/compat/ucx_layout.def" > "$rows"
        run -1 "$copy/contrib/check-ucx-layout" "$T_UCX_SOURCE"
        [[ $output == *'static assertion failed'* ]]
    done
}
