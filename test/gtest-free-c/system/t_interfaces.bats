#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri interfaces: what is there, which GID is chosen and why. Devices that
# this machine does not have are played by fake_verbs.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
}

# fake DEVICES [GIDS]: the machine has these from now on.
fake()
{
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS="$1" ${2:+FAKE_GIDS="$2"})
}

@test "network interfaces are as the kernel says" {
    need_jq
    daqiri interfaces --json
    [ "$status" -eq 0 ]
    has '.command == "interfaces" and .error == null'
    has '.interfaces[] | select(.name == "lo") | .addresses | index("127.0.0.1/8") != null'
    for name in /sys/class/net/*; do
        [ -e "$name/mtu" ] || continue
        has ".interfaces[] | select(.name == \"${name##*/}\") | .mtu == $(cat "$name/mtu")"
    done
}

@test "softverbs: its port, its GID and why" {
    need_jq
    daqiri interfaces --device soft --json
    [ "$status" -eq 0 ]
    has '.devices | length == 1'
    has '.devices[0] | .device == "softverbs0" and .port == 1 and .state == "active" and .link_layer == "InfiniBand" and .active_mtu == 4096 and .chosen_gid_index == 0'
    has '.gids == [.gids[] | select(.chosen)]'
}

@test "no device: said, and no failure" {
    fake ''
    daqiri interfaces
    [ "$status" -eq 0 ]
    [[ $output == 'RDMA ports: none'* ]]
}

# chosen INDEX REASON GIDS
chosen()
{
    fake 'mlx5_0=active' "$3"
    daqiri interfaces --json
    [ "$status" -eq 0 ]
    has ".devices[0].chosen_gid_index == $1"
    has ".devices[0].why == \"$2\""
    has "[.gids[] | select(.chosen)] | length == (if $1 == null then 0 else 1 end)"
}

@test "the GID that is chosen: v2 before v1, IPv4 before IPv6 before link-local" {
    need_jq
    chosen 3 'RoCE v2 with an IPv4 address' \
        'v1=fe80::1 v2=fe80::1 v1=::ffff:192.0.2.1 v2=::ffff:192.0.2.1 v2=2001:db8::1'
    chosen 1 'RoCE v2 with an IPv6 address' 'v1=::ffff:192.0.2.1 v2=2001:db8::1 v2=fe80::1'
    chosen 1 'RoCE v2 with a link-local address, as there is no other' 'v1=::ffff:192.0.2.1 v2=fe80::1'
    chosen 0 'RoCE v1 with an IPv4 address, as there is no RoCE v2' 'v1=::ffff:192.0.2.1 v1=fe80::1'
    chosen 0 'RoCE v2 with an IPv4 address, the first of such' \
        'v2=::ffff:192.0.2.1 v2=::ffff:192.0.2.2'
    chosen null "the GID table is empty: the port's network interface has no address, or is down" ' '
}

@test "a GID's interface, and the interface's RDMA port" {
    need_jq
    fake 'mlx5_0=active' 'v2=::ffff:192.0.2.1'
    daqiri interfaces --json
    has '.gids[0].netdev == "lo" and .gids[0].type == "RoCE v2" and .gids[0].gid == "192.0.2.1"'
    has '.interfaces[] | select(.name == "lo") | .rdma == "mlx5_0:1"'
}

@test "devices that cannot be asked: a row each, status 1" {
    need_jq
    fake 'mlx5_0=active mlx5_1=denied mlx5_2=broken'
    daqiri interfaces --json
    [ "$status" -eq 1 ]
    has '.devices[] | select(.device == "mlx5_1") | .error == "it cannot be opened: Permission denied"'
    has '.devices[] | select(.device == "mlx5_2") | .error == "it cannot be opened: Input/output error"'
    has '.devices[] | select(.device == "mlx5_0" and .port == 1) | .error == null and .state == "active"'

    fake 'list=denied'
    daqiri interfaces
    [ "$status" -eq 1 ]
    says 'RDMA devices cannot be listed: Operation not permitted'
}

@test "CSV has the ports, and is quoted where it must be" {
    fake 'mlx5_0=active' 'v1=::ffff:192.0.2.1'
    daqiri interfaces --csv
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'device,port,state,link_layer,lid,active_mtu,speed_gbps,driver,numa_node,num_gids,chosen_gid_index,why,error' ]
    [[ ${lines[1]} == 'mlx5_0,1,active,Ethernet,'*',1,0,"RoCE v1 with an IPv4 address, as there is no RoCE v2",' ]]
}

@test "a device whose driver ends the process takes nothing from the others" {
    need_jq
    fake 'mlx5_0=active mlx5_1=deadly mlx5_2=active' 'v2=::ffff:192.0.2.1'
    daqiri interfaces --json
    [ "$status" -eq 1 ]
    valid interfaces
    has '[.devices[] | select(.port == 1) | .device] == ["mlx5_0", "mlx5_1", "mlx5_2"]'
    has '[.devices[] | select(.error != null) | [.device, .error]] == [["mlx5_1", "the process that tried it died: Aborted"]]'
    has '[.gids[].device] == ["mlx5_0", "mlx5_2"]'
    says 'daqiri interfaces: mlx5_1: the process that tried it died: Aborted'
}

@test "Ctrl-C while a device does not answer: what was asked before is reported, status 124" {
    need_jq
    fake 'mlx5_0=active mlx5_1=wedged mlx5_2=active' 'v2=::ffff:192.0.2.1'
    start list env "${with[@]}" FAKE_FILE="$PWD/hangs" "$T_DAQIRI" interfaces --json
    wait_for 60 test -e hangs
    kill -INT "$pid"
    ended "$pid"
    cat list.err
    [ "$ended" -eq 124 ]
    valid interfaces list.out
    holds list.out '[.devices[] | select(.port == 1) | [.device, .state]] == [["mlx5_0", "active"], ["mlx5_1", null]]'
    holds list.out '.error == "interrupted: not every device was asked"'
}

@test "at a terminal: the device that takes long, after 2 s; status 124" {
    command -v script >/dev/null || skip 'script is not installed'
    run timeout 60 script -qec "env LD_PRELOAD='$shims/fake_verbs.so' FAKE_VERBS='mlx5_0=wedged mlx5_1=active' '$T_DAQIRI' interfaces" /dev/null
    echo "$output"
    [ "$status" -eq 124 ]
    [[ $output == *' s: waiting for mlx5_0'* ]]
    [[ $output == *'mlx5_0: it did not come back within 10 s'*'mlx5_1 '*active* ]]
}

@test "mistakes: a sentence and status 2" {
    daqiri interfaces --frobnicate
    refused 2 "unrecognized option '--frobnicate'"
    daqiri interfaces word
    refused 2 'Too many arguments'
    daqiri interfaces --device mlx5_0
    refused 2 '--device mlx5_0: it is one of soft'
    daqiri interfaces --device
    refused 2 'requires an argument'
    daqiri interfaces --json --csv
    refused 2 '--json and --csv exclude each other'
    daqiri interfaces --csv --json
    refused 2 '--json and --csv exclude each other'
}

@test "a full disk is no success" {
    run bash -c '"$1" interfaces > /dev/full' - "$T_DAQIRI"
    [ "$status" -eq 1 ]
    [[ $output == *'the report cannot be written: No space left on device'* ]]
}
