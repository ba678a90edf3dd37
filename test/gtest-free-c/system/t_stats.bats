#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri stats: the counters of a program that runs, was killed, has ended; and
# files that are no counters, or spoiled ones.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    need_jq
    command -v ucx_perftest >/dev/null || skip 'ucx_perftest is not installed'
    made=()
}

teardown()
{
    end_job
    [ ${#made[@]} -eq 0 ] || rm -f "${made[@]}"
}

# value NAME: of the only interface in the output.
value()
{
    jq ".interfaces[0].values[] | select(.name == \"$1\") | .value" <<<"$output"
}

# copy SERIAL: the job's file under a pid that nobody has, in $file. Locked, as
# a live one is: daqiri elsewhere would remove it.
copy()
{
    false_pid=$((2147000000 + $$))
    file=/dev/shm/daqiri-stats-$(id -u).$false_pid.$1
    made+=("$file")
    exec 9> "$file"
    flock -x 9
    cat "/dev/shm/daqiri-stats-$(id -u).$job.0" >&9
}

@test "a process that runs: what it has sent it has received, and the ledger adds up" {
    start_job
    daqiri stats "$job" --all --json
    [ "$status" -eq 0 ]
    valid stats
    has ".interfaces | length == 1"
    has ".interfaces[0] | .pid == $job and .alive and .device == \"softverbs0\" and .port == 1 and .notes == []"
    has '.interfaces[0].peers | map(select(.state == "up")) | length == 1'
    has '.interfaces[0].age_s > 0 and .interfaces[0].looked_s_ago < .interfaces[0].age_s + 1'
    [ "$(value am_rx)" -gt 100 ]
    [ "$(value rx_overcommit)" -eq 0 ]
    [ "$(value qp_failures)" -eq 0 ]
}

@test "watching: counters grow, rates are what they grow by" {
    start_job
    daqiri stats "$job" --watch=200ms --count 20 --json
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 20 ]
    for i in "${!lines[@]}"; do
        printf '%s\n' "${lines[i]}" > "$i.json"
        valid stats "$i.json"
    done
    jq -e '[.interfaces[0].values[] | .per_s] | all(. == null)' 0.json
    # on a busy machine it may stand still for a while, which is a rate, too
    printf '%s\n' "${lines[@]}" | jq -s -e '
        map({t: .time_s} + (.interfaces[0].values[] | select(.name == "am_rx"))) |
        (.[19].value > .[0].value) and
        ([.[:-1], .[1:]] | transpose | all(
            ((.[1].value - .[0].value) / (.[1].t - .[0].t)) as $rate |
            (.[1].per_s >= 0.8 * $rate) and (.[1].per_s <= 1.25 * $rate)))'
}

@test "watching ends with the process, and with Ctrl-C; both with 0" {
    start_job
    start watch "$T_DAQIRI" stats "$job" --watch=50ms --csv
    watcher=$pid
    wait_for 60 sh -c '[ "$(wc -l < watch.out)" -gt 30 ]'
    kill -INT "$watcher"
    ended "$watcher"
    [ "$ended" -eq 0 ]
    [ "$(grep -c '^time_s,pid,serial,name,kind,value,per_s$' watch.out)" -eq 1 ]
    grep -q -E "^[0-9.e-]+,$job,0,am_rx,counter,[0-9]+,[0-9.]+\$" watch.out

    start watch "$T_DAQIRI" stats "$job" --watch=50ms --csv
    watcher=$pid
    wait_for 60 sh -c '[ "$(wc -l < watch.out)" -gt 30 ]'
    kill -KILL "$job"
    ended "$job"
    rm -f "/dev/shm/daqiri-stats-$(id -u).$job.0"
    ended "$watcher"
    [ "$ended" -eq 0 ]
}

@test "all processes: a line each; the table of one" {
    start_job
    daqiri stats
    [ "$status" -eq 0 ]
    grep -q -E "^ *$job +0 +softverbs0 +yes " <<<"$output"
    daqiri stats "$job"
    [ "$status" -eq 0 ]
    [[ $output == *"process         $job"*'am_rx'*'counter'*'Peers'* ]]
}

@test "a process that was killed: its counters are there, and it is not alive" {
    start_job
    # Read before others clean up: it has the file open as it dies.
    start watch "$T_DAQIRI" stats "$job" --watch=20ms --json
    watcher=$pid
    wait_for 60 test -s watch.out
    kill -KILL "$job"
    wait "$job" || true
    wait_for 60 dead_or_gone
    kill -INT "$watcher" 2>/dev/null || true
    ended "$watcher"
    [ "$ended" -eq 0 ]
    head -n 1 watch.out > first.json
    holds first.json '.interfaces[0].alive'
}

# The last report says that it is not alive, or somebody has removed the file.
dead_or_gone()
{
    tail -n 1 watch.out | is_so '.interfaces[0].alive == false' || ! kill -0 "$watcher" 2>/dev/null
}

@test "a process without counters: a sentence, status 1" {
    daqiri stats "$((2147100000 + $$))"
    refused 1 "process $((2147100000 + $$)) has no counters"
}

@test "a process of another user: a sentence, status 1" {
    [ "$(id -u)" -eq 0 ] || skip 'only root can become another user'
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
    start_job
    # the build tree may lie where nobody may look
    dir=$(mktemp -d)
    made+=("$dir/daqiri")
    install -m 755 "$T_DAQIRI" "$dir/daqiri"
    chmod 755 "$dir"
    cd /
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    run --separate-stderr timeout 60 "${as_nobody[@]}" "$dir/daqiri" stats "$job" --watch
    refused 1 "they are another user's"
    run --separate-stderr timeout 60 "${as_nobody[@]}" "$dir/daqiri" stats "$job" --user root
    refused 1 "--user 0: only root sees the counters of another user"
    cd "$BATS_TEST_TMPDIR"
    rm -r "$dir"
}

# foreign: as copy, but the file and its name are another user's.
foreign()
{
    [ "$(id -u)" -eq 0 ] || skip 'only root can make files of another user'
    false_pid=$((2147000000 + $$))
    file=/dev/shm/daqiri-stats-65534.$false_pid.0
    made+=("$file")
    cat "/dev/shm/daqiri-stats-0.$job.0" > "$file"
    chown 65534 "$file"
}

@test "files of other users are shown to root, and only when he asks for that user's" {
    start_job
    foreign
    daqiri stats --json
    [ "$status" -eq 0 ]
    has ".interfaces | map(.pid) | (index($job) != null) and (index($false_pid) == null)"
    daqiri stats "$false_pid"
    refused 1 "process $false_pid has counters, but they are another user's: root sees them with --user 65534"
    daqiri stats "$false_pid" --user 65534 --json
    [ "$status" -eq 0 ]
    has ".interfaces | map(.pid) == [$false_pid]"
    daqiri stats "$false_pid" --user="$(id -un 65534)" --json
    has ".interfaces | map(.pid) == [$false_pid]"
    daqiri stats "$job" --user 65534
    refused 1 "process $job has counters, but they are another user's: root sees them with --user 0"
}

@test "a file whose name is ours and whose owner is not is not believed" {
    start_job
    foreign
    mv "$file" "/dev/shm/daqiri-stats-0.$false_pid.0"
    made+=("/dev/shm/daqiri-stats-0.$false_pid.0")
    daqiri stats "$false_pid"
    refused 1 "process $false_pid has no counters"
    daqiri stats "$false_pid" --user 65534
    refused 1 "process $false_pid has no counters"
}

# The output has none for a terminal, in ASCII, UTF-8 or JSON's spelling.
no_commands()
{
    if LC_ALL=C grep -a -P '[\x00-\x08\x0b-\x1f\x7f]|\\u00|\xc2\x9b' <<<"$output"; then
        return 1
    fi
}

@test "commands to the terminal in a file do not reach it" {
    start_job
    copy 0
    # of the host, the device and the first value's name
    for at in 72 136 256; do
        printf '\033]0;own\007\302\233\177' | dd of="$file" bs=1 seek=$at conv=notrunc status=none
    done
    for format in '' --json --csv; do
        daqiri stats "$false_pid" --all $format
        [ "$status" -eq 0 ]
        [[ $output == *'?]0;own?'* ]]
        no_commands
    done
    daqiri stats
    no_commands
}

@test "a file that is cut while it is watched, and another in its place" {
    start_job
    copy 0
    cat "$file" > whole
    start watch "$T_DAQIRI" stats "$false_pid" --watch=20ms --json
    watcher=$pid
    wait_for 60 test -s watch.out
    kill -STOP "$watcher"
    cat whole > "$file.new"
    mv "$file.new" "$file"
    truncate -s 0 /dev/fd/9
    before=$(wc -l < watch.out)
    kill -CONT "$watcher"
    wait_for 60 sh -c "[ \$(wc -l < watch.out) -gt $((before + 3)) ]"
    truncate -s 300 "$file"
    ended "$watcher"
    [ "$ended" -eq 0 ]
}

@test "what is no file of counters, or of another version: a sentence" {
    start_job
    copy 0
    printf 'nonsense' > "$file"
    daqiri stats "$false_pid"
    refused 1 'there are counters, but they cannot be read'
    : > "$file"
    daqiri stats "$false_pid"
    refused 1 'there are counters, but they cannot be read'
    cat "/dev/shm/daqiri-stats-$(id -u).$job.0" > "$file"
    printf '\002' | dd of="$file" bs=1 seek=8 conv=notrunc status=none
    daqiri stats "$false_pid"
    refused 1 'there are counters, but they cannot be read'
}

@test "spoiled files: an answer or a sentence, never a crash" {
    local size good=0

    start_job
    copy 0
    cat "/dev/shm/daqiri-stats-$(id -u).$job.0" > whole
    size=$(stat -c %s whole)
    RANDOM=7
    for i in $(seq 60); do
        cat whole > "$file"
        for j in 1 2 3; do
            # the first quarter has the header and the names
            printf "\\x$(printf %02x $((RANDOM % 256)))" |
                dd of="$file" bs=1 seek=$((RANDOM % (size / (1 + j % 2 * 3)))) conv=notrunc status=none
        done
        [ $((i % 4)) -ne 0 ] || truncate -s $((RANDOM % size)) "$file"
        run --separate-stderr timeout 60 "$T_DAQIRI" stats "$false_pid" --all --json
        [ "$status" -le 1 ] || { cp "$file" spoiled; echo "round $i: $status"; false; }
        if [ "$status" -eq 0 ]; then
            has '.interfaces[0].values | length > 10'
            good=$((good + 1))
        fi
    done
    [ "$good" -gt 5 ]
    [ "$good" -lt 60 ]
}

@test "mistakes: a sentence and status 2" {
    daqiri stats 0
    refused 2 "'0' is no process: it is a number"
    daqiri stats x
    refused 2 "'x' is no process: it is a number"
    daqiri stats 1 2
    refused 2 'one process, or none for all'
    daqiri stats --watch=0
    refused 2 '--watch 0: it is a time'
    daqiri stats --count 2
    refused 2 '--count is for --watch'
    daqiri stats --watch --count 0
    refused 2 '--count 0: it is a number'
    daqiri stats --json --csv
    refused 2 '--json and --csv exclude each other'
    daqiri stats --user nobody-has-this-name
    refused 2 '--user nobody-has-this-name: there is no such user'
    daqiri stats --user 4294967296
    refused 2 '--user 4294967296: there is no such user'
}
