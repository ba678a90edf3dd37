#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri pingpong on softverbs: both sides, by TCP and by hand, and each way to
# fail with its stage and class. softverbs is for one host, so the two sides
# share it; hang_verbs spoils the verbs of one of them.

bats_require_minimum_version 1.5.0
load tools.bash

# server [OPTION...]: in the background; its address is $addr, it is $server.
server_with=()
server()
{
    start server env "${server_with[@]}" timeout 100 "$T_DAQIRI" pingpong \
        --device soft --listen 127.0.0.1:0 --json "$@"
    server=$pid
    running+=("$pid")
    listening server
}

client()
{
    daqiri pingpong --device soft --addr "$addr" --json "$@"
}

# server_failed CLASS STAGE
server_failed()
{
    ended "$server"
    cat server.out server.err
    [ "$ended" -eq 1 ]
    valid flow server.out
    holds server.out ".failure_class == \"$1\" and .stage == \"$2\" and .ok == false"
}

stages='["connect", "open-rdma-resources", "exchange-rdma-info", "connect-rdma", "exchange-rdma-ready", "datapath", "result"]'

@test "both sides: stages in order, the same numbers, addresses that mirror each other" {
    server
    client --iters 500 --size 100
    [ "$status" -eq 0 ]
    valid pingpong
    run_is "[.stages[] | select(.ok) | .name] == $stages"
    has '.peer_version == .version and .iterations == 500 and .duration_s == null and (.rows[0] | .transport == "verbs" and .device == "softverbs0:1" and .size == 100 and .verdict == "ok")'
    run_is '.ok and .sent == 1000 and .received == 1000 and .round_trip.count == 500'
    run_is '.round_trip.min_us > 0 and .round_trip.min_us <= .round_trip.p50_us and .round_trip.p99_us <= .round_trip.max_us'
    ended "$server"
    [ "$ended" -eq 0 ]
    valid flow server.out
    holds server.out '.ok and .role == "server" and .datapath == "rdma" and .messages == 1000 and .size == 100'
    holds server.out "[.stages[] | select(.ok) | .name] == $stages"
    [ "$(jq -S .local server.out)" = "$(jq -S '.rows[0].runs[0].remote' <<<"$output")" ]
    [ "$(jq -S .remote server.out)" = "$(jq -S '.rows[0].runs[0].local' <<<"$output")" ]
}

@test "--duration: so long, whatever the number; with --iters, what comes first" {
    server
    client --duration 300ms
    [ "$status" -eq 0 ]
    valid pingpong
    has '.duration_s == 0.3 and (has("iterations") | not) and .interrupted == false'
    run_is '.ok and .elapsed_s >= 0.25 and .sent > 0 and .cpu_tx_percent > 0 and .round_trip.count == .sent / 2'
    ended "$server"
    [ "$ended" -eq 0 ]
    valid flow server.out
    holds server.out '.ok and .duration_s == 0.3 and .local_addr != null'
    [ "$(jq .messages server.out)" = "$(jq '.rows[0].runs[0].sent' <<<"$output")" ]
    server
    client --duration 1h --iters 7
    [ "$status" -eq 0 ]
    has '.iterations == 7 and .duration_s == 3600 and .rows[0].runs[0].sent == 14'
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "the next message overtakes the completion of the answer to the last one" {
    server_with=(LD_PRELOAD="$shims/late_verbs.so:$T_SOFTVERBS")
    server
    client --iters 20
    [ "$status" -eq 0 ]
    run_is '.sent == 40 and .received == 40'
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "the last answer is later than the word that it was sent: it counts" {
    server_with=(SOFTVERBS_FAULTS='delay time=200ms qp=rc' SOFTVERBS_FAULTS_LOG=/dev/null)
    server
    client --iters 3
    [ "$status" -eq 0 ]
    run_is '.ok and .sent == 6 and .received == 6'
}

@test "sizes: 1, 8, 9, 64K and 4M bytes; explicit GID, port and MTU" {
    for size in 1 8 9 64K 4M; do
        server
        client --size "$size" --iters 20 --gid-index 0 --port 1 --mtu 1024
        [ "$status" -eq 0 ]
        run_is '.sent == 40 and .local.mtu == 1024'
        ended "$server"
        [ "$ended" -eq 0 ]
    done
}

@test "--traffic-class: of the path of either side; a server of many has one, too" {
    server_with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=class:8)
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=class:184)
    server --traffic-class 8
    client --iters 10 --traffic-class 184
    [ "$status" -eq 0 ]
    ended "$server"
    [ "$ended" -eq 0 ]
    serve_with=(env "${server_with[@]}")
    serve --device soft --json --traffic-class 8
    client --iters 10 --traffic-class 184
    [ "$status" -eq 0 ]
    line 1 '.ok'
    client --iters 10
    failed rtr_refused connect-rdma
}

@test "by hand: words instead of TCP" {
    mkfifo to_a to_b
    timeout 100 "$T_DAQIRI" pingpong --device soft --by-hand server --iters 100 --json \
        < to_a > a.out 2> a.err 3>&- &
    a=$!
    running+=("$a")
    timeout 100 "$T_DAQIRI" pingpong --device soft --by-hand client --iters 100 --json \
        < to_b > b.out 2> b.err 3>&- &
    b=$!
    running+=("$b")
    exec 7> to_a 8> to_b
    wait_for 60 grep -q '^dq1:' a.err
    wait_for 60 grep -q '^dq1:' b.err
    grep '^dq1:' b.err >&7
    grep '^dq1:' a.err >&8
    wait_for 60 grep -q 'ready; press Enter' a.err
    wait_for 60 grep -q 'ready; press Enter' b.err
    echo >&7
    echo >&8
    exec 7>&- 8>&-
    ended "$b"
    cat b.out b.err
    [ "$ended" -eq 0 ]
    holds b.out '.peer_version == null and .addr == null'
    run_of b.out '.ok and .sent == 200 and .round_trip.count == 100'
    ended "$a"
    [ "$ended" -eq 0 ]
    run_of a.out '.ok and .sent == 200 and .round_trip == null'
}

@test "by hand: what is no word, and the end of input" {
    run --separate-stderr bash -c 'echo hello | "$1" pingpong --device soft --by-hand client --json' - "$T_DAQIRI"
    failed protocol exchange-rdma-info
    run --separate-stderr bash -c 'echo dq1:1:1:1:9:0:0:00000000000000000000000000000000 | "$1" pingpong --device soft --by-hand client --json' - "$T_DAQIRI"
    failed protocol exchange-rdma-info
    run --separate-stderr bash -c '"$1" pingpong --device soft --by-hand client --json < /dev/null' - "$T_DAQIRI"
    failed peer_gone exchange-rdma-info
}

@test "no device of that name: no_device, and the other side is told" {
    server
    daqiri pingpong --device mlx5_7 --addr "$addr" --json
    failed no_device open-rdma-resources
    server_failed peer_failed exchange-rdma-info
    holds server.out '.error | test("the peer failed in stage open-rdma-resources \\(no_device\\)")'
}

@test "no such port, no such GID, no UC" {
    server
    client --port 9
    failed no_device open-rdma-resources
    server_failed peer_failed exchange-rdma-info
    server
    client --gid-index 9
    failed no_gid open-rdma-resources
    server_failed peer_failed exchange-rdma-info
    server
    client --uc
    [ "$status" -eq 1 ]
    has '.rows[0].transport == "verbs_uc" and .rows[0].runs[0].stage != null'
    ended "$server"
    [ "$ended" -eq 1 ]
    holds server.out '.transport == "verbs_uc"'
    [[ $(jq -r .failure_class server.out) == unsupported || $(jq -r .failure_class server.out) == peer_failed ]]
}

@test "RTR is refused: rtr_refused, and what another attempt needs is printed" {
    server
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=refuse:rtr)
    client
    failed rtr_refused connect-rdma
    run_is '.local.qpn > 0 and .remote.qpn > 0 and .local.gid != null and .remote.lid == .local.lid'
    server_failed peer_failed exchange-rdma-ready

    server
    daqiri pingpong --device soft --addr "$addr"
    [ "$status" -eq 1 ]
    [[ $output == *'This side, for another attempt'*'QPN'*'The other side'*'PSN'* ]]
    ended "$server"
}

@test "memory is refused: resource_exhausted" {
    server
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=refuse:ibv_reg_mr)
    client
    failed resource_exhausted open-rdma-resources
    server_failed peer_failed exchange-rdma-info
}

@test "devices that are not usable: port_down, not_permitted" {
    server
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    daqiri pingpong --device mlx5_0 --addr "$addr" --json
    failed port_down open-rdma-resources
    server_failed peer_failed exchange-rdma-info
    server
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=denied')
    daqiri pingpong --device mlx5_0 --addr "$addr" --json
    failed not_permitted open-rdma-resources
    server_failed peer_failed exchange-rdma-info
}

@test "completions that fail: completion_protection, completion_failure; the other side is told" {
    server
    with=(SOFTVERBS_FAULTS='complete status=LOC_PROT_ERR qp=rc n=3' SOFTVERBS_FAULTS_LOG=/dev/null)
    client
    failed completion_protection datapath
    server_failed peer_failed datapath
    server
    with=(SOFTVERBS_FAULTS='complete status=RETRY_EXC_ERR qp=rc n=3' SOFTVERBS_FAULTS_LOG=/dev/null)
    client
    failed completion_failure datapath
    server_failed peer_failed datapath
}

@test "a message that is not what was sent: data_mismatch, and which byte" {
    server
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=spoil:20)
    client
    failed data_mismatch datapath
    run_is '.error | startswith("byte 20 of the first message is 0x")'
    server_failed peer_failed datapath
    for byte in 0 63; do
        server
        with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=spoil:$byte)
        client
        failed data_mismatch datapath
        run_is '.error == "message 0 did not arrive as it was sent"'
        server_failed peer_failed datapath
    done
}

@test "a verb that hangs: provider_timeout, status 124, its stage; the other side does not wait for ever" {
    server --setup-timeout 5s
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=rtr)
    client --setup-timeout 3s
    [ "$status" -eq 124 ]
    valid pingpong
    # the time for the stage, and 3 s for its own bounds
    run_is '.failure_class == "provider_timeout" and .stage == "connect-rdma" and (.error | test("within 6 s"))'
    ended "$server"
    [ "$ended" -eq 1 ]
    [[ $(jq -r .failure_class server.out) == timeout || $(jq -r .failure_class server.out) == peer_gone ]]
}

@test "--interval: a line for each, an array in JSON; a failure has no figures" {
    server
    daqiri pingpong --device soft --addr "$addr" --duration 1s --interval 200ms
    [ "$status" -eq 0 ]
    [ "$(grep -c ' messages/s .* Gb/s$' <<<"$output")" -ge 2 ]
    server
    client --duration 1s --interval 200ms
    run_is '(.intervals | length >= 2) and ([.intervals[].messages] | add) == .sent'
    server
    client --iters 10
    run_is '.intervals == null'
    run timeout 60 "$T_DAQIRI" pingpong --device soft --addr 127.0.0.1:1
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == 'daqiri pingpong: failed in stage '* ]]
    [[ ${lines[1]} == 'transport  pattern   size  window  verdict  why' ]]
}

@test "at a terminal: progress after 2 s; none elsewhere" {
    command -v script >/dev/null || skip 'script is not installed'
    server
    run timeout 60 script -qec "'$T_DAQIRI' pingpong --device soft --addr $addr --duration 3500ms" /dev/null
    echo "$output"
    [[ $output == *' s: [#'*'-] '*' %, '*' s left: run 1 of 1: verbs, pingpong, 64 B'*'verdict'* ]]
    server
    run timeout 60 script -qec "env LD_PRELOAD='$shims/hang_verbs.so:$T_SOFTVERBS' HANG_VERBS=rtr '$T_DAQIRI' pingpong --device soft --addr $addr --setup-timeout 1s" /dev/null
    echo "$output"
    [[ $output == *' s: run 1 of 1: verbs, pingpong, 64 B'* ]]
    [[ $output == *'in stage connect-rdma (provider_timeout)'* ]]
    server
    client --duration 2500ms
    [ -z "$stderr" ]
}

@test "a verb that ends the process: provider_died; the other side sees the peer go" {
    server
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=die:rts)
    client
    failed provider_died connect-rdma
    server_failed peer_gone exchange-rdma-ready
}

# busy: a client that would go on for an hour, once its messages flow.
busy()
{
    start client timeout 100 "$T_DAQIRI" pingpong --device soft --addr "$addr" --iters 1000000000 --json
    client=$pid
    running+=("$client")
    wait_for 60 grep -q waiting server.err
    wait_for 60 flows
}

# kill -INT as a terminal does it: a command's process and the one that it watches.
terminal_stops()
{
    local main child

    main=$(pgrep -P "$1" | head -n 1)
    child=$(pgrep -P "$main" | head -n 1)
    kill -INT "$main" "$child"
}

# What talks to its device has used some of a processor.
flows()
{
    local ticks

    ticks=$(awk '{ print $14 + $15 }' "/proc/$(worker_of "$client")/stat" 2>/dev/null)
    [ "${ticks:-0}" -ge 20 ]
}

# The process that talks to the device, of a `timeout` that runs daqiri: the last of
# its children.
worker_of()
{
    local process=$1 child

    while child=$(pgrep -P "$process" | head -n 1) && [ -n "$child" ]; do
        process=$child
    done
    echo "$process"
}

@test "the peer is killed in the middle: the client hears of it" {
    server
    busy
    kill -KILL "$(worker_of "$server")"
    ended "$client"
    cat client.out client.err
    [ "$ended" -eq 1 ]
    valid pingpong client.out
    run_of client.out '(.failure_class == "peer_gone" or .failure_class == "peer_failed") and .stage == "datapath"'
    ended "$server"
    [ "$ended" -eq 1 ]
    holds server.out '.failure_class == "provider_died"'
}

@test "the peer is stopped in the middle: a time-out of ours, not a hang" {
    server
    start client timeout 100 "$T_DAQIRI" pingpong --device soft --addr "$addr" \
        --iters 1000000000 --json
    client=$pid
    running+=("$client")
    wait_for 60 flows
    worker=$(worker_of "$server")
    kill -STOP "$worker"
    ended "$client"
    kill -CONT "$worker"
    cat client.out client.err
    [ "$ended" -eq 1 ]
    run_of client.out '.stage == "datapath" and (.failure_class == "timeout" or .failure_class == "completion_failure")'
    ended "$server"
    [ "$ended" -eq 1 ]
}

@test "Ctrl-C of either side: both report what was measured, both with 0" {
    local side how

    for how in client.kill server.kill client.terminal server.terminal; do
        side=${how%.*}
        server
        busy
        if [ "${how#*.}" = kill ]; then
            kill -INT "$(pgrep -P "${!side}" | head -n 1)"
        else
            terminal_stops "${!side}"
        fi
        ended "$client"
        cat client.out client.err
        [ "$ended" -eq 0 ]
        valid pingpong client.out
        run_of client.out '.ok and .sent > 0 and .received == .sent'
        ended "$server"
        cat server.out server.err
        [ "$ended" -eq 0 ]
        holds server.out '.ok and .messages > 0'
        holds "$side.out" .interrupted
    done
}

@test "without --device: an RDMA device that is usable, else the software device, and that is said" {
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    daqiri pingpong --addr 127.0.0.1:1 --json
    failed peer_unreachable connect
    says 'no RDMA device is usable'
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down mlx5_1=active')
    daqiri pingpong --addr 127.0.0.1:1 --json
    failed peer_unreachable connect
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    start listener env "${with[@]}" "$T_DAQIRI" pingpong --listen 127.0.0.1:0
    running+=("$pid")
    listening listener
    grep -q 'RDMA goes over mlx5_1$' listener.err
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    daqiri pingpong --addr 127.0.0.1:1 --json
    refused 1 'RDMA devices cannot be listed'
}

@test "nobody listens; a port in use; a server for one client serves any" {
    server
    daqiri pingpong --device soft --listen "$addr" --json
    refused 1 "cannot listen on $addr: Address already in use"
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    ended "$server"
    [ "$ended" -eq 0 ]
    holds server.out '.ok and .datapath == "tcp"'
    client
    failed peer_unreachable connect
    says 'Connection refused'
}

@test "no route" {
    unshare -rn true 2>/dev/null || skip 'a network namespace cannot be made here'
    run --separate-stderr timeout 60 unshare -rn "$T_DAQIRI" pingpong --device soft --addr 198.51.100.1:9 --json
    failed peer_unreachable connect
    says 'Network is unreachable'
}

# A client of the server that wants a ping-pong.
terms=frame:flow_terms,transport=verbs,pattern=pingpong,window=64,duration_ns=0,bits_per_s=0

@test "peers that lie, or stop half way" {
    need_python
    fake_server hello:sweep,protocol_min=7,protocol_max=7 stay
    client
    failed protocol control
    says 'speaks versions 7 to 7 of the protocol'

    fake_server hello:sweep stay
    client --setup-timeout 3s
    failed timeout exchange-rdma-info

    info=frame:info,is_global=false,psn=1,gid_index=0,gid=$(soft_gid)
    fake_server hello:sweep "$info,lid=1,mtu=5,qpn=1" frame:ready,stage=nope stay
    client
    failed protocol exchange-rdma-ready
    says 'the peer is in stage nope'

    # an MTU of 9, a QPN of 32 bits
    fake_server hello:sweep "$info,lid=1,mtu=9,qpn=1" stay
    client
    failed protocol exchange-rdma-info
    fake_server hello:sweep "$info,lid=1,mtu=5,qpn=16777217" stay
    client
    failed protocol exchange-rdma-info

    # the terms of a client: no size, too much
    server
    fake_client hello:sweep "$terms,size=0" stay
    server_failed protocol control
    server
    fake_client hello:sweep "$terms,size=9223372036854775807" stay
    server_failed protocol control
    server --timeout 500ms
    fake_client hello:sweep stay
    server_failed timeout control
    server
    fake_client hello:sweep close
    server_failed peer_gone control
}

@test "a peer that goes, or falls silent, in each stage" {
    local at frames=() stages=(control exchange-rdma-info exchange-rdma-ready datapath)

    need_python
    frames=('' hello:sweep
        "frame:info,lid=1,mtu=5,is_global=false,qpn=1,psn=1,gid_index=0,gid=$(soft_gid)"
        frame:ready,stage=exchange-rdma-ready)
    # ours is the client, then the server, which waits for the client's terms, too
    for at in 0 1 2 3; do
        # shellcheck disable=SC2068 # the first one is no word
        fake_server ${frames[@]:0:at+1} fin stay
        client
        failed peer_gone "${stages[at]}"
        fake_server ${frames[@]:0:at+1} stay
        client --setup-timeout 1s
        [ "$at" -eq 3 ] && failed completion_failure datapath || failed timeout "${stages[at]}"
    done
    frames[1]="hello:sweep $terms,size=64"
    for at in 0 1 2 3; do
        server
        # shellcheck disable=SC2068
        fake_client ${frames[@]:0:at+1} fin stay
        server_failed peer_gone "${stages[at]}"
        server --setup-timeout 1s --timeout 1s
        # shellcheck disable=SC2068
        fake_client ${frames[@]:0:at+1} stay
        server_failed timeout "${stages[at]}"
    done
}

@test "table and CSV; --verbose: what explains the figures" {
    server
    daqiri pingpong --device soft --addr "$addr" --iters 10
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == 'transport  pattern   size  window '*'p50 us'*'p99.9'*' verdict' ]]
    [[ ${lines[1]} == 'verbs      pingpong  64 B       1 '*' ok' ]]
    [ "${#lines[@]}" -eq 2 ]
    ended "$server"
    server
    daqiri pingpong --device soft --addr "$addr" --iters 10 --csv
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == transport,device,pattern,size,window,* ]]
    [[ ${lines[1]} == verbs,softverbs0:1,pingpong,64,1,1,* ]]
    ended "$server"
    server
    daqiri pingpong --device soft --addr "$addr" --iters 10 --verbose
    says 'daqiri pingpong: this machine: '
    [[ $output == *$'\nRuns\n'* ]]
    ended "$server"
}

@test "mistakes: a sentence and status 2" {
    daqiri pingpong
    refused 2 'one of --listen, --addr and --by-hand'
    daqiri pingpong --listen :1 --addr x
    refused 2 'one of --listen, --addr and --by-hand'
    daqiri pingpong --by-hand me
    refused 2 '--by-hand me: it is one of server, client'
    for option in '--size 0' '--size 1G' '--size x' '--iters 0' '--iters many' '--port 0' '--port 256' \
                  '--gid-index -1' '--gid-index 256' '--mtu 100' '--mtu 8K' '--mtu 1000' '--traffic-class 256' \
                  '--setup-timeout 0' '--timeout soon' '--duration 0s'; do
        # shellcheck disable=SC2086
        daqiri pingpong --addr x $option
        refused 2 "$option: it is"
    done
    daqiri pingpong --listen :1 --columns gbps
    refused 2 "--interval, --verbose and --columns are the client's"
    daqiri pingpong --by-hand client --duration 1s
    refused 2 '--duration cannot be used by hand'
    daqiri pingpong --addr x word
    refused 2 'Too many arguments'
}

# called PID WORDS: below that process there is daqiri with these; its name is $found.
called()
{
    local child

    for child in $(pgrep -P "$1" 2>/dev/null); do
        if [[ $(readlink "/proc/$child/exe") == */daqiri ]]; then
            [[ $(tr '\0' ' ' <"/proc/$child/cmdline") != *"$2"* ]] ||
                { found=$(cat "/proc/$child/comm"); return 0; }
        fi
        ! called "$child" "$2" || return 0
    done
    return 1
}

@test "a process that has started itself again keeps its name" {
    server
    called "$server" 'pingpong --device soft'
    echo "$found"
    [ "$found" = daqiri ]
}
