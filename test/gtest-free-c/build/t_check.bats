# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/check: which tests it runs, how it counts them, and what it says of one
# that failed. It runs in a tree of its own, where building makes folders, every
# suite has one test, and a test is whatever the case below wants.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    unset T_DEBIAN T_SLOTS T_CHECK_AS
    contrib=$T_TOP_SRCDIR/contrib
    tree=$BATS_TEST_TMPDIR/tree
    fake=$BATS_TEST_TMPDIR/bin
    mkdir -p "$fake" "$tree/contrib/vm"
    export DAQIRI_BUILD_ROOT=$BATS_TEST_TMPDIR/build
    cp -r "$contrib/check" "$contrib/check.d" "$contrib/lib.sh" "$tree/contrib"
    rm "$tree/contrib/check.d/long"/*
    cat > "$tree/contrib/setup" <<'EOS'
#!/bin/bash
[ "$1" = --flavour ] || exit 0
mkdir -p "$DAQIRI_BUILD_ROOT/log"
echo > "$DAQIRI_BUILD_ROOT/log/$2-make.log"
for suite in build unit fuzz device transport storm mpi system walls vm softroce; do
    mkdir -p "$DAQIRI_BUILD_ROOT/$2/test/gtest-free-c/$suite"
done
EOS
    cat > "$tree/contrib/check.d/long/ucx" <<'EOS'
#!/bin/bash
echo "${ucx_result:-2 passed, 0 failed, 0 failed as known, 1 skipped with a reason}"
exit "${ucx_status:-0}"
EOS
    cat > "$tree/contrib/check-debian" <<'EOS'
#!/bin/bash
echo "check-debian $* with $T_SLOTS slots"
eval "$debian_result"
echo '2 passed, 0 failed, 1 skipped'
EOS
    cat > "$tree/contrib/check.d/long/fuzz" <<'EOS'
#!/bin/bash
echo "fuzz $*"
eval "${fuzz_result:-true}"
EOS
    cat > "$tree/contrib/check.d/aarch64" <<'EOS'
#!/bin/bash
echo "${aarch64_result:-3 passed, 0 failed, 0 skipped}"
[[ ${aarch64_result:-} != *failed* ]]
EOS
    export AARCH64_CC=true
    chmod +x "$tree/contrib/setup" "$tree/contrib/check-debian" "$tree/contrib/check.d/long"/*
    replace cppcheck ''
    # Each test has two cases that pass, and one that is skipped.
    replace make 'case $* in
        *distcheck*) exit ;;
        *print-logs*)
            case $3 in */softroce) echo t quick ;; */release/*/unit) echo t t_mutants ;; *) echo t ;; esac
            exit ;;
        *TESTS=*) exit ;;
        esac
        trs=$2/${3%.log}.trs
        log=$2/$3
        echo "$trs" >> "$BATS_TEST_TMPDIR/ran"
        printf ":test-result: PASS\n:test-result: PASS\n:test-result: SKIP\n" > "$trs"
        printf "ok 1 - a\nok 2 - b\nok 3 - c # SKIP there is no moon\n" > "$log"
        eval "$make_result"'
}

# replace NAME TEXT: NAME is a program that does TEXT, for this test.
replace()
{
    printf '#!/bin/bash\n%s\n' "$2" > "$fake/$1"
    chmod +x "$fake/$1"
}

check()
{
    PATH=$fake:$PATH "$tree/contrib/check" "$@"
}

# The tests that ran, FLAVOUR/SUITE/TEST.
ran()
{
    sed "s|^$DAQIRI_BUILD_ROOT/||; s|test/gtest-free-c/||; s|\.trs$||" "$BATS_TEST_TMPDIR/ran" |
        LC_ALL=C sort
    rm -f "$BATS_TEST_TMPDIR/ran"
}

refuses()
{
    local sentence=$1

    shift
    run -2 --separate-stderr check "$@"
    [ "$stderr" = "check: $sentence" ] || { echo "$stderr"; return 1; }
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "what is wrong gets a sentence and status 2" {
    refuses 'unknown option "--nonsense" (try check --help)' --nonsense
    refuses 'option --only needs a value (try check --help)' --only
    refuses '--all, --again and --only exclude each other' --all --only release/unit
    refuses '--all, --again and --only exclude each other' --again --all
    refuses '--case needs --only: the test that has the case' --case edges
    refuses 'there is no part "fast/unit" (try check --list)' --only fast/unit
    refuses 'no test has that name: release/unit/none' --only release/unit/none
    refuses 'there is no long run "nap": they are kills sleeps valgrind programs grid faults fuzz ucx forky kernels' --long nap
}

@test "what a change most often breaks" {
    run -0 check
    [ "${lines[-1]}" = '30 passed, 0 failed, 15 skipped' ]
    [ "$(ran | tr '\n' ' ')" = 'asan/build/t asan/device/t asan/fuzz/t asan/transport/t asan/unit/t release/build/t release/mpi/t release/softroce/quick release/storm/t release/system/t release/unit/t release/walls/t ' ]
    [[ $output == *'check: ucx-slice: 2 passed, 0 failed, 1 skipped'* ]]
    [[ $output == *'check: debian-trixie: 2 passed, 0 failed, 1 skipped'* ]]
}

@test "a machine that stands still is told of" {
    export make_result='/bin/sleep 4'
    run -0 check --only release/unit/t
    [[ $output != *'stood still'* ]]
    replace sleep '/bin/sleep 3'
    run -0 check --only release/unit/t
    [[ $output == *'check: this machine stood still, '*'check:     2.'?' s until '* ]]
}

@test "--all is everything else, too" {
    run -0 check --all
    [ "$(ran | tr '\n' ' ')" = 'asan/build/t asan/device/t asan/fuzz/t asan/transport/t asan/unit/t debug/mpi/t release/build/t release/device/t release/fuzz/t release/mpi/t release/softroce/t release/storm/t release/system/t release/transport/t release/unit/t release/unit/t_mutants release/vm/t release/walls/t tsan/build/t tsan/device/t tsan/transport/t tsan/unit/t ' ]
    for part in ucx-ci ucx-budget fuzz-short debian-trixie debian-trixie-all cppcheck aarch64 distcheck; do
        [[ $output == *"check: $part: "* ]]
    done
}

@test "--all has every folder of tests that there is" {
    local folder

    check --all
    ran > all
    for folder in "$T_TOP_SRCDIR"/test/gtest-free-c/*/Makefile.am; do
        grep -q "^release/$(basename "$(dirname "$folder")")/" all
    done
}

@test "--only: a part, a test, a pattern" {
    run -0 check --only tsan/unit
    [ "$(ran)" = tsan/unit/t ]
    run -0 check --only release/unit/t_mutants
    [ "$(ran)" = release/unit/t_mutants ]
    run -0 check --only 'asan/*' --only debug/mpi/t
    [ "$(ran | tr '\n' ' ')" = 'asan/build/t asan/device/t asan/fuzz/t asan/transport/t asan/unit/t debug/mpi/t ' ]
    run -0 check --only release/softroce
    [ "$(ran)" = release/softroce/t ]
    run -0 check --only fuzz-short
    [ "${lines[-1]}" = '2 passed, 0 failed, 1 skipped' ] # built without warnings, it, and no git
    [[ $(cat "$DAQIRI_BUILD_ROOT/log/fuzz-short.log") == 'fuzz --seconds 20' ]]
}

# Tests whose logs the pattern LOG names fail, and LINES is what they log last.
fail_with()
{
    export failing_log=$1 failing_lines=$2
    export make_result='case $log in $failing_log)
        echo ":test-result: FAIL" >> "$trs"
        printf "%s\n" "$failing_lines" >> "$log" ;; esac'
}

@test "a failure tells the case, the command that repeats it, and the log; --again runs it" {
    fail_with '*/asan/*/device/t.log' "# seed: T_SEED=0x1
not ok 4 - t_send.c:full queue:test_full: 3 is not 4"
    run -1 check
    ran > /dev/null
    [[ $output == *"check: FAILED: asan/device/t: t_send.c:full queue:test_full: 3 is not 4
check:     again: contrib/check --only asan/device/t --case 'full queue'
check:     log:   $DAQIRI_BUILD_ROOT/asan/test/gtest-free-c/device/t.log"* ]]
    [[ $output == *'contrib/check --again'* ]]
    [ "${lines[-1]}" = '30 passed, 1 failed, 15 skipped' ]

    # what failed, and that alone; and once more, for it still fails
    run -1 check --again
    [ "$(ran)" = asan/device/t ]
    make_result= run -0 check --again
    [ "$(ran)" = asan/device/t ]
    run -0 check --again
    [ "$output" = 'check: nothing failed last time' ]
}

@test "a case of bats is named as it is, and quoted" {
    fail_with '*/system/t.log' "not ok 4 it's \$HOME: all"
    run -1 check --only release/system
    [[ $output == *"again: contrib/check --only release/system/t --case 'it'\\''s \$HOME: all'"* ]]
}

@test "a case of a bed is named with the program that it is of" {
    fail_with '*/softroce/t.log' \
        'not ok - transport/t_rma, on the wire: t_rma.c:copied:test_sizes: 1 is 2'
    run -1 check --only release/softroce
    [[ $output == *"--case 'transport/t_rma, on the wire: t_rma.c:copied:test_sizes: 1 is 2'"* ]]
}

@test "a case that no test has is a failure, and one that some have is none" {
    export make_result='[ "$3" != t.log ] || [ "$2" != "${2%/walls}/walls" ] ||
        { printf "# seed: 1\n1..0\nSKIP: t\n" >"$log"; echo ":test-result: SKIP" >"$trs"; }'
    run -1 check --only release/walls --case nonsense
    [[ $output == *"check: FAILED: no test of these has the case 'nonsense'"* ]]
    [ "${lines[-1]}" = '1 passed, 1 failed, 1 skipped' ]
    run -0 check --only release/walls --only release/unit/t --case a
    [[ $output != *'has the case'* ]]
    # a test that is skipped as a whole says why, and it may have the case
    export make_result='printf "1..0 # SKIP there is no moon\n" >"$log"; echo ":test-result: SKIP" >"$trs"'
    run -0 check --only release/walls --case a
    [ "${lines[-1]}" = '1 passed, 0 failed, 2 skipped' ]
}

@test "a test without any result has failed" {
    make_result='rm "$trs" "$log"; echo "it broke"' run -1 check --only release/walls
    [[ $output == *'it broke'*'FAILED: release/walls/t'* ]]
    [ "${lines[-1]}" = '1 passed, 1 failed, 1 skipped' ]
}

@test "a warning of the compiler has failed" {
    sed -i 's/^echo > /echo "x.c:1: warning: no" > /' "$tree/contrib/setup"
    run -1 check --only release/walls
    [[ $output == *'FAILED: release: build without warnings'* ]]
}

@test "a flavour that does not build has failed, and the others run" {
    sed -i '2a [ "$2" != asan ] || exit 1' "$tree/contrib/setup"
    run -1 check --only asan/unit --only release/unit
    [[ $output == *'FAILED: asan: build'* ]]
    [ "$(ran | tr '\n' ' ')" = 'release/unit/t release/unit/t_mutants ' ]
}

@test "another processor: what does not compile for it fails; without a compiler it is a skip" {
    run -0 check --only aarch64
    [[ $output == *'check: aarch64: 3 passed, 0 failed, 0 skipped'* ]]
    aarch64_result='2 passed, 1 failed, 0 skipped' run -1 check --only aarch64
    [[ $output == *'check: FAILED: aarch64'* ]]
    AARCH64_CC=none run -0 check --only aarch64
    [[ $output == *'check: aarch64: 0 passed, 0 failed, 1 skipped'* ]]
    [[ $output == *'1 aarch64: no compiler for it is installed (gcc-aarch64-linux-gnu)'* ]]
}

@test "why something was skipped, and the seconds of each part" {
    run -0 check
    [[ $output == *'check:       1 asan/unit: there is no moon'* ]]
    [[ $output == *'seconds of each part'*' release/mpi'* ]]
    grep -q '^release/mpi/t [0-9]*$' "$DAQIRI_BUILD_ROOT/log/times"
    grep -q '^build-asan [0-9]*$' "$DAQIRI_BUILD_ROOT/log/times"
    [[ $output == *' tests and other jobs, '*' at a time: about '*' minutes on a quiet machine'* ]]
}

@test "two at a time, each with a /dev/shm of its own" {
    (unshare -m mount -t tmpfs tmpfs /dev/shm) 2>/dev/null ||
        skip "mounting in a namespace is not allowed here"
    replace nproc 'echo 2'
    export WORLDS=$BATS_TEST_TMPDIR/worlds
    mkdir "$WORLDS"
    # Each waits for the other one, and says which world it is in.
    export make_result='case $log in
        */device/t.log | */transport/t.log)
            stat -c %d /dev/shm >"$WORLDS/$(basename "$2")"
            for i in $(seq 300); do
                [ -s "$WORLDS/device" ] && [ -s "$WORLDS/transport" ] && exit
                sleep 0.1
            done
            echo ":test-result: FAIL" >>"$trs" ;;
        esac'
    run -0 check --only asan/transport --only release/device
    [ "$(cat "$WORLDS/device")" != "$(cat "$WORLDS/transport")" ]
    [ "$(cat "$WORLDS/device")" != "$(stat -c %d /dev/shm)" ]
}

@test "one after the other where nothing can be mounted" {
    replace unshare 'exit 1'
    export make_result='[ ! -e "$BATS_TEST_TMPDIR/busy" ] || echo ":test-result: FAIL" >>"$trs"
        touch "$BATS_TEST_TMPDIR/busy"; sleep 0.2; rm "$BATS_TEST_TMPDIR/busy"'
    run -0 check --only 'tsan/*'
    [[ $output == *'one after the other: nothing can be mounted on /dev/shm here'* ]]
    [ "$(ran | wc -l)" -eq 4 ]
}

# is_over FILE: the process whose number is in it has ended.
is_over()
{
    local i

    for ((i = 0; i < 600; i++)); do
        kill -0 "$(cat "$1")" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

@test "whoever ends it ends all that it has started" {
    local signal checking

    # a test, and a command that is no test, each with a child that would go on
    cat > "$tree/contrib/check.d/long/ucx" <<-'EOS'
	#!/bin/bash
	sleep 1000 &
	echo $! > "$BATS_TEST_TMPDIR/$(basename "$0").pid"
	wait
	EOS
    # timeout has a process group of its own
    export make_result='timeout 1000 sh -c "echo \$\$ > \"$BATS_TEST_TMPDIR/make.pid\"; exec sleep 1000" & wait'
    for signal in TERM INT HUP; do
        rm -f "$BATS_TEST_TMPDIR"/*.pid
        # as a program in the foreground has it: bash has those behind ignore SIGINT
        PATH=$fake:$PATH env --default-signal "$tree/contrib/check" --only ucx-ci \
            --only asan/unit > out 2>&1 3>&- &
        checking=$!
        until [ -s ucx.pid ] && [ -s make.pid ]; do
            kill -0 $checking || { cat out; return 1; }
            sleep 0.1
        done
        kill -$signal $checking
        if wait $checking; then
            return 1
        fi
        is_over ucx.pid
        is_over make.pid
    done
}

@test "what contrib/check --long fuzz finds" {
    export fuzz_result='echo it broke; exit 1'
    run -1 check --only fuzz-short
    [[ $output == *'it broke'*'check: FAILED: fuzz-short'* ]]
    fuzz_result= run -0 check --again
}

@test "what UCX's own tests say" {
    export ucx_result='FAILED: daqiri/test_x
7 passed, 1 failed, 0 failed as known, 3 skipped with a reason' ucx_status=1
    run -1 check --only ucx-ci
    [[ $output == *'ucx-ci: 7 passed, 1 failed, 3 skipped'* ]]
    [[ $output == *"FAILED: ucx-ci daqiri/test_x
check:     again: contrib/check --long ucx --filter 'daqiri/test_x/*'"* ]]
    run -1 check --only ucx-budget
    [[ $output == *"again: contrib/check --long ucx --budget --filter 'daqiri/test_x/*'"* ]]
    export ucx_result='it died'
    run -1 check --only ucx-slice
    [[ $output == *'it died'*'FAILED: ucx-slice'* ]]
}

@test "what contrib/check-debian says" {
    local log=$tree/build/debian-trixie/log

    run -0 check --only 'debian-*'
    grep -qx 'check-debian trixie --quick --or-skip with [12] slots' "$DAQIRI_BUILD_ROOT/log/debian-trixie.log"
    grep -qx 'check-debian trixie --commands --or-skip with [12] slots' "$DAQIRI_BUILD_ROOT/log/debian-trixie-all.log"

    export debian_result='echo "check-debian: skipped: there is no mirror"
        echo "0 passed, 0 failed, 1 skipped"; exit'
    run -0 check --only debian-trixie
    [[ $output == *'check:       1 debian-trixie: there is no mirror'* ]]

    # of a failure there, the command that repeats it there; and why what was skipped
    mkdir -p "$log"
    echo 'release/mpi: no such MPI' > "$log/skips"
    export debian_result='echo "check: FAILED: release/mpi/t: early"
echo "check: skipped, and why:"
echo "check: seconds of each part"
for name in a b; do
    echo "check: FAILED: release/mpi/t: $name
check:     again: contrib/check-debian trixie --only release/mpi/t --case $name
check:     log:   there"
done
echo "7 passed, 2 failed, 1 skipped"
exit 1'
    run -1 check --only debian-trixie
    [[ $output == *'debian-trixie: 7 passed, 2 failed, 1 skipped'* ]]
    [[ $output == *'check:       1 debian-trixie: release/mpi: no such MPI'* ]]
    [[ ${output##*seconds of each part, } == *'check: FAILED: debian-trixie: release/mpi/t: a
check:     again: contrib/check-debian trixie --only release/mpi/t --case a
check:     log:   there
check: FAILED: debian-trixie: release/mpi/t: b
check:     again: contrib/check-debian trixie --only release/mpi/t --case b
check:     log:   there
'* ]]
    [ "$(grep -c 'early' <<< "${output##*seconds of each part, }")" -eq 0 ]
    # it has no tests of its own that failed: the whole is run again
    debian_result= run -0 check --again
    [[ $output == *'debian-trixie: 2 passed'* ]]
    # the other part has a checkout of its own
    log=$tree/build/debian-trixie-all/ucx-daqiri/build/log
    mkdir -p "$log"
    echo 'release/mpi: no such ship' > "$log/skips"
    run -1 check --only debian-trixie-all
    [[ $output == *'check:       1 debian-trixie-all: release/mpi: no such ship'* ]]

    # that it did not get so far
    export debian_result='echo "check-debian: the tests did not end in 20 minutes"; exit 1'
    run -1 check --only debian-trixie
    [[ $output == *'did not end in 20 minutes'*'FAILED: debian-trixie
check:     again: contrib/check --only debian-trixie'* ]]
}

@test "in another Debian contrib/check installs nothing, and tells how to repeat a failure there" {
    fail_with '*/mpi/t.log' 'not ok 4 it breaks'
    sed -i '1a echo "$*" >> "$BATS_TEST_TMPDIR/setups"' "$tree/contrib/setup"
    T_DEBIAN=trixie T_CHECK_AS='contrib/check-debian trixie' run -1 check --only release/mpi
    [[ $output == *"again: contrib/check-debian trixie --only release/mpi/t --case 'it breaks'"* ]]
    [ "$(grep -vc -e --no-packages setups)" -eq 0 ]
    run -1 check --only release/mpi
    grep -qx -e '--no-build --no-vm' setups
}

@test "of a long log, what failed and what was said of it" {
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
    export make_result='echo ":test-result: FAIL" >> "$trs"; cp "$LOG" "$log"'
    run -1 check --only release/walls --only release/device
    [[ $output == *'the reason'*'not ok - it breaks'*'what it means'*'the case inside'* ]]
    [[ $output != *noise* ]]
    # and the last lines of that at the very end, where a reader of a cut log looks
    [[ ${output##*seconds of each part, } == *'check: FAILED: release/walls/t: it breaks
check:     said:  what it means
check:     said:  not ok 41 - the case inside
check:     again: '* ]]
}

@test "the long runs: each has its help, and gets its options" {
    local name

    for name in "$contrib"/check.d/long/*; do
        name=$(basename "$name")
        run -0 "$contrib/check" --long "$name" --help
        [[ ${lines[0]} == "contrib/check --long $name "* ]]
        run -2 --separate-stderr "$contrib/check" --long "$name" --nonsense
        [ "$stderr" = "check --long $name: unknown option \"--nonsense\" (try check --long $name --help)" ]
        "$contrib/check" --list | grep -qE "^$name +[0-9]+ "
    done
    run -0 check --long fuzz --seconds 7
    [ "$output" = 'fuzz --seconds 7' ]
}

@test "the help and the page of the tests say the same times" {
    local page=$T_TOP_SRCDIR/docs/testing.md

    sed -n '/^    PART /,/^$/{s/^    //;p}' "$page" > page
    "$contrib/check" --list | sed -n '/^PART /,/^$/p' > list
    [ -s page ]
    diff list page
    "$contrib/check" --list | sed -n '/^LONG RUN/,$p' > list
    sed -n '/^    LONG RUN/,/^$/{s/^    //;/./p}' "$page" > page
    diff list page
    quick=$("$contrib/check" --list | sed -n 's/^quick: contrib.check, \([0-9]* minutes\).*/\1/p')
    all=$("$contrib/check" --list | sed -n 's/.* contrib.check --all, \([0-9]* minutes\)\./\1/p')
    [ -n "$quick" ] && [ -n "$all" ]
    run -0 "$contrib/check" --help
    [[ $output == *"$quick"*"$all"* ]]
    grep -q "contrib/check .*$quick" "$T_TOP_SRCDIR/README.md"
    grep -q "contrib/check .*$quick" "$T_TOP_SRCDIR/HACKING.md"
    grep -q "contrib/check --all .*$all" "$T_TOP_SRCDIR/HACKING.md"
}

@test "a case of a test, by name: C program and bats" {
    # in two pieces: bats would take such a line for a test of this file
    printf '@%s\n' 'test "one (of two)" { true; }' 'test "one" { true; }' > t.bats
    T_CASE='one (of two)' run -0 "$T_TOP_SRCDIR/test/gtest-free-c/run-test" \
        "$T_TOP_BUILDDIR/test/gtest-free-c/t-env" "$PWD/t.bats"
    [ "${lines[0]}" = '1..1' ]
    printf '#!/bin/sh\necho "case $CK_RUN_CASE"\n' > t_c
    chmod +x t_c
    T_CASE='full queue' run -0 "$T_TOP_SRCDIR/test/gtest-free-c/run-test" \
        "$T_TOP_BUILDDIR/test/gtest-free-c/t-env" ./t_c
    [ "$output" = 'case full queue' ]
}
