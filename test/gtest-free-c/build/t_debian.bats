# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/check-debian: what it says where another Debian cannot be had, and that this
# is told from what is wrong with this checkout. It runs in a tree of its own; what
# would make or enter the other Debian is replaced by a program of a line or two.

bats_require_minimum_version 1.5.0

setup()
{
    unset T_DEBIAN T_SLOTS T_NP
    tree=$BATS_TEST_TMPDIR/tree
    fake=$BATS_TEST_TMPDIR/bin
    cache=$BATS_TEST_TMPDIR/cache
    mkdir -p "$fake" "$tree/contrib/check.d" "$tree/debian"
    export DAQIRI_BUILD_ROOT=$tree/build XDG_CACHE_HOME=$cache
    export DAQIRI_OS_RELEASE=$BATS_TEST_TMPDIR/os-release
    printf 'ID=debian\nVERSION_CODENAME=bookworm\n' > "$DAQIRI_OS_RELEASE"
    cp "$T_TOP_SRCDIR/contrib/check-debian" "$T_TOP_SRCDIR/contrib/lib.sh" "$tree/contrib"
    cp "$T_TOP_SRCDIR/contrib/check.d/other-ucx.sh" "$tree/contrib/check.d"
    cp "$T_TOP_SRCDIR/debian/rules" "$tree/debian"
    # here, and in the other Debian: nothing to install, and two objects
    replace ../tree/contrib/setup 'cd "$(dirname "$0")/.." && mkdir -p build/log build/debian-trixie/log
        eval "$setup_there"
        for dir in build build/debian-trixie build/debian-forky; do
            mkdir -p $dir/release/src/uct/daqiri/.libs $dir/release/src/softverbs/.libs
            echo 1 > $dir/release/src/uct/daqiri/.libs/libuct_daqiri.so.0.0.0
            echo 2 > $dir/release/src/softverbs/.libs/libsoftverbs.so
        done'
    replace ../tree/contrib/check 'echo "check $* with $T_NP ranks"; echo "5 passed, 0 failed, 0 skipped"
        exit "${check_status:-0}"'
    replace id 'echo 0'
    replace apt-get '[ "$1" != indextargets ] || echo "http://mirror.invalid/debian/ main Debian"'
    replace mmdebstrap 'mkdir -p "${*: -2:1}"'
    # inside: the command alone, with the checkout as its folder
    replace unshare 'case $* in
        *" inside "*) while [ "$1" != inside ]; do shift; done
            cd "$4" && shift 4 && exec env "$@" ;;
        esac'
    export ucx=1.18.1
    replace ucx_info 'echo "# Library version: $ucx"'
    replace mpirun.openmpi 'echo "mpirun.openmpi (Open MPI) 5.0.7"'
    replace mpiexec.mpich 'echo "    Version:       4.2.1"'
}

# replace NAME TEXT: NAME is a program that does TEXT, for this test.
replace()
{
    printf '#!/bin/bash\n%s\n' "$2" > "$fake/$1"
    chmod +x "$fake/$1"
}

check_debian()
{
    PATH=$fake:$PATH "$tree/contrib/check-debian" "$@"
}

# cannot SENTENCE OPTION...: by hand it is a failure, in contrib/check a skip
cannot()
{
    local sentence=$1

    shift
    run -1 --separate-stderr check_debian "$@"
    [ "$stderr" = "check-debian: $sentence" ] || { echo "$stderr"; return 1; }
    skips "$sentence" "$@"
}

skips()
{
    local sentence=$1

    shift
    run -0 check_debian --or-skip "$@"
    echo "$output"
    [[ $output == *"check-debian: skipped: $sentence"* ]]
    [ "${lines[-1]}" = '0 passed, 0 failed, 1 skipped' ]
}

@test "what is wrong gets a sentence and status 2" {
    run -2 check_debian --nonsense
    [ "$output" = 'check-debian: unknown option "--nonsense" (try check-debian --help)' ]
    for also in --only=release/mpi --commands --package; do
        run -2 check_debian --quick ${also/=/ }
        [ "$output" = 'check-debian: --quick, --commands, --package and --only exclude each other' ]
    done
    run -2 check_debian --case x
    [ "$output" = 'check-debian: --case needs --only: the test that has the case' ]
    run -2 check_debian --quick -- true
    [ "$output" = 'check-debian: a command of its own excludes --quick, --commands, --package, --only and --shell' ]
    run -2 check_debian --
    [ "$output" = 'check-debian: -- wants a command (try check-debian --help)' ]
}

@test "a command there instead of the tests" {
    run -7 check_debian -- bash -c 'echo "it: $*"; exit 7' name 'a  b' --quick
    [ "${lines[-1]}" = 'it: a  b --quick' ]
    # shellcheck disable=SC2016
    run -1 check_debian -- bash -c 'echo 3 > build/debian-trixie/release/src/softverbs/.libs/libsoftverbs.so'
    [[ ${lines[-1]} == *'the objects that were tested are not those that were built here' ]]
}

@test "the tests there; --quick has fewer, with two ranks" {
    run -0 check_debian
    [[ $output == *'Debian trixie: UCX 1.18.1, Open MPI 5.0.7, MPICH 4.2.1'* ]]
    [[ $output == *'check --only release/transport --only release/mpi '*' with 1 2 4 8 ranks'* ]]
    run -0 check_debian --quick
    [[ $output == *'check --only release/transport/t_'*' with 2 ranks'* ]]
    [ "${lines[-1]}" = '5 passed, 0 failed, 0 skipped' ]
    check_status=1 run -1 check_debian --or-skip
}

@test "the output, which contrib/check keeps in build/log/debian-trixie.log, is not overwritten" {
    mkdir -p "$tree/build/log"
    replace mmdebstrap 'echo made; mkdir -p "${*: -2:1}"'
    check_debian --quick > "$tree/build/log/debian-trixie.log"
    run -0 cat "$tree/build/log/debian-trixie.log"
    [[ ${lines[0]} == 'check-debian: making Debian trixie '* ]]
    [ "${lines[-1]}" = '5 passed, 0 failed, 0 skipped' ]
}

@test "it is bounded: 4 minutes to make the folder and 20 for the tests, or 7 and 60" {
    # limits OPTION: those that commands get, the longest last
    limits()
    {
        rm -rf limits "$cache"
        check_debian "$@" > said
        sort -n limits
    }
    cd "$BATS_TEST_TMPDIR"
    replace timeout 'while [[ $1 == -* ]]; do shift 2; done
        echo "$1" >> "$BATS_TEST_TMPDIR/limits"; shift; exec "$@"'
    limits --quick | awk '$1 > 0 && $1 <= 240 { n++ } END { exit n != 2 || NR != 3 || $1 != 1200 }'
    limits | awk '$1 > 0 && $1 <= 420 { n++ } END { exit n != 2 || NR != 3 || $1 != 3600 }'
}

@test "--commands: the two of README.md, in copies of that Debian and of the checkout" {
    local dir=$tree/build/debian-trixie-all/ucx-daqiri commands

    replace ../tree/contrib/demo 'echo "demo $* in $PWD"; exit "${demo_status:-0}"'
    replace ../tree/contrib/check 'echo "check $* in $PWD, ${DAQIRI_BUILD_ROOT:-a build of its own}${T_BED_REQUIRED:+, with machines}"
        git status --porcelain; echo "5 passed, 0 failed, 0 skipped"; exit "${check_status:-0}"'
    printf '/build/\n' > "$tree/.gitignore"
    T_BED_REQUIRED=yes run -0 check_debian --commands --or-skip
    echo "$output"
    # as they stand there, and the second with what the first has left
    commands=$(sed -n '/^## Quick start/,/^## Inst/s/^\(contrib\/[^ ]*\) .*/\1/p' "$T_TOP_SRCDIR/README.md")
    [ "$commands" = $'contrib/demo\ncontrib/check' ]
    [[ $output == *"Debian trixie: UCX 1.18.1, "*"
demo  in $dir
check  in $dir, a build of its own
5 passed, 0 failed, 0 skipped" ]]
    [ ! -e "$tree/build/debian-trixie-all/root" ]
    [ -e "$cache/ucx-daqiri/debian-trixie-bare" ]
    check_status=1 run -1 check_debian --commands --or-skip
    [ "${lines[-1]}" = '5 passed, 0 failed, 0 skipped' ]
    demo_status=1 run -1 check_debian --commands --or-skip
    [ "${lines[-1]}" = 'check-debian: contrib/demo failed in Debian trixie; what it said is above' ]
    export setup_there='case $PWD/$* in *-all/ucx-daqiri/*--no-build*)
        echo "E: Failed to fetch x" > build/log/apt-install.log; exit 1 ;; esac'
    skips 'the packages could not be installed in Debian trixie; the reason is above' --commands
    setup_there=${setup_there/Failed to fetch x/Unable to locate package gcz}
    setup_there=${setup_there/echo/: > build\/log\/apt-update.log; echo}
    run -1 check_debian --commands --or-skip
    [ "${lines[-1]}" = 'check-debian: Debian trixie has no such package; the reason is above' ]
}

@test "who is not root, and where nothing can be mounted" {
    replace id 'echo 1000'
    cannot 'only root can make and enter the folder of another Debian'
    replace id 'echo 0'
    replace unshare 'exit 1'
    cannot 'nothing can be mounted here'
}

@test "a mirror that does not answer" {
    replace mmdebstrap 'echo "E: connection timed out"; exit 1'
    skips 'Debian trixie could not be made; the reason is above'
    [[ $output == *'E: connection timed out'* ]]
    run -1 check_debian
    [ ! -e "$cache/ucx-daqiri/debian-trixie" ]
    replace mmdebstrap 'mkdir -p "${*: -2:1}"'
    export setup_there='case $* in *--no-build*) echo "E: Failed to fetch x" > build/debian-trixie/log/apt-install.log
        exit 1 ;; esac'
    skips 'the packages could not be installed in Debian trixie; the reason is above'
}

@test "a package that this Debian does not have is no skip" {
    export setup_there='case $* in *--no-build*) : > build/debian-trixie/log/apt-update.log
        echo "E: Unable to locate package gcz" > build/debian-trixie/log/apt-install.log
        exit 1 ;; esac'
    run -1 check_debian --or-skip
    [[ ${lines[-1]} == 'check-debian: Debian trixie has no such package; the reason is above' ]]
    # unless its lists could not be had
    setup_there=${setup_there/: >/echo Err:1 >}
    skips 'the packages could not be installed in Debian trixie; the reason is above'
}

@test "this checkout does not build there: no skip" {
    export setup_there='case "$DAQIRI_BUILD_ROOT $*" in *--no-packages*) exit 1 ;; esac'
    run -1 check_debian --or-skip
    [[ ${lines[-1]} == *'cannot build this checkout'* ]]
}

@test "an older Debian than this one, and this one itself" {
    printf 'VERSION_CODENAME=forky\n' > "$DAQIRI_OS_RELEASE"
    cannot 'what is built here, on forky, does not run in the older trixie'
    printf 'VERSION_CODENAME=trixie\n' > "$DAQIRI_OS_RELEASE"
    skips 'this is Debian trixie itself'
    run -0 check_debian
}

@test "a version that nobody has tried" {
    export ucx
    for ucx in 1.24.0 2.0.0; do
        skips "Debian forky has UCX $ucx, which is newer than what has been tried; contrib/check-debian forky tries it" forky
        run -0 check_debian forky
    done
    ucx=1.23.9
    run -0 check_debian --or-skip forky
    [ "${lines[-1]}" = '5 passed, 0 failed, 0 skipped' ]
    replace mpiexec.mpich 'echo "    Version:       5.1.0b1"'
    skips 'Debian forky has MPICH 5.1.0b1, which is newer' forky
}
