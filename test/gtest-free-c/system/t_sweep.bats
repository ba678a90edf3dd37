#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri sweep and daqiri drop-curve: which runs they make, what they say of what
# is wrong, pictures. How fast anything is, no test looks at; the verdicts are
# proven by t_verdict with figures that are made up.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    need_jq
    # A busy machine may slow a run down to nothing: no test is about that, nor
    # about the verdict "rate".
    calm=(--device soft --duration 10ms --collapse 1 --rate 100)
}

teardown()
{
    [ -z "${pid:-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

# All rows have arrived complete, and this is true of the report.
good()
{
    [ "$status" -eq 0 ] || [[ $output == *'"collapse": '[1-9]* ]]
    has '[.rows[] | .runs[] | .ok and .sent == .received and .sent > 1 and .disorder == 0 and .gbps > 0 and .messages_per_s > 0 and .error == null] | length > 0 and all'
    has '.interrupted == false and .verdict.missing == 0 and .verdict.drops == 0'
    has "$1"
}

@test "sweep: each transport, pattern and size; the counters of daqiri" {
    daqiri sweep "${calm[@]}" --transports daqiri,rc_verbs,verbs,tcp \
        --patterns stream,pingpong --sizes 64K,64 --repeats 1 --json
    valid sweep
    good '.rows | length == 16'
    has '[.rows[] | [.transport, .pattern, .size]] | unique | length == 16'
    has '[.rows[].size] == [range(8) | 64, 65536]'
    has '[.rows[] | select(.pattern == "pingpong") | .round_trip | .min_us > 0 and .min_us <= .p50_us and .p50_us <= .p90_us and .p90_us <= .p99_us and .p99_us <= .p999_us and .p999_us <= .max_us] | length == 8 and all'
    has '[.rows[] | select(.pattern == "stream") | .round_trip == null] | all'
    has '[.rows[] | select(.transport == "daqiri") | .runs[].counters | .tx.am_tx_bytes > 0 and .rx.am_tx_bytes > 0] | length == 4 and all'
    has '[.rows[] | .device == (if .transport == "tcp" then null else "softverbs0:1" end)] | all'
}

@test "sweep: both ways, repeats, windows" {
    daqiri sweep "${calm[@]}" --transports verbs,tcp --patterns duplex,pingpong \
        --sizes 4K --windows 1,9 --repeats 2 --json
    valid sweep
    good '[.rows[] | [.transport, .pattern, .window]] == [["verbs", "duplex", 1], ["verbs", "duplex", 9], ["verbs", "pingpong", 1], ["tcp", "duplex", 1], ["tcp", "duplex", 9], ["tcp", "pingpong", 1]]'
    has '[.rows[] | .runs_ok == 2 and .least_gbps <= .gbps and .gbps <= .most_gbps] | all'
    has '.runs == 12 and .runs_planned == 12 and .repeats == 2'
}

@test "sweep: table and CSV" {
    daqiri sweep "${calm[@]}" --transports tcp --patterns pingpong --sizes 1M --repeats 1
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == 'transport  pattern '*'p50 us'*'p99.9'*'verdict'* ]]
    [[ ${lines[1]} == 'tcp        pingpong  1 MiB '*' ok'* ]]
    [[ $output == *'rows with runs missing          '*'0'* ]]
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 1M --repeats 1 --csv
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == transport,device,pattern,size,window,* ]]
    [[ ${lines[1]} == tcp,,stream,1048576,64,1,* ]]
}

@test "--interval: a line for each under the head of its run; an array in JSON, all of them are the whole" {
    daqiri sweep --device soft --transports tcp --patterns stream,pingpong --sizes 4K --repeats 2 --duration 500ms --interval 100ms
    [ "$(grep -c -E '^tcp, (stream|pingpong), 4 KiB, run [12] of 2$' <<<"$output")" -eq 4 ]
    [[ ${lines[0]} == 'tcp, stream, 4 KiB, run 1 of 2' ]]
    [[ ${lines[1]} =~ ^\ +0\.00\ to\ +0\.[0-9]+\ s\ +[0-9]+\ messages/s\ +[0-9.]+\ Gb/s$ ]]
    daqiri drop-curve "${calm[@]}" --duration 400ms --transports daqiri,verbs,tcp --sizes 4K --repeats 1 --targets 50 --interval 100ms --json
    valid drop-curve
    has '[.rows[].runs[] | (.intervals | length >= 2) and ([.intervals[].messages] | add) == .received] | length == 6 and all'
    daqiri sweep "${calm[@]}" --duration 300ms --transports daqiri --patterns duplex --sizes 64 --repeats 1 --interval 100ms --json
    has '.rows[0].runs[0] | ([.intervals[].messages] | add) == .received'
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 64 --repeats 1 --json
    has '.rows[0].runs[0].intervals == null'
    daqiri sweep --interval 99ms
    refused 2 '--interval 99ms: it is 100ms at least'
}

@test "--columns: those of the table and of the CSV, in that order; a sentence before it takes minutes" {
    local brief=("${calm[@]}" --transports tcp --patterns stream --sizes 1M --repeats 1)

    daqiri sweep "${brief[@]}" --columns verdict,size
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} =~ ^verdict\ +size$ && ${lines[1]} =~ ^ok\ +1\ MiB$ ]]
    daqiri sweep "${brief[@]}" --csv --columns size,transport
    [ "$output" = $'size,transport\n1048576,tcp' ]
    daqiri sweep "${brief[@]}" --duration 1h --columns size,nonsense
    refused 2 'daqiri sweep: --columns nonsense: there is no such column; there are: transport,'
}

@test "a table fits the terminal: what is long goes on in the next line" {
    local width

    command -v script >/dev/null || skip 'script is not installed'
    for width in 70 100; do
        run timeout 60 script -qec "stty cols $width; '$T_DAQIRI' probe --device soft --no-ucx --columns name,detail 2>err" /dev/null
        echo "$output"
        [ "$status" -eq 0 ]
        run -1 grep -E "^.{$((width + 1)),}" <<<"${output//$'\r'/}"
    done
    # a line ends between words, unless one word is longer than the column
    run timeout 60 script -qec "stty cols 40; '$T_DAQIRI' probe --device soft --no-ucx --columns name,detail 2>err" /dev/null
    echo "$output"
    text=${output//$'\r'/}
    run -1 grep -E '^.{41,}' <<<"$text"
    grep -q -E '^device +firmware [0-9.]+, 1 ports,$' <<<"$text"
    grep -q -E '^ +claims [0-9]+ QPs, [0-9]+ CQs,$' <<<"$text"
    whole=$(timeout 60 "$T_DAQIRI" probe --device soft --no-ucx --columns name,detail | grep '^uc ')
    [ "$(awk '/^uc /{ p = 1; $1 = $1; printf "%s", $0; next } p && /^ /{ $1 = $1; printf " %s", $0; next } { p = 0 }' <<<"$text")" = \
        "$(awk '{ $1 = $1; print }' <<<"$whole")" ]
    # no terminal, no width
    daqiri probe --device soft --no-ucx --columns name,detail
    grep -q -E '^.{101,}' <<<"$output"
}

@test "sweep: a transport that nobody has named and that is not there is missing, the others are measured" {
    with=(UCX_MODULES=cma) # not ib
    daqiri sweep "${calm[@]}" --patterns stream --sizes 64 --repeats 1 --json
    [ "$status" -eq 1 ]
    valid sweep
    has '.rows[1].transport == "rc_verbs" and .rows[1].verdict == "missing" and .rows[1].runs_ok == 0 and .rows[1].gbps == null'
    has '.rows[1].why | contains("there is no transport rc_verbs on softverbs0:1")'
    has '[.rows[0, 2, 3].verdict] | all(. == "ok")'
    has '.verdict.missing == 1 and .verdict.ok == false'
}

@test "sweep: a transport that fails is missing, the others are measured" {
    daqiri sweep "${calm[@]}" --transports uct:cma,tcp --patterns stream --sizes 64 --repeats 1 --json
    [ "$status" -eq 1 ]
    has '.rows[0].verdict == "missing" and (.rows[0].why | contains("the transport has no active messages"))'
    has '.rows[1].verdict == "ok" and .verdict.missing == 1'
}

@test "a device or a transport that is none: a sentence, status 2, nothing is measured" {
    local command

    for command in sweep drop-curve; do
        daqiri "$command" --device mlx5_77 --json
        refused 2 "daqiri $command: there is no device 'mlx5_77'; there are: soft"
        daqiri "$command" --device mlx5_77 --transports tcp
        refused 2 "daqiri $command: there is no device 'mlx5_77'; there are: soft"
        daqiri "$command" --device soft --transports tcp,daqri,rc_verbs --json
        refused 2 "daqiri $command: there is no transport 'daqri'; there are: verbs, verbs_uc, tcp, "
        [[ $stderr == *', uct:tcp,'*', daqiri'*', rc_verbs'* ]]
        daqiri "$command" --device soft --transports uct:verbs
        refused 2 "daqiri $command: there is no transport 'uct:verbs'"
    done
    with=(FAKE_VERBS='mlx5_0=active' LD_PRELOAD="$shims/fake_verbs.so")
    daqiri sweep --device mlx5_o
    refused 2 "daqiri sweep: there is no device 'mlx5_o'; there are: mlx5_0, soft"
}

@test "UCX's transports of any kind: each takes a device that it has" {
    daqiri sweep "${calm[@]}" --transports uct:tcp,uct:posix,uct:daqiri --patterns stream,pingpong --sizes 64,64K --repeats 1 --json
    valid sweep
    good '.rows | length == 12'
    has '[.rows[].device] | unique | length == 3 and contains(["softverbs0:1"]) and contains(["memory"])'
    with=(UCX_NET_DEVICES=nowhere0)
    daqiri sweep "${calm[@]}" --transports uct:tcp --patterns stream --sizes 64 --repeats 1 --json
    [ "$status" -eq 1 ]
    has '.rows[0].why | contains("there is no transport tcp on nowhere0")'
    with=(UCX_NET_DEVICES=nowhere0,lo)
    daqiri sweep "${calm[@]}" --transports uct:tcp --patterns stream --sizes 64 --repeats 1 --json
    good '.rows[0].device == "lo"'
}

@test "drop-curve: targets are parts of the maximum; the bucket sends what it says" {
    daqiri drop-curve "${calm[@]}" --transports tcp --sizes 64K --targets 10,50 --repeats 2 --json
    valid drop-curve
    good '[.rows[].target_percent] == [null, 10, 50]'
    has '.rows[0].target_gbps == null and .rows[0].deviation_percent == null and .pace_percent == 1'
    has '.rows[0].gbps as $max | [.rows[1:][] | .target_gbps / $max * 100 - .target_percent | fabs < 1e-6] | all'
    has '[.rows[1:][] | .deviation_percent != null and .drops == 0] | all'
    # 0.001 Gb/s for 0.1 s are 12500 bytes: messages 0 to 125 are due by then
    daqiri drop-curve --device soft --duration 100ms --collapse 1 --sizes 100 --gbps 0.001 --pace 2.5 --repeats 1 --json
    valid drop-curve
    has '.pace_percent == 2.5'
    good '.rows | length == 2'
    has '.rows[1] | .target_gbps == 0.001 and .target_percent == null and .runs[0].sent == 126'
}

@test "drop-curve: table and CSV" {
    daqiri drop-curve "${calm[@]}" --transports tcp --sizes 1K --gbps 0.01 --repeats 1
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == 'transport '*'size '*'achieved'*'deviation %'*'drops'*'verdict'* ]]
    daqiri drop-curve "${calm[@]}" --transports tcp --sizes 1K --gbps 0.01 --repeats 1 --csv
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == transport,device,size,window,target_percent,target_gbps,* ]]
    [[ ${lines[1]} == tcp,,1024,64,,,1,* ]]
    [[ ${lines[2]} == tcp,,1024,64,,0.01,1,* ]]
}

@test "drop-curve: no targets, and a pace that cannot be kept" {
    daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --json
    good '.rows | length == 1'
    daqiri drop-curve "${calm[@]}" --transports tcp --sizes 1K --gbps 100000 --repeats 1
    [ "$status" -eq 0 ] # it is above the maximum: no verdict on it
    daqiri drop-curve "${calm[@]}" --transports uct:cma --sizes 1K --targets 50 --repeats 1 --json
    [ "$status" -eq 1 ]
    valid drop-curve
    has '.verdict.missing == 2 and .rows[1].why == "there is no maximum that it could be a part of"'
}

@test "with --strict any verdict but ok is a failure" {
    daqiri drop-curve "${calm[@]}" --transports tcp --sizes 8 --targets 50 --repeats 1 --strict --json
    [ "$status" -eq "$(jq 'if .verdict.ok then 0 else 1 end' <<<"$output")" ]
}

# Its own process of the first run catches SIGINT by now. timeout is its parent.
flow_listens()
{
    local flow caught

    flow=$(pgrep -P "$(pgrep -P "$pid" | head -n 1)" | head -n 1)
    [[ $(readlink "/proc/$flow/exe") == */daqiri-flow ]] || return 1
    caught=$(sed -n 's/^SigCgt:\t//p' "/proc/$flow/status")
    [ $((0x${caught:-0} & 2)) -ne 0 ]
}

@test "Ctrl-C ends it, and what was measured is reported" {
    local ended

    # It passes a signal on twice: to its child, and to the group that its child is in. Two
    # of a kind may become one on their way, those of two kinds do not.
    start cut timeout 100 "$T_DAQIRI" sweep --device soft --duration 60s --repeats 1 \
        --transports tcp --patterns stream --sizes 64,1M --json
    wait_for 60 flow_listens
    kill -INT "$pid"
    kill -TERM "$pid"
    ended "$pid"
    pid=
    cat cut.err
    [ "$ended" -eq 1 ]
    valid sweep cut.out
    holds cut.out '.interrupted and .runs == 1 and .runs_planned == 2 and .verdict.ok == false'
    holds cut.out '.rows[0].verdict == "ok" and .rows[0].runs[0].sent > 1 and .rows[1].verdict == "not measured"'
    grep -q 'daqiri sweep: interrupted: 1 of 2 runs were made' cut.err
}

@test "Ctrl-C: the table has the rows that were measured, and no others" {
    local ended

    start cut timeout 100 "$T_DAQIRI" sweep --device soft --duration 60s --repeats 1 \
        --transports tcp --patterns stream --sizes 64,1M
    wait_for 60 flow_listens
    kill -INT "$pid"
    ended "$pid"
    pid=
    cat cut.out cut.err
    [ "$ended" -eq 1 ]
    [ "$(grep -c '^tcp ' cut.out)" -eq 1 ]
    grep -q -E '^tcp +stream +64 B ' cut.out
    run -1 grep 'not measured' cut.out
}

@test "--verbose: each run, and what explains it" {
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 64,1M --repeats 2 --verbose
    [ "$status" -eq 0 ]
    sed -n '/^Runs$/,$p' <<<"$output" >runs
    [ "$(grep -c '^tcp ' runs)" -eq 4 ]
    sed -n 2p runs | grep -E '^transport .* run .* Gb/s .* messages/s '
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 64 --repeats 2
    run -1 grep '^Runs$' <<<"$output"
    # a peer that is not there: its sentence comes first, and is the error of the run
    run timeout 60 "$T_DAQIRI" sweep "${calm[@]}" --addr 127.0.0.1:1 --transports tcp --patterns stream --sizes 64 --repeats 1 --verbose
    echo "$output"
    [[ ${lines[0]} == 'daqiri sweep: this machine: '* ]]
    [[ ${lines[1]} == 'daqiri sweep: cannot connect to 127.0.0.1:1: '* ]]
    [[ ${lines[-1]} == *'cannot connect to 127.0.0.1:1: Connection refused' ]]
}

# svg FILE, png FILE: it is one, complete.
svg()
{
    head -n 1 "$1" | grep -q '^<?xml'
    [ "$(grep -v '^$' "$1" | tail -n 1)" = '</svg>' ]
}

png()
{
    [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ]
    tail -c 8 "$1" | head -c 4 | grep -q IEND
}

# times FILE COUNT TEXT: it is there so often.
times()
{
    [ "$(grep -c -F -- "$3" "$1")" -eq "$2" ] || { echo "not $2 times: $3"; false; }
}

@test "pictures: the command draws its rows" {
    command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
    daqiri sweep "${calm[@]}" --transports tcp,verbs --sizes 64,4K,256K --repeats 1 --plot sweep.svg --columns size
    svg sweep.svg
    times sweep.svg 1 "<title>daqiri sweep of softverbs0:1 on host $(uname -n)</title>"
    grep -q -E '>[0-9-]{10} [0-9:]{5} UTC, one run of 0.01 s<' sweep.svg
    times sweep.svg 3 '>4 K<'
    times sweep.svg 3 '>256 K<'
    for text in messages/s Gb/s 'round trip, us' 'bytes of a message' tcp verbs stream 'round trip, 99 %'; do
        times sweep.svg 1 ">$text<"
    done
    daqiri drop-curve "${calm[@]}" --transports tcp --targets 10,50 --repeats 2 --plot curve.svg
    svg curve.svg
    times curve.svg 1 "<title>daqiri drop-curve on host $(uname -n): no message was lost</title>"
    grep -q -E ' UTC, 2 runs of 0.01 s: the median, and a bar from the least to the most<' curve.svg
    for text in 'reached, % of the pace' 'CPU of sender, %' 'pace to be kept, Gb/s' 'tcp, 64 K' 'without a pace'; do
        times curve.svg 1 ">$text<"
    done
    daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --plot "it's one.png" --json
    png "it's one.png"
    run -1 grep part <(ls -A)
}

# rows SIZE...: of a made-up sweep over X.
rows()
{
    local size

    echo transport,device,pattern,size,window,messages_per_s,gbps,least_gbps,most_gbps,round_trip.p50_us,round_trip.least_p50_us,round_trip.most_p50_us,round_trip.p99_us,verdict,why,host,date,duration_s,repeats
    for size in "$@"; do
        echo "x,mlx5_0:1,stream,$size,16,1000000,4,2,8,,,,,noisy,\"1, 2\",node1,2026-11-27T10:20:33Z,0.3,3"
        echo "x,mlx5_0:1,stream,$size,64,2000000,5,5,5,,,,,ok,,node1,2026-11-27T10:20:33Z,0.3,3"
        echo "x,mlx5_0:1,pingpong,$size,1,,,,,3,3,3,4,missing,it broke,node1,2026-11-27T10:20:33Z,0.3,3"
    done
}

@test "pictures: a script reads the CSV by hand; ticks where sizes are, and no crowd of them" {
    local script=$T_TOP_SRCDIR/src/tools/cells/sweep.gp

    command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
    rows 8 16 32 64 65 100 128 256 512 1024 2048 4096 8192 16384 32768 65536 131072 262144 524288 1048576 >"it's"
    run -0 gnuplot -c "$script" "it's" "my o'svg.svg"
    [ -z "$output" ]
    svg "my o'svg.svg"
    times "my o'svg.svg" 1 '<title>daqiri sweep of mlx5_0:1 on host node1</title>'
    times "my o'svg.svg" 1 '>2026-11-27 10:20 UTC, 3 runs of 0.3 s: the median, and a bar from the least to the most<'
    for text in '>64<' '>1 K<' '>64 K<' '>1 M<'; do
        times "my o'svg.svg" 2 "$text" # no round trip has a figure
    done
    times "my o'svg.svg" 0 '>65<'
    for text in 'stream, window 16' 'stream, window 64'; do
        times "my o'svg.svg" 1 ">$text<"
    done
    times "my o'svg.svg" 0 'round trip'
    rows 100 >one
    run -0 gnuplot -c "$script" one one.png
    png one.png
    rows >none
    run -1 gnuplot -c "$script" none none.svg
    [[ $output == *'no row has a figure'* ]]
    cut -d , -f 2- one >less
    run -1 gnuplot -c "$script" less less.svg
    [[ $output == *'less has no column transport'* ]]
    run -1 gnuplot -c "$script" one
    [[ $output == *'usage: gnuplot -c sweep.gp ROWS.csv PICTURE.svg (or .png)'* ]]
    [ ! -e none.svg ] && [ ! -e less.svg ]
}

@test "pictures: lost messages have a panel; a pace is a part of what was to be kept" {
    local script=$T_TOP_SRCDIR/src/tools/cells/drop-curve.gp

    command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
    echo transport,device,size,window,target_percent,target_gbps,runs_ok,messages_per_s,gbps,least_gbps,most_gbps,deviation_percent,drops,cpu_tx_percent,cpu_rx_percent,verdict,why,host,date,duration_s,repeats >rows
    for pace in '' 4 2; do
        echo "x,,64,16,,$pace,3,1,${pace:-8},1,${pace:-9},,0,99,98,ok,,node1,2026-11-27T10:20:33Z,0.3,3" >>rows
    done
    run -0 gnuplot -c "$script" rows kept.svg
    [ -z "$output" ]
    times kept.svg 1 '<title>daqiri drop-curve on host node1: no message was lost</title>'
    times kept.svg 0 '>messages lost<'
    times kept.svg 1 '> 30<' # the least run had 1 of 4 Gb/s
    sed '$s/,,0,99/,,7,99/' rows >lost
    run -0 gnuplot -c "$script" lost lost.svg
    times lost.svg 1 '<title>daqiri drop-curve on host node1: 7 messages were lost</title>'
    times lost.svg 1 '>messages lost<'
    sed 2q rows >without
    run -0 gnuplot -c "$script" without without.svg
    [ -z "$output" ]
    times without.svg 1 '>without a pace, Gb/s<'
}

@test "a picture that cannot be made gets a sentence, before anything is measured" {
    mkdir empty
    # env would look for daqiri in there, too
    run --separate-stderr -1 /usr/bin/env PATH="$PWD/empty" "$T_DAQIRI" sweep --plot x.svg
    [[ $stderr == *'--plot needs gnuplot, which is not there (on Debian: apt-get install gnuplot-nox)'* ]]
    [ -z "$output" ]
    [ ! -e x.svg ]
    daqiri drop-curve --plot /nowhere/x.svg
    refused 1 '/nowhere/x.svg cannot be written: No such file or directory'
    # a gnuplot that fails: the last line says why
    printf '#!/bin/sh\necho "a warning" >&2\necho "it is broken" >&2\necho >&2\nexit 3\n' > empty/gnuplot
    chmod +x empty/gnuplot
    with=(PATH="$PWD/empty:$PATH")
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 64 --repeats 1 --plot x.svg
    [ "$status" -eq 1 ]
    says 'x.svg cannot be drawn: it is broken'
    run -1 grep 'x\.svg' <(ls -A)
    # no script
    cp "$T_DAQIRI" elsewhere
    run --separate-stderr -1 ./elsewhere sweep --plot x.svg
    says 'sweep.gp was not found in '
    # nothing to be drawn
    daqiri sweep "${calm[@]}" --transports uct:cma --patterns stream --sizes 64 --repeats 1 --plot x.svg
    [ "$status" -eq 1 ]
    says 'there is nothing that could be drawn'
}

# Until process $1, which runs daqiri, ends: has all that daqiri has started stand
# still, 30 ms of 100. It starts nothing itself, and goes before all else, for a run of
# 300 ms must not escape it on a busy machine.
stand_still()
{
    local nap list more i

    exec {nap}<> <(:)
    while [ -d "/proc/$1" ]; do
        read -r -a list <"/proc/$1/task/$1/children"
        for ((i = 0; i < ${#list[@]}; i++)); do
            read -r -a more <"/proc/${list[i]}/task/${list[i]}/children"
            list+=("${more[@]}")
        done
        list=("${list[@]:1}")
        [ "${#list[@]}" -eq 0 ] || kill -STOP "${list[@]}"
        read -r -t 0.03 -u "$nap"
        [ "${#list[@]}" -eq 0 ] || kill -CONT "${list[@]}"
        read -r -t 0.07 -u "$nap"
    done 2>/dev/null
    return 0
}

@test "a run in which the ends stand still is made again, but not for ever" {
    chrt --fifo 1 true 2>/dev/null || skip 'SCHED_FIFO is not permitted'
    [ -e "/proc/$$/task/$$/children" ] || skip 'the kernel does not tell the children of a process'
    timeout 100 "$T_DAQIRI" drop-curve --device soft --duration 300ms --collapse 1 \
        --transports tcp --targets none --repeats 1 --stalled 1 --json >out 2>err &
    pid=$!
    chrt --fifo 2 bash -c "$(declare -f stand_still); stand_still $pid"
    status=0
    wait "$pid" || status=$?
    pid=
    output=$(cat out)
    cat out err
    [ "$status" -eq 0 ]
    valid drop-curve
    has '.verdict.again == 8 and .runs == 1 and .stalled_percent == 1'
    has '.rows[0].runs | length == 1 and (.[0].instead_of | length == 8)'
    has '.rows[0].runs[0].instead_of | [.[] | (.no_cpu_percent >= 1 or .far_percent >= 1) and .gbps > 0] | all'
    has '.rows[0].runs[0].counters | .tx.no_cpu_ns >= 0 and .rx.no_cpu_ns >= 0'
    has '.rows[0].verdict == "ok" and (.rows[0].why | contains("run 1 was made 8 times more: at worst it had"))'
}

@test "before the first run the machine is looked at; who waits for a CPU is known" {
    local first

    first=$(taskset -cp $$ | sed 's/.*: //')
    first=${first%%[-,]*}
    with=(taskset -c "$first")
    daqiri sweep "${calm[@]}" --transports tcp --patterns stream --sizes 64K --repeats 1 --duration 100ms --json
    valid sweep
    good '.machine | .host == "'"$(uname -n)"'" and .cpus == 1 and .load >= 0 and .busy_percent >= 0 and .steal_percent >= 0'
    has '.date | fromdateiso8601 | (now - . | fabs) < 600'
    [[ $stderr == 'daqiri sweep: this machine: 1 CPU, load '*'; the two ends want one each, so expect noisy rows' ]]
    # each waits while the other runs
    has '.rows[0].runs[0].counters | .tx.waited_ns > 0 and .rx.waited_ns > 0 and .tx.took_ns >= 100000000'
}

@test "between two processors, and only there, it is looked how far they are" {
    local cpus first tries=20

    chrt --fifo 1 true 2>/dev/null || skip 'SCHED_FIFO is not permitted'
    cpus=$(taskset -cp $$ | sed 's/.*: //')
    first=${cpus%%[-,]*}
    calm+=(--duration 1s)
    # A look needs both at the same moment: the host of a virtual machine that has
    # much to do may run them one after the other for as long as a run lasts.
    while ((tries-- > 0)); do
        daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --json
        valid drop-curve
        good '.rows | length == 1'
        [[ $cpus != "$first" && $output == *'"line_us": null'* ]] || break
    done
    if [ "$cpus" = "$first" ]; then
        has '.line_us == null'
    else
        has '(.line_us * 1000 | round) > 0 and (.line_us * 1000 | round) == .rows[0].runs[0].counters.tx.line_ns'
        has '.rows[0].runs[0].counters | .tx.line_far_ns >= 0 and (.rx | has("line_ns") | not)'
    fi
    with=(taskset -c "$first")
    daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --json
    valid drop-curve
    good '.line_us == null'
    has '.rows[0].runs[0].counters | .tx.no_cpu_ns >= 0 and (.tx | has("line_ns") | not)'
}

@test "where nobody may look whether a CPU stands still, that is said" {
    local without=(prlimit --rtprio=0:0)

    if [ "$(id -u)" -eq 0 ]; then
        without+=(setpriv --inh-caps=-sys_nice --bounding-set=-sys_nice)
    fi
    "${without[@]}" true || skip 'that right cannot be dropped'
    ! "${without[@]}" chrt --fifo 1 true || skip 'that right cannot be dropped'
    with=("${without[@]}")
    daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --stalled 1 --json
    valid drop-curve
    good '.verdict.again == 0 and .line_us == null'
    has '.rows[0].runs[0].counters.tx | (has("no_cpu_ns") or has("line_ns")) | not'
    says 'nobody has seen whether a CPU stood still, so no run was made again: SCHED_FIFO is not permitted'
    daqiri drop-curve "${calm[@]}" --transports tcp --targets none --repeats 1 --json
    valid drop-curve
    [[ $stderr == 'daqiri drop-curve: this machine: '* && $stderr != *$'\n'* ]]
}

@test "nonsense in an option gets a sentence and status 2" {
    for name in sweep drop-curve; do
        while IFS='|' read -r words sentence; do
            # shellcheck disable=SC2086
            daqiri "$name" $words
            refused 2 "$sentence"
        done <<'END'
--sizes 7|--sizes 7: it is a size from 8 B to 1 GiB
--sizes 64,|--sizes: it is a list with commas between
--sizes 64,nonsense|--sizes nonsense: it is a size
--sizes 64,1K,64|--sizes 64: it is there twice
--windows 0|--windows 0: it is a number from 1 to 1048576
--windows 1,x|--windows x: it is a number
--transports a;b|--transports a;b: it is verbs, tcp, or a transport of UCX
--transports ,|--transports: it is a list with commas between
--duration 0|--duration 0: it is a time
--repeats 0|--repeats 0: it is a number from 1 to 100
--repeats 101|--repeats 101: it is a number from 1 to 100
--collapse 0|--collapse 0: it is a number from 1 to 100
--collapse x|--collapse x: it is a number
--rate -1|--rate -1: it is a number
--rate nan|--rate nan: it is a number
--stalled 0|--stalled 0: it is a number from 0.1 to 100
--stalled x|--stalled x: it is a number
--plot x.gif|--plot x.gif: the name ends with .svg or .png
--plot .svg|--plot .svg: the name ends with .svg or .png
--json --csv|--json and --csv exclude each other
--nonsense|unrecognized option
nonsense|Too many arguments
END
    done
    daqiri sweep --patterns stream,nonsense
    refused 2 '--patterns nonsense: it is one of stream, duplex, pingpong'
    daqiri sweep --patterns stream,stream
    refused 2 '--patterns stream: it is there twice'
    daqiri drop-curve --targets 0
    refused 2 '--targets 0: it is a number from 0.001 to 1000'
    daqiri drop-curve --targets 1%
    refused 2 '--targets 1%: it is a number'
    daqiri drop-curve --pace 0
    refused 2 '--pace 0: it is a number from 0.001 to 100'
    daqiri sweep --pace 1
    refused 2 'unrecognized option'
    daqiri drop-curve --gbps 0
    refused 2 '--gbps 0: it is a number from 0.000001 to 1000000'
}
