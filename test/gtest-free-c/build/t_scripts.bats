# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts of contrib/ say what is wrong. Where a script would change the
# machine, the programs that do so are replaced by ones of a line or two.

bats_require_minimum_version 1.5.0

setup()
{
    contrib=$T_TOP_SRCDIR/contrib
    fake=$BATS_TEST_TMPDIR/bin
    mkdir -p "$fake"
    export DAQIRI_BUILD_ROOT=$BATS_TEST_TMPDIR/build
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    export DAQIRI_OS_RELEASE=$BATS_TEST_TMPDIR/os-release
    unset UCX_SOURCE
    printf 'ID=debian\nVERSION_ID="12"\n' > "$DAQIRI_OS_RELEASE"
    replace id 'echo 0'
    replace apt-get 'echo "apt-get $*" >> "$BATS_TEST_TMPDIR/apt-calls"'
    replace dpkg-query 'case $* in
        *source:*) printf ucx=1.13.1-1 ;;
        *" bats") printf "${BATS_PACKAGE:-installed}" ;;
        *) printf installed ;;
    esac'
}

# replace NAME TEXT: NAME is a program that does TEXT, for this test.
replace()
{
    printf '#!/bin/sh\n%s\n' "$2" > "$fake/$1"
    chmod +x "$fake/$1"
}

setup_with_fakes()
{
    PATH=$fake:$PATH "$contrib/setup" --no-build --no-vm "$@"
}

setup_vm_with_fakes()
{
    PATH=$fake:$PATH "$contrib/setup" --no-build "$@"
}

unpacked_ucx()
{
    mkdir -p "$XDG_CACHE_HOME/ucx-daqiri/ucx-1.13.1-1"
}

@test "an unknown option is status 2 and one sentence" {
    local script

    for script in setup check bench faults fuzz; do
        run -2 --separate-stderr "$contrib/$script" --nonsense
        [ -z "$output" ]
        [ "$stderr" = "$script: unknown option \"--nonsense\" (try $script --help)" ]
    done
}

@test "--help is status 0 and tells the options" {
    local script

    for script in setup check bench faults fuzz; do
        run -0 "$contrib/$script" --help
        [[ ${lines[0]} == "contrib/$script "* ]]
        [[ $output == *"--help"* ]]
    done
}

@test "an option without its value, and an unknown flavour" {
    run -2 "$contrib/setup" --flavour
    [[ $output == 'setup: option --flavour needs a value'* ]]
    run -2 "$contrib/check" --flavour fast
    [[ $output == 'check: there is no flavour "fast"'* ]]
    run -2 "$contrib/check" --quick --flavour asan
    [ "$output" = 'check: --quick and --flavour exclude each other' ]
    run -2 "$contrib/check" --bed
    [[ $output == 'check: option --bed needs a value'* ]]
    run -2 "$contrib/check" --bed flower
    [ "$output" = 'check: there is no bed "flower": it is softverbs or softroce' ]
    run -2 "$contrib/check" --bed softroce --flavour asan
    [ "$output" = 'check: --bed softroce excludes --quick and --flavour' ]
}

# check_without_work OPTION...: contrib/check in a tree without a test: building
# makes folders, and in each suite two cases pass and one is skipped.
check_without_work()
{
    local tree=$BATS_TEST_TMPDIR/tree

    mkdir -p "$tree/contrib"
    cp "$contrib/check" "$contrib/lib.sh" "$tree/contrib"
    cat > "$tree/contrib/setup" <<'EOS'
#!/bin/bash
[ "$1" = --flavour ] || exit 0
mkdir -p "$DAQIRI_BUILD_ROOT/log"
echo > "$DAQIRI_BUILD_ROOT/log/$2-make.log"
for suite in build unit fuzz device transport storm mpi system walls vm softroce; do
    mkdir -p "$DAQIRI_BUILD_ROOT/$2/test/gtest-free-c/$suite"
done
EOS
    cat > "$tree/contrib/check-ucx-gtest" <<'EOS'
#!/bin/bash
echo "${ucx_result:-2 passed, 0 failed, 0 failed as known, 1 skipped with a reason}"
exit "${ucx_status:-0}"
EOS
    echo "${fuzz_result:-true}" > "$tree/contrib/fuzz"
    chmod +x "$tree/contrib/setup" "$tree/contrib/check-ucx-gtest" "$tree/contrib/fuzz"
    replace cppcheck ''
    replace make 'case $* in *distcheck*) exit ;; esac
        printf ":test-result: PASS %s\n" 1 2 > "$2/t.trs"
        echo ":test-result: SKIP 3" >> "$2/t.trs"
        '"${make_result:-}"
    PATH=$fake:$PATH "$tree/contrib/check" "$@"
}

suites_of()
{
    sed -n 's|^check: \([a-z]*/[a-z]*\): 2 passed, 0 failed, 1 skipped.*|\1|p' <<< "$1" |
        LC_ALL=C sort | tr '\n' ' '
}

@test "check: which tests each bed has, and every case counts" {
    run -0 check_without_work --bed softroce
    [ "$(suites_of "$output")" = 'release/softroce release/vm ' ]
    [[ ${lines[-1]} == '5 passed, 0 failed, 3 skipped' ]]

    run -0 check_without_work --flavour release
    [ "$(suites_of "$output")" = 'release/build release/device release/fuzz release/mpi release/softroce release/storm release/system release/transport release/ucx release/unit release/vm release/walls ' ]

    run -0 check_without_work --bed softverbs --flavour release
    [ "$(suites_of "$output")" = 'release/build release/device release/fuzz release/mpi release/storm release/system release/transport release/ucx release/unit release/walls ' ]

    run -0 check_without_work
    [ "$(suites_of "$output")" = 'asan/build asan/device asan/fuzz asan/transport asan/unit debug/mpi release/build release/device release/fuzz release/mpi release/softroce release/storm release/system release/transport release/ucx release/unit release/vm release/walls tsan/build tsan/device tsan/transport tsan/unit ' ]
    [[ $output == *'check: passed: fuzz'* ]]

    run -0 check_without_work --flavour debug
    [ "$(suites_of "$output")" = 'debug/device debug/mpi debug/transport debug/unit ' ]

    run -0 check_without_work --quick
    [ "$(suites_of "$output")" = 'release/build release/device release/fuzz release/storm release/transport release/unit release/walls ' ]
}

@test "check: two suites at a time, each with a /dev/shm of its own" {
    (unshare -m mount -t tmpfs tmpfs /dev/shm) 2>/dev/null ||
        skip "mounting in a namespace is not allowed here"
    replace nproc 'echo 2'
    export WORLDS=$BATS_TEST_TMPDIR/worlds
    mkdir "$WORLDS"
    # The first of each end waits for the other one, and says which world it is in.
    make_result='case $*:$2 in
        *TESTS=*) ;;
        *:*/asan/*/transport | *:*/release/*/device)
            stat -c %d /dev/shm >"$WORLDS/${2##*/}"
            for i in $(seq 300); do
                [ -s "$WORLDS/device" ] && [ -s "$WORLDS/transport" ] && exit
                sleep 0.1
            done
            echo ":test-result: FAIL it was alone" >>"$2/t.trs" ;;
        esac' \
        run -0 check_without_work --flavour asan --flavour release
    [ "$(cat "$WORLDS/device")" != "$(cat "$WORLDS/transport")" ]
    [ "$(cat "$WORLDS/device")" != "$(stat -c %d /dev/shm)" ]
}

@test "check: one suite after the other where nothing can be mounted" {
    replace unshare 'exit 1'
    run -0 check_without_work --flavour tsan
    [ "$(suites_of "$output")" = 'tsan/build tsan/device tsan/transport tsan/unit ' ]
}

@test "check: what contrib/fuzz finds" {
    fuzz_result='echo it broke; exit 1' run -1 check_without_work --flavour asan
    [[ $output == *'it broke'*'check: FAILED: fuzz'* ]]
}

@test "check: what UCX's own tests say" {
    export ucx_result='FAILED: daqiri/test_x
7 passed, 1 failed, 0 failed as known, 3 skipped with a reason' ucx_status=1
    run -1 check_without_work --flavour release
    [[ $output == *'release/ucx: 7 passed, 1 failed, 3 skipped'* ]]
    [[ $output == *'check: FAILED: release/ucx daqiri/test_x'* ]]

    export ucx_result='it died'
    run -1 check_without_work --flavour release
    [[ $output == *'it died'* ]]
    [[ $output == *"check: FAILED: release/ucx: UCX's own tests"* ]]
}

@test "check: of a long log, what failed and what was said of it" {
    export LOG=$BATS_TEST_TMPDIR/log
    {
        for i in {1..200}; do echo "# noise $i"; echo "ok - case $i"; done
        echo '# the reason'
        echo 'not ok - it breaks'
        echo '# what it means'
        for i in {1..40}; do echo "# ok $i - noise of a program inside"; done
        echo '# not ok 41 - the case inside'
        echo 'ok - case 201'
    } >"$LOG"
    make_result='echo ":test-result: FAIL x" >> "$2/t.trs"; cp "$LOG" "$2/t.log"' \
        run -1 check_without_work --quick
    [[ $output == *'the reason'*'not ok - it breaks'*'what it means'*'the case inside'* ]]
    [[ $output != *noise* ]]
    [[ $output == *'check: FAILED: release/walls t: it breaks'* ]]
    [[ $output == *'check: FAILED: release/device t: it breaks'* ]]

    echo 'it died' >"$LOG"
    make_result='echo ":test-result: ERROR" >> "$2/t.trs"; cp "$LOG" "$2/t.log"' \
        run -1 check_without_work --quick
    [[ $output == *'it died'* ]]
}

@test "setup: another system than Debian 12" {
    printf 'ID=fedora\nPRETTY_NAME="Fedora 40"\n' > "$DAQIRI_OS_RELEASE"
    run -1 setup_with_fakes
    [[ $output == *'knows Debian 12 and this is Fedora 40'* ]]
    rm "$DAQIRI_OS_RELEASE"
    run -1 setup_with_fakes
    [[ $output == *'knows Debian 12 and this is something else'* ]]
}

@test "setup: not root, and something is missing" {
    export BATS_PACKAGE=not-installed
    replace id 'echo 1000'
    run -1 setup_with_fakes
    [ "$output" = 'setup: not root, and these packages are missing: bats' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}

@test "setup: not root, and nothing is missing" {
    replace id 'echo 1000'
    unpacked_ucx
    run -0 setup_with_fakes
    [ "$output" = 'setup: ready' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}

@test "setup: only what is missing is installed" {
    export BATS_PACKAGE=not-installed
    unpacked_ucx
    run -0 setup_with_fakes
    run -0 cat "$BATS_TEST_TMPDIR/apt-calls"
    [ "${lines[0]}" = 'apt-get update' ]
    [ "${lines[1]}" = 'apt-get install -y --no-install-recommends bats' ]
    [ ${#lines[@]} -eq 2 ]
}

@test "setup: an apt source that fails does not end it" {
    export BATS_PACKAGE=not-installed
    replace apt-get '[ "$1" != update ] || { echo "E: no such host"; exit 100; }'
    unpacked_ucx
    run -0 setup_with_fakes
    [[ $output == *'E: no such host'* ]]
    [[ $output == *'apt-get update had errors; going on'* ]]
    [[ ${lines[-1]} == 'setup: ready' ]]
}

@test "setup: apt cannot install" {
    export BATS_PACKAGE=not-installed
    replace apt-get '[ "$1" = update ] || { echo "E: no package bats"; exit 100; }'
    run -1 setup_with_fakes
    [[ $output == *'E: no package bats'* ]]
    [[ ${lines[-1]} == 'setup: apt-get could not install what is missing'* ]]
}

@test "setup: the source package of UCX cannot be had" {
    replace apt-get 'case "$*" in
        *indextargets*) echo "http://mirror.invalid/debian/ bookworm main Debian" ;;
        *source*ucx=*) echo "E: Unable to find a source package"; exit 100 ;;
    esac'
    run -1 setup_with_fakes
    [[ $output == *'E: Unable to find a source package'* ]]
    [[ ${lines[-1]} == *'ucx=1.13.1-1 could not be downloaded'* ]]
    [ -z "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" ]
}

@test "setup: apt knows no archive of Debian" {
    replace apt-get 'case "$*" in
        *indextargets*) echo "http://mirror.invalid/other stable main Somebody" ;;
    esac'
    run -1 setup_with_fakes
    [[ $output == *'apt is configured with no archive of Debian'* ]]
}

@test "setup: a source tree of UCX that is not there" {
    run -1 setup_with_fakes --ucx-source /none
    [ "$output" = 'setup: there is no folder /none' ]
}

@test "setup: UCX's source is asked of the mirrors that apt is configured with" {
    replace apt-get 'case "$*" in
        *indextargets*)
            echo "http://mirror.invalid/debian/ bookworm main Debian"
            echo "http://mirror.invalid/debian/ bookworm contrib Debian"
            echo "http://other.invalid/x/ stable main Somebody" ;;
        *update*)
            for word; do case $word in
                Dir::Etc::SourceList=*) cp "${word#*=}" "$BATS_TEST_TMPDIR" ;;
            esac; done ;;
        *) exit 100 ;;
    esac'
    run -1 setup_with_fakes
    run -0 sed 's/\[[^]]*\] //' "$BATS_TEST_TMPDIR/sources.list"
    [ "$output" = 'deb-src http://mirror.invalid/debian/ bookworm main' ]
}

@test "setup: the kernel is asked of the mirrors that apt is configured with" {
    replace apt-cache 'echo "  Depends: linux-image-9-amd64"'
    replace apt-get 'case "$*" in
        *indextargets*)
            echo "http://mirror.invalid/debian/ bookworm main Debian" ;;
        *update*)
            for word; do case $word in
                Dir::Etc::SourceList=*) cp "${word#*=}" "$BATS_TEST_TMPDIR" ;;
            esac; done ;;
        *) echo "E: cannot ${*: -2}"; exit 100 ;;
    esac'
    sed -i 's|/bin/sh|/bin/bash|' "$fake/apt-get"
    unpacked_ucx
    run -1 setup_vm_with_fakes
    [[ $output == *'E: cannot download linux-image-9-amd64'* ]]
    [[ ${lines[-1]} == *'linux-image-9-amd64 could not be downloaded'*'--no-vm)' ]]
    [ "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" = ucx-1.13.1-1 ]
    run -0 sed 's/\[[^]]*\] //' "$BATS_TEST_TMPDIR/sources.list"
    [ "$output" = 'deb http://mirror.invalid/debian/ bookworm main' ]
}

@test "setup: apt knows no kernel, or brings something else" {
    replace apt-get 'case "$*" in
        *indextargets*)
            echo "http://mirror.invalid/debian/ bookworm main Debian" ;;
        *download*) echo nonsense > linux-image-9-amd64.deb ;;
    esac'
    unpacked_ucx
    replace apt-cache ''
    run -1 setup_vm_with_fakes
    [[ ${lines[-1]} == *'have no package linux-image-amd64'*'--no-vm)' ]]

    replace apt-cache 'echo "  Depends: linux-image-9-amd64"'
    run -1 setup_vm_with_fakes
    [[ $output == *'linux-image-9-amd64.deb is not a Debian package'* ]]
    [[ ${lines[-1]} == *'could not be prepared'* ]]
    [ "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" = ucx-1.13.1-1 ]
}

@test "setup: what is not for this processor is left out" {
    replace dpkg 'echo arm64'
    unpacked_ucx
    run -0 setup_vm_with_fakes
    [ "${lines[0]}" = 'setup: contrib/vm/run is for amd64 only; going on without it' ]
    [ "${lines[1]}" = 'setup: ready' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}
