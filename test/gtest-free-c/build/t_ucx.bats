# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/check-ucx: what it refuses, and that tests then meet the UCX that was named. It
# runs in a tree of its own, where contrib/check is a script that tells what it was given,
# and the UCX is a copy of the one that is installed.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    export DAQIRI_BUILD_ROOT=$PWD/build
    mkdir -p tree/contrib/check.d build/log
    cp "$T_TOP_SRCDIR"/contrib/{check-ucx,lib.sh} tree/contrib/
    cp "$T_TOP_SRCDIR"/contrib/check.d/other-ucx.sh tree/contrib/check.d/
    printf '#!/bin/sh\nmkdir -p "$DAQIRI_BUILD_ROOT"\nln -sfn "%s" "$DAQIRI_BUILD_ROOT/release"\n' \
        "$T_TOP_BUILDDIR" > tree/contrib/setup
    cat > tree/contrib/check <<'EOS'
#!/bin/bash
. "$DAQIRI_BUILD_ROOT/release/test/gtest-free-c/t-env"
echo "check $*"
echo "as $T_CHECK_AS"
echo "in $DAQIRI_BUILD_ROOT"
echo "version $T_UCX_VERSION"
command -v ucx_info
ldd "$(command -v ucx_info)"
EOS
    chmod +x tree/contrib/*
}

libucp()
{
    ldd "$(command -v ucx_info)" | sed -n 's|.*libucp\.so\.0 => \(.*\) (.*|\1|p'
}

# copy_ucx: the installed one, in $PWD/ucx
copy_ucx()
{
    local from

    from=$(dirname "$(libucp)")
    mkdir -p ucx/bin ucx/lib/ucx ucx/lib/pkgconfig ucx/include/uct/api
    touch ucx/lib/pkgconfig/ucx.pc ucx/include/uct/api/uct.h
    cp "$(command -v ucx_info)" ucx/bin/
    cp -L "$from"/libuc{m,s,t,p}.so.0 ucx/lib/
    cp -L "$from"/ucx/*.so* ucx/lib/ucx/
}

# refuses STATUS SENTENCE [ARG]...: that sentence, and no test runs
refuses()
{
    local status_wanted=$1 sentence=$2

    shift 2
    run "-$status_wanted" --separate-stderr tree/contrib/check-ucx "$@"
    [ "$stderr" = "check-ucx: $sentence" ] || { echo "$output"; echo "$stderr"; return 1; }
    [[ $output != *'check --only'* ]]
}

@test "--help is status 0 and tells the options" {
    run -0 tree/contrib/check-ucx --help
    [[ ${lines[0]} == 'contrib/check-ucx PREFIX '* ]]
    [[ $output == *--only*--case*--help* ]]
}

@test "called wrongly: a sentence and status 2" {
    refuses 2 'no folder with an installed UCX was named (try check-ucx --help)'
    refuses 2 'unknown option "--nonsense" (try check-ucx --help)' --nonsense
    refuses 2 'option --only needs a value (try check-ucx --help)' /usr --only
    refuses 2 'two folders were named, /opt and /usr, where one is wanted' /opt /usr
    refuses 2 '--case needs --only: the test that has the case' /usr --case edges
}

@test "a folder without a UCX, or with half of one" {
    refuses 1 "$PWD/none is not a folder" "$PWD/none"
    mkdir empty
    refuses 1 "no UCX is installed in $PWD/empty: it has no bin/ucx_info" empty
    copy_ucx
    rm ucx/lib/libuct.so.0
    refuses 1 "the UCX in $PWD/ucx is not whole: $PWD/ucx/lib has no libuct.so.0" ucx
    rm -r ucx/lib
    refuses 1 "no UCX is installed in $PWD/ucx: neither lib nor lib64 has a libucp.so.0" ucx
    # the loader passes over those of another processor, and takes the system's
    copy_ucx
    for lib in ucx/lib/libuc?.so.0; do
        printf '\xff' | dd of="$lib" bs=1 seek=18 conv=notrunc status=none # e_machine
    done
    refuses 1 "programs would use $(libucp) instead of $PWD/ucx/lib/libucp.so.0" ucx
    printf '#!/bin/sh\necho no disk; exit 1\n' > ucx/bin/ucx_info
    refuses 1 "$PWD/ucx/bin/ucx_info tells no version: no disk" ucx
}

@test "a UCX without headers" {
    copy_ucx
    rm ucx/include/uct/api/uct.h
    refuses 1 "the UCX in $PWD/ucx has no headers (include/uct/api/uct.h, pkgconfig/ucx.pc) to build the tests with" ucx
}

@test "a UCX that the plugin does not know" {
    copy_ucx
    # its plugin's sentence; t_plugin.bats has all reasons for it
    cat > ucx/bin/ucx_info <<'EOS'
#!/bin/sh
[ "$1" = -d ] && { echo 'daqiri: the plugin does not know this UCX and stays out of the job (this is UCX 1.99.0)'; exit 0; }
echo '# Library version: 1.99.0'
EOS
    refuses 1 "the plugin does not work with the UCX in $PWD/ucx; its sentence is above" ucx
    [[ $output == *'(this is UCX 1.99.0)'* ]]
}

@test "a UCX that does not find daqiri" {
    copy_ucx
    # the port of the device cannot be looked up
    SOFTVERBS_FAULTS='verb name=query_port n=1' refuses 1 "the UCX in $PWD/ucx does not find daqiri; what its ucx_info says is in $PWD/build/log/check-ucx.log" ucx
}

@test "tests are run with the UCX that was named, and its version is told" {
    [ "$T_FLAVOUR" = release ] || skip 'it tests the release build'
    copy_ucx
    run -0 tree/contrib/check-ucx ucx --only release/transport/t_am --case edges
    [ "${lines[0]}" = "check-ucx: UCX $T_UCX_VERSION in $PWD/ucx/lib" ]
    [ "${lines[1]}" = 'check --only release/transport/t_am --case edges' ]
    [ "${lines[2]}" = "as contrib/check-ucx $PWD/ucx" ]
    [ "${lines[3]}" = "in $PWD/build/ucx${PWD//\//-}-ucx" ]
    [ "${lines[4]}" = "version $T_UCX_VERSION" ]
    [ "${lines[5]}" = "$PWD/ucx/bin/ucx_info" ]
    [ "$(grep -c "libuc[mstp]\.so\.0 => $PWD/ucx/lib/libuc" <<< "$output")" -ge 3 ]
    [ "$(grep 'libuc[mstp]\.so' <<< "$output" | grep -cv "$PWD/ucx/lib/")" -eq 0 ]
}

@test "without --only: what meets a UCX" {
    [ "$T_FLAVOUR" = release ] || skip 'it tests the release build'
    copy_ucx
    run -0 tree/contrib/check-ucx ucx
    for part in transport mpi storm system/t_perftest system/t_plugin; do
        [[ ${lines[1]} == *"--only release/$part"* ]]
    done
}
