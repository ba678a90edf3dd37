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
    valid pingpong server.out
    holds server.out ".failure_class == \"$1\" and .stage == \"$2\" and .ok == false"
}

stages='["pre-resource-control", "open-rdma-resources", "post-resource-control", "exchange-rdma-info", "connect-rdma", "exchange-rdma-ready", "datapath", "done"]'

@test "both sides: stages in order, the same numbers, addresses that mirror each other" {
    server
    client --iters 500 --size 100
    [ "$status" -eq 0 ]
    valid pingpong
    has "[.stages[] | select(.ok) | .name] == $stages"
    has '.ok and .datapath == "rdma" and .transport == "RC" and .messages == 1000 and .bytes == 100000 and .round_trip.count == 500 and .peer_version == .version'
    has '.round_trip.min_us > 0 and .round_trip.min_us <= .round_trip.p50_us and .round_trip.p99_us <= .round_trip.max_us'
    ended "$server"
    [ "$ended" -eq 0 ]
    valid pingpong server.out
    holds server.out '.ok and .role == "server" and .messages == 1000 and .size == 100'
    [ "$(jq -S .local server.out)" = "$(jq -S .remote <<<"$output")" ]
    [ "$(jq -S .remote server.out)" = "$(jq -S .local <<<"$output")" ]
}

@test "--duration: so long, whatever the number; with --iters, what comes first" {
    server
    client --duration 300ms
    [ "$status" -eq 0 ]
    valid pingpong
    has '.ok and .elapsed_s >= 0.3 and .duration_s == 0.3 and .iterations == null and .messages > 0 and .interrupted == false'
    has '.cpu_percent > 0 and .addr == .remote_addr and .round_trip.count == .messages / 2'
    ended "$server"
    [ "$ended" -eq 0 ]
    valid pingpong server.out
    holds server.out '.ok and .iterations == null and .duration_s == null and .addr == null and .local_addr != null'
    [ "$(jq .messages server.out)" = "$(jq .messages <<<"$output")" ]
    server
    client --duration 1h --iters 7
    [ "$status" -eq 0 ]
    has '.messages == 14 and .iterations == 7'
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "the next message overtakes the completion of the answer to the last one" {
    server_with=(LD_PRELOAD="$shims/late_verbs.so:$T_SOFTVERBS")
    server
    client --iters 20
    [ "$status" -eq 0 ]
    has '.messages == 40'
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "the last answer is later than the word that it was sent: it counts" {
    server_with=(SOFTVERBS_FAULTS='delay time=200ms qp=rc' SOFTVERBS_FAULTS_LOG=/dev/null)
    server
    client --iters 3
    [ "$status" -eq 0 ]
    has '.ok == true and .messages == 6'
}

@test "sizes: 1, 8, 9, 64K and 4M bytes; explicit GID, port and MTU" {
    for size in 1 8 9 64K 4M; do
        server
        client --size "$size" --iters 20 --gid-index 0 --port 1 --mtu 1024
        [ "$status" -eq 0 ]
        has '.messages == 40 and .local.mtu == 1024'
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
    valid pingpong
    has '.traffic_class == 184'
    ended "$server"
    [ "$ended" -eq 0 ]
    valid pingpong server.out
    holds server.out '.traffic_class == 8'
    serve_with=(env "${server_with[@]}")
    serve --device soft --json --traffic-class 8
    client --iters 10 --traffic-class 184
    [ "$status" -eq 0 ]
    line 1 '.ok and .traffic_class == 8'
    client --iters 10
    failed rtr_refused connect-rdma
    has '.traffic_class == 0'
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
    holds b.out '.ok and .messages == 200 and .peer_version == null'
    ended "$a"
    [ "$ended" -eq 0 ]
    holds a.out '.ok and .role == "server"'
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
    server_failed peer_failed post-resource-control
    holds server.out '.error | test("the peer failed in stage open-rdma-resources \\(no_device\\)")'
}

@test "no such port, no such GID, no UC" {
    server
    client --port 9
    failed no_device open-rdma-resources
    server_failed peer_failed post-resource-control
    server
    client --gid-index 9
    failed no_gid open-rdma-resources
    server_failed peer_failed post-resource-control
    server
    client --uc
    [ "$status" -eq 1 ]
    has '.transport == "UC" and .stage != null'
    ended "$server"
    [ "$ended" -eq 1 ]
    holds server.out '.transport == "UC"'
    [[ $(jq -r .failure_class server.out) == unsupported || $(jq -r .failure_class server.out) == peer_failed ]]
}

@test "RTR is refused: rtr_refused, and what another attempt needs is printed" {
    server
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=refuse:rtr)
    client
    failed rtr_refused connect-rdma
    has '.local.qpn > 0 and .remote.qpn > 0 and .local.gid != null and .remote.lid == .local.lid'
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
    server_failed peer_failed post-resource-control
}

@test "devices that are not usable: port_down, not_permitted" {
    server
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    daqiri pingpong --device mlx5_0 --addr "$addr" --json
    failed port_down open-rdma-resources
    server_failed peer_failed post-resource-control
    server
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=denied')
    daqiri pingpong --device mlx5_0 --addr "$addr" --json
    failed not_permitted open-rdma-resources
    server_failed peer_failed post-resource-control
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
    has '.error | startswith("byte 20 of the first message is 0x")'
    server_failed peer_failed datapath
    for byte in 0 63; do
        server
        with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=spoil:$byte)
        client
        failed data_mismatch datapath
        has '.error == "message 0 did not arrive as it was sent"'
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
    has '.failure_class == "provider_timeout" and .stage == "connect-rdma" and (.error | test("within 6 s"))'
    ended "$server"
    [ "$ended" -eq 1 ]
    [[ $(jq -r .failure_class server.out) == timeout || $(jq -r .failure_class server.out) == peer_gone ]]
}

@test "--interval: a line for each, an array in JSON; a failure has no figures" {
    server
    daqiri pingpong --device soft --addr "$addr" --duration 1s --interval 200ms
    [ "$status" -eq 0 ]
    [ "$(grep -c ' messages/s ' <<<"$output")" -ge 2 ]
    server
    client --duration 1s --interval 200ms
    has '(.intervals | length >= 2) and ([.intervals[].messages] | add) == .messages'
    server
    client --iters 10
    has '.intervals == null'
    run timeout 60 "$T_DAQIRI" pingpong --device soft --addr 127.0.0.1:1
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == 'daqiri pingpong: failed in stage '* ]]
    run -1 grep -E '^(messages|time|both ways|processor)' <<<"$output"
}

@test "at a terminal: the stage that takes long, after 2 s; none elsewhere" {
    command -v script >/dev/null || skip 'script is not installed'
    need_python
    server
    run timeout 60 script -qec "env LD_PRELOAD='$shims/hang_verbs.so:$T_SOFTVERBS' HANG_VERBS=rtr '$T_DAQIRI' pingpong --device soft --addr $addr --setup-timeout 1s" /dev/null
    echo "$output"
    [[ $output == *' s: in stage connect-rdma'* ]]
    [[ $output == *'(provider_timeout)'* ]]
    fake_server hello:pingpong stay
    run timeout 60 script -qec "'$T_DAQIRI' pingpong --device soft --addr $addr --setup-timeout 3500ms" /dev/null
    echo "$output"
    [[ $output == *' s: in stage post-resource-control'* ]]
    server
    run timeout 60 script -qec "'$T_DAQIRI' pingpong --device soft --addr $addr --duration 3500ms" /dev/null
    echo "$output"
    [[ $output == *' s: '*' round trips'*'messages, both ways'* ]]
    [[ $output != *'in stage datapath'* ]]
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

# Its child has used some of a processor.
flows()
{
    local child ticks

    for child in $(pgrep -P "$(pgrep -P "$client" | head -n 1)" 2>/dev/null); do
        ticks=$(awk '{ print $14 + $15 }' "/proc/$child/stat" 2>/dev/null)
        [ "${ticks:-0}" -lt 20 ] || return 0
    done
    return 1
}

# The process that talks to the device, of a `timeout` that runs daqiri.
worker_of()
{
    pgrep -P "$(pgrep -P "$1" | head -n 1)"
}

@test "the peer is killed in the middle: peer_gone, and what was measured" {
    server
    busy
    kill -KILL "$(worker_of "$server")"
    ended "$client"
    cat client.out client.err
    [ "$ended" -eq 1 ]
    valid pingpong client.out
    holds client.out '.failure_class == "peer_gone" and .stage == "datapath" and .messages > 0'
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
    holds client.out '.stage == "datapath" and (.failure_class == "timeout" or .failure_class == "completion_failure")'
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
        holds client.out '.ok and .messages > 0 and .stage == "done"'
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
    failed peer_unreachable pre-resource-control
    says 'no RDMA device is usable'
    has '.device == "softverbs0"'
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down mlx5_1=active')
    daqiri pingpong --addr 127.0.0.1:1 --json
    failed peer_unreachable pre-resource-control
    has '.device == "mlx5_1"'
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    daqiri pingpong --addr 127.0.0.1:1 --json
    refused 1 'RDMA devices cannot be listed'
}

@test "nobody listens; a port in use; a server for something else" {
    server
    daqiri pingpong --device soft --listen "$addr" --json
    failed local pre-resource-control
    says 'Address already in use'
    daqiri tcp --addr "$addr" --json
    [ "$status" -eq 1 ]
    has '.failure_class == "peer_refused"'
    server_failed peer_refused pre-resource-control
    client
    failed peer_unreachable pre-resource-control
    says 'Connection refused'
}

@test "no route" {
    unshare -rn true 2>/dev/null || skip 'a network namespace cannot be made here'
    run --separate-stderr timeout 60 unshare -rn "$T_DAQIRI" pingpong --device soft --addr 198.51.100.1:9 --json
    failed peer_unreachable pre-resource-control
    says 'Network is unreachable'
}

@test "peers that lie, or stop half way" {
    need_python
    fake_server hello:pingpong,protocol_min=7,protocol_max=7 stay
    client
    failed protocol pre-resource-control
    says 'speaks versions 7 to 7 of the protocol'

    fake_server hello:pingpong stay
    client --setup-timeout 3s
    failed timeout post-resource-control

    ready=frame:ready,stage=post-resource-control
    fake_server hello:pingpong frame:ready,stage=nope stay
    client
    failed protocol post-resource-control
    says 'the peer is in stage nope'

    # an MTU of 9, a QPN of 32 bits
    fake_server hello:pingpong "$ready" frame:info,lid=1,mtu=9,is_global=false,qpn=1,psn=1,gid_index=0,gid=fe800000000000000000000000000001 stay
    client
    failed protocol exchange-rdma-info
    fake_server hello:pingpong "$ready" frame:info,lid=1,mtu=5,is_global=false,qpn=16777217,psn=1,gid_index=0,gid=fe800000000000000000000000000001 stay
    client
    failed protocol exchange-rdma-info

    # the terms of a client: no size, too much
    server
    fake_client hello:pingpong frame:terms,size=0,iterations=10,is_uc=false stay
    server_failed protocol pre-resource-control
    server
    fake_client hello:pingpong frame:terms,size=9223372036854775807,iterations=10,is_uc=false stay
    server_failed protocol pre-resource-control
    server --setup-timeout 300ms
    fake_client hello:pingpong stay
    server_failed timeout pre-resource-control
    server
    fake_client hello:pingpong close
    server_failed peer_gone pre-resource-control
}

@test "a peer that goes, or falls silent, in each stage" {
    local at frames=() stages=(pre-resource-control post-resource-control
        exchange-rdma-info exchange-rdma-ready datapath)

    need_python
    frames=('' hello:pingpong frame:ready,stage=post-resource-control
        "frame:info,lid=1,mtu=5,is_global=false,qpn=1,psn=1,gid_index=0,gid=$(soft_gid)"
        frame:ready,stage=exchange-rdma-ready)
    # ours is the client, then the server, which waits for the client's terms, too
    for at in 0 1 2 3 4; do
        # shellcheck disable=SC2068 # the first one is no word
        fake_server ${frames[@]:0:at+1} fin stay
        client
        failed peer_gone "${stages[at]}"
        fake_server ${frames[@]:0:at+1} stay
        client --setup-timeout 1s
        [ "$at" -eq 4 ] && failed completion_failure datapath || failed timeout "${stages[at]}"
    done
    frames[1]='hello:pingpong frame:terms,size=64,iterations=10,is_uc=false'
    for at in 0 1 2 3 4; do
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

@test "table and CSV" {
    server
    daqiri pingpong --device soft --addr "$addr" --iters 10
    [ "$status" -eq 0 ]
    [[ $output == *'data went over       rdma'*'messages, both ways  20'* ]]
    ended "$server"
    server
    daqiri pingpong --device soft --addr "$addr" --iters 10 --csv
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == role,device,transport,datapath,size,messages,* ]]
    [[ ${lines[1]} == client,softverbs0,RC,rdma,64,20,* ]]
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
