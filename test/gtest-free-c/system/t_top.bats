#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri top: on a terminal that terminal.py plays, as a person sees it; and in lines.
# What is in the lines, t_top_table.c proves with figures that are made up.

bats_require_minimum_version 1.5.0
load tools.bash

# Every test has a /dev/shm of its own, or it would see the jobs of others. What is run
# in it has `inside` before it.
setup()
{
    tools_setup
    need_jq
    need_python
    command -v ucx_perftest >/dev/null || skip 'ucx_perftest is not installed'
    own_shm
    with=("${inside[@]}")
    export TERM=vt100
    unset LINES COLUMNS
}

teardown()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    [ ! -s first.pid ] || kill -KILL "$(cat first.pid)" 2>/dev/null || true
    end_job
    end_running
}

own_shm()
{
    local enter=(nsenter -m)

    place=(unshare -m)
    if [ "$(id -u)" -ne 0 ]; then
        place=(unshare -rm) enter=(nsenter -U --preserve-credentials -m)
    fi
    "${place[@]}" mount -t tmpfs tmpfs /dev/shm 2>mount.err ||
        skip "no /dev/shm of its own: $(head -n 1 mount.err)"
    start holder "${place[@]}" sh -c 'mount -t tmpfs tmpfs /dev/shm && : >ready &&
        exec sleep 1000'
    running+=("$pid")
    inside=("${enter[@]}" -t "$pid")
    wait_for 60 test -e ready
}

# terminal COLUMNSxLINES STEP... [-- OPTION...]: daqiri top there.
terminal()
{
    local steps=()

    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        steps+=("$1")
        shift
    done
    run timeout 300 /usr/bin/python3 "$T_TOP_SRCDIR/test/gtest-free-c/system/terminal.py" \
        "${steps[@]}" -- "${inside[@]}" "$T_DAQIRI" top --interval=100ms "${@:2}"
    printf '%s\n' "$output"
    [ "$status" -eq 0 ]
}

@test "80 by 24, without colours: an interface with its rates, and its connection" {
    start_job
    terminal 80x24 "see:^$job\.0 +softverbs0:1 +1 +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ +[0-9]+ +0 +0\$" \
        show:screen keys:q end:0
    grep -E '^daqiri top ..:..:.. on .*: 1 process, 1 interface, 1 connection$' screen
    grep -E '^every 0.1 s, by pid \(h: help, q: quit\); 1 up$' screen
    grep -E '^interface device +peers +sent/s received/s +Gb/s +waits/s lost recovered$' screen
    grep -E "^  $(hostname | cut -c 1-10).* $job up +[0-9]+/[0-9]+ +[0-9]+/[0-9]+ +([0-9]+|-) +0\$" screen
    [ "$(wc -l < screen)" -eq 24 ]
}

@test "a connection has a rate when its process has looked twice" {
    start_job
    terminal 80x24 "see: $job up .* [1-9][0-9]* +0\$" keys:q end:0
}

@test "the screen follows the size of the terminal, and says when it is too small" {
    start_job
    export TERM=xterm
    terminal 80x24 "see:^$job" 'not:open s' size:132x40 'see:open s' 'see:its QPN' \
        size:56x40 'see:^daqiri top needs 57 columns' size:57x40 "see:^$job" \
        size:80x7 'see:^are 80 and 7' size:80x8 "see:^$job" size:3x1 size:80x24 \
        "see:^$job" keys:q end:0 see:before
}

@test "keys: order, connections, help, and others that do nothing" {
    start_job
    terminal 80x24 'see:by pid' keys:s 'see:by rate' keys:s 'see:by waits' keys:s \
        'see:by lost' keys:s 'see:by pid' 'see:credits/window' keys:c \
        'not:credits/window' "see:^$job" 'keys:c' 'see:credits/window' \
        keys:h 'see:^h goes back' "not:^$job" 'keys:?' "see:^$job" \
        'keys:xyz\e[Z\e' keys:s 'see:by rate' keys:Q end:0
    terminal 80x24 'see:by waits' keys:h 'see:^h goes back' keys:q end:0 -- --sort=waits
}

# Copies of the job's file, which no process holds.
@test "more lines than the screen has: it scrolls" {
    start_job
    # shellcheck disable=SC2016
    "${inside[@]}" sh -c 'cd /dev/shm && for i in 1 2 3 4 5 6 7 8 9; do
        cp "daqiri-stats-$(id -u).$0.0" "daqiri-stats-$(id -u).$0.$i"; done' "$job"
    export TERM=xterm
    terminal 80x12 "see:^$job\.0" 'see:lines 1 to 8 of ' 'keys:\eOB' 'see:lines 2 to 9 of ' \
        "not:^$job\.0" 'keys:\eOA' 'see:lines 1 to 8 of ' 'keys:\e[6~' 'see:lines 8 to 15 of ' \
        'keys: ' 'see:lines 15 to 22 of ' 'keys:\e[5~' 'see:lines 8 to 15 of ' 'keys:\eOF' \
        "see:^$job\.9" 'see:the process was killed' 'see:interface device' 'keys:\eOH' \
        "see:^$job\.0" 'see:lines 1 to 8 of ' size:80x60 "see:^$job\.9" 'not:lines 1 to' \
        keys:q end:0
}

@test "Ctrl-C, SIGTERM and SIGHUP restore the terminal; status 0" {
    start_job
    export TERM=xterm
    terminal 80x24 "see:^$job" $'keys:\003' end:0 see:before
    terminal 80x24 "see:^$job" signal:TERM end:0 see:before
    terminal 80x24 "see:^$job" signal:HUP end:0 see:before
    terminal 80x24 "see:^$job" signal:TERM end:0 see:before -- --interval=1h
}

@test "a terminal that is closed ends it, also where no signal says so" {
    start_job
    terminal 80x24 "see:^$job" close end:0
    run timeout 300 /usr/bin/python3 "$T_TOP_SRCDIR/test/gtest-free-c/system/terminal.py" 80x24 \
        "see:^$job" close 'run:until [ -s gone ]; do sleep 0.05; done' -- \
        setsid -w sh -c '"$@" 2>err; echo $? >gone' sh "${inside[@]}" "$T_DAQIRI" top
    printf '%s\n' "$output"
    [ "$status" -eq 0 ]
    [ "$(cat gone)" -eq 1 ]
    grep -q '^daqiri top: the terminal has gone$' err
}

@test "no job: it says so and waits; jobs come, are killed, and go" {
    terminal 80x24 'see:^no process of user [0-9]+ runs daqiri with counters$' \
        'see:^Waiting for one.$' keys:q end:0
    cat > first <<END
#!/bin/bash
LD_PRELOAD=$T_SOFTVERBS:$T_PLUGIN ${inside[*]} ucx_perftest -l -x daqiri -d softverbs0:1 \
    -t am_lat -n 2000000000 -w 1 >/dev/null 2>&1 3>&- </dev/null &
echo \$! >first.pid
END
    terminal 80x24 see:^Waiting 'run:bash first' 'see:softverbs0:1' 'not:Waiting' \
        'run:kill -KILL $(cat first.pid)' 'see:the process was killed' \
        'run:bash first' 'not:the process was killed' 'see:softverbs0:1' \
        "run:kill -KILL \$(cat first.pid); ${inside[*]} sh -c 'rm /dev/shm/daqiri-stats*'" \
        see:^Waiting keys:q end:0
}

@test "jobs of another user are not shown, but to root who asks for them" {
    [ "$(id -u)" -eq 0 ] || skip 'only root can make files of another user'
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
    start_job
    "${inside[@]}" sh -c 'cp "/dev/shm/daqiri-stats-0.$0.0" "/dev/shm/daqiri-stats-65534.$0.0" &&
        chown 65534 "/dev/shm/daqiri-stats-65534.$0.0"' "$job"
    daqiri top --batch --count=1 --interval=100ms
    [ "$status" -eq 0 ]
    [ "$(grep -c "^$job" <<<"$output")" -eq 1 ]
    kill -KILL "$job"
    wait "$job" || true
    "${inside[@]}" rm "/dev/shm/daqiri-stats-0.$job.0"
    daqiri top --batch --count=1 --interval=100ms
    [ "$status" -eq 0 ]
    grep -q 'there are some of other users, as 65534 (--user)$' <<<"$output"
    daqiri top --batch --count=1 --interval=100ms --user=65534
    [ "$(grep -c "^$job" <<<"$output")" -eq 1 ]
    # the build tree may lie where nobody may look
    dir=$(mktemp -d)
    install -m 755 "$T_DAQIRI" "$dir/daqiri"
    chmod 755 "$dir"
    cd /
    run --separate-stderr timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$dir/daqiri" top --batch --user=root
    rm -r "$dir"
    refused 1 'daqiri top: --user 0: only root sees the counters of another user'
}

@test "lines: each time all of them, with rates; Ctrl-C ends it" {
    start_job
    daqiri top --batch --count=3 --interval=100ms
    [ "$status" -eq 0 ]
    [ "$(grep -c '^daqiri top ' <<<"$output")" -eq 3 ]
    [ "$(grep -c -E "^$job\.0 +softverbs0:1 +1 +[0-9]+ +[0-9]+ +[0-9.]+" <<<"$output")" -eq 3 ]
    [ "$(grep -c -E "^  .* $job up " <<<"$output")" -eq 3 ]
    [[ $output != *'q: quit'* ]]
    start lines "${inside[@]}" "$T_DAQIRI" top --batch --interval=100ms
    wait_for 60 grep -q "^$job" lines.out
    kill -INT "$pid"
    ended "$pid"
    [ "$ended" -eq 0 ]
    [ ! -s lines.err ]
}

@test "lines that cannot be written: a sentence, status 1" {
    run -1 sh -c 'exec "$0" top --batch --interval=100ms --count=1 2>&1 >/dev/full' "$T_DAQIRI"
    [ "$output" = 'daqiri top: the lines cannot be written: No space left on device' ]
}

# says_at_once TERM SENTENCE: on a terminal of this kind, which it leaves as it was.
says_at_once()
{
    TERM=$1 terminal 160x24 "see:^daqiri top: $2: --batch prints lines" end:1
}

@test "no terminal, or one that is not known: a sentence, status 1" {
    daqiri top </dev/null
    refused 1 "daqiri top: the output is no terminal: --batch prints lines, and so does 'daqiri stats --watch'"
    says_at_once no-such-terminal 'this host does not know the terminal no-such-terminal \(TERM\)'
    says_at_once dumb 'the terminal dumb \(TERM\) cannot move its cursor'
    says_at_once '' 'TERM does not say which terminal this is'
    run timeout 60 /usr/bin/python3 "$T_TOP_SRCDIR/test/gtest-free-c/system/terminal.py" 160x24 \
        'see:the input is no terminal' -- sh -c '"$0" top </dev/null' "$T_DAQIRI"
    [ "$status" -eq 0 ]
}

@test "no folder of counters: a sentence, status 1" {
    run --separate-stderr timeout 60 "${place[@]}" sh -c 'mount -t tmpfs tmpfs /dev &&
        exec "$0" top --batch' "$T_DAQIRI"
    [ "$status" -eq 1 ]
    [ "$stderr" = 'daqiri top: /dev/shm: No such file or directory' ]
}

@test "mistakes: a sentence and status 2" {
    daqiri top x
    refused 2 "daqiri top: "
    daqiri top --interval=50ms
    refused 2 '--interval 50ms: it is 100ms at least'
    daqiri top --count=0
    refused 2 '--count 0: it is a number'
    daqiri top --sort=size
    refused 2 '--sort size: it is one of pid, rate, waits, lost'
    daqiri top --user=nobody-has-this-name
    refused 2 '--user nobody-has-this-name: there is no such user'
}
