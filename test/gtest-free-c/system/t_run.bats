#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri run, without starting any MPI: which device it chooses and why, what
# it sets, and one sentence and a status for whatever is wrong. RDMA devices
# that this machine does not have are played by fake_verbs (FAKE_VERBS).

bats_require_minimum_version 1.5.0
load tools.bash
load ucx.bash

setup()
{
    tools_setup
    fake=$shims/fake_verbs.so
}

# with_devices DEVICES ARG...: the same on a machine that has these.
with_devices()
{
    local with=(FAKE_VERBS="$1" LD_PRELOAD="$fake")

    shift
    daqiri "$@"
}

# sets NAME=VALUE: the last command, env, was given it.
sets()
{
    grep -q -x -F -- "$1" <<<"$output"
}

@test "--quiet: nothing of the device and of the way, and what is wrong all the same" {
    daqiri run --quiet --device soft true
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    with_devices 'a0=down' run -q env
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    sets UCX_NET_DEVICES=softverbs0:1
    daqiri run --quiet --device nonsense true
    refused 1 "there is no device 'nonsense'"
}

# --- how it is called

@test "no subcommand: usage, status 2" {
    daqiri
    refused 2 'Usage: daqiri SUBCOMMAND'
}

@test "unknown subcommand: a sentence, status 2" {
    daqiri frobnicate
    refused 2 "daqiri: there is no subcommand 'frobnicate'"
}

@test "unknown option: a sentence, status 2" {
    daqiri --frobnicate
    refused 2 "daqiri: there is no option '--frobnicate'"
    daqiri run --frobnicate
    refused 2 "unrecognized option '--frobnicate'"
    daqiri probe -no-ucx
    refused 2 "daqiri probe: invalid option -- 'n'"
}

@test "option without its value: a sentence, status 2" {
    daqiri run --device
    refused 2 "option '--device' requires an argument"
    daqiri run --device '' true
    refused 2 'daqiri run: --device has an empty value'
    daqiri run --tls '' true
    refused 2 'daqiri run: --tls has an empty value'
    daqiri run --tls , true
    refused 2 'daqiri run: --tls names no transport'
}

@test "no command: a sentence, status 2" {
    daqiri run
    refused 2 'daqiri run: which command?'
    daqiri run --device soft --
    refused 2 'daqiri run: which command?'
}

@test "--help and --version" {
    daqiri --help
    [ "$status" -eq 0 ]
    [[ $output == *'run a command with daqiri'* ]]
    daqiri --version
    [ "$status" -eq 0 ]
    [[ $output == 'daqiri '[0-9]*" (commit "* ]]
    if [ "$(git -C "$T_TOP_SRCDIR" rev-parse --show-toplevel 2>/dev/null)" = "$T_TOP_SRCDIR" ]; then
        commit=$(git -C "$T_TOP_SRCDIR" log -1 --format=%H)
        [[ $output =~ \(commit\ ([0-9a-f]{10,})\+?\)$ ]]
        [[ $commit == "${BASH_REMATCH[1]}"* ]]
    fi
    daqiri run --help
    [ "$status" -eq 0 ]
    [[ $output == *--print-env* ]]
}

@test "help: of all, or of a subcommand; a sentence for what there is not" {
    local name

    daqiri help
    [ "$status" -eq 0 ]
    [ "$output" = "$("$T_DAQIRI" --help)" ]
    for name in $("$T_DAQIRI" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        [ "$("$T_DAQIRI" help "$name")" = "$("$T_DAQIRI" "$name" --help)" ]
    done
    daqiri help frobnicate
    refused 2 "daqiri: there is no subcommand 'frobnicate'"
    daqiri help sweep tcp
    refused 2 'daqiri help: there are too many words'
}

# --- the command

@test "unknown command: a sentence, status 127" {
    daqiri run no-such-command
    refused 127 'daqiri run: no-such-command: there is no such command'
    daqiri run ./no/such/command
    refused 127 'daqiri run: ./no/such/command: there is no such command'
}

@test "what is not executable: a sentence, status 126" {
    echo true >script
    chmod 644 script
    daqiri run ./script
    refused 126 'daqiri run: ./script cannot be run: Permission denied'
    daqiri run ./
    refused 126 'daqiri run: ./ cannot be run: Is a directory'
}

@test "no MPI installed: a sentence that says what to install, status 127" {
    local starter

    for starter in mpirun mpiexec mpirun.openmpi mpiexec.mpich; do
        run --separate-stderr env PATH=/nonexistent "$T_DAQIRI" run "$starter" -np 2 ./a.out
        refused 127 "daqiri run: $starter was not found: this MPI is not installed"
        says 'apt-get install openmpi-bin, or mpich'
    done
}

@test "the command's status and its arguments are its own" {
    daqiri run --device soft sh -c 'exit 7'
    [ "$status" -eq 7 ]
    daqiri run --device soft -- echo --device 'two  words' -p
    [ "$status" -eq 0 ]
    [ "$output" = '--device two  words -p' ]
}

# --- the device

@test "a long option has two dashes, and may be cut short; letters with and without a blank" {
    local words

    for words in '--device soft --tls rc_verbs' '-d soft -t rc_verbs' '-dsoft -trc_verbs' '--dev=soft --tls=rc_verbs'; do
        # shellcheck disable=SC2086
        daqiri run $words -- sh -c 'echo "$UCX_TLS $UCX_NET_DEVICES"'
        [ "$status" -eq 0 ]
        [ "$output" = 'rc_verbs softverbs0:1' ]
    done
    daqiri run --print-env --device soft
    [ "$status" -eq 0 ]
    [[ $output == *UCX_TLS* ]]
    daqiri run -nonsense true
    [ "$status" -eq 2 ]
}

@test "no RDMA device: the software device, and it says why" {
    with_devices '' run env
    [ "$status" -eq 0 ]
    says 'device softverbs0:1, in software and for this host only: there is no RDMA device'
    sets UCX_NET_DEVICES=softverbs0:1
    sets UCX_TLS=daqiri
    sets "LD_PRELOAD=$fake:$T_SOFTVERBS:$T_PLUGIN"
}

@test "a usable RDMA device is taken before the software one" {
    with_devices 'mlx5_0=active' run env
    [ "$status" -eq 0 ]
    says 'device mlx5_0:1: the only usable RDMA device'
    sets UCX_NET_DEVICES=mlx5_0:1
    sets "LD_PRELOAD=$fake:$T_PLUGIN"
}

@test "its port is the one that is up" {
    with_devices 'mlx5_0=second' run env
    sets UCX_NET_DEVICES=mlx5_0:2
}

@test "devices that are not usable are passed over, each with its reason" {
    with_devices 'a0=down b0=denied c0=iwarp d0=broken e0=active f0=active' run env
    [ "$status" -eq 0 ]
    says 'device a0 is not usable: its port 1 is down, not active'
    says 'device b0 is not usable: this user may not open it'
    says 'device c0 is not usable: it is neither InfiniBand nor RoCE'
    says 'device d0 is not usable: it cannot be opened: Input/output error'
    says 'device e0:1: the first of 2 usable RDMA devices (the kernel does not say how near they are)'
    sets UCX_NET_DEVICES=e0:1
}

@test "no device is usable: the software device, said aloud" {
    with_devices 'a0=down' run env
    [ "$status" -eq 0 ]
    says 'device a0 is not usable: its port 1 is down, not active'
    says 'device softverbs0:1, in software and for this host only: no RDMA device is usable'
    sets UCX_NET_DEVICES=softverbs0:1
}

@test "devices cannot be listed: a sentence, status 1" {
    with_devices 'list=denied' run env
    refused 1 'daqiri run: RDMA devices cannot be listed: Operation not permitted'
}

@test "--device soft, even where there is an RDMA device" {
    with_devices 'mlx5_0=active' run --device soft env
    [ "$status" -eq 0 ]
    says 'device softverbs0:1, in software and for this host only: asked for with --device'
    sets UCX_NET_DEVICES=softverbs0:1
    with_devices 'mlx5_0=active' run --device softverbs0 env
    sets UCX_NET_DEVICES=softverbs0:1
}

@test "--device NAME is taken" {
    with_devices 'mlx5_0=active mlx5_1=active' run --device mlx5_1 env
    [ "$status" -eq 0 ]
    says 'device mlx5_1:1: asked for with --device'
    sets UCX_NET_DEVICES=mlx5_1:1
}

@test "--device NAME that is not there: those that are, status 1" {
    with_devices '' run --device mlx5_0 env
    refused 1 "daqiri run: there is no device 'mlx5_0'; there are: soft"
    with_devices 'mlx5_0=active rxe0=down' run --device mlx5 env
    refused 1 "daqiri run: there is no device 'mlx5'; there are: mlx5_0, rxe0, soft"
}

@test "--device NAME whose port is down: a sentence, status 1" {
    with_devices 'mlx5_0=down' run --device mlx5_0 env
    refused 1 'daqiri run: device mlx5_0 cannot be used: its port 1 is down, not active'
}

@test "--device NAME without permission: a sentence, status 1" {
    with_devices 'mlx5_0=denied' run --device mlx5_0 env
    refused 1 'daqiri run: device mlx5_0 cannot be used: this user may not open it'
}

@test "locked memory limit too small: a sentence with the limit, status 1" {
    ulimit -l 64
    with_devices 'mlx5_0=limit' run --device mlx5_0 env
    refused 1 'this user may lock 64 KiB of memory, at least 16384 KiB are needed'
    # Not a reason to fall back to the software device either.
    with_devices 'mlx5_0=limit' run env
    refused 1 'this user may lock 64 KiB of memory, at least 16384 KiB are needed'
    # The software device locks nothing.
    with_devices 'mlx5_0=limit' run --device soft env
    [ "$status" -eq 0 ]
}

# Runs COMMAND where nobody else sees what MOUNT has mounted.
run_mounted()
{
    local mount=$1 own=(unshare -m)

    shift
    [ "$(id -u)" -eq 0 ] || own=(unshare -rm)
    "${own[@]}" mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
        skip 'mounting in a namespace is not allowed here'
    run --separate-stderr "${own[@]}" sh -c "$mount"' && exec "$@"' - "$@"
}

@test "/dev/shm is full: a sentence with what is left, status 1" {
    run_mounted 'mount -t tmpfs -o size=512k tmpfs /dev/shm' \
        "$T_DAQIRI" run --device soft env
    refused 1 'device softverbs0 cannot be used: /dev/shm has 512 KiB left, at least 2048 KiB are needed'
}

@test "/dev/shm is read-only, or not there: a sentence, status 1" {
    run_mounted 'mount -t tmpfs -o ro tmpfs /dev/shm' \
        "$T_DAQIRI" run --device soft env
    refused 1 'device softverbs0 cannot be used: /dev/shm: Read-only file system'
    [[ $stderr != *'asked for with'* ]]
    run_mounted 'mount -t tmpfs tmpfs /dev' "$T_DAQIRI" run env
    refused 1 'device softverbs0 cannot be used: /dev/shm: No such file or directory'
}

# --- the libraries

# Lays out DIR like the build tree, with the command and these libraries.
lay_out()
{
    local dir=$1

    shift
    mkdir -p "$dir/tools" "$dir/softverbs/.libs" "$dir/uct/daqiri/.libs"
    cp "$T_DAQIRI" "$dir/tools/daqiri"
    case " $* " in *' softverbs '*) cp "$T_SOFTVERBS" "$dir/softverbs/.libs" ;; esac
    case " $* " in *' plugin '*) cp "$T_PLUGIN" "$dir/uct/daqiri/.libs" ;; esac
}

@test "the plugin is missing: a sentence that says where it was sought, status 1" {
    lay_out tree softverbs
    run --separate-stderr tree/tools/daqiri run --device soft env
    if [[ $output == *libuct_daqiri* ]]; then
        skip 'daqiri is installed on this machine, and its plugin is found there'
    fi
    refused 1 'daqiri run: libuct_daqiri.so.0 is in none of: '
    says "$PWD/tree/tools/../uct/daqiri/.libs"
}

@test "softverbs is missing: a sentence, status 1; but not for tcp" {
    lay_out tree plugin
    run --separate-stderr tree/tools/daqiri run --device soft env
    if [[ $output == *libsoftverbs* ]]; then
        skip 'daqiri is installed on this machine, and its device is found there'
    fi
    refused 1 'daqiri run: libsoftverbs.so is in none of: '
    run --separate-stderr tree/tools/daqiri run --tls tcp env
    [ "$status" -eq 0 ]
}

@test "a space in the path: a sentence, status 1" {
    lay_out 'my tree' softverbs plugin
    run --separate-stderr 'my tree/tools/daqiri' run --device soft env
    refused 1 'libsoftverbs.so cannot be preloaded: there is a space or a colon in its path'
}

@test "installed, also below another root: its own libraries are found" {
    local folder tools

    for folder in softverbs uct/daqiri tools; do
        make -C "$T_TOP_BUILDDIR/src/$folder" install DESTDIR="$PWD/root" \
            >install.log 2>&1 || { cat install.log; false; }
    done
    tools=$(find root -name daqiri -type f -perm -u+x)
    run --separate-stderr "$tools" run --device soft env
    [ "$status" -eq 0 ]
    grep -E "^LD_PRELOAD=$PWD/root/.*/libsoftverbs.so:$PWD/root/.*/libuct_daqiri.so.0\$" <<<"$output"
}

# spoil LIBRARY KIND: empty, or for aarch64
spoil()
{
    case $2 in
        empty) : > "$1" ;;
        aarch64) printf '\267\0' | dd of="$1" bs=1 seek=18 conv=notrunc status=none ;;
    esac
}

@test "a plugin or a device for another processor, or that is nothing: a sentence, status 1" {
    [ "$(uname -m)" != aarch64 ] || skip 'this is an aarch64'
    for library in uct/daqiri/.libs/libuct_daqiri.so.0 softverbs/.libs/libsoftverbs.so; do
        rm -rf tree
        lay_out tree softverbs plugin
        spoil "tree/$library" aarch64
        run --separate-stderr tree/tools/daqiri run --device soft env
        refused 1 "daqiri run: $PWD/tree/$library is for aarch64 (64 bits), and this program for "
        spoil "tree/$library" empty
        run --separate-stderr tree/tools/daqiri run --device soft env
        refused 1 "daqiri run: $PWD/tree/$library is no library or program of this system"
    done
    # who does without them need not hear of them
    spoil tree/uct/daqiri/.libs/libuct_daqiri.so.0 empty
    run --separate-stderr tree/tools/daqiri run --tls tcp env
    [ "$status" -eq 0 ]
}

@test "a libibverbs that lacks what the plugin needs: a sentence before any program dies of it, status 1" {
    export LD_LIBRARY_PATH=$PWD/verbs
    other_verbs _ibv_query_gid_ex
    with_devices 'mlx5_0=active' run env
    refused 1 "daqiri run: the plugin cannot be loaded here: $T_PLUGIN: undefined symbol: _ibv_query_gid_ex"
    # the software device stands for that library
    daqiri run --device soft ucx_perftest -x daqiri -d softverbs0:1 -t am_lat -l -n 200
    [ "$status" -eq 0 ]
    other_verbs IBVERBS_1.8
    with_devices 'mlx5_0=active' run env
    refused 1 "daqiri run: the plugin cannot be loaded here: $PWD/verbs/libibverbs.so.1: version \`IBVERBS_1.8' not found (required by $T_PLUGIN)"
}

# --- the way into UCX

# other_ucx VERSION [VARIABLE=VALUE...]: UCX says that it is that
other_ucx()
{
    with=(LD_PRELOAD="$shims/other_ucx.so" T_UCX_VERSION_IS="$1" "${@:2}")
}

# by_preload, by_plugin_path: so the plugin gets in, and not the other way
by_preload()
{
    [ "$status" -eq 0 ]
    grep -E "^export LD_PRELOAD='.*:?$T_PLUGIN'\$" <<<"$output"
    [[ $output != *UCX_PLUGIN_PATH=* ]]
}
by_plugin_path()
{
    [ "$status" -eq 0 ]
    grep -x -F "export UCX_PLUGIN_PATH='${1:-}$(dirname "$T_PLUGIN")'" <<<"$output"
    grep -E "^export LD_PRELOAD='.*$T_SOFTVERBS'\$" <<<"$output"
    grep -E "^export OMPI_MCA_mca_base_env_list_internal='LD_PRELOAD;UCX_PLUGIN_PATH;UCX_TLS" <<<"$output"
}

# by_its_way WHO: as the UCX of this system does
by_its_way()
{
    if has_module_path; then
        says "daqiri run: way into UCX $T_UCX_VERSION of $1 ($libuct): UCX_PLUGIN_PATH, from which it loads the plugin itself"
        by_plugin_path
    else
        says "daqiri run: way into UCX $T_UCX_VERSION of $1 ($libuct): LD_PRELOAD"
        by_preload
    fi
}

@test "a program that is linked with UCX: the way of that one, also behind env, timeout and a starter" {
    local words

    for words in '' 'env A=b' 'timeout 60' 'mpirun.openmpi --mca pml ucx -np 2' 'nice -n 5 mpiexec.mpich -n 2'; do
        case $words in
            *mpi*) command -v "$(grep -o 'mpi[a-z.]*' <<<"$words" | head -n 1)" || continue ;;
        esac
        # shellcheck disable=SC2086
        daqiri run --device soft --print-env $words ucx_perftest -t tag_lat
        by_its_way ucx_perftest
    done
}

@test "a program of an MPI, and one that shows nothing under an MPI's starter: the way of that MPI's UCX" {
    local mpi starter program

    for mpi in ompi mpich; do
        case $mpi in
            ompi) starter=$T_MPIRUN_OMPI ;;
            mpich) starter=$T_MPIRUN_MPICH ;;
        esac
        [ -n "$starter" ] || continue
        daqiri run --device soft --print-env "$starter" -np 2 sh ./script
        by_its_way "$starter's MPI"
        daqiri run --device soft --print-env "$starter" -np 2
        by_its_way "$starter's MPI"
        program=$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-$mpi
        [ -x "$program" ] || continue
        daqiri run --device soft --print-env "$program"
        by_its_way "$program"
    done
    [ -n "$program" ] || skip 'there is no MPI'
}

@test "what shows no UCX: that is said, and the way that works for all is taken" {
    for command in sh env /bin/true; do
        daqiri run --device soft --print-env "$command"
        by_preload
        says "daqiri run: way into UCX: LD_PRELOAD, which works for all; which UCX $command loads is not known beforehand"
    done
    daqiri run --device soft --print-env
    by_preload
    says 'which UCX a command loads is not known beforehand'
    # who does without the plugin need not hear of it
    daqiri run --device soft --tls rc_verbs ucx_info -v
    [[ $stderr != *UCX* ]]
}

# another_ucx: the UCX of this system in $PWD/opt, where the loader would not look
another_ucx()
{
    mkdir -p opt
    cp -L "$(dirname "$libuct")"/libuc{m,s,t,p}.so.0 opt/
}

@test "a UCX elsewhere, by LD_LIBRARY_PATH: that one" {
    another_ucx
    libuct=$PWD/opt/libuct.so.0
    with=(LD_LIBRARY_PATH="$PWD/opt")
    daqiri run --device soft --print-env ucx_perftest
    by_its_way ucx_perftest
}

@test "an MPI elsewhere, with a UCX of its own: that one" {
    local libmpi component

    libmpi=$(ldconfig -p | sed -n 's|.*libmpi\.so\.40 .*=> ||p' | head -n 1)
    [ -n "$libmpi" ] || skip 'there is no Open MPI'
    another_ucx
    libuct=$PWD/opt/libuct.so.0
    mkdir -p mpi/bin mpi/lib/openmpi
    cp -L "$libmpi" mpi/lib/libmpi.so.40
    component=$(find "$(dirname "$(realpath "$libmpi")")/openmpi" -name mca_pml_ucx.so | head -n 1)
    [ -z "$component" ] || cp "$component" mpi/lib/openmpi/
    printf '#!/bin/sh\n' > mpi/bin/mpirun
    chmod +x mpi/bin/mpirun
    with=(LD_LIBRARY_PATH="$PWD/opt")
    daqiri run --device soft --print-env mpi/bin/mpirun -np 2 sh ./script
    by_its_way "mpi/bin/mpirun's MPI"
}

@test "from 1.22 on the plugin's folder is in UCX_PLUGIN_PATH, once, behind what is there" {
    other_ucx 1.22.0
    daqiri run --device soft --print-env ucx_perftest
    by_plugin_path
    says "daqiri run: way into UCX 1.22.0 of ucx_perftest ($libuct): UCX_PLUGIN_PATH, from which it loads the plugin itself"
    with+=(UCX_PLUGIN_PATH=/nowhere)
    daqiri run --device soft --print-env ucx_perftest
    by_plugin_path /nowhere:
    with+=(UCX_PLUGIN_PATH="/nowhere:$(dirname "$T_PLUGIN")")
    daqiri run --device soft --print-env ucx_perftest
    by_plugin_path /nowhere:
    other_ucx 1.21.9
    daqiri run --device soft --print-env ucx_perftest
    by_preload
    other_ucx 2.0.0
    daqiri run --device soft --print-env ucx_perftest
    by_plugin_path
}

@test "UCX_MODULES that keeps UCX from loading the plugin: it is preloaded, and that is said" {
    for modules in ^daqiri ib ib,cma ^ib,daqiri; do
        other_ucx 1.22.0 UCX_MODULES=$modules
        daqiri run --device soft --print-env ucx_perftest
        by_preload
        says "LD_PRELOAD, for UCX_MODULES=$modules keeps it from loading the plugin"
    done
    for modules in all daqiri ib,daqiri ^ib; do
        other_ucx 1.22.0 UCX_MODULES=$modules
        daqiri run --device soft --print-env ucx_perftest
        by_plugin_path
    done
    # an older one loads no plugin anyhow
    other_ucx 1.21.0 UCX_MODULES=ib
    daqiri run --device soft --print-env ucx_perftest
    [[ $stderr != *UCX_MODULES* ]]
}

@test "a UCX that the plugin stays out of: its sentence, and the command runs" {
    for version in 1.12.1 1.24.0 2.0.0; do
        other_ucx "$version"
        daqiri run --device soft --print-env ucx_perftest
        [ "$status" -eq 0 ]
        says "daqiri run: the plugin does not know this UCX and stays out of the job (this is UCX $version)"
    done
    other_ucx "$T_UCX_VERSION" T_UCX_SIZE_IS='uct_tcp_tl 1000'
    daqiri run --device soft --print-env ucx_perftest
    [ "$status" -eq 0 ]
    says "daqiri run: the plugin does not know this UCX and stays out of the job (this is UCX $T_UCX_VERSION, but its uct_tcp_tl has 1000 bytes"
    # that it is there twice is nothing to hear of
    with=(LD_PRELOAD="$T_PLUGIN")
    daqiri run --device soft --print-env ucx_perftest
    [[ $stderr != *'stays out'* ]]
}

@test "a UCX that is there by half: what is missing" {
    local program library

    program=$(command -v ucx_perftest)
    sed 's/libucp\.so\.0/libucp.so.7/g' "$program" > half
    chmod +x half
    daqiri run --device soft --print-env ./half
    by_preload
    says 'daqiri run: ./half cannot be loaded: libucp.so.7: cannot open shared object file'
    mkdir opt
    : > opt/libucs.so.0
    with=(LD_LIBRARY_PATH="$PWD/opt")
    daqiri run --device soft --print-env ucx_perftest
    by_preload
    says "daqiri run: ucx_perftest cannot be loaded: $PWD/opt/libucs.so.0: file too short"
    # one that does not know the functions that the others ask it for
    cp "$libuct" opt/libucs.so.0
    daqiri run --device soft --print-env ucx_perftest
    by_preload
    [[ $stderr == *'daqiri run: UCX cannot be loaded: '* ]]
    # it kills who loads it
    with=(LD_PRELOAD="$shims/other_ucx.so" T_UCX_HAS=ucp_get_version)
    daqiri run --device soft --print-env ucx_perftest
    by_preload
    says "daqiri run: the UCX $libuct does not say its version: the process that opened it died"
}

@test "a program for another processor, or linked statically: nothing gets into it, and that is said" {
    [ "$(uname -m)" != aarch64 ] || skip 'this is an aarch64'
    cp "$(command -v ucx_perftest)" other
    spoil other aarch64
    daqiri run --device soft --print-env ./other
    [ "$status" -eq 0 ]
    says 'daqiri run: ./other is for aarch64 (64 bits), and this program for '
    [ -x /sbin/ldconfig.real ] || [ -x /sbin/ldconfig ] || skip 'ldconfig is not there'
    # glibc's is, everywhere
    daqiri run --device soft --print-env /sbin/ldconfig -p
    [ "$status" -eq 0 ]
    says 'daqiri run: /sbin/ldconfig is linked statically: nothing gets into it'
}

@test "daqiri gets in by the way that was chosen, in every UCX" {
    daqiri run --device soft ucx_perftest -x daqiri -d softverbs0:1 -t am_lat -l -n 200
    [ "$status" -eq 0 ]
    [[ $output == *Final:* ]]
    # and where the other way is there, too
    with=(LD_PRELOAD="$T_PLUGIN")
    daqiri run --device soft ucx_perftest -x daqiri -d softverbs0:1 -t am_lat -l -n 200
    [ "$status" -eq 0 ]
    [[ $output$stderr != *daqiri:* ]]
}

# --- the environment

@test "what Open MPI needs is set" {
    daqiri run --device soft env
    sets OMPI_MCA_pml=ucx
    sets OMPI_MCA_osc=ucx,sm
    sets OMPI_MCA_osc_ucx_priority=200
    sets OMPI_MCA_pml_ucx_tls=any
    sets OMPI_MCA_pml_ucx_devices=any
    sets 'OMPI_MCA_mca_base_env_list_internal=LD_PRELOAD;UCX_TLS;UCX_NET_DEVICES;UCX_ZCOPY_THRESH'
}

@test "UCP's threshold for zcopy is the software device's, unless the user has another" {
    daqiri run --device soft env
    sets UCX_ZCOPY_THRESH=4096
    UCX_ZCOPY_THRESH=1k daqiri run --device soft env
    sets UCX_ZCOPY_THRESH=1k
    with_devices 'mlx5_0=active' run env
    [[ $output != *_THRESH* ]]
    daqiri run --device soft --tls rc_verbs,ud_verbs env
    [[ $output != *_THRESH* ]]
}

@test "the user's variables for UCX and daqiri go to remote ranks too" {
    export UCX_LOG_LEVEL=warn DAQIRI_STATS_DIR=/nowhere UCX_TLS=daqiri
    daqiri run --device soft env
    grep -E '^OMPI_MCA_mca_base_env_list_internal=LD_PRELOAD;UCX_TLS;UCX_NET_DEVICES;UCX_ZCOPY_THRESH;(UCX_LOG_LEVEL;DAQIRI_STATS_DIR|DAQIRI_STATS_DIR;UCX_LOG_LEVEL)$' <<<"$output"
}

@test "a list of variables that the user gave Open MPI is added to" {
    export OMPI_MCA_mca_base_env_list='MINE;YOURS=3'
    daqiri run --device soft env
    sets 'OMPI_MCA_mca_base_env_list=MINE;YOURS=3;LD_PRELOAD;UCX_TLS;UCX_NET_DEVICES;UCX_ZCOPY_THRESH'
    run grep mca_base_env_list_internal <<<"$output"
    [ "$status" -ne 0 ]
}

@test "what is replaced is said, what stays the same is not" {
    export UCX_TLS=tcp OMPI_MCA_pml=ucx OMPI_MCA_osc=rdma
    daqiri run --device soft env
    says "daqiri run: UCX_TLS was 'tcp', now it is 'daqiri'"
    says "daqiri run: OMPI_MCA_osc was 'rdma', now it is 'ucx,sm'"
    [[ $stderr != *OMPI_MCA_pml* ]]
    sets UCX_TLS=daqiri
}

@test "LD_PRELOAD: the user's entries stay, and stay first" {
    local libm

    libm=$(ldconfig -p | sed -n 's/.*libm\.so\.6 .*=> //p' | head -n 1)
    export LD_PRELOAD=$libm
    daqiri run --device soft env
    unset LD_PRELOAD
    sets "LD_PRELOAD=$libm:$T_SOFTVERBS:$T_PLUGIN"
}

@test "daqiri run in daqiri run adds nothing twice" {
    daqiri run --device soft "$T_DAQIRI" run env
    [ "$status" -eq 0 ]
    sets "LD_PRELOAD=$T_SOFTVERBS:$T_PLUGIN"
    sets UCX_NET_DEVICES=softverbs0:1
    [[ $stderr != *' was '* ]]
}

@test "another copy of a library in LD_PRELOAD is used alone, and that is said" {
    cp "$T_PLUGIN" .
    export LD_PRELOAD=$PWD/libuct_daqiri.so.0
    daqiri run --device soft env
    unset LD_PRELOAD
    [ "$status" -eq 0 ]
    says "LD_PRELOAD has $PWD/libuct_daqiri.so.0 already: that one is used, not $T_PLUGIN"
    sets "LD_PRELOAD=$PWD/libuct_daqiri.so.0:$T_SOFTVERBS"
}

@test "--tls: other transports on the same device do without the plugin" {
    daqiri run --device soft --tls rc_verbs,ud_verbs env
    sets UCX_TLS=rc_verbs,ud_verbs
    sets UCX_NET_DEVICES=softverbs0:1
    sets "LD_PRELOAD=$T_SOFTVERBS"
    daqiri run --device soft --tls self,daqiri env
    sets "LD_PRELOAD=$T_SOFTVERBS:$T_PLUGIN"
}

# interfaces: those that are up and have an address, in the kernel's order.
interfaces()
{
    ip -json addr | jq -r '[.[] | select(.addr_info != [] and (.flags | contains(["UP", "LOWER_UP"]))) | .ifname] | join(",")'
}

@test "--tls daqiri,tcp: TCP has the network interfaces, or those of them that the user names" {
    local all

    command -v ip >/dev/null || skip 'ip (iproute2) is not installed'
    need_jq
    all=$(interfaces)
    [ -n "$all" ]
    for tls in daqiri,tcp tcp,daqiri tcp,rc_verbs all; do
        daqiri run --device soft --tls "$tls" env
        sets "UCX_NET_DEVICES=softverbs0:1,$all"
    done
    with=(UCX_NET_DEVICES=nowhere0,lo)
    daqiri run --device soft --tls daqiri,tcp env
    sets UCX_NET_DEVICES=softverbs0:1,lo
    with=(UCX_NET_DEVICES=nowhere0)
    daqiri run --device soft --tls daqiri,tcp env
    sets "UCX_NET_DEVICES=softverbs0:1,$all"
    with=()
    with_devices 'mlx5_0=active' run --tls daqiri,tcp env
    sets "UCX_NET_DEVICES=mlx5_0:1,$all"
    # only a whole word is tcp
    daqiri run --device soft --tls daqiri,tcpx env
    sets UCX_NET_DEVICES=softverbs0:1
}

@test "--tls daqiri,tcp: a client and a listener of UCP meet by address, and daqiri carries the messages" {
    local address

    for address in 127.0.0.1 $(hostname -I | tr ' ' '\n' | grep -F . | head -n 1); do
        mkdir "$address"
        with=(DAQIRI_STATS_DIR="$PWD/$address" UCX_VFS_ENABLE=n)
        daqiri run --device soft --tls daqiri,tcp "$T_TOP_BUILDDIR/test/gtest-free-c/system/ucp_pair" "$address"
        [ "$status" -eq 0 ]
        [ "$output" = 'both have all' ]
        cat "$address"/*
        # by each of both, and nothing is left in use
        [ "$(cat "$address"/* | awk '$1 == "rma_bytes" && $2 >= 4194304' | wc -l)" -eq 2 ]
        [ "$(cat "$address"/* | awk '$1 == "am_tx" && $2 > 4' | wc -l)" -eq 2 ]
        [ "$(cat "$address"/* | awk '$1 ~ /_at_close$/ && $2 != 0' | wc -l)" -eq 0 ]
    done
}

@test "--tls tcp: no RDMA device, nothing preloaded, and that is said" {
    daqiri run --tls self,tcp env
    [ "$status" -eq 0 ]
    says 'no RDMA device: UCX_TLS=self,tcp uses none'
    sets UCX_TLS=self,tcp
    [[ $output != *LD_PRELOAD=* ]]
    [[ $output != *UCX_NET_DEVICES* ]]
}

@test "--print-env: what a shell makes of it is what a command is given" {
    daqiri run --device soft --print-env
    [ "$status" -eq 0 ]
    [ -z "$(grep -v '^export [A-Z_a-z]*=' <<<"$output")" ]
    env -i PATH="$PATH" sh -c 'eval "$1"; env' - "$output" |
        grep -E '^(LD_PRELOAD|UCX|OMPI)' | sort >by_shell
    env -i PATH="$PATH" "$T_DAQIRI" run --device soft env 2>/dev/null |
        grep -E '^(LD_PRELOAD|UCX|OMPI)' | sort >by_run
    diff by_shell by_run
    [ "$(wc -l <by_run)" -eq 10 ]
}

@test "--print-env: quotes and dollars survive, and the command is not run" {
    daqiri run --tls "self,it's \$HOME \`id\`" --device soft --print-env touch ran
    [ "$status" -eq 0 ]
    [ ! -e ran ]
    eval "$(grep UCX_TLS= <<<"$output")"
    [ "$UCX_TLS" = "self,it's \$HOME \`id\`" ]
}
