#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# Tests with a UCX that was named (contrib/check-ucx): they use that one, and fail if
# they find another. It is a copy of the one that is installed.

setup()
{
    [ "$T_FLAVOUR" = release ] || skip 'contrib/check-ucx tests the release build'
    [ -z "${T_UCX:-}" ] || skip "these tests are linked with the UCX in $T_UCX"
    top=$T_TOP_BUILDDIR/test/gtest-free-c
    test=$top/transport/t_options
    from=$(dirname "$(ldd "$(command -v ucx_info)" | sed -n 's|.*libucp\.so\.0 => \(.*\) (.*|\1|p')")
    named=$BATS_TEST_TMPDIR/named
    mkdir -p "$named/bin" "$named/lib/ucx"
    cp "$(command -v ucx_info)" "$named/bin/"
    cp -L "$from"/libuc{m,s,t,p}.so.0 "$named/lib/"
    cp -L "$from"/ucx/*.so* "$named/lib/ucx/"
}

# named PROGRAM...: with the environment that t-env makes for this UCX
named()
{
    env T_UCX="$named" sh -c '. "$0"; exec "$@"' "$top/t-env" "$@"
}

@test "programs, libraries and the version are those of the UCX that is named" {
    run named sh -c 'command -v ucx_info; ldd "$1"; echo "$T_UCX_VERSION"' sh \
        "$top/transport/.libs/t_options"
    echo "$output"
    [ "${lines[0]}" = "$named/bin/ucx_info" ]
    [ "$(grep -c "libuc[mstp]\.so\.0 => $named/lib/libuc" <<< "$output")" -ge 3 ]
    [ "$(grep 'libuc[mstp]\.so' <<< "$output" | grep -cv "$named/lib/")" -eq 0 ]
    [ "${lines[-1]}" = "$T_UCX_VERSION" ]
}

@test "a test runs with it" {
    run named timeout 120 "$test"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a test that finds another fails with a sentence" {
    run env T_UCX_LIB="$named/lib" LD_LIBRARY_PATH="$from" \
        timeout 120 "$test"
    echo "$output"
    [ "$status" -eq 99 ]
    [ "$(grep -c "^test harness: the UCX to test is in $named/lib, and this process has $from/libuc" <<< "$output")" -eq 1 ]
}
