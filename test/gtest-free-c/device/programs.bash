# SPDX-License-Identifier: BSD-3-Clause
#
# For bats files that run other people's programs on softverbs. They are started
# by run-test, which sets T_*.
# shellcheck shell=bash

# softverbs_setup [nobody]: commands run by `soft` get the device; as the user
# nobody if asked for.
softverbs_setup()
{
    # These programs send out of the buffer they receive into, which is their
    # own affair, and UCX's do not even start under ThreadSanitizer's library.
    [ "$T_FLAVOUR" != tsan ] || skip "flavour tsan: it is the programs' own races that would be reported"
    soft_lib=$T_SOFTVERBS
    soft_as=()
    soft_env=()
    if [ "${1:-}" = nobody ]; then
        [ "$(id -u)" -eq 0 ] || skip "the tests run as an ordinary user already"
        # the build tree may lie where nobody may look
        soft_dir=$(mktemp -d)
        chmod 755 "$soft_dir"
        install -m 755 "$T_SOFTVERBS" "$soft_dir/libsoftverbs.so"
        soft_lib=$soft_dir/libsoftverbs.so
        soft_as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fi
    # what these programs leak is not ours to mend
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
}

softverbs_teardown()
{
    [ -z "${soft_dir:-}" ] || rm -rf "$soft_dir"
}

# soft COMMAND...: runs a command with the device, for a limited time
soft()
{
    ${soft_exec:-} "${soft_as[@]}" timeout -k 5 $((60 * T_TIMEOUT_MULTIPLIER)) \
        env LD_PRELOAD="$T_SAN_PRELOAD $soft_lib" "${soft_env[@]}" "$@"
}

# softverbs_by_replacement: from now on `soft` gives programs the libibverbs.so.1
# that brings softverbs, for those that load libibverbs by its name.
softverbs_by_replacement()
{
    soft_lib=
    soft_env=(LD_LIBRARY_PATH="$T_TOP_BUILDDIR/src/softverbs/replacement")
}

# is_listening PORT: somebody waits for TCP connections there
is_listening()
{
    grep -q -i ":$(printf %04x "$1") [0-9A-F]*:0000 0A" \
        /proc/net/tcp /proc/net/tcp6
}

# two_sides PORT-OPTION COMMAND...: the command as a server, and once more, with
# localhost at its end, as a client. Output of both is in $output; the status is
# that of whichever failed. What runs at the same time elsewhere has another
# T_PORTS: between the look at a port and its use somebody else could take it.
two_sides()
{
    local option=$1 port server client_status server_status

    shift
    while :; do
        port=$((${T_PORTS:-20000} + RANDOM % 1200))
        is_listening $port || break
    done

    # in place of the shell, so that to end it is to end the program
    soft_exec=exec soft "$@" "$option" $port \
        >"$BATS_TEST_TMPDIR/server" 2>"$BATS_TEST_TMPDIR/server.err" 3>&- &
    server=$!
    while kill -0 $server 2>/dev/null && ! is_listening $port; do
        sleep 0.02
    done
    soft "$@" "$option" $port localhost \
        >"$BATS_TEST_TMPDIR/client" 2>"$BATS_TEST_TMPDIR/client.err"
    client_status=$?
    # a server whose client gave up would wait for ever
    [ $client_status -eq 0 ] || kill $server 2>/dev/null
    wait $server
    server_status=$?
    output=$(cat "$BATS_TEST_TMPDIR"/{server,client}{,.err})
    echo "$output"
    [ $client_status -eq 0 ] && [ $server_status -eq 0 ] && return
    # at the end, where a summary that is cut short still has it
    echo "$*: client: status $client_status, server: status $server_status"
    return 1
}

# pingpong COMMAND...: one of libibverbs' examples
pingpong()
{
    two_sides -p "$@" && [[ $output == *" iters in "* ]]
}

# ib_perftest COMMAND...: one of the package perftest, whose figures follow a
# line of headings. When all has been transferred, it measures the clock of the
# processor. If it is interrupted at the wrong moment there, it says so, prints
# no figures, and fails: that run has nothing to judge.
ib_perftest()
{
    local runs

    for runs in {1..20}; do
        two_sides -p "$@" -d softverbs0 && break
        grep -q '^Correlation coefficient r^2: ' "$BATS_TEST_TMPDIR/client.err" ||
            return 1
        echo "run $runs: perftest could not measure the clock"
    done
    grep -A 1 '^ #bytes' <<<"$output" | grep -qE '^ [0-9]+ +[0-9]+ +[0-9.]+ '
}

# perftest TRANSPORT TEST [OPTION]...: ucx_perftest over one transport
perftest()
{
    local transport=$1 test=$2

    shift 2
    two_sides -p $T_PERFTEST -d softverbs0:1 -x "$transport" -t "$test" \
        -n 2000 -w 100 "$@" && [[ $output == *"Final:"* ]]
}

# ucp_perftest TEST [OPTION]...: over those in UCX_TLS
ucp_perftest()
{
    two_sides -p $T_PERFTEST -t "$1" -n 500 -w 20 "${@:2}" &&
        [[ $output == *"Final:"* ]]
}

# mpi_sweep STARTER SWEEP NP TRANSPORTS: all ranks talk over these, each size
# and every byte checked
mpi_sweep()
{
    local export=(-env LD_PRELOAD "$soft_lib")

    case $1 in
        *openmpi*)
            local -x OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            local -x OMPI_MCA_rmaps_base_oversubscribe=1
            local -x PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # from Open MPI 5 on
            local -x OMPI_MCA_hwloc_base_binding_policy=none
            local -x OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any
            local -x OMPI_MCA_pml_ucx_devices=any
            export=(-x "LD_PRELOAD=$soft_lib")
            ;;
    esac
    "${soft_as[@]}" env HOME="$BATS_TEST_TMPDIR" UCX_TLS="$4" \
        timeout -k 5 180 "$1" -np "$3" "${export[@]}" "$2" \
        --max 256K --step 4 --seconds 2
}
