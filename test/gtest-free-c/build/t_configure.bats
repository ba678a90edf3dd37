# SPDX-License-Identifier: BSD-3-Clause
#
# configure says in one sentence what it cannot build with. A UCX of another
# version is three pkg-config files. What it asks of the compiler is asked once: a
# minute less. What pkg-config says is not kept.

bats_require_minimum_version 1.5.0

setup_file()
{
    export CACHE=$BATS_FILE_TMPDIR/cache

    cd "$BATS_FILE_TMPDIR"
    env -u CFLAGS -u CPPFLAGS -u LDFLAGS "$T_TOP_SRCDIR/configure" \
        --cache-file="$CACHE.all"
    sed '/^ac_cv_env_/d; /pkg_cv_/d' "$CACHE.all" >"$CACHE"
}

setup()
{
    cd "$BATS_TEST_TMPDIR"
    real_pc=$(pkg-config --variable=pcfiledir ucx)
    [ -n "$real_pc" ]
    # Nothing of the build that runs this test is to reach the one below it.
    unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS
}

fake_ucx()
{
    local name

    mkdir -p pc
    for name in ucx ucx-uct ucx-ucs; do
        printf 'Name: %s\nDescription: fake\nVersion: %s\nbindir=/none\n' \
            "$name" "$1" > "pc/$name.pc"
    done
    export PKG_CONFIG_LIBDIR=$PWD/pc
}

refused()
{
    local sentence=$1

    shift
    cp "$CACHE" cache
    run -1 "$T_TOP_SRCDIR/configure" --cache-file=cache "$@"
    echo "$output" | tail -n 5
    [[ $(echo "$output" | grep -c 'configure: error:') -eq 1 ]]
    [[ $output == *"configure: error: "*"$sentence"* ]]
    [ ! -e config.status ]
}

@test "no UCX" {
    export PKG_CONFIG_LIBDIR=$PWD
    refused 'UCX was not found by pkg-config'
}

@test "UCX older than the first supported version" {
    fake_ucx 1.12.1
    refused 'UCX 1.12.1 is older than 1.13'
}

@test "any newer UCX will do: the plugin is the same" {
    mkdir pc
    for name in ucx ucx-uct ucx-ucs; do
        sed 's/^Version:.*/Version: 1.99.0/' "$real_pc/$name.pc" > "pc/$name.pc"
    done
    export PKG_CONFIG_PATH=$PWD/pc
    cp "$CACHE" cache
    run -0 "$T_TOP_SRCDIR/configure" --cache-file=cache
    [[ $output == *'UCX          1.99.0'* ]]
}

@test "a folder that is not a source tree of UCX" {
    refused "/tmp is not a UCX source tree" --with-ucx-source=/tmp
}

@test "no verbs headers" {
    refused 'infiniband/verbs.h was not found' \
        ac_cv_header_infiniband_verbs_h=no
}

@test "no libibverbs" {
    refused 'libibverbs was not found' \
        ac_cv_lib_ibverbs_ibv_get_device_list=no
}

@test "no check library: all is built but the tests, and who asks for them is told" {
    mkdir pc
    cp "$real_pc"/ucx*.pc "$(pkg-config --variable=pcfiledir jansson)"/jansson.pc \
        "$(pkg-config --variable=pcfiledir smartcols)"/smartcols.pc \
        "$(pkg-config --variable=pcfiledir ncurses)"/ncurses.pc pc/
    export PKG_CONFIG_LIBDIR=$PWD/pc
    cp "$CACHE" cache
    run -0 "$T_TOP_SRCDIR/configure" --cache-file=cache
    [[ $output == *'check        not found: there will be no tests'* ]]
    run -0 make -C test/gtest-free-c all
    run -2 make -C test/gtest-free-c check
    [[ $output == *'The tests need the check library (on Debian: apt-get install check)'* ]]
}

@test "no JSON library" {
    mkdir pc
    cp "$real_pc"/*.pc "$(pkg-config --variable=pcfiledir check)"/*.pc pc/
    rm pc/jansson.pc
    export PKG_CONFIG_LIBDIR=$PWD/pc
    refused 'jansson was not found'
}

@test "no library of tables" {
    mkdir pc
    cp "$real_pc"/*.pc "$(pkg-config --variable=pcfiledir check)"/*.pc pc/
    rm pc/smartcols.pc
    export PKG_CONFIG_LIBDIR=$PWD/pc
    refused 'libsmartcols was not found'
}

@test "no library of screens" {
    mkdir pc
    cp "$real_pc"/*.pc "$(pkg-config --variable=pcfiledir check)"/*.pc pc/
    rm pc/ncurses.pc
    export PKG_CONFIG_LIBDIR=$PWD/pc
    refused 'ncurses was not found (on Debian: apt-get install libncurses-dev)'
}

@test "an unknown flavour" {
    refused 'knows release, debug, asan and tsan, not "fast"' \
        --enable-flavour=fast
}

@test "without either MPI configure goes on and says what is left out" {
    PATH=$(no_mpi_path)
    run -0 "$T_TOP_SRCDIR/configure"
    [[ $output == *"Open MPI     not found"* ]]
    [[ $output == *"MPICH        not found"* ]]
}

@test "--without-mpi leaves out the MPIs that there are" {
    cp "$CACHE" cache
    run -0 "$T_TOP_SRCDIR/configure" --cache-file=cache --without-mpi
    [[ $output == *"Open MPI     not found"*"OpenSHMEM    not found"*"MPICH        not found"* ]]
    run -1 grep -E "^T_MPI.*='[^']" test/gtest-free-c/t-env
}

# A folder of links to every program there is but the MPI compilers.
no_mpi_path()
{
    local dir=$BATS_TEST_TMPDIR/bin

    mkdir -p "$dir"
    find /usr/bin -maxdepth 1 -not -name 'mpi*' -not -type d \
        -exec ln -sf -t "$dir" {} +
    echo "$dir"
}
