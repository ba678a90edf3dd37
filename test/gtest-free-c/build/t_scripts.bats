# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts of contrib/ say what is wrong. Where a script would change the
# machine, the programs that do so are replaced by ones of a line or two.
# (contrib/check has t_check.bats, contrib/bench t_bench.bats.)

bats_require_minimum_version 1.5.0

setup()
{
    contrib=$T_TOP_SRCDIR/contrib
    fake=$BATS_TEST_TMPDIR/bin
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p "$fake"
    export DAQIRI_BUILD_ROOT=$BATS_TEST_TMPDIR/build
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    export DAQIRI_OS_RELEASE=$BATS_TEST_TMPDIR/os-release
    printf 'ID=debian\nVERSION_CODENAME=bookworm\n' > "$DAQIRI_OS_RELEASE"
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

@test "an unknown option is status 2 and one sentence" {
    local script

    for script in setup check check-debian bench demo; do
        run -2 --separate-stderr "$contrib/$script" --nonsense
        [ -z "$output" ]
        [ "$stderr" = "$script: unknown option \"--nonsense\" (try $script --help)" ]
    done
}

@test "--help is status 0 and tells the options" {
    local script

    for script in setup check check-debian bench demo; do
        run -0 "$contrib/$script" --help
        [[ ${lines[0]} == "contrib/$script "* ]]
        [[ $output == *"--help"* ]]
    done
}

@test "an option without its value, and an unknown flavour" {
    run -2 "$contrib/setup" --flavour
    [[ $output == 'setup: option --flavour needs a value'* ]]
    run -2 "$contrib/setup" --flavour fast
    [[ $output == 'setup: there is no flavour "fast"'* ]]
}

@test "setup: another system than those it knows" {
    printf 'ID=fedora\nPRETTY_NAME="Fedora 40"\n' > "$DAQIRI_OS_RELEASE"
    run -1 setup_with_fakes
    [[ $output == *'knows Debian 12, 13 and forky and this is Fedora 40'* ]]
    rm "$DAQIRI_OS_RELEASE"
    run -1 setup_with_fakes
    [[ $output == *'knows Debian 12, 13 and forky and this is something else'* ]]
}

@test "setup: the systems it knows" {
    for name in bookworm trixie forky; do
        printf 'ID=debian\nVERSION_CODENAME=%s\n' "$name" > "$DAQIRI_OS_RELEASE"
        run -0 setup_with_fakes
    done
}

@test "setup: not root, and something is missing" {
    export BATS_PACKAGE=not-installed
    replace id 'echo 1000'
    run -1 setup_with_fakes
    [ "$output" = 'setup: not root, and these packages are missing: bats' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}

@test "setup: it fetches nothing of UCX" {
    run -0 setup_with_fakes
    [ "$output" = 'setup: ready' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
    [ ! -e "$XDG_CACHE_HOME/ucx-daqiri" ]
}

@test "setup: not root, and nothing is missing" {
    replace id 'echo 1000'
    run -0 setup_with_fakes
    [ "$output" = 'setup: ready' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}

@test "setup: only what is missing is installed" {
    export BATS_PACKAGE=not-installed
    run -0 setup_with_fakes
    run -0 cat "$BATS_TEST_TMPDIR/apt-calls"
    [ "${lines[0]}" = 'apt-get update' ]
    [ "${lines[1]}" = 'apt-get install -y --no-install-recommends bats' ]
    [ ${#lines[@]} -eq 2 ]
}

@test "setup: fewer packages with --lean, and none with --no-packages" {
    replace dpkg-query 'case $* in *" bats" | *" clang") ;; *) printf installed ;; esac'
    run -0 setup_with_fakes --no-packages
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
    run -0 setup_with_fakes --lean
    grep -qx 'apt-get install -y --no-install-recommends bats' "$BATS_TEST_TMPDIR/apt-calls"
    run -0 setup_with_fakes
    grep -qx 'apt-get install -y --no-install-recommends bats clang' "$BATS_TEST_TMPDIR/apt-calls"
}

@test "UCX's own suite: with another UCX than 1.13 a skip that says so" {
    replace pkg-config 'echo 1.18.1'
    PATH=$fake:$PATH run -0 "$contrib/check" --long ucx --tests uct
    [ "${lines[0]}" = 'check --long ucx: skipped: UCX 1.18.1 is installed, and daqiri is added to the suite of UCX 1.13 alone' ]
    [ "${lines[1]}" = '0 passed, 0 failed, 1 skipped' ]
}

@test "setup: an apt source that fails does not end it" {
    export BATS_PACKAGE=not-installed
    replace apt-get '[ "$1" != update ] || { echo "E: no such host"; exit 100; }'
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
    run -1 setup_with_fakes --print-ucx-source
    [[ $output == *'E: Unable to find a source package'* ]]
    [[ ${lines[-1]} == *'ucx=1.13.1-1 could not be downloaded'* ]]
    [ -z "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" ]
}

@test "setup: apt knows no archive of Debian" {
    replace apt-get 'case "$*" in
        *indextargets*) echo "http://mirror.invalid/other stable main Somebody" ;;
    esac'
    run -1 setup_with_fakes --print-ucx-source
    [[ $output == *'apt is configured with no archive of Debian'* ]]
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
    run -1 setup_with_fakes --print-ucx-source
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
    run -1 setup_vm_with_fakes
    [[ $output == *'E: cannot download linux-image-9-amd64'* ]]
    [[ ${lines[-1]} == *'linux-image-9-amd64 could not be downloaded'*'--no-vm)' ]]
    [ -z "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" ]
    run -0 sed 's/\[[^]]*\] //' "$BATS_TEST_TMPDIR/sources.list"
    [ "$output" = 'deb http://mirror.invalid/debian/ bookworm main' ]
}

@test "setup: the kernel of another Debian, in several packages" {
    replace apt-cache 'case $* in
        *"depends linux-image-amd64")
            printf "  Depends: %s\n" linux-base-amd64 linux-image-9-amd64 ;;
        *) printf "  Depends: %s\n" dracut linux-base linux-base-9-amd64 \
            linux-binary-9-amd64 linux-modules-9-amd64 ;;
    esac'
    replace apt-get 'case "$*" in
        *indextargets*)
            echo "http://mirror.invalid/debian/ bookworm-updates main Debian"
            echo "http://mirror.invalid/debian/ bookworm main Debian"
            echo "http://mirror.invalid/security/ bookworm-security main Debian" ;;
        *update*)
            for word; do case $word in
                Dir::Etc::SourceList=*) cp "${word#*=}" "$BATS_TEST_TMPDIR" ;;
            esac; done ;;
        *) exit 100 ;;
    esac'
    run -1 setup_vm_with_fakes --kernel forky
    [[ ${lines[-1]} == *'the packages linux-image-9-amd64 linux-base-9-amd64 linux-binary-9-amd64 linux-modules-9-amd64 could not be downloaded'* ]]
    [ -z "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" ]
    run -0 sed 's/\[[^]]*\] //' "$BATS_TEST_TMPDIR/sources.list"
    [ "$output" = 'deb http://mirror.invalid/debian/ forky main' ]

    run -2 setup_vm_with_fakes --kernel sid
    [ "$output" = 'setup: --kernel knows bookworm, trixie and forky, not "sid"' ]
    run -2 setup_with_fakes --kernel forky
    [ "$output" = 'setup: --kernel and --no-vm exclude each other' ]
}

@test "setup: apt knows no kernel, or brings something else" {
    replace apt-get 'case "$*" in
        *indextargets*)
            echo "http://mirror.invalid/debian/ bookworm main Debian" ;;
        *download*) echo nonsense > linux-image-9-amd64.deb ;;
    esac'
    replace apt-cache ''
    run -1 setup_vm_with_fakes
    [[ ${lines[-1]} == *'the archive of Debian bookworm has no package linux-image-amd64'*'--no-vm)' ]]

    replace apt-cache 'echo "  Depends: linux-image-9-amd64"'
    run -1 setup_vm_with_fakes
    [[ $output == *'linux-image-9-amd64.deb is not a Debian package'* ]]
    [[ ${lines[-1]} == *'could not be prepared'* ]]
    [ -z "$(ls -A "$XDG_CACHE_HOME/ucx-daqiri")" ]
}

@test "setup: what is not for this processor is left out" {
    replace dpkg 'echo arm64'
    run -0 setup_vm_with_fakes
    [ "${lines[0]}" = 'setup: contrib/vm/run is for amd64 only; going on without it' ]
    [ "${lines[1]}" = 'setup: ready' ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-calls" ]
}

@test "aarch64: what holds on another processor alone is found" {
    command -v aarch64-linux-gnu-gcc >/dev/null ||
        skip 'gcc-aarch64-linux-gnu is not installed'
    mkdir -p tree/contrib/check.d tree/src/dq
    cp "$contrib/lib.sh" tree/contrib/
    cp "$contrib/check.d/aarch64" tree/contrib/check.d/
    run -1 tree/contrib/check.d/aarch64
    [ "$output" = "aarch64: $PWD/tree/src has no source" ]
    echo 'int dq_sum(int a, int b) { return a + b; }' > tree/src/dq/dq_sum.c
    run -0 tree/contrib/check.d/aarch64
    [ "$output" = '1 passed, 0 failed, 0 skipped' ]
    echo 'void dq_time(void) { __asm__ volatile("rdtsc"); }' > tree/src/dq/dq_time.c
    run -1 tree/contrib/check.d/aarch64
    [[ $output == *'rdtsc'*'FAILED: src/dq/dq_time.c'* ]]
    [ "${lines[-1]}" = '1 passed, 1 failed, 0 skipped' ]
}

@test "aarch64: no compiler, and an option that there is not" {
    AARCH64_CC=none run -1 "$contrib/check.d/aarch64"
    [ "$output" = 'aarch64: none is not installed' ]
    run -2 "$contrib/check.d/aarch64" --nonsense
    [ "$output" = 'aarch64: unknown option "--nonsense" (try aarch64 --help)' ]
}

# Nothing is compiled here: where there is no compiler for aarch64, folders of headers
# that have moved would go unseen.
@test "check.d/aarch64 finds the headers of every source" {
    replace cc "exec ${CC:-gcc} -E \"\$@\""
    AARCH64_CC=$fake/cc run -0 "$contrib/check.d/aarch64"
    [[ ${lines[-1]} =~ ^[1-9][0-9]*' passed, 0 failed, 0 skipped'$ ]]
}

# gtest_log KERNEL TEST...: what UCX's suite says of tests; one with a "!" has failed
gtest_log()
{
    local name

    [ -z "$1" ] || echo "kernel $1"
    for name in "${@:2}"; do
        echo "[ RUN      ] daqiri/${name%!}/0 <daqiri/rxe0:1>"
        case $name in
            *!) echo "[  FAILED  ] daqiri/${name%!}/0, where GetParam() = x (1 ms)" ;;
            *) echo "[       OK ] daqiri/$name/0 (1 ms)" ;;
        esac
    done
}

# judge KERNEL TEST...
judge()
{
    gtest_log "$@" > log
    awk -f "$contrib/check.d/ucx-gtest.awk" known skips log
}

@test "ucx-gtest.awk: what is known of a kernel's Soft-RoCE holds there alone" {
    cat > known <<'EOS'
daqiri/a.always for a reason
daqiri/a.new Soft-RoCE of 6.12: for another
daqiri/a.race Soft-RoCE of 6.12, sometimes: for a third
EOS
    : > skips
    run -0 judge 6.12.117+deb13-amd64 a.ok a.always! a.new! a.race!
    [ "$output" = '1 passed, 0 failed, 3 failed as known, 0 skipped with a reason' ]
    run -0 judge 7.2.12-amd64 a.always! a.new! a.race
    run -1 judge 7.2.12-amd64 a.always! a.new a.race
    [ "${lines[0]}" = 'FAILED: daqiri/a.new passes, but is listed as: Soft-RoCE of 6.12: for another' ]
    run -0 judge 6.1.0-38-amd64 a.always! a.new a.race
    run -1 judge 6.1.0-38-amd64 a.always! a.new! a.race!
    [[ $output == *'0 passed, 2 failed, 1 failed as known'* ]]
    run -1 judge '' a.ok a.always! a.new!
    [ "${lines[0]}" = 'FAILED: daqiri/a.new' ]
}

@test "ucx-gtest.awk: a failure comes with what the suite said of it" {
    : > known; : > skips
    cat > log <<'EOS'
[ RUN      ] daqiri/a.test/0 <daqiri/softverbs0:1>
t.cc:465: Failure
Expected equality of these values:
  got
    Which is: 0
  1ul
[     INFO ] of no use
t.cc:340: Failure
Failed
Got 0 errors and 1 warnings during the test
[     INFO ] < c.c:1 daqiri: a warning >
[  FAILED  ] daqiri/a.test/0, where GetParam() = x (1 ms)
[ RUN      ] daqiri/b.test/0 <daqiri/softverbs0:1>
[  FAILED  ] daqiri/b.test/0, where GetParam() = x (1 ms)
EOS
    run -1 awk -f "$contrib/check.d/ucx-gtest.awk" known skips log
    [[ $output == *'FAILED: daqiri/a.test
    t.cc:465: Failure
    Expected equality of these values:
      got
        Which is: 0
      1ul
    t.cc:340: Failure
    Failed
    Got 0 errors and 1 warnings during the test
    [     INFO ] < c.c:1 daqiri: a warning >'* ]]
    [[ $output == *'FAILED: daqiri/b.test'* ]]
    [ "$(grep -c Failure <<< "$output")" -eq 2 ]
    : > log
    run -1 awk -f "$contrib/check.d/ucx-gtest.awk" known skips log
    [[ $output == 'FAILED: no test has such a name'* ]]
}
