# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: what queue pairs that die cost the operation that meets
# it, on softverbs, whose plans of faults kill them.
# shellcheck shell=bash

# What is asked for: so many milliseconds, at most, in 99 of 100.
recovery_limit=20

# A way to die that takes longer hangs, seconds.
recovery_hangs=120

# recover TITLE [RULE]: a row. Returns 1 if it is above the limit.
recover()
{
    local kills=$((10 * ${BENCH_PERCENT:-100}))

    UCX_TLS=daqiri UCX_NET_DEVICES=$device perftest "$ours" client \
        env -u SOFTVERBS_FAULTS ${2:+SOFTVERBS_FAULTS="$2"} \
        SOFTVERBS_FAULTS_LOG=/dev/null timeout "$recovery_hangs" \
        "$work/recovery_program" "$kills" "$work/recovery" >>"$work/log" 2>&1 </dev/null || {
        tail -n 20 "$work/log" | sed 's/^/    /' >&2
        die 1 "the program that has its queue pairs killed did not end well"
    }
    sort -g "$work/recovery" | awk -f "$bench_d/recovery.awk" \
        -v title="$1" -v limit="$recovery_limit"
}

recover_all()
{
    local failed=0
    local mine='qp-error process=0 qp=rc'

    recover 'its own, with a request' "$mine n=20" || failed=1
    recover "the peer's, with a request" "$mine n=20 side=remote" || failed=1
    recover 'both, with a request' "$mine n=20 side=both" || failed=1
    recover 'an error completion (RETRY_EXC)' \
        'complete process=0 qp=rc n=20 status=RETRY_EXC_ERR' || failed=1
    recover 'its own, with nothing under way' || failed=1
    return "$failed"
}

measure_recovery()
{
    local status

    "${CC:-cc}" -O2 -rdynamic -o "$work/recovery_program" \
        "$bench_c/recovery.c" -lucp -lucs -libverbs -ldl ||
        die 1 "$bench_c/recovery.c cannot be compiled"
    say "killing queue pairs of $ours on $device, $((10 * ${BENCH_PERCENT:-100})) of each"
    clear_stats
    mark_machine
    printf '\n%-46s%9s%9s%9s%9s%11s%9s\n' \
        'the queue pair that dies; milliseconds' \
        minimum median '99 %' maximum "> $recovery_limit ms" 'no CPU'
    recover_all
    status=$?
    printf '\nFrom the last completion before to that of the first operation after.\n'
    printf 'Asked for: %s ms, in 99 of 100.\n' "$recovery_limit"
    printf 'No CPU: of those above it, how many would not be, had no CPU stood still.\n'
    tell_foreign
    print_machine
    [ "$status" -eq 0 ] || die 1 "it takes longer than $recovery_limit ms"
}
