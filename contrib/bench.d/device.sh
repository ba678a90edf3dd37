# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: softverbs itself, without UCX, beside what the memory
# of this machine can do on the same CPUs in the same run.
# shellcheck shell=bash

measure_device()
{
    [ "$(nproc)" -ge 2 ] || die 1 '--only device needs two CPUs'
    "${CC:-cc}" -O2 -o "$work/device_program" "$bench_c/device.c" -libverbs ||
        die 1 "$bench_c/device.c cannot be compiled"
    say "measuring softverbs beside memory, $runs rounds"
    mark_machine
    LD_PRELOAD=$T_SOFTVERBS timeout $((60 + 30 * runs)) \
        "$work/device_program" "$runs" >"$work/device" ||
        die 1 'the device could not be measured'
    tell_foreign
    print_device
    print_machine
}

# figure NAME -> "minimum median maximum"
figure()
{
    awk -v name="$1" '$1 == name { print $2 }' "$work/device" \
        > "$work/figure"
    spread "$work/figure"
}

# device_row TITLE NAME [REFERENCE better]: with the ratio to the median of the
# reference, more than 1.00 if it is worse.
device_row()
{
    printf '%-38s' "$1"
    echo "$(figure "$2") ${3:+$(figure "$3")}" |
        awk -v better="${4:-}" '{
            for (i = 1; i <= 3; i++)
                printf ($i >= 1000) ? "%10.0f" : "%10.3g", $i
            if (better == "smaller") printf "  %6.2f", $2 / $5
            if (better == "bigger") printf "  %6.2f", $5 / $2
            print ""
        }'
}

print_device()
{
    printf '\n%-38s%10s%10s%10s  %6s\n' '' minimum median maximum 'times worse'
    device_row 'cache line, one way, ns' line_ns
    device_row 'line of a queue, one way, ns' queue_ns line_ns smaller
    device_row 'SEND, 8 B, one way, ns' send_ns line_ns smaller
    device_row 'queue in shared memory, M/s' queue_mps
    device_row 'SEND, 8 B, M/s' send_mps queue_mps bigger
    device_row 'memcpy, 1 MiB, GB/s' memcpy_gbs
    device_row 'process_vm_writev, 1 MiB, GB/s' vm_write_gbs memcpy_gbs bigger
    device_row 'two copies, shared ring, GB/s' ring_gbs memcpy_gbs bigger
    device_row 'SEND, 1 MiB, GB/s' send_gbs memcpy_gbs bigger
    device_row 'WRITE, 1 MiB, GB/s' write_gbs memcpy_gbs bigger
    device_row 'READ, 1 MiB, GB/s' read_gbs memcpy_gbs bigger
    device_row 'SEND, 8 B, one CPU for both, us' one_cpu_us
    device_row 'empty poll, 16 QPs, ns' poll_16_ns
    device_row 'empty poll, 4000 QPs, ns' poll_4000_ns poll_16_ns smaller
    device_row 'post, send, poll, 16 QPs, ns' turn_16_ns
    device_row 'post, send, poll, 4000 QPs, ns' turn_4000_ns turn_16_ns smaller
    device_row 'an idle QP of 4000 in /dev/shm, bytes' qp_shared_bytes
    device_row 'and in memory of its own, bytes' qp_private_bytes
}
