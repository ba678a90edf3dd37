#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri serve and daqiri tcp: the patterns, on loopback and between network
# namespaces; peers that stop, that are something else, that lie.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    need_jq
    serve_options=(--device none --json)
}

@test "stream, pingpong and duplex: rows as of a sweep; both sides agree; no line claims RDMA" {
    serve --count 3
    for pattern in stream pingpong duplex; do
        daqiri tcp --addr "$addr" --pattern "$pattern" --size 4K --duration 300ms --json
        [ "$status" -eq 0 ]
        valid tcp
        has ".command == \"tcp\" and .repeats == 1 and .peer_version == .version and (.rows | length) == 1"
        has ".rows[0] | .transport == \"tcp\" and .device == null and .pattern == \"$pattern\" and .size == 4096 and .runs_ok == 1 and .verdict == \"ok\""
        run_is '.ok and .sent > 0 and .received == .sent and .disorder == 0 and .elapsed_s > 0 and .intervals == null' || [ "$pattern" = pingpong ]
        printf '%s\n' "$output" > "$pattern.json"
    done
    run_of stream.json '.round_trip == null'
    run_of pingpong.json '.sent == .received and .round_trip.count == .sent / 2 and .round_trip.min_us > 0 and .round_trip.min_us <= .round_trip.p50_us and .round_trip.p50_us <= .round_trip.p99_us and .round_trip.p99_us <= .round_trip.max_us'
    holds pingpong.json '.rows[0].round_trip | .p50_us > 0 and .p90_us >= .p50_us'
    ended "$server"
    [ "$ended" -eq 0 ]
    [ "$(wc -l < serve.out)" -eq 3 ]
    for i in 1 2 3; do
        line "$i" '.command == "serve" and .test == "flow" and .ok and .role == "server" and .datapath == "tcp"'
        valid flow line.json
    done
    [ "$(sed -n 1p serve.out | jq .messages)" = "$(jq '.rows[0].runs[0].sent' stream.json)" ]
    [ "$(sed -n 3p serve.out | jq .messages)" = "$(jq '.rows[0].runs[0].sent' duplex.json)" ]
}

@test "sizes from a serial to 16 MiB" {
    serve --count 9
    for pattern in stream pingpong duplex; do
        for size in 8 9 16M; do
            daqiri tcp --addr "$addr" --pattern "$pattern" --size "$size" --duration 50ms --json
            [ "$status" -eq 0 ]
            run_is '.sent > 0 and .received == .sent'
        done
    done
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "clients at once do not disturb each other" {
    serve --count 4
    for i in 1 2 3 4; do
        start "c$i" "$T_DAQIRI" tcp --addr "$addr" --pattern pingpong --duration 300ms --json
        clients[i]=$pid
    done
    for i in 1 2 3 4; do
        ended "${clients[i]}"
        [ "$ended" -eq 0 ]
        run_of "c$i.out" '.ok and .received == .sent'
    done
    ended "$server"
    [ "$ended" -eq 0 ]
}

# The program that the client has started has used some of a processor.
flows()
{
    local child

    child=$(pgrep -P "$client" | head -n 1)
    [ -n "$child" ] && [ "$(awk '{ print $14 + $15 }' "/proc/$child/stat")" -ge 10 ]
}

@test "Ctrl-C of the client: what was measured is reported, and the server too ends well" {
    serve --count 3
    for pattern in stream pingpong duplex; do
        start client "$T_DAQIRI" tcp --addr "$addr" --pattern "$pattern" --duration 1h --json
        client=$pid
        running+=("$client")
        wait_for 60 flows
        kill -INT "$client"
        ended "$client"
        cat client.out client.err
        [ "$ended" -eq 0 ]
        holds client.out '.interrupted and .rows[0].verdict == "ok"'
        run_of client.out '.ok and .received == .sent'
    done
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "Ctrl-C of the server: it ends with 0" {
    serve
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "a server that is told to end ends its clients: all report what was measured" {
    serve
    start client "$T_DAQIRI" tcp --addr "$addr" --pattern pingpong --duration 1h --json
    client=$pid
    running+=("$client")
    wait_for 60 flows
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 0 ]
    holds serve.out '.ok and .interrupted and .messages > 0'
    ended "$client"
    [ "$ended" -eq 0 ]
    run_of client.out '.ok and .sent > 0 and .received == .sent'
}

@test "--interval: a line for each at once, an array in JSON, and all of them are the whole" {
    serve --count 2
    daqiri tcp --addr "$addr" --duration 1s --interval 200ms
    [ "$status" -eq 0 ]
    [[ ${lines[0]} =~ ^\ +0\.00\ to\ +0\.[0-9]+\ s\ +[0-9]+\ messages/s\ +[0-9.]+\ Gb/s$ ]]
    [ "$(grep -c ' messages/s .* Gb/s$' <<<"$output")" -ge 2 ]
    [[ $(grep -v ' messages/s .* Gb/s$' <<<"$output" | head -n 1) == transport* ]]
    daqiri tcp --addr "$addr" --duration 1s --interval 200ms --pattern pingpong --json
    [ "$status" -eq 0 ]
    valid tcp
    run_is '(.intervals | length >= 2) and .intervals[0].start_s == 0 and
         ([.intervals[].messages] | add) == .received and
         ([.intervals | [.[:-1], .[1:]] | transpose[] | .[0].end_s == .[1].start_s] | all)'
    daqiri tcp --addr "$addr" --interval 99ms
    refused 2 'daqiri tcp: --interval 99ms: it is 100ms at least'
}

@test "a failure: its sentence first, and no figures where nothing was measured" {
    run timeout 60 "$T_DAQIRI" tcp --addr 127.0.0.1:1
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == 'daqiri tcp: failed in stage connect'* ]]
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} == 'transport  pattern   size  window  verdict  why' ]]
}

@test "at a terminal: progress after 2 s, gone at the end; none elsewhere" {
    command -v script >/dev/null || skip 'script is not installed'
    serve --count 2
    run timeout 60 script -qec "'$T_DAQIRI' tcp --addr $addr --pattern pingpong --duration 3500ms" /dev/null
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *' s: [#'*'-] '*' %, '*' s left: run 1 of 1: tcp, pingpong, 64 B'*'verdict'* ]]
    [[ $output != *$'\r1 s: '* ]]
    daqiri tcp --addr "$addr" --pattern pingpong --duration 2500ms
    [ -z "$stderr" ]
}

@test "at a terminal: what is waited for, after 2 s, also by a sweep" {
    command -v script >/dev/null || skip 'script is not installed'
    need_python
    fake_server stay
    run timeout 60 script -qec "'$T_DAQIRI' tcp --addr $addr --timeout 3500ms" /dev/null
    echo "$output"
    [[ $output == *' s: waiting for the peer'*'failed in stage control (timeout)'* ]]
    fake_server stay
    run timeout 60 script -qec "'$T_DAQIRI' sweep --addr $addr --device soft --transports tcp --patterns stream --sizes 64 --repeats 1" /dev/null
    echo "$output"
    [[ $output == *' s: waiting for the peer'*'no answer in time'* ]]
}

@test "table and CSV; --verbose: what explains the figures, and the machine" {
    serve --count 3
    daqiri tcp --addr "$addr" --duration 50ms
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ ${lines[0]} == 'transport  pattern   size  window  messages/s '*' verdict' ]]
    [[ ${lines[1]} == 'tcp        stream   1 MiB      64 '*' ok' ]]
    [ "${#lines[@]}" -eq 2 ]
    daqiri tcp --addr "$addr" --duration 50ms --csv
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == transport,device,pattern,size,* ]]
    [[ ${lines[1]} == "tcp,,stream,1048576,64,1,"* ]]
    [ "${#lines[@]}" -eq 2 ]
    daqiri tcp --addr "$addr" --duration 50ms --verbose
    [ "$status" -eq 0 ]
    says 'daqiri tcp: this machine: '
    [[ $output == *$'\nRuns\n'*'messages/s'* ]]
}

@test "between network namespaces, and no route where there is none" {
    make_namespaces
    serve_from_a
    serve
    for pattern in stream pingpong duplex; do
        from_b tcp --addr "$addr" --pattern "$pattern" --size 64K --duration 200ms --json
        [ "$status" -eq 0 ]
        run_is '.ok and .received == .sent and .sent > 0'
        wait_for 60 grep -q "\"$pattern\".*\"remote_addr\":\"192.0.2.2:" serve.out
    done
    from_b tcp --addr 198.51.100.1:9 --json
    failed peer_unreachable connect
    says 'Network is unreachable'
}

@test "nobody listens; a port in use; addresses that are none" {
    serve
    daqiri serve --device none --listen "$addr"
    refused 1 "cannot listen on $addr: Address already in use"
    kill -KILL "$server"
    ended "$server"
    daqiri tcp --addr "$addr" --json
    failed peer_unreachable connect
    says 'Connection refused'
    valid tcp
    daqiri tcp --addr '[::1' --json
    refused 2 "'[::1' is no address: it is HOST:PORT"
    daqiri tcp --addr 'no.such.host.invalid:1' --json
    failed peer_unreachable connect
    daqiri serve --device none --listen 192.0.2.77:0
    refused 1 'Cannot assign requested address'
}

@test "a server that is something else, of another version, or malformed" {
    need_python
    fake_server 'hex:485454502f312e3120343030204261640d0a0d0a0d0a' stay
    daqiri tcp --addr "$addr" --json
    failed protocol control
    says 'the peer is not daqiri'

    fake_server hello:sweep,protocol_min=7,protocol_max=7 stay
    daqiri tcp --addr "$addr" --json
    failed protocol control
    says 'speaks versions 7 to 7 of the protocol, and daqiri '

    fake_server frame:dance stay
    daqiri tcp --addr "$addr" --json
    failed protocol control
    says 'it has no kind that is known here'

    fake_server hex:ffffffff stay
    daqiri tcp --addr "$addr" --json
    failed protocol control

    fake_server hello:sweep,protocol_min=x stay
    daqiri tcp --addr "$addr" --json
    failed protocol control
    says 'the value "protocol_min" of kind "hello"'

    fake_server hello:sweep frame:ready,stage=nope stay
    daqiri tcp --addr "$addr" --json
    failed protocol connect
    says 'the peer sent "ready" where "flow_address" was to come'

    fake_server hello:dance stay
    daqiri tcp --addr "$addr" --json
    failed peer_refused control
    says 'the peer is there for daqiri dance, not for daqiri sweep'

    fake_server hello:sweep frame:abort,failure_class=local,stage=full,error=nope stay
    daqiri tcp --addr "$addr" --json
    failed peer_failed connect
    says 'the peer failed in stage full (local): nope'
}

@test "a server that stops half way, or says nothing" {
    need_python
    fake_server read:1 close
    daqiri tcp --addr "$addr" --json
    failed peer_gone control

    fake_server hello:sweep close
    daqiri tcp --addr "$addr" --json
    failed peer_gone connect

    fake_server hello:sweep stay
    daqiri tcp --addr "$addr" --timeout 500ms --json
    failed timeout connect
    says 'no answer in time'

    # where nobody listens
    fake_server hello:sweep frame:flow_address,port=1,device=,iface=,ep= stay
    daqiri tcp --addr "$addr" --json
    failed peer_unreachable connect
}

@test "clients that do not behave: a sentence each, and the server goes on" {
    local terms=frame:flow_terms,window=1,duration_ns=1000000,bits_per_s=0

    need_python
    serve --timeout 2s
    fake_client 'hex:474554202f20485454502f312e300d0a0d0a' stay
    fake_client close
    fake_client hello:sweep "$terms,transport=tcp,pattern=none,size=8" stay
    fake_client hello:sweep "$terms,transport=tcp,pattern=stream,size=9223372036854775807" stay
    fake_client hello:sweep "$terms,transport=tcp,pattern=stream,size=4096" stay
    fake_client hello:sweep "$terms,pattern=stream,size=4096,transport=verbs" stay
    wait_for 60 said 6
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    wait_for 60 said 7
    kill -INT "$server"
    ended "$server"
    cat serve.out serve.err
    [ "$ended" -eq 1 ]
    [ "$(jq -s 'length' serve.out)" -eq 7 ]
    [ "$(jq -s '[.[] | select(.ok)] | length' serve.out)" -eq 1 ]
    [ "$(jq -r -s '[.[] | select(.ok | not) | .failure_class] | sort | join(" ")' serve.out)" = \
        'no_device peer_gone protocol protocol protocol timeout' ]
    while read -r line; do
        printf '%s\n' "$line" > line.json
        valid flow line.json
    done < serve.out
}

@test "mistakes: a sentence and status 2" {
    daqiri tcp
    refused 2 '--addr is missing'
    daqiri tcp --addr x --pattern round
    refused 2 '--pattern round: it is one of stream, duplex, pingpong'
    daqiri tcp --addr x --size 0
    refused 2 '--size 0: it is a size from 8 B to 1 GiB'
    daqiri tcp --addr x --size 1T
    refused 2 '--size 1T: it is a size'
    daqiri tcp --addr x --duration 0s
    refused 2 '--duration 0s: it is a time'
    daqiri tcp --addr x --timeout -1
    refused 2 '--timeout -1: it is a time'
    daqiri tcp --addr x --json --csv
    refused 2 '--json and --csv exclude each other'
    daqiri serve --count 0
    refused 2 '--count 0: it is a number from 1'
    daqiri serve --port 256
    refused 2 '--port 256: it is a number from 1 to 255'
    daqiri serve --gid-index x
    refused 2 '--gid-index x: it is a number from 0 to 255'
    daqiri serve --timeout x
    refused 2 '--timeout x: it is a time'
    daqiri serve --listen
    refused 2 'requires an argument'
    daqiri serve word
    refused 2 'Too many arguments'
}
