#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri sweep and daqiri drop-curve against daqiri serve: on loopback, between
# network namespaces, and with peers that do not behave. softverbs is for one
# host, so the namespaces share it; TCP between them is real.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    need_jq
    # A busy machine may slow a run down to nothing: no test is about that.
    calm=(--device soft --duration 10ms --repeats 1 --collapse 1 --rate 100)
    brief=("${calm[@]}" --transports tcp --patterns stream --sizes 64)
}

# stop_server STATUS: it ends with that.
stop_server()
{
    kill -INT "$server"
    ended "$server"
    cat serve.out serve.err
    [ "$ended" -eq "$1" ]
}

valid_lines()
{
    valid_each flow < serve.out
}

# All rows have arrived complete.
good()
{
    [ "$status" -eq 0 ] || [[ $output == *'"collapse": '[1-9]* ]]
    has '[.rows[] | .runs[] | .ok and .sent == .received and .sent > 1 and .disorder == 0 and .gbps > 0 and .error == null] | length > 0 and all'
    has '.interrupted == false and .verdict.missing == 0 and .verdict.drops == 0 and .peer_version == .version'
}

@test "sweep: each transport and pattern; a line of the server for each run" {
    serve --json --device soft --timeout 20s
    daqiri sweep "${calm[@]}" --addr "$addr" --transports daqiri,rc_verbs,verbs,tcp \
        --patterns stream,duplex,pingpong --sizes 64K --json
    valid sweep
    good
    has "(.rows | length) == 12 and .addr == \"$addr\""
    has '[.rows[] | select(.transport == "daqiri") | .runs[].counters | .tx.am_tx_bytes > 0 and .rx.am_tx_bytes > 0] | length == 3 and all'
    has '[.rows[] | select(.pattern == "pingpong") | .round_trip.p50_us > 0] | length == 4 and all'
    line 12 '.test == "flow" and .ok and .transport == "tcp" and .datapath == "tcp" and .device == null'
    valid_lines
    [ "$(jq -s '[.[] | .ok and .messages > 0 and .elapsed_s > 0 and .stage == "done"] | all and length == 12' serve.out)" = true ]
    [ "$(jq -s '[.[] | select(.datapath == "rdma") | .device] | unique == ["softverbs0"]' serve.out)" = true ]
    # another client, other terms, on the same server
    daqiri drop-curve "${calm[@]}" --addr "$addr" --transports verbs --sizes 4K --targets 25 --json
    valid drop-curve
    good
    has '[.rows[].target_percent] == [null, 25]'
    line 14 '.transport == "verbs" and .size == 4096 and .target_gbps > 0'
    stop_server 0
}

@test "between network namespaces, and no route" {
    make_namespaces
    serve_from_a
    serve --json --device soft --timeout 20s
    from_b sweep "${calm[@]}" --addr "$addr" --transports daqiri,rc_verbs,verbs,tcp --patterns stream --sizes 4K --json
    good
    has '.rows | length == 4'
    line 4 '(.local_addr | startswith("192.0.2.1:")) and (.remote_addr | startswith("192.0.2.2:"))'
    from_b drop-curve "${calm[@]}" --addr "$addr" --transports tcp --sizes 1K --targets none --json
    good
    from_b sweep "${brief[@]}" --addr 198.51.100.1:9 --json
    [ "$status" -eq 1 ]
    has '.verdict.missing == 1 and .peer_version == null and (.rows[0].why | test("cannot connect to 198.51.100.1:9: Network is unreachable"))'
    says 'daqiri sweep: cannot connect to 198.51.100.1:9: Network is unreachable'
    stop_server 0
}

@test "nobody listens, a name that is none, another server: a sentence once, and no run is tried" {
    daqiri drop-curve "${calm[@]}" --addr 127.0.0.1:1 --transports tcp --targets 1,2,3 --json
    [ "$status" -eq 1 ]
    valid drop-curve
    says 'daqiri drop-curve: cannot connect to 127.0.0.1:1: Connection refused'
    daqiri sweep "${brief[@]}" --addr host.invalid
    [ "$status" -eq 1 ]
    says "daqiri sweep: 'host.invalid': "
    daqiri sweep --addr '[::1'
    refused 2 "'[::1' is no address"
    daqiri sweep --addr 127.0.0.1:65536
    refused 2 "'127.0.0.1:65536' is no address: a port is a number up to 65535"
    daqiri serve --device none --listen :999999
    refused 2 "':999999' is no address: a port is a number up to 65535"
    need_python
    fake_server hello:dance stay
    daqiri sweep "${brief[@]}" --addr "$addr"
    [ "$status" -eq 1 ]
    says 'the peer is there for daqiri dance, not for daqiri sweep'
}

@test "servers that lie: another version, nonsense, the wrong message, silence" {
    need_python
    fake_server hello:sweep,protocol_min=7,protocol_max=9 stay
    daqiri sweep "${brief[@]}" --addr "$addr"
    [ "$status" -eq 1 ]
    says 'daqiri sweep: the peer, daqiri 9.9, speaks versions 7 to 9 of the protocol, and daqiri '
    fake_server 'hex:474554202f20485454502f312e300d0a0d0a' stay
    daqiri sweep "${brief[@]}" --addr "$addr"
    [ "$status" -eq 1 ]
    says 'daqiri sweep: the peer is not daqiri, or sent a message of 1195725856 bytes'
    # READY where an address was to come; an address that is cut short
    fake_server hello:sweep frame:ready,stage=x stay
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    [ "$status" -eq 1 ]
    valid sweep
    has '.rows[0].why | contains("the peer sent \"ready\" where \"flow_address\" was to come")'
    fake_server hello:sweep frame:flow_address,port=1,device=0 stay
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    [ "$status" -eq 1 ]
    has '.rows[0].why | contains("the peer sent a message that cannot be read: the value \"device\" of kind \"flow_address\"")'
    # it fails, and says why; it goes
    fake_server hello:sweep 'frame:abort,failure_class=local,stage=x,error=abc' stay
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    [ "$status" -eq 1 ]
    has '.rows[0].runs[0].ok == false'
    fake_server hello:sweep close
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    [ "$status" -eq 1 ]
    has '.rows[0].why | test("the peer closed the connection|the connection to the peer broke")'
}

# What a newer one sends more of is nobody's business here; an older one had less.
@test "a newer and an older daqiri: both speak the highest version that both know" {
    need_python
    serve --json --device none --timeout 20s
    fake_client hello:sweep,protocol_max=9,mood=good 'frame:done,messages=0,mood=good' stay
    fake_client hello:sweep,protocol_min=1 'frame:done,messages=0' stay
    fake_server hello:sweep,protocol_min=1,protocol_max=9,mood=good \
        'frame:abort,failure_class=local,stage=x,error=abc,mood=bad' stay
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    has '.rows[0].why | contains("the peer failed in stage x (local): abc")'
    has '.peer_version == "9.9"'
    stop_server 0
    [ ! -s serve.out ] # neither client has failed
}

@test "a daqiri that is too new, or too old, is told so in a sentence, whoever serves" {
    local hello

    need_python
    serve --json --device none --timeout 20s
    for hello in hello:sweep,protocol_min=4,protocol_max=9 hello:sweep,protocol_min=1,protocol_max=2; do
        start client /usr/bin/python3 "$fake_peer" "${addr##*:}" "$hello" hear
        ended "$pid"
        grep -a -q '"kind":"abort".*of the protocol, and daqiri ' client.out
    done
    # daqiri 0.1 is answered so that it names the version
    start client /usr/bin/python3 "$fake_peer" "${addr##*:}" hex:44515249000200010000000000000000 hear
    ended "$pid"
    [ "$(head -c 8 client.out | od -A n -t x1 | tr -d ' \n')" = 4451524900030001 ]
    # what it does not have yet
    start client /usr/bin/python3 "$fake_peer" "${addr##*:}" hello:dance hear
    ended "$pid"
    grep -a -q 'asks for .*dance.*, which daqiri .* does not have' client.out
    stop_server 1
    [ "$(grep -c '"failure_class": *"protocol"' serve.out)" -eq 3 ]
    fake_server hex:44515249000200010000000000000000 stay
    daqiri sweep "${brief[@]}" --addr "$addr"
    [ "$status" -eq 1 ]
    says 'daqiri sweep: the peer is daqiri 0.1, which speaks a protocol that this one does not'
}

@test "frames that are none: cut short, too long, no object, no kind, another type, twice" {
    local word

    need_python
    serve --json --device none --timeout 1s
    # too long by one, as long as can be, cut short, empty, no JSON, no object, NUL in it
    for word in hex:00004001 hex:ffffffff hex:00000010 hex:00 'json:' 'json:{' 'json:[1]' 'json:"hello"' \
            'json:{"kind":"hello"}' 'json:{"kind":7}' 'json:{"kind":"dance"}' \
            'hello:sweep,protocol_min=-1' 'hello:sweep,protocol_max=1.5' 'hello:sweep,protocol_max=99999999999999999999' \
            'hello:sweep,version=7' "hello:sweep,version=$(printf '%032d' 0)" \
            'json:{"kind":"hello","kind":"hello","protocol_min":3,"protocol_max":3,"service":"sweep","version":"1"}' \
            "hex:00004000$(printf '5b%.0s' {1..16384})"; do
        fake_client "$word" stay
    done
    wait_for 60 sh -c '[ "$(wc -l < serve.out)" -ge 18 ]'
    [ "$(jq -r .failure_class serve.out | sort | uniq -c | tr -s ' ' | tr '\n' ' ')" = ' 16 protocol  2 timeout ' ]
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    good
}

@test "clients that stop half way or lie: a line each, and the server goes on" {
    need_python
    serve --json --device soft --timeout 1s
    # silence instead of terms; then closed
    fake_client hello:sweep stay
    line 1 '.test == "flow" and .failure_class == "timeout" and .stage == "control" and .transport == null'
    fake_client hello:sweep read:21 close
    line 2 '.failure_class == "peer_gone" and .stage == "control"'
    # a transport that would be an option; then an answer that is nobody's
    fake_client hello:sweep frame:flow_terms,transport=-x,pattern=stream,size=64,window=64,duration_ns=1000000000,bits_per_s=0 stay
    line 3 '.failure_class == "protocol" and .stage == "control"'
    fake_client hello:sweep frame:ready,stage=connect stay
    line 4 '.failure_class == "protocol" and (.error | test("terms of a run"))'
    # tcp, 64 bytes: it asks, and then says nothing, goes, or does not connect
    terms=frame:flow_terms,transport=tcp,pattern=stream,size=64,window=64,duration_ns=1000000000,bits_per_s=0
    fake_client hello:sweep "$terms" read:100 close
    line 5 '.ok == false and .transport == "tcp" and (.failure_class == "peer_gone" or .failure_class == "timeout")'
    # raw verbs, and an MTU of 9
    terms=frame:flow_terms,transport=verbs,pattern=stream,size=64,window=64,duration_ns=1000000000,bits_per_s=0
    fake_client hello:sweep "$terms" frame:info,lid=1,mtu=9,is_global=false,qpn=1,psn=1,gid_index=0,gid=fe800000000000000000000000000001 stay
    line 6 '.failure_class == "protocol" and .stage == "exchange-rdma-info" and .transport == "verbs"'
    # an address that is none of UCX's
    terms=frame:flow_terms,transport=daqiri,pattern=stream,size=64,window=64,duration_ns=1000000000,bits_per_s=0
    fake_client hello:sweep "$terms" frame:flow_address,port=0,device=01,iface=01,ep= stay
    line 7 '.failure_class == "protocol" and (.error | test("address of another kind"))'
    # nobody has sent what this one was to send
    fake_client hello:sweep "$terms" stay
    line 8 '.failure_class == "timeout" and .stage == "connect"'
    valid_lines
    # with nothing to be measured there is no line
    fake_client hello:sweep frame:done,messages=0 stay
    stop_server 1
    [ "$(wc -l < serve.out)" -eq 8 ]
}

@test "a server without a device answers tcp and refuses the others in a sentence" {
    serve --json --device none --timeout 20s
    daqiri sweep "${calm[@]}" --addr "$addr" --transports verbs,tcp --patterns stream --sizes 64 --json
    [ "$status" -eq 1 ]
    has '.rows[0].verdict == "missing" and (.rows[0].why | contains("this server has no RDMA device, it answers TCP only"))'
    has '.rows[1].verdict == "ok"'
    line 1 '.failure_class == "no_device" and .stage == "control" and .datapath == null'
    line 2 '.ok'
    valid_lines
}

@test "a server without a device answers UCX's TCP too, over the interface of the connection" {
    serve --json --device none --timeout 20s
    daqiri sweep "${calm[@]}" --addr "$addr" --transports uct:tcp --patterns stream,pingpong --sizes 4K --json
    [ "$status" -eq 0 ]
    has '[.rows[].device == "lo"] | length == 2 and all'
    line 2 '.ok and .transport == "uct:tcp" and .datapath == "tcp" and .device == null'
    valid_lines
}

@test "a transport that only one side has is missing, the others are measured" {
    serve_with=(env UCX_MODULES=cma) # not ib
    serve --json --device soft --timeout 20s
    daqiri sweep "${calm[@]}" --addr "$addr" --transports rc_verbs,tcp --patterns stream --sizes 64 --json
    [ "$status" -eq 1 ]
    has '.rows[0].verdict == "missing" and (.rows[0].why | contains("there is no transport rc_verbs"))'
    has '.rows[1].verdict == "ok"'
    line 1 '.ok == false and (.failure_class == "local" or .failure_class == "peer_failed")'
    line 2 '.ok'
    valid_lines
}

# under NAME PID: a descendant of it is that program; it is $found.
under()
{
    local child

    for child in $(pgrep -P "$2" 2>/dev/null); do
        if [[ $(readlink "/proc/$child/exe") == */$1 ]]; then
            found=$child
            return 0
        fi
        under "$1" "$child" && return 0
    done
    return 1
}

# flows PID: its daqiri-flow has had the processor for a while: it sends.
flows()
{
    under daqiri-flow "$1" || return 1
    [ "$(awk '{ print $14 + $15 }' "/proc/$found/stat" 2>/dev/null || echo 0)" -ge 10 ]
}

# client [OPTION...]: a long sweep in the background; it is $client.
client()
{
    start client timeout 100 "$T_DAQIRI" sweep --device soft --duration 60s --repeats 1 \
        --transports tcp --patterns stream --addr "$addr" --json "$@"
    client=$pid
    running+=("$pid")
    wait_for 60 flows "$client"
    wait_for 60 flows "$server"
}

@test "Ctrl-C of the client: both report what was measured, and the server goes on" {
    serve --json --device soft --timeout 20s
    client --sizes 64,128
    kill -INT "$(pgrep -P "$client")"
    ended "$client"
    cat client.err
    [ "$ended" -eq 1 ]
    holds client.out '.interrupted and .runs == 1 and .rows[0].verdict == "ok" and .rows[0].runs[0].sent > 1 and .rows[1].verdict == "not measured"'
    line 1 '.ok and .messages > 0'
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    good
    stop_server 0
}

@test "Ctrl-C of the server: both report what was measured" {
    serve --json --device soft --timeout 20s
    client --sizes 64,128
    kill -INT "$server"
    ended "$server"
    line 1 '.ok and .interrupted and .messages > 0'
    ended "$client"
    cat client.err
    [ "$ended" -eq 1 ]
    holds client.out '.interrupted == false and .rows[0].runs[0].ok and .rows[0].runs[0].sent > 1 and .rows[1].verdict == "missing"'
    holds client.out '.rows[1].why | contains("(interrupted): the server was asked to stop")'
}

# heard N: the client in the background has heard more than so many bytes.
heard()
{
    [ "$(wc -c < client.out)" -gt "$1" ]
}

@test "Ctrl-C of the server between two runs, and in the set-up of one: the client hears of it, and nothing has failed" {
    need_python
    serve --json --device soft --timeout 20s
    start client /usr/bin/python3 "$fake_peer" "${addr##*:}" hello:sweep hear
    client=$pid
    running+=("$pid")
    wait_for 60 heard 16
    stop_server 0
    [ ! -s serve.out ]
    ended "$client"
    grep -q -a 'interrupted' client.out
    grep -q -a 'the server was asked to stop' client.out
    # verbs, 64 bytes; its address comes, ours does not
    serve --json --device soft --timeout 20s
    terms=frame:flow_terms,transport=verbs,pattern=stream,size=64,window=64,duration_ns=1000000000,bits_per_s=0
    start client /usr/bin/python3 "$fake_peer" "${addr##*:}" hello:sweep "$terms" hear
    client=$pid
    running+=("$pid")
    wait_for 60 heard 120
    stop_server 0
    line 1 '.ok == false and .failure_class == "interrupted" and .error == "the server was asked to stop" and .messages == 0'
    valid_lines
    ended "$client"
    grep -q -a 'the server was asked to stop' client.out
}

@test "a client that is killed: the server says so and goes on" {
    serve --json --device soft --timeout 20s
    client --sizes 64
    kill -KILL "$(pgrep -P "$client")"
    line 1 '.ok == false and .failure_class == "peer_gone"'
    daqiri sweep "${brief[@]}" --addr "$addr" --json
    good
}

@test "a client that is stopped: after its patience the server leaves it" {
    serve --json --device soft --timeout 3s
    client --sizes 64
    under daqiri-flow "$client"
    kill -STOP "$found"
    line 1 '.ok == false and .failure_class == "timeout" and .stage == "datapath"'
    kill -CONT "$found"
    ended "$client"
    [ "$ended" -eq 1 ]
    holds client.out '.rows[0].verdict == "missing" and (.rows[0].why | contains("the peer failed in stage datapath (timeout): nothing came from the other end within"))'
}
