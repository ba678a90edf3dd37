# SPDX-License-Identifier: BSD-3-Clause
#
# Read by wire.bed and outage.bed: a wire that can be made to fail, and traffic
# on it whose every byte is checked.
#
#     rxe0 - va === pa [switch] pb === vb - rxe1
#
# The two ends are plugged into a switch, not into each other: va loses its
# carrier when pa goes down, as a device does whose cable is pulled, and its
# own queue pairs may go on sending. A fault meets a packet where it arrives:
# what comes in at va passes through the device fa first, and what comes in at
# vb through fb. There netem loses, delays and spoils it. A packet that is
# dropped where it leaves is a failed call to rxe, and no loss.
# shellcheck shell=bash disable=SC2034,SC2154

# Where a job is to end, it need not be tried for long to save it.
wire_hasty=(UCX_DAQIRI_RECOVERY_TIMEOUT=3s)

# How wt_stream ends when the transport ends it.
wire_ended=6

# UCX_DAQIRI_TIMEOUT and UCX_DAQIRI_RETRY_COUNT as they are: 7 times 537 ms.
# More of the ends' environment (wire_start_end).
wire_env=()

wire_error_silence='the peer.s device does not answer'

# A queue pair gives up after 3.8 s, and another one is tried for 3 (wire_hasty).
# The rest is for a machine that has other things to do.
wire_bound=60

# wire_case NAME LIMIT FUNCTION...: a function that counts its results.
wire_case()
{
    bed_run "$1" "$2" wire_plan "${@:3}"
}

wire_plan()
{
    wire_results=0
    "$@"
    echo "1..$wire_results"
}

# wire_result STATUS NAME: one line of TAP.
wire_result()
{
    wire_results=$((wire_results + 1))
    [ "$1" -eq 0 ] && echo "ok - $2" || echo "not ok - $2"
}

# ---- The wire ----

wire_build()
{
    local end

    # one answer to an RDMA READ can be more than 1000 packets
    sysctl -qw net.core.netdev_max_backlog=100000
    ip link add switch type bridge
    ip link set switch up
    for end in a b; do
        ip link add "v$end" type veth peer name "p$end"
        sysctl -qw "net.ipv4.conf.v$end.accept_local=1" \
            "net.ipv4.conf.v$end.rp_filter=0"
        ip link set "p$end" master switch
        ip link add "f$end" type ifb
        ip link set "f$end" up
    done
    sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.rp_filter=0
    # the switch, of the same host, must not say that it has their addresses
    sysctl -qw net.ipv4.conf.all.arp_ignore=1
    ip address add 10.2.0.1/24 dev va
    ip address add 10.2.0.2/24 dev vb
    wire_set_mtu 4200 4200
    for end in va vb pa pb; do
        ip link set "$end" up
    done
    # nobody has to ask for them, which takes a second
    ip neighbour replace 10.2.0.2 dev va nud permanent \
        lladdr "$(cat /sys/class/net/vb/address)"
    ip neighbour replace 10.2.0.1 dev vb nud permanent \
        lladdr "$(cat /sys/class/net/va/address)"
    rdma link add rxe0 type rxe netdev va
    rdma link add rxe1 type rxe netdev vb
}

wire_set_mtu()
{
    ip link set va mtu "$1"
    ip link set pa mtu "$1"
    ip link set vb mtu "$2"
    ip link set pb mtu "$2"
}

# Everything that arrives passes through netem with these options.
wire_fault()
{
    local end

    for end in a b; do
        tc qdisc add dev "v$end" ingress
        tc filter add dev "v$end" ingress matchall \
            action mirred egress redirect dev "f$end"
        tc qdisc add dev "f$end" root netem limit 100000 "$@"
    done
}

wire_mend()
{
    local end

    for end in a b; do
        tc qdisc del dev "v$end" ingress 2>/dev/null
        tc qdisc del dev "f$end" root 2>/dev/null
    done
}

# wire_on_handshake END ACTION...: what happens to each datagram of the
# handshake that arrives there: to each UD SEND (opcode 0x64, IBA 9.2) in a
# packet of RoCE v2 (UDP port 4791), the opcode being its first byte.
wire_on_handshake()
{
    tc qdisc add dev "$1" ingress
    tc filter add dev "$1" ingress protocol ip u32 match ip dport 4791 0xffff \
        match u8 0x64 0xff at 28 action "${@:2}"
}

# The packets that have been dropped by what wire_fault or wire_on_handshake
# set up.
wire_dropped()
{
    {
        tc -s qdisc show dev fa
        tc -s qdisc show dev fb
        tc -s filter show dev va ingress
        tc -s filter show dev vb ingress
    } | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}

# What hardware would have to say of a fault: the sum of these counters.
wire_noticed()
{
    local name value sum=0

    for name in out_of_seq_request rcvd_seq_err duplicate_request \
                completer_retry_err; do
        for value in /sys/class/infiniband/rxe[01]/ports/1/hw_counters/"$name"; do
            sum=$((sum + $(<"$value")))
        done
    done
    echo "$sum"
}

wire_sent()
{
    local value sum=0

    for value in /sys/class/infiniband/rxe[01]/ports/1/hw_counters/sent_pkts; do
        sum=$((sum + $(<"$value")))
    done
    echo "$sum"
}

# wire_wait_for CONDITION...: asks again until it holds, or both ends are over,
# or for a minute; what depends on it fails then, and is shown.
wire_wait_for()
{
    local until=$((SECONDS + wire_bound * T_TIMEOUT_MULTIPLIER))

    until "$@"; do
        wire_is_over && return 1
        [ "$SECONDS" -lt "$until" ] || return
        sleep 0.1
    done
}

# ---- Traffic ----

# wire_start [ARGUMENT...]: two ends of wt_stream, with daqiri alone.
wire_start()
{
    wire_prepare
    wire_ends=(0 1)
    wire_start_end 0 rxe0 "$@"
    wire_start_end 1 rxe1 "$@"
}

# wire_start_one END: only that one, where there is one device.
wire_start_one()
{
    wire_prepare
    wire_ends=("$1")
    wire_start_end "$1" rxe0
}

wire_prepare()
{
    wire_dir=$(mktemp -d)
    mkfifo "$wire_dir/to0" "$wire_dir/to1" "$wire_dir/clock"
    mkdir "$wire_dir/counters"
}

# wire_start_end END DEVICE [ARGUMENT...]
wire_start_end()
{
    local end=$1 device=$2

    shift 2
    env "${wire_env[@]}" UCX_TLS=daqiri UCX_HANDLE_ERRORS=none UCX_NET_DEVICES="$device:1" \
        DAQIRI_STATS_DIR="$wire_dir/counters" \
        "$bed_tests/softroce/wt_stream" "$end" "$wire_dir/to$end" \
        "$wire_dir/to$((1 - end))" "$@" \
        >"$wire_dir/out$end" 2>"$wire_dir/err$end" &
    wire_pid[end]=$!
}

wire_is_flowing()
{
    local end

    for end in "${wire_ends[@]}"; do
        grep -q '^flowing' "$wire_dir/out$end" || return
    done
}

wire_is_over()
{
    local end

    for end in "${wire_ends[@]}"; do
        [ ! -e "/proc/${wire_pid[end]}" ] || return
    done
}

wire_stop()
{
    kill -USR1 "${wire_pid[@]}" 2>/dev/null
}

# What the two ends said, as comments.
wire_show()
{
    local end

    for end in "${wire_ends[@]}"; do
        echo "# end $end: status ${wire_status[end]}"
        sed 's/^/#   /' "$wire_dir/out$end" "$wire_dir/err$end"
    done
}

wire_join()
{
    local end

    for end in "${wire_ends[@]}"; do
        wait "${wire_pid[end]}" 2>/dev/null
        wire_status[end]=$?
    done
    wire_show
}

# Both ends had all data, right and in order; daqiri carried it and nothing
# was left in its hands.
wire_expect_data()
{
    [ "${wire_status[*]}" = '0 0' ] && grep -q ' done:' "$wire_dir/out0" &&
        grep -q ' done:' "$wire_dir/out1"
    wire_result $? 'all data arrived, right and in order'
    wire_carried
    wire_result $? 'daqiri carried it'
}

# wire_counter KEY: the values of one counter, one interface a line.
wire_counter()
{
    sed -n "s/^$1 //p" "$wire_dir"/counters/*
}

wire_carried()
{
    local key sent

    sent=$(sed -n 's/.* done: sent \([0-9]*\) .*/\1/p' "$wire_dir"/out[01] |
        awk '{ n += $1 } END { print n + 0 }')
    wire_counter am_tx | awk -v sent="$sent" '
        { n += $1 } END { exit !(NR == 2 && sent > 0 && n >= sent) }' || return
    # what one end sent, the other received
    [ "$(wire_counter am_tx)" = "$(wire_counter am_rx | tac)" ] || return
    for key in rx_dropped rx_overrun rx_out_of_order posts_refused \
               sq_in_use_at_close rx_held_at_close; do
        [ "$(wire_counter "$key" | sort -u)" = 0 ] || return
    done
    [ -n "${wire_loses:-}" ] || wire_has_no_errors
}

wire_has_no_errors()
{
    local key

    for key in tx_errors qp_failures stray_completions; do
        [ "$(wire_counter "$key" | sort -u)" = 0 ] || return
    done
}

# A queue pair was lost at either end, and another one was found.
wire_expect_recovery()
{
    local end

    for end in 0 1; do
        grep -q '; lost, connecting again' "$wire_dir"/{out,err}"$end" &&
            grep -q 'daqiri: back, with .* after .* ms' "$wire_dir"/{out,err}"$end"
        wire_result $? "end $end says that it lost the peer, and is back"
    done
}

# wire_expect_error SENTENCE: both ends are over, within the bound, with an
# error, and say why. None is silent.
wire_expect_error()
{
    wire_expect_end 0 "$1"
    wire_expect_end 1 "$1"
}

# wire_expect_end END SENTENCE
wire_expect_end()
{
    [ "${wire_status[$1]}" -eq "$wire_ended" ] &&
        grep -q "daqiri: $2" "$wire_dir/out$1" "$wire_dir/err$1"
    wire_result $? "end $1 says: $2"
}

# wire_wait_or_kill SECONDS: waits for the ends, and then no longer.
wire_wait_or_kill()
{
    local until=$((SECONDS + $1 * T_TIMEOUT_MULTIPLIER))

    while ! wire_is_over && [ "$SECONDS" -lt "$until" ]; do
        sleep 0.1
    done
    wire_is_over || kill -KILL "${wire_pid[@]}" 2>/dev/null
}

# Ends what still runs when the bound is over; such a job is a hang.
wire_join_within()
{
    wire_wait_or_kill "$1"
    wire_join
    [[ " ${wire_status[*]} " != *' 137 '* ]]
    wire_result $? "over within $1 s"
}

# A fault that is over must leave nothing behind.
wire_expect_new_job()
{
    wire_start -n 100 -m 16384
    wire_join
    [ "${wire_status[*]}" = '0 0' ]
    wire_result $? 'the next job finds everything in order'
}
