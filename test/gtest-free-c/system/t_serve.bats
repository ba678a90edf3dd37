#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri serve as the one server of daqiri tcp and daqiri pingpong: on one host,
# between network namespaces, without a device, and with clients and verbs that
# do not behave. What is TCP's alone is in t_tcp.bats. softverbs is for one
# host, so the namespaces share it; TCP between them is real.

bats_require_minimum_version 1.5.0
load tools.bash

# lines N: so many clients have been reported.
lines()
{
    wait_for 60 said "$1"
}

# Each line is as the schema of its test says.
valid_lines()
{
    local name

    for name in tcp pingpong; do
        valid_each "$name" < <(jq -c "select((.test // \"tcp\") == \"$name\")" serve.out)
    done
}

@test "one server for tcp and pingpong; it outlives its clients" {
    serve -device soft -json
    daqiri pingpong -device soft -addr "$addr" -iters 100 -json
    [ "$status" -eq 0 ]
    valid pingpong
    has '.ok and .datapath == "rdma" and .messages == 200 and .peer_version == .version'
    cp /dev/stdin pingpong.json <<<"$output"
    daqiri tcp -addr "$addr" -pattern pingpong -duration 50ms -json
    [ "$status" -eq 0 ]
    daqiri pingpong -device soft -addr "$addr" -duration 50ms -size 1M -json
    [ "$status" -eq 0 ]
    lines 3
    line 1 '.command == "serve" and .test == "pingpong" and .ok and .role == "server" and .messages == 200 and .device == "softverbs0"'
    [ "$(jq -S .local line.json)" = "$(jq -S .remote pingpong.json)" ]
    [ "$(jq -r .remote_addr line.json)" = "$(jq -r .local_addr pingpong.json)" ]
    line 2 '.command == "serve" and .test == "tcp" and .ok and .datapath == "tcp"'
    line 3 '.test == "pingpong" and .ok and .size == 1048576'
    valid_lines
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "clients of both kinds at once" {
    serve -device soft -json -count 4
    for i in 1 2; do
        start "p$i" "$T_DAQIRI" pingpong -device soft -addr "$addr" -iters 300 -json
        clients[2 * i]=$pid
        start "t$i" "$T_DAQIRI" tcp -addr "$addr" -duration 100ms -json
        clients[2 * i + 1]=$pid
    done
    for pid in "${clients[@]}"; do
        ended "$pid"
        [ "$ended" -eq 0 ]
    done
    ended "$server"
    [ "$ended" -eq 0 ]
    lines 4
    [ "$(jq -s '[.[] | select(.ok)] | length' serve.out)" -eq 4 ]
    [ "$(jq -s -r 'map(.test) | sort | join(" ")' serve.out)" = 'pingpong pingpong tcp tcp' ]
}

@test "-device none: pingpong is refused in a sentence on both sides, tcp is answered" {
    serve -device none -json
    daqiri pingpong -device soft -addr "$addr" -json
    [ "$status" -eq 1 ]
    valid pingpong
    has '.failure_class == "peer_failed" and (.error | test("this server has no RDMA device"))'
    daqiri tcp -addr "$addr" -duration 50ms -json
    [ "$status" -eq 0 ]
    lines 2
    line 1 '.test == "pingpong" and .failure_class == "no_device" and .device == null and .datapath == null'
    line 2 '.ok'
    valid_lines
}

@test "no device is usable: the software device, and that is said; devices that cannot be listed: TCP only" {
    serve_with=(env LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    serve
    grep -q 'no RDMA device is usable' serve.err
    grep -q 'RDMA goes over softverbs0' serve.err
    serve_with=(env LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    serve
    grep -q 'so RDMA is refused, and TCP is answered' serve.err
    daqiri tcp -addr "$addr" -duration 50ms -json
    [ "$status" -eq 0 ]
}

@test "a device that is not there, devices that cannot be listed: a sentence before anybody comes" {
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down mlx5_1=active')
    daqiri serve -device mlx5_2 -listen 127.0.0.1:0
    refused 1 "daqiri serve: there is no device 'mlx5_2'; there are: mlx5_0, mlx5_1"
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    daqiri serve -device mlx5_2 -listen 127.0.0.1:0
    refused 1 'daqiri serve: RDMA devices cannot be listed: '
    with=()
    daqiri serve -device nope -listen 127.0.0.1:0
    refused 1 "daqiri serve: there is no device 'nope'; there are: "
    # one whose port is down may come up
    serve_with=(env LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    serve -device mlx5_0
    grep -q 'RDMA goes over mlx5_0' serve.err
}

@test "pingpong clients that stop half way or lie: a line each, and the server goes on" {
    need_python
    serve -device soft -timeout 3s -json
    fake_client hello:1 stay
    lines 1
    line 1 '.test == "pingpong" and .failure_class == "timeout" and .stage == "pre-resource-control"'
    fake_client hello:1 close
    lines 2
    line 2 '.failure_class == "peer_gone" and .stage == "pre-resource-control"'
    # no size; then a peer that opens and says no more; then an MTU of 9
    fake_client hello:1 'frame:2:0000000000000000000000000000000a00' stay
    lines 3
    line 3 '.failure_class == "protocol"'
    terms='frame:2:0000000000000040000000000000000a00'
    fake_client hello:1 "$terms" stay
    lines 4
    line 4 '.failure_class == "timeout" and .stage == "post-resource-control"'
    ready='frame:4:0015706f73742d7265736f757263652d636f6e74726f6c'
    fake_client hello:1 "$terms" "$ready" \
        'frame:3:00010900000000010000000100000000fe800000000000000000000000000001' stay
    lines 5
    line 5 '.failure_class == "protocol" and .stage == "exchange-rdma-info"'
    fake_client 'hex:474554202f20485454502f312e300d0a0d0a' stay
    lines 6
    line 6 '.failure_class == "protocol" and .test == null and .stage == "control"'
    valid_lines
    # also of those whose connection is broken by now
    [ "$(jq -s '[.[] | .remote_addr | startswith("127.0.0.1:")] | all' serve.out)" = true ]
    daqiri pingpong -device soft -addr "$addr" -iters 10 -json
    [ "$status" -eq 0 ]
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 1 ]
}

@test "a verb that hangs in the server: its client is told, the others are served" {
    serve_with=(env LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=rtr)
    serve -device soft -timeout 3s -json
    daqiri pingpong -device soft -addr "$addr" -setup-timeout 60s -json
    [ "$status" -eq 1 ]
    has '.failure_class == "peer_failed" and .stage == "exchange-rdma-ready" and (.error | test("connect-rdma \\(provider_timeout\\)"))'
    lines 1
    line 1 '.failure_class == "provider_timeout" and .stage == "connect-rdma" and .test == "pingpong"'
    daqiri tcp -addr "$addr" -duration 50ms -json
    [ "$status" -eq 0 ]
}

# The process of the server that talks to the device, once it has done something.
flows()
{
    local pid ticks

    for pid in $(pgrep -P "$(pgrep -P "$server" | head -n 1)" 2>/dev/null); do
        ticks=$(awk '{ print $14 + $15 }' "/proc/$pid/stat" 2>/dev/null)
        [ "${ticks:-0}" -lt 20 ] || return 0
    done
    return 1
}

@test "Ctrl-C of the server in the middle of a pingpong: both report what was measured" {
    serve -device soft -json
    start client timeout 100 "$T_DAQIRI" pingpong -device soft -addr "$addr" -duration 1h -json
    client=$pid
    running+=("$client")
    wait_for 60 flows
    kill -INT "$server"
    ended "$client"
    cat client.out client.err
    [ "$ended" -eq 0 ]
    holds client.out '.ok and .messages > 0 and .interrupted == false'
    ended "$server"
    cat serve.out serve.err
    [ "$ended" -eq 0 ]
    lines 1
    line 1 '.ok and .messages > 0 and .interrupted'
}

@test "between network namespaces: tcp and pingpong from one to the other" {
    make_namespaces
    serve_from_a
    serve -device soft -json
    from_b pingpong -device soft -addr "$addr" -iters 100 -json
    [ "$status" -eq 0 ]
    has '.ok and .messages == 200 and (.local_addr | startswith("192.0.2.2:")) and (.remote_addr | startswith("192.0.2.1:"))'
    from_b tcp -addr "$addr" -duration 50ms -json
    [ "$status" -eq 0 ]
    from_b pingpong -device soft -addr 198.51.100.1:9 -json
    [ "$status" -eq 1 ]
    has '.failure_class == "peer_unreachable" and (.error | test("Network is unreachable"))'
    # and without serve
    start server ip netns exec "$ns_a" timeout 100 "$T_DAQIRI" pingpong -device soft -listen 192.0.2.1:0 -json
    running+=("$pid")
    peer=$pid
    listening server
    from_b pingpong -device soft -addr "$addr" -duration 50ms -json
    [ "$status" -eq 0 ]
    ended "$peer"
    [ "$ended" -eq 0 ]
    holds server.out '.ok and (.remote_addr | startswith("192.0.2.2:"))'
}

@test "a line for people, and CSV" {
    serve -device soft -count 2
    daqiri pingpong -device soft -addr "$addr" -iters 10
    [ "$status" -eq 0 ]
    daqiri tcp -addr "$addr" -duration 50ms
    [ "$status" -eq 0 ]
    ended "$server"
    [ "$ended" -eq 0 ]
    grep -q -E '^127\.0\.0\.1:[0-9]+: pingpong of 64 bytes, .* over RDMA, ' serve.out
    grep -q -E '^127\.0\.0\.1:[0-9]+: stream of 1048576 bytes, .* over TCP, ' serve.out
    serve -device soft -count 1 -csv
    daqiri pingpong -device soft -addr "$addr" -iters 10
    ended "$server"
    [ "$(head -n 1 serve.out)" = 'remote_addr,test,datapath,pattern,size,messages,bytes,elapsed_s,gbit_per_s,cpu_percent,failure_class' ]
    grep -q -E '^127\.0\.0\.1:[0-9]+,pingpong,rdma,pingpong,64,20,1280,' serve.out
}
