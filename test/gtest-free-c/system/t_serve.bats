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

# Each line is as its schema says.
valid_lines()
{
    valid_each flow <serve.out
}

@test "one server for tcp and pingpong; it outlives its clients" {
    serve --device soft --json
    daqiri pingpong --device soft --addr "$addr" --iters 100 --json
    [ "$status" -eq 0 ]
    valid pingpong
    has '.peer_version == .version and .rows[0].runs[0].ok and .rows[0].runs[0].sent == 200'
    cp /dev/stdin pingpong.json <<<"$output"
    daqiri tcp --addr "$addr" --pattern pingpong --duration 50ms --json
    [ "$status" -eq 0 ]
    daqiri pingpong --device soft --addr "$addr" --duration 50ms --size 1M --json
    [ "$status" -eq 0 ]
    lines 3
    line 1 '.command == "serve" and .test == "flow" and .ok and .role == "server" and .datapath == "rdma" and .pattern == "pingpong" and .messages == 200 and .device == "softverbs0"'
    [ "$(jq -S .local line.json)" = "$(jq -S '.rows[0].runs[0].remote' pingpong.json)" ]
    line 2 '.command == "serve" and .test == "flow" and .ok and .datapath == "tcp"'
    line 3 '.pattern == "pingpong" and .ok and .size == 1048576'
    valid_lines
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 0 ]
}

@test "clients of both kinds at once" {
    serve --device soft --json --count 4
    for i in 1 2; do
        start "p$i" "$T_DAQIRI" pingpong --device soft --addr "$addr" --iters 300 --json
        clients[2 * i]=$pid
        start "t$i" "$T_DAQIRI" tcp --addr "$addr" --duration 100ms --json
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
    [ "$(jq -s -r 'map(.transport) | sort | join(" ")' serve.out)" = 'tcp tcp verbs verbs' ]
}

@test "--device none: pingpong is refused in a sentence on both sides, tcp is answered" {
    serve --device none --json
    daqiri pingpong --device soft --addr "$addr" --json
    [ "$status" -eq 1 ]
    valid pingpong
    run_is '.failure_class == "peer_failed" and (.error | test("this server has no RDMA device"))'
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    lines 2
    line 1 '.transport == "verbs" and .failure_class == "no_device" and .device == null and .datapath == null'
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
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
}

@test "a device that is not there, devices that cannot be listed: a sentence before anybody comes" {
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down mlx5_1=active')
    daqiri serve --device mlx5_2 --listen 127.0.0.1:0
    refused 1 "daqiri serve: there is no device 'mlx5_2'; there are: mlx5_0, mlx5_1"
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='list=denied')
    daqiri serve --device mlx5_2 --listen 127.0.0.1:0
    refused 1 'daqiri serve: RDMA devices cannot be listed: '
    with=()
    daqiri serve --device nope --listen 127.0.0.1:0
    refused 1 "daqiri serve: there is no device 'nope'; there are: "
    # one whose port is down may come up
    serve_with=(env LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    serve --device mlx5_0
    grep -q 'RDMA goes over mlx5_0' serve.err
}

@test "pingpong clients that stop half way or lie: a line each, and the server goes on" {
    need_python
    terms=frame:flow_terms,transport=verbs,pattern=pingpong,window=64,duration_ns=0,bits_per_s=0
    serve --device soft --timeout 1s --json
    fake_client hello:sweep stay
    lines 1
    line 1 '.failure_class == "timeout" and .stage == "control"'
    fake_client hello:sweep close
    lines 2
    line 2 '.failure_class == "peer_gone" and .stage == "control"'
    # no size; then a peer that opens and says no more; then an MTU of 9
    fake_client hello:sweep "$terms,size=0" stay
    lines 3
    line 3 '.failure_class == "protocol"'
    fake_client hello:sweep "$terms,size=64" stay
    lines 4
    line 4 '.failure_class == "timeout" and .stage == "exchange-rdma-info"'
    fake_client hello:sweep "$terms,size=64" \
        frame:info,lid=1,mtu=9,is_global=false,qpn=1,psn=1,gid_index=0,gid=fe800000000000000000000000000001 stay
    lines 5
    line 5 '.failure_class == "protocol" and .stage == "exchange-rdma-info"'
    fake_client 'hex:474554202f20485454502f312e300d0a0d0a' stay
    lines 6
    line 6 '.failure_class == "protocol" and .test == null and .stage == "control"'
    valid_lines
    # also of those whose connection is broken by now
    [ "$(jq -s '[.[] | .remote_addr | startswith("127.0.0.1:")] | all' serve.out)" = true ]
    daqiri pingpong --device soft --addr "$addr" --iters 10 --json
    [ "$status" -eq 0 ]
    kill -INT "$server"
    ended "$server"
    [ "$ended" -eq 1 ]
}

@test "a verb that hangs in the server: its client is told, the others are served" {
    serve_with=(env LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=rtr)
    serve --device soft --timeout 500ms --json
    daqiri pingpong --device soft --addr "$addr" --setup-timeout 60s --json
    [ "$status" -eq 1 ]
    run_is '.failure_class == "peer_failed" and .stage == "exchange-rdma-ready" and (.error | test("connect-rdma \\(provider_timeout\\)"))'
    lines 1
    line 1 '.failure_class == "provider_timeout" and .stage == "connect-rdma" and .pattern == "pingpong"'
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
}

# The process of the server that talks to the device, once it has done something.
flows()
{
    local process=$server child ticks

    while child=$(pgrep -P "$process" | head -n 1) && [ -n "$child" ]; do
        process=$child
    done
    ticks=$(awk '{ print $14 + $15 }' "/proc/$process/stat" 2>/dev/null)
    [ "$process" != "$server" ] && [ "${ticks:-0}" -ge 20 ]
}

@test "Ctrl-C of the server in the middle of a pingpong: both report what was measured" {
    serve --device soft --json
    start client timeout 100 "$T_DAQIRI" pingpong --device soft --addr "$addr" --duration 1h --json
    client=$pid
    running+=("$client")
    wait_for 60 flows
    kill -INT "$server"
    ended "$client"
    cat client.out client.err
    [ "$ended" -eq 0 ]
    holds client.out '.interrupted == false and .rows[0].runs[0].sent > 0'
    ended "$server"
    cat serve.out serve.err
    [ "$ended" -eq 0 ]
    lines 1
    line 1 '.ok and .messages > 0 and .interrupted'
}

@test "between network namespaces: tcp and pingpong from one to the other" {
    make_namespaces
    serve_from_a
    serve --device soft --json
    from_b pingpong --device soft --addr "$addr" --iters 100 --json
    [ "$status" -eq 0 ]
    run_is '.ok and .sent == 200'
    line 1 '(.local_addr | startswith("192.0.2.1:")) and (.remote_addr | startswith("192.0.2.2:"))'
    from_b tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    from_b pingpong --device soft --addr 198.51.100.1:9 --json
    [ "$status" -eq 1 ]
    run_is '.failure_class == "peer_unreachable" and (.error | test("Network is unreachable"))'
    # and without serve
    start server ip netns exec "$ns_a" timeout 100 "$T_DAQIRI" pingpong --device soft --listen 192.0.2.1:0 --json
    running+=("$pid")
    peer=$pid
    listening server
    from_b pingpong --device soft --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    ended "$peer"
    [ "$ended" -eq 0 ]
    holds server.out '.ok and (.remote_addr | startswith("192.0.2.2:"))'
}

@test "a line for people, and CSV" {
    serve --device soft --count 2
    daqiri pingpong --device soft --addr "$addr" --iters 10
    [ "$status" -eq 0 ]
    daqiri tcp --addr "$addr" --duration 50ms
    [ "$status" -eq 0 ]
    ended "$server"
    [ "$ended" -eq 0 ]
    grep -q -E '^127\.0\.0\.1:[0-9]+: pingpong of 64 bytes, .* over verbs, ' serve.out
    grep -q -E '^127\.0\.0\.1:[0-9]+: stream of 1048576 bytes, .* over tcp, ' serve.out
    serve --device soft --count 1 --csv
    daqiri pingpong --device soft --addr "$addr" --iters 10
    ended "$server"
    [ "$(head -n 1 serve.out)" = 'remote_addr,test,datapath,pattern,size,messages,bytes,elapsed_s,gbps,cpu_percent,failure_class' ]
    grep -q -E '^127\.0\.0\.1:[0-9]+,flow,rdma,pingpong,64,20,1280,' serve.out
}

# --- bounds: a server that anybody may reach

# serve_all OPTION...: serves on all addresses; $addr is IPv4's, $addr6 IPv6's.
serve_all()
{
    start serve "$T_DAQIRI" serve --listen 0 --device none --json "$@"
    server=$pid
    running+=("$pid")
    listening serve
    addr=127.0.0.1:${addr##*:}
    addr6="[::1]:${addr##*:}"
}

need_ipv6()
{
    grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null || skip 'there is no IPv6 here'
}

# clients N: the server has so many.
clients()
{
    [ "$(pgrep -c -P "$server")" -eq "$1" ]
}

# stays NAME ADDR: a client that says that it comes for a sweep, and no more.
stays()
{
    start "$1" timeout 100 /usr/bin/python3 "$fake_peer" "${2##*:}" hello:sweep stay
    running+=("$pid")
}

@test "--listen with a number alone is a port, on all addresses of IPv4 and IPv6, and that is said" {
    need_ipv6
    serve_all
    wait_for 60 grep -q "waiting for clients on \[::\]:${addr##*:}\$" serve.err
    grep -q "waiting for clients on 0.0.0.0:${addr##*:}\$" serve.err
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    daqiri tcp --addr "$addr6" --duration 50ms --json
    [ "$status" -eq 0 ]
    lines 2
    line 1 '.ok and (.remote_addr | startswith("127.0.0.1:")) and (.local_addr | startswith("127.0.0.1:"))'
    line 2 '.ok and (.remote_addr | startswith("[::1]:"))'
    daqiri serve --device none --listen "${addr##*:}"
    refused 1 "cannot listen on ${addr##*:}: Address already in use"
    daqiri serve --device none --listen 70000
    refused 2 "'70000' is no address: a port is a number up to 65535"
}

@test "--max-clients: who is too many is told, and has a place when one is free" {
    need_python
    serve --device none --timeout 60s --max-clients 2
    stays a "$addr"
    first=$pid
    stays b "$addr"
    wait_for 60 clients 2
    daqiri tcp --addr "$addr" --duration 50ms --json
    failed peer_failed control
    has '.rows[0].runs[0].error | test("this server has its 2 clients, and takes no more meanwhile \\(--max-clients\\)")'
    wait_for 60 grep -q 'daqiri serve: 127\.0\.0\.1:[0-9]* is refused: this server has its 2 clients' serve.err
    kill "$first"
    wait_for 60 clients 1
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
}

@test "--max-per-address: one host does not have all places" {
    need_python
    need_ipv6
    serve_all --timeout 60s --max-per-address 1
    stays a "$addr"
    wait_for 60 clients 1
    daqiri tcp --addr "$addr" --duration 50ms --json
    failed peer_failed control
    has '.rows[0].runs[0].error | test("this server has 1 of 1 clients from this address, and takes no more meanwhile \\(--max-per-address\\)")'
    daqiri tcp --addr "$addr6" --duration 50ms --json
    [ "$status" -eq 0 ]
}

@test "refused by the dozen: each is told, a line a second at most, and no process is left" {
    need_python
    serve --device none --timeout 60s --max-clients 1
    stays a "$addr"
    wait_for 60 clients 1
    for i in $(seq 40); do
        daqiri tcp --addr "$addr" --duration 50ms --json
        failed peer_failed control
    done
    clients 1
    [ "$(grep -c 'is refused' serve.err)" -lt 40 ]
    [ "$(ls "/proc/$server/fd" | wc -l)" -lt 60 ]
}

@test "--max-memory: for the messages of all clients together" {
    need_python
    serve --device soft --timeout 60s --max-memory 1M
    daqiri tcp --addr "$addr" --size 512K --duration 50ms --json
    [ "$status" -eq 0 ]
    daqiri tcp --addr "$addr" --size 1M --duration 50ms --json
    failed peer_failed connect
    has '.rows[0].runs[0].error | test("this server has no 2 MiB for the test: its clients may have 1 MiB together \\(--max-memory\\)")'
    daqiri pingpong --device soft --addr "$addr" --size 1M --iters 10 --json
    [ "$status" -eq 1 ]
    run_is '.error | test("this server has no 2 MiB for the test")'
    daqiri sweep --device soft --addr "$addr" --sizes 1M --transports tcp --duration 50ms
    [ "$status" -eq 1 ]
    [[ $stderr$output == *'this server has no 2 MiB for the test'* ]]
    # pingpong with 512 KiB, that stops when the server is ready
    wait_for 60 clients 0
    start a timeout 100 /usr/bin/python3 "$fake_peer" "${addr##*:}" hello:sweep \
        frame:flow_terms,transport=verbs,pattern=pingpong,window=64,duration_ns=0,bits_per_s=0,size=524288 hear
    running+=("$pid")
    holder=$pid
    wait_for 60 grep -a -q '"qpn"' a.out
    daqiri tcp --addr "$addr" --size 64 --duration 50ms --json
    failed peer_failed connect
    has '.rows[0].runs[0].error | test("this server has no 128 B for the test")'
    kill "$holder"
    wait_for 60 clients 0
    daqiri tcp --addr "$addr" --size 512K --duration 50ms --json
    [ "$status" -eq 0 ]
}

@test "--max-duration: longer tests are refused, and longer stays ended" {
    serve --device soft --timeout 2s --max-duration 1s --json
    daqiri tcp --addr "$addr" --duration 2s --json
    failed peer_failed connect
    has '.rows[0].runs[0].error | test("a test of 2 s is longer than the 1 s that this server allows \\(--max-duration\\)")'
    daqiri pingpong --device soft --addr "$addr" --duration 2s --json
    failed peer_failed exchange-rdma-info
    daqiri pingpong --device soft --addr "$addr" --iters 1000000000 --json
    [ "$status" -eq 0 ]
    run_is '.ok and .sent > 0 and .sent < 2000000000'
    grep -q 'daqiri serve: 127\.0\.0\.1:[0-9]* has been here for as long as it may (--max-duration), and is asked to leave' serve.err
    lines 3
    line 3 '.ok and .interrupted'
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
}

@test "no process for a client: it is told, and the server goes on" {
    [ "$(id -u)" -eq 0 ] || skip 'root has no bound, and only root can become another user'
    command -v setpriv >/dev/null && command -v prlimit >/dev/null || skip 'util-linux is not installed'
    dir=$(mktemp -d)
    install -m 755 "$T_DAQIRI" "${T_DAQIRI%/*}/daqiri-flow" "$dir"
    chmod 755 "$dir"
    start serve setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$dir/daqiri" serve --device none --listen 127.0.0.1:0 --json
    server=$pid
    running+=("$pid")
    listening serve
    bound=(setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --pid "$server")
    most=$("${bound[@]}" --nproc -o HARD --noheadings)
    "${bound[@]}" --nproc=0:
    daqiri tcp --addr "$addr" --duration 50ms --json
    failed peer_failed control
    has '.rows[0].runs[0].error | test("there is no process for another client: Resource temporarily unavailable")'
    "${bound[@]}" --nproc="${most// /}:"
    daqiri tcp --addr "$addr" --duration 50ms --json
    [ "$status" -eq 0 ]
    grep -q 'is refused: there is no process for another client' serve.err
    rm -r "$dir"
}

@test "no descriptor for a client: it waits, and the server goes on" {
    command -v prlimit >/dev/null || skip 'util-linux is not installed'
    serve --device none --json
    prlimit --pid "$server" --nofile=3:
    start client timeout 100 "$T_DAQIRI" tcp --addr "$addr" --duration 50ms --json
    client=$pid
    wait_for 60 grep -q 'no client can be taken: Too many open files' serve.err
    prlimit --pid "$server" --nofile=1024:
    ended "$client"
    [ "$ended" -eq 0 ]
}

@test "bounds: mistakes" {
    daqiri serve --max-clients 0
    refused 2 '--max-clients 0: it is a number from 1 to 1024'
    daqiri serve --max-per-address x
    refused 2 '--max-per-address x: it is a number from 1 to 1024'
    daqiri serve --max-memory 0
    refused 2 '--max-memory 0: it is a size'
    daqiri serve --max-duration 0
    refused 2 '--max-duration 0: it is a time'
}
