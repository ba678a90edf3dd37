#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri probe: on softverbs, where everything works; where a verb hangs, dies
# or refuses (hang_verbs), where there is no device; and what UCX and the MPIs
# say.

bats_require_minimum_version 1.5.0
load tools.bash
load ucx.bash

# result STEP: of the last report.
result()
{
    jq -r ".steps[] | select(.name == \"$1\") | .result" <<<"$output"
}

# wedged VERB: probe a softverbs in which that verb is wrong.
wedged()
{
    with=(LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS="$1")
    daqiri probe --no-ucx --json "${@:2}"
}

@test "softverbs: every step, in order; UC is not there, and not needed" {
    daqiri probe --device soft --no-ucx --json
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    has '[.steps[].name] == ["device", "port", "pd", "memory", "cq", "qp", "init", "rtr", "rts", "completion", "ah", "srq", "inline", "sge", "atomics", "dmabuf", "events", "uc"]'
    has '[.steps[] | select(.result != "ok") | .name] == ["dmabuf", "uc"]'
    has '.steps[] | select(.name == "dmabuf") | .result == "absent" and .failure_class == "unsupported"'
    has '.steps[] | select(.name == "uc") | .result == "absent" and .failure_class == "unsupported" and (.error | test("this device has RC and UD"))'
    has '.steps[] | select(.name == "sge") | .detail == "claims 16, 16 sent as one message"'
    has '.usable and .device == "softverbs0" and .ucx == null'
}

@test "a verb that hangs: the step is named, nothing after it is tried, status 124" {
    wedged ibv_create_qp --timeout 3s
    [ "$status" -eq 124 ]
    [ "$(result cq)" = ok ]
    [ "$(result qp)" = timeout ]
    [ "$(result completion)" = skipped ]
    [ "$(result srq)" = skipped ]
    has '.steps[] | select(.name == "qp") | .failure_class == "provider_timeout" and (.error | test("did not come back within 3 s"))'
    has '.steps[] | select(.name == "rts") | .detail == "not tried, because of qp"'
    has '.usable == false'
}

@test "at a terminal: the step that takes long, after 2 s" {
    command -v script >/dev/null || skip 'script is not installed'
    run timeout 60 script -qec "env LD_PRELOAD='$shims/hang_verbs.so:$T_SOFTVERBS' HANG_VERBS=ibv_create_qp '$T_DAQIRI' probe --no-ucx --timeout 5s" /dev/null
    echo "$output"
    [[ $output == *' s: waiting for qp'* ]]
    [[ $output == *'did not come back within 5 s'* ]]
}

# slow_mpi: an Open MPI in $PWD/bin that does not come back; it makes a file.
slow_mpi()
{
    mkdir bin
    printf '#!/bin/sh\n: > "%s/started"\nexec sleep 100\n' "$PWD" > bin/mpirun.openmpi
    chmod +x bin/mpirun.openmpi
}

@test "at a terminal: the MPI that takes long, after 2 s" {
    command -v script >/dev/null || skip 'script is not installed'
    slow_mpi
    run timeout 60 script -qec "env PATH='$PWD/bin:$PATH' '$T_DAQIRI' probe --device soft --timeout 5s" /dev/null
    echo "$output"
    [[ $output == *' s: waiting for Open MPI'* ]]
}

@test "Ctrl-C while an MPI does not come back: the rest is reported" {
    slow_mpi
    start probe env PATH="$PWD/bin:$PATH" "$T_DAQIRI" probe --device soft --timeout 1h --json
    wait_for 60 test -e started
    kill -INT "$pid"
    ended "$pid"
    cat probe.err
    [ "$ended" -eq 1 ]
    valid probe probe.out
    holds probe.out '.interrupted and .usable == false and .ucx.result == "ok" and ([.mpi[] | [.name, .result]] == [["Open MPI", "skipped"]])'
    grep -q 'daqiri probe: interrupted: not everything was tried' probe.err
}

@test "a rank may lock nothing that was not asked" {
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS=)
    daqiri probe
    [ "$status" -eq 1 ]
    [[ $output != *'any amount'* ]]
}

@test "opening hangs: status 124" {
    wedged ibv_open_device --timeout 500ms
    [ "$status" -eq 124 ]
    [ "$(result device)" = timeout ]
}

@test "a verb that ends the process: that step only" {
    wedged die:rtr
    [ "$status" -eq 1 ]
    [ "$(result init)" = ok ]
    [ "$(result rtr)" = failed ]
    [ "$(result rts)" = skipped ]
    [ "$(result ah)" = ok ]
    has '.steps[] | select(.name == "rtr") | .failure_class == "provider_died" and (.error | test("died: Aborted"))'
}

@test "a verb that refuses: its class, and what can still be tried is" {
    wedged refuse:ibv_reg_mr
    [ "$status" -eq 1 ]
    [ "$(result memory)" = failed ]
    [ "$(result qp)" = ok ]
    [ "$(result completion)" = skipped ]
    [ "$(result ah)" = ok ]
    has '.steps[] | select(.name == "memory") | .failure_class == "resource_exhausted" and (.error | test("ibv_reg_mr failed"))'

    wedged refuse:rtr
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "rtr") | .failure_class == "rtr_refused"'
}

@test "a device that registers memory of other devices" {
    wedged has:dmabuf
    [ "$status" -eq 0 ]
    [ "$(result dmabuf)" = ok ]
    wedged nothing
    [ "$status" -eq 0 ]
    [ "$(result dmabuf)" = absent ]
}

# spoils WORD STEP: with HANG_VERBS=WORD that step is the first that is not ok.
spoils()
{
    wedged "$1"
    [ "$status" -eq 1 ]
    [ "$(jq -r '[.steps[] | select(.result != "ok")][0].name' <<<"$output")" = "$2" ]
}

@test "a verb that ends the process, or refuses: each is tried in its step" {
    local verb step class

    while read -r verb step class; do
        for how in refuse die; do
            spoils "$how:$verb" "$step"
            [ "$how" = refuse ] || class=provider_died
            has ".steps[] | select(.name == \"$step\") | .result == \"failed\" and .failure_class == \"$class\""
        done
    done <<'END'
ibv_open_device device resource_exhausted
ibv_alloc_pd pd resource_exhausted
ibv_reg_mr memory resource_exhausted
ibv_create_cq cq resource_exhausted
ibv_create_qp qp resource_exhausted
init init resource_exhausted
rtr rtr rtr_refused
rts rts resource_exhausted
ibv_create_ah ah resource_exhausted
END
}

@test "what a job does not need is absent when its verb is refused, whatever is claimed" {
    for pair in ibv_create_srq=srq ibv_create_comp_channel=events; do
        wedged "refuse:${pair%=*}"
        [ "$status" -eq 0 ]
        has "[.steps[] | select(.result != \"ok\") | .name] | sort == ([\"${pair#*=}\", \"dmabuf\", \"uc\"] | sort)"
        has '.usable'
    done
    with=(SOFTVERBS_FAULTS='complete status=REM_OP_ERR op=atomic' SOFTVERBS_FAULTS_LOG=/dev/null)
    daqiri probe --device soft --no-ucx --json
    [ "$status" -eq 0 ]
    [ "$(result atomics)" = absent ]
    [ "$(result events)" = ok ]
}

@test "a completion that fails, that does not come, bytes that are not those: the device is not usable" {
    with=(SOFTVERBS_FAULTS='complete status=RETRY_EXC_ERR op=send' SOFTVERBS_FAULTS_LOG=/dev/null)
    daqiri probe --device soft --no-ucx --json
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "completion") | .result == "failed" and .failure_class == "completion_failure"'
    with=(SOFTVERBS_FAULTS='delay time=600s op=send' SOFTVERBS_FAULTS_LOG=/dev/null)
    daqiri probe --device soft --no-ucx --json
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "completion") | .failure_class == "timeout" and (.error | test("0 of 2 completions came"))'
    wedged spoil:10
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "completion") | .failure_class == "data_mismatch"'
    [ "$(result rts)" = ok ]
    [ "$(result inline)" = skipped ]
}

@test "no verb that hangs holds it" {
    local verb step

    # All at once: of each, Ctrl-C ends the wait.
    while read -r verb step; do
        start "$verb" env LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS="$verb" \
            HANG_FILE="$PWD/$verb.hangs" "$T_DAQIRI" probe --no-ucx --json --timeout 1h
        pids[pid]=$verb
        steps[pid]=$step
    done <<'END'
ibv_open_device device
ibv_alloc_pd pd
ibv_reg_mr memory
ibv_create_cq cq
ibv_create_qp qp
init init
rtr rtr
rts rts
ibv_create_ah ah
ibv_create_srq srq
ibv_create_comp_channel events
END
    for pid in "${!pids[@]}"; do
        wait_for 60 test -e "${pids[pid]}.hangs"
        kill -INT "$pid"
    done
    for pid in "${!pids[@]}"; do
        ended "$pid"
        [ "$ended" -eq 124 ]
        valid probe "${pids[pid]}.out"
        holds "${pids[pid]}.out" ".interrupted and .usable == false and [.steps[] | select(.result == \"timeout\") | .name] == [\"${steps[pid]}\"]"
    done
}

@test "no device, one that may not be opened, a port that is down" {
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS=)
    daqiri probe --json
    [ "$status" -eq 1 ]
    has '.steps | length == 1'
    has '.steps[0].failure_class == "no_device" and .device == null and .usable == false'

    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=denied')
    daqiri probe --no-ucx --json
    [ "$status" -eq 1 ]
    has '.steps[0] | .result == "failed" and .failure_class == "not_permitted"'

    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=down')
    daqiri probe --no-ucx --json
    [ "$status" -eq 1 ]
    [ "$(result device)" = ok ]
    has '.steps[] | select(.name == "port") | .failure_class == "port_down"'
    [ "$(result pd)" = skipped ]

    daqiri probe --no-ucx --device mlx5_7 --json
    [ "$status" -eq 1 ]
    has ".steps[0].error == \"there is no device 'mlx5_7'; there are: mlx5_0\""
}

@test "how much memory may be registered, and the limit that is why" {
    while read -r limit expected filter; do
        run --separate-stderr bash -c 'ulimit -l "$1"; shift; exec timeout 60 env "$@"' - "$limit" \
            LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=limit' FAKE_GIDS='v2=::ffff:192.0.2.1' \
            "$T_DAQIRI" probe --no-ucx --json
        has ".limits.memlock_bytes == $limit * 1024 and (.steps[] | select(.name == \"memory\") | $filter)"
        [ "$(result memory)" = "$expected" ]
    done <<'END'
0 failed .failure_class == "resource_exhausted" and (.error | test("for 16 KiB: .*; this process may lock 0 KiB"))
64 failed .failure_class == "resource_exhausted" and (.error | test("for 1 MiB: .*; this process may lock 64 KiB"))
4096 ok .detail == "4 MiB at most, twice that is refused: Cannot allocate memory; may lock 4 MiB"
END
}

@test "only the second port is active: that is the one a job needs" {
    [ -n "$T_MPIRUN_OMPI$T_MPIRUN_MPICH" ] || skip 'there is no MPI'
    with=(LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=second')
    daqiri probe --timeout 60s --json
    has '[.mpi[].needs[] | select(.name == "UCX_NET_DEVICES") | .value] | length > 0 and all(. == "mlx5_0:2")'
}

@test "a GID, a port that are not there" {
    daqiri probe --device soft --no-ucx --gid-index 9 --json
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "port") | .failure_class == "no_gid"'
    daqiri probe --device soft --no-ucx --port 2 --json
    [ "$status" -eq 1 ]
    has '.steps[] | select(.name == "port") | .error == "device softverbs0 has no port 2, but 1"'
}

@test "UCX has the plugin and the device" {
    daqiri probe --device soft --no-mpi --json
    [ "$status" -eq 0 ]
    has ".ucx.result == \"ok\" and .ucx.is_loaded and .ucx.devices == [\"softverbs0:1\"]"
    has ".ucx.ucx_version == \"$T_UCX_VERSION\""
    has '.mpi == []'
}

# way: by which the plugin gets into the UCX of this system
way()
{
    if has_module_path; then
        echo UCX_PLUGIN_PATH
    else
        echo LD_PRELOAD
    fi
}

@test "which UCX, and by which way the plugin gets in: the loader's, a program's, an MPI's" {
    daqiri probe --device soft --no-mpi --json
    [ "$status" -eq 0 ]
    valid probe
    has ".ucx | {library, way} == {library: \"$libuct\", way: \"$(way)\"}"
    daqiri probe --device soft --no-mpi
    grep -E "^which is +$libuct\$" <<<"$output"
    grep -E "^daqiri gets in by +$(way)\$" <<<"$output"
    # the loader's own answer is asked for, not a folder
    mkdir opt
    cp -L "$(dirname "$libuct")"/libuc{m,s,t,p}.so.0 opt/
    with=(LD_LIBRARY_PATH="$PWD/opt")
    for options in '' '--program ucx_perftest'; do
        # shellcheck disable=SC2086
        daqiri probe --device soft --no-mpi --json $options
        [ "$status" -eq 0 ]
        has ".ucx | {library, way, is_loaded} == {library: \"$PWD/opt/libuct.so.0\", way: \"$(way)\", is_loaded: true}"
    done
    with=()
    for starter in $T_MPIRUN_OMPI $T_MPIRUN_MPICH; do
        daqiri probe --device soft --no-mpi --json --program "$starter"
        [ "$status" -eq 0 ]
        has ".ucx | {library, way} == {library: \"$libuct\", way: \"$(way)\"}"
    done
}

@test "from 1.22 on the way is UCX_PLUGIN_PATH, unless UCX_MODULES keeps the plugin out" {
    with=(LD_PRELOAD="$shims/other_ucx.so" T_UCX_VERSION_IS=1.22.0 UCX_MODULES=ib)
    [ -n "$T_MPIRUN_OMPI$T_MPIRUN_MPICH" ] || skip 'there is no MPI'
    daqiri probe --device soft --json
    has '[.mpi[] | select(.result == "ok") | .ucx_version] | all(. == "1.22.0")'
    has '[.mpi[].needs[] | .name] | all(. != "UCX_PLUGIN_PATH")'
    has ".mpi[].needs[] | select(.name == \"LD_PRELOAD\") | .value | test(\"libuct_daqiri\")"
    with+=(UCX_MODULES=all)
    daqiri probe --device soft --json
    has ".mpi[].needs[] | select(.name == \"UCX_PLUGIN_PATH\") | .value == \"$(dirname "$T_PLUGIN")\""
    has ".mpi[].needs[] | select(.name == \"LD_PRELOAD\") | .value | test(\"libuct_daqiri\") | not"
}

@test "UCX of another version: why the plugin stays away" {
    for version in 1.12.1 1.99.7; do
        with=(LD_PRELOAD="$shims/other_ucx.so" T_UCX_VERSION_IS=$version)
        daqiri probe --device soft --no-mpi --json
        [ "$status" -eq 1 ]
        valid probe
        has ".ucx.result == \"failed\" and .ucx.is_loaded == false and .ucx.ucx_version == \"$version\" and .ucx.way == null and (.ucx.error | startswith(\"the plugin does not know this UCX and stays out of the job (this is UCX $version)\"))"
    done
}

@test "no UCX, one that is there by half, one that does not say what it is, a program that shows none" {
    mkdir opt
    : > opt/libucs.so.0
    with=(LD_LIBRARY_PATH="$PWD/opt")
    daqiri probe --device soft --no-mpi --json
    [ "$status" -eq 1 ]
    valid probe
    has ".ucx.result == \"failed\" and .ucx.ucx_version == null and .ucx.error == \"UCX is not installed: $PWD/opt/libucs.so.0: file too short\""
    with=(LD_PRELOAD="$shims/other_ucx.so" T_UCX_LACKS=ucp_get_version)
    daqiri probe --device soft --no-mpi --json
    [ "$status" -eq 1 ]
    has '.ucx.error == "nothing tells its version: its libucp has no ucp_get_version" and .ucx.way == null'
    # a libuct that has no libucp beside it
    rm opt/*
    cp -L "$(dirname "$libuct")"/libuc{m,s,t}.so.0 opt/
    with=()
    daqiri probe --child version --child-library "$PWD/opt/libuct.so.0"
    [[ $output == *'"error":"nothing tells its version: there is no libucp beside it"'* ]]
    daqiri probe --device soft --no-mpi --json --program sh
    [ "$status" -eq 1 ]
    has '.ucx.result == "failed" and .ucx.error == "which UCX sh loads is not known beforehand"'
    daqiri probe --program ./nowhere
    refused 2 '--program ./nowhere: there is no such command'
}

@test "a plugin for another processor, or one that the loader refuses" {
    [ "$(uname -m)" != aarch64 ] || skip 'this is an aarch64'
    mkdir -p tree/tools tree/softverbs/.libs tree/uct/daqiri/.libs
    cp "$T_DAQIRI" tree/tools/daqiri
    cp "$T_SOFTVERBS" tree/softverbs/.libs
    cp "$T_PLUGIN" tree/uct/daqiri/.libs/libuct_daqiri.so.0
    printf '\267\0' | dd of=tree/uct/daqiri/.libs/libuct_daqiri.so.0 bs=1 seek=18 conv=notrunc status=none
    run --separate-stderr timeout 100 tree/tools/daqiri probe --device soft --no-mpi --json
    [ "$status" -eq 1 ]
    has ".ucx.result == \"failed\" and (.ucx.error | test(\"^$PWD/tree/uct/daqiri/.libs/libuct_daqiri.so.0 is for aarch64 \"))"
    mkdir verbs
    sed 's/_ibv_query_gid_ex\x00/_ibv_query_gid_e#\x00/g' "$(ldconfig -p | sed -n 's|.*libibverbs\.so\.1 .*=> ||p' | head -n 1)" > verbs/libibverbs.so.1
    with=(LD_LIBRARY_PATH="$PWD/verbs" LD_PRELOAD="$shims/fake_verbs.so" FAKE_VERBS='mlx5_0=active')
    daqiri probe --no-mpi --json
    [ "$status" -eq 1 ]
    has '.ucx.result == "failed" and .ucx.way == null and (.ucx.error | test("undefined symbol: _ibv_query_gid_ex"))'
}

@test "the MPIs: what a rank may lock, what a job needs" {
    [ -n "$T_MPIRUN_OMPI$T_MPIRUN_MPICH" ] || skip 'there is no MPI'
    run --separate-stderr bash -c 'ulimit -l 4096; exec "$0" probe --device soft --json' "$T_DAQIRI"
    echo "$output" "$stderr"
    [ "$status" -eq 0 ]
    has '.limits.memlock_bytes == 4194304'
    has '[.mpi[] | select(.result == "ok")] | length > 0'
    has '[.mpi[] | select(.result == "ok") | .memlock_bytes] | all(. == 4194304)'
    has '.mpi[] | select(.result == "ok") | .needs[] | select(.name == "UCX_TLS") | .value == "daqiri" and .is_set == false'
    run --separate-stderr timeout 100 "$T_DAQIRI" run --device soft "$T_DAQIRI" probe --json
    has '[.mpi[] | select(.result == "ok") | .needs[] | select(.name == "UCX_TLS") | .is_set] | all'
}

@test "table and CSV say the same" {
    daqiri probe --device soft --no-ucx --csv
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'name,result,needed,us,failure_class,detail,error' ]
    [ "${#lines[@]}" -eq 19 ]
    [[ ${lines[10]} == completion,ok,yes,* ]]
    daqiri probe --device soft --no-ucx
    [ "$status" -eq 0 ]
    [ "$(grep -c -E '^[a-z]+ +(ok|absent) ' <<<"$output")" -eq 18 ]
    [ "${lines[-1]}" = 'usable    yes' ]
}

@test "Ctrl-C: what was tried is reported, the rest is not tried" {
    start probe env LD_PRELOAD="$shims/hang_verbs.so:$T_SOFTVERBS" HANG_VERBS=ibv_create_qp \
        HANG_FILE="$PWD/hanging" "$T_DAQIRI" probe --no-ucx --json --timeout 1h
    wait_for 60 test -e hanging
    kill -INT "$pid"
    wait "$pid" && status=0 || status=$?
    cat probe.out probe.err
    [ "$status" -eq 124 ]
    output=$(<probe.out)
    [ "$(result cq)" = ok ]
    [ "$(result qp)" = timeout ]
    [ "$(result ah)" = skipped ]
}

@test "mistakes: a sentence and status 2" {
    daqiri probe --timeout 0
    refused 2 '--timeout 0: it is a time such as 10s'
    daqiri probe --timeout forever
    refused 2 '--timeout forever: it is a time'
    daqiri probe --port 0
    refused 2 '--port 0: it is a number from 1 to 255'
    daqiri probe --gid-index -1
    refused 2 '--gid-index -1: it is a number from 0 to 255'
    daqiri probe --child x
    refused 2 '--child x: it is one of ucx, limits'
    daqiri probe --device
    refused 2 'requires an argument'
    daqiri probe word
    refused 2 'Too many arguments'
}
