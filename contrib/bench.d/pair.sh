# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: ucx_perftest between two processes.
# shellcheck shell=bash

server=

# A run that takes longer hangs, seconds.
pair_limit=120

# One side of the comparison is TRANSPORT[+VARIABLE=VALUE]...
transport_of()
{
    echo "${1%%+*}"
}

# split_compare A,B: sets $ours and $theirs
split_compare()
{
    ours=${1%%,*}
    theirs=${1#*,}
    [[ $1 == *?,?* && $theirs != *,* && $ours != "$theirs" ]] ||
        die 2 "--compare wants two transports, A,B, not \"$1\""
}

# sides_of ROUND: both, the first one first in every other round
sides_of()
{
    if [ $(($1 % 2)) -eq 1 ]; then
        echo "$ours" "$theirs"
    else
        echo "$theirs" "$ours"
    fi
}

# in_turns COMMAND [ARGUMENT]...: `runs` pairs of COMMAND SIDE [ARGUMENT]..., each of which
# adds a figure to $work/SIDE.
in_turns()
{
    local command=$1 run side

    shift
    rm -f "$work/$ours" "$work/$theirs"
    for ((run = 1; run <= runs; run++)); do
        for side in $(sides_of "$run"); do
            "$command" "$side" "$@"
        done
    done
}

# print_pairs PROGRAM [OPTION]...: the row that the awk program makes of these figures
print_pairs()
{
    paste "$work/$ours" "$work/$theirs" |
        awk "${@:2}" -f "$bench_d/column.awk" -f "$bench_d/$1"
}

# UCX's RC transport needs its UD transport to connect, and that one's check
# of the packet's address fails on Soft-RoCE (packets are dropped in silence).
tls_of()
{
    case $(transport_of "$1") in
        rc_verbs) echo rc_verbs,ud_verbs ;;
        *) transport_of "$1" ;;
    esac
}

# The settings of a side, with spaces between.
settings_of()
{
    case $1 in
        *+*) echo "${1#*+}" | tr + ' ' ;;
    esac
}

# The plugin is there for daqiri only, so nothing else can carry by it; the
# device in user space is there on its own bed only.
preload_of()
{
    local objects=

    [ "$bed" != softverbs ] || objects=$T_SOFTVERBS
    [ "$(transport_of "$1")" != daqiri ] ||
        objects=$objects${objects:+:}$T_PLUGIN
    echo "$objects"
}

# pin CPU -> the command that keeps another one on that CPU. Where there are
# two CPUs each side has its own: on a shared one the time that is measured
# would be the scheduler's.
pin()
{
    if [ "$(nproc)" -ge 2 ]; then
        echo taskset -c "$1"
    else
        echo env
    fi
}

# perftest SIDE ROLE COMMAND...; ROLE is client or server. The counter of calls
# comes first of all, and only if verbs_counter names it. UCX's VFS has a thread: if it
# holds a lock when one of our programs forks, the child waits for ever (UCX 1.18).
perftest()
{
    local settings
    local role=$2
    local objects

    read -r -a settings < <(settings_of "$1")
    objects=$(preload_of "$1")
    shift 2
    if [ -n "${verbs_counter:-}" ]; then
        objects=$verbs_counter${objects:+:}$objects
    fi
    env ${objects:+LD_PRELOAD="$objects"} DAQIRI_STATS_DIR="$work/stats" \
        BENCH_CALLS_FILE="$work/calls.$role" UCX_LOG_LEVEL=warn UCX_VFS_ENABLE=n \
        "${settings[@]}" "$@"
}

# take_figure SIDE: adds what the program has printed, $work/out, to $work/SIDE. UCX's
# warnings stand there, too.
take_figure()
{
    grep ' UCX ' "$work/out" >&2
    grep -v ' UCX ' "$work/out" >>"$work/$1"
}

clear_stats()
{
    rm -rf "$work/stats" "$work"/calls.*
    mkdir "$work/stats"
}

# carried SIDE OP COUNT: did it do that many? ucx_perftest opens exactly
# the transport it is told to, and daqiri counts besides.
carried()
{
    local sent

    [ "$(transport_of "$1")" = daqiri ] || return 0
    sent=$(cat "$work"/stats/daqiri.* 2>/dev/null |
        awk -v op="$2" '$1 == op { sum += $2 } END { print sum + 0 }')
    [ "$sent" -ge "$3" ] ||
        die 1 "daqiri has counted $sent of $2 where $3 were to be done: something else carried them"
}

# ucx_perftest's two sides meet over TCP; its server says so only in a buffer
# that it writes when it ends, so the kernel is asked.
is_listening()
{
    grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ 0A " \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

free_port()
{
    local port

    while :; do
        port=$((20000 + RANDOM % 12000))
        is_listening "$port" || break
    done
    echo "$port"
}

# give_up SIDE FILE...: what client and server said, and the end.
give_up()
{
    local side=$1

    shift
    sed 's/^/    /' "$@" >&2
    die 1 "ucx_perftest did not run over $side on $device"
}

# start_server SIDE OPTION...: when it returns, one can connect.
start_server()
{
    local side=$1
    local waited=0

    shift
    # shellcheck disable=SC2046,SC2086
    perftest "$side" server timeout "$pair_limit" $(pin 0) \
        $T_PERFTEST "$@" >"$work/server" 2>&1 </dev/null &
    server=$!
    until is_listening "$port"; do
        waited=$((waited + 1))
        [ "$waited" -lt 600 ] && kill -0 "$server" 2>/dev/null ||
            give_up "$side" "$work/server"
        sleep 0.05
    done
}

# An average is that since the line before: inf if nothing has ended since, and not
# a number if no time has passed besides.
csv_line='^ *[0-9]+,[0-9.]+(,([0-9.]+|inf|-?nan),[0-9.]+){3}$'

# run_pair SIDE: the loaded test once -> $csv, the last line of
# ucx_perftest -v: iterations, latency in us (median, average, overall), MB/s
# (average, overall), messages/s (average, overall). Where instructions are
# counted one process talks to itself: of two that poll, and share a CPU, one
# would count while it waits for the other.
run_pair()
{
    local side=$1
    local port options

    port=$(free_port)
    options=(-x "$(transport_of "$side")" -d "$device" -p "$port")
    clear_stats
    if [ "$counted" = yes ]; then
        run_alone "$side" "${options[@]}"
        return
    fi
    run_both "$side" -t "$perf" -D "$layout" -s "$size" -n "$count" -w "$warmup"
}

# run_both SIDE OPTION...: client and server with the array $options; these are the
# client's.
run_both()
{
    local side=$1

    shift
    start_server "$side" "${options[@]}"
    # shellcheck disable=SC2046,SC2086
    perftest "$side" client timeout "$pair_limit" $(pin 1) \
        $T_PERFTEST 127.0.0.1 "${options[@]}" "$@" -f -v >"$work/client" 2>&1 \
        </dev/null || give_up "$side" "$work/client" "$work/server"
    wait "$server" || give_up "$side" "$work/server"
    server=
    take_csv "$side"
}

# run_alone SIDE OPTION...
run_alone()
{
    local side=$1

    shift
    perftest "$side" client timeout "$pair_limit" $T_PERFTEST -l "$@" \
        -t "$perf" -D "$layout" -s "$size" -n "$count" -w "$warmup" -f -v \
        >"$work/client" 2>&1 </dev/null || give_up "$side" "$work/client"
    take_csv "$side"
}

# take_csv SIDE -> $csv
take_csv()
{
    csv=$(grep -E "$csv_line" "$work/client" | tail -n 1)
    [ -n "$csv" ] || give_up "$1" "$work/client"
    carried "$1" "$op" "$count"
}

# time_pair NAME SIDE: a figure more in each file that belongs to it.
time_pair()
{
    steadily run_pair "$2"
    case $kind in
        latency)
            cut -d, -f2 <<< "$csv" >> "$work/$1.median.$2"
            cut -d, -f4 <<< "$csv" >> "$work/$1.mean.$2"
            ;;
        rate) cut -d, -f8 <<< "$csv" >> "$work/$1.rate.$2" ;;
        bandwidth) cut -d, -f6 <<< "$csv" >> "$work/$1.bandwidth.$2" ;;
    esac
}
