# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: how a transport uses verbs, per message. Where each
# doorbell is a system call, that is most of what a short message costs. The
# counts hold on a busy machine, too.
# shellcheck shell=bash

# Built where there is a compiler at full speed: outside of a virtual machine.
build_verbs_counter()
{
    [ -z "${BENCH_VERBS_COUNTER:-}" ] || return 0
    export BENCH_VERBS_COUNTER=$work/verbs_counter.so
    "${CC:-cc}" -O2 -shared -fPIC -Wl,--no-as-needed \
        -o "$BENCH_VERBS_COUNTER" "$bench_c/verbs_counter.c" -libverbs -ldl ||
        die 1 "$bench_c/verbs_counter.c cannot be compiled"
}

count_calls()
{
    local verbs_counter=$BENCH_VERBS_COUNTER
    local name side

    for name in $(chosen_uct_tests); do
        load_test "$name"
        fit_test "$name" || continue
        for side in $ours $theirs; do
            say "counting calls: $side, $name"
            run_pair "$side"
            awk -f "$bench_d/calls.awk" -v test="$name" -v n=$((count + warmup)) \
                -v side="$side" "$work/calls.client" \
                "$work/calls.server" >> "$work/calls"
        done
    done
}

print_calls()
{
    printf '\nCalls of verbs per message (what connecting takes is included):\n\n'
    awk -f "$bench_d/calls.awk" -v heading=1
    cat "$work/calls"
    cat <<- 'END'

	requests: work requests of the send queue; doorbells: calls of ibv_post_send;
	syscalls: doorbells that were a system call; signalled: requests that asked for
	a completion; RECVs/call: chained in one call of ibv_post_srq_recv or _recv.
	END
}
