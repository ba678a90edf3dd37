#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/demo: it compares, it counts, and a silent fallback fails it.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
    esac
    contrib=$T_TOP_SRCDIR/contrib
    unset LD_PRELOAD UCX_TLS UCX_NET_DEVICES
}

# counters PID MESSAGES BYTES: what one interface writes; its order is free.
counters()
{
    printf 'am_tx_bytes %s\npid %s\nam_tx %s\nam_rx 5\n' "$3" "$1" "$2"
}

sent()
{
    cat <<'EOF'
# Size            Latency (us)
8                         0.50
# sent rank=0 pid=11 pt2pt_messages=100 pt2pt_bytes=1000 collective_messages_min=20 collective_bytes_min=300
# sent rank=1 pid=12 pt2pt_messages=7 pt2pt_bytes=0
EOF
}

carried()
{
    run awk -f "$contrib/carried.awk" sent "$@"
    echo "$output"
}

@test "carried: enough, also in several interfaces of one rank" {
    sent >sent
    counters 11 119 0 >a
    counters 11 1 1300 >b
    counters 12 7 0 >c
    carried a b c
    [ "$status" -eq 0 ]
    [[ $output == *'daqiri carried all of it: 127 messages, 1300 bytes'* ]]
}

@test "carried: one message or one byte too few is a failure" {
    sent >sent
    counters 12 7 0 >c
    counters 11 119 1300 >a
    carried a c
    [ "$status" -eq 1 ]
    [[ $output == *'NOT CARRIED: that is fewer messages than rank 0 sent'* ]]
    counters 11 120 1299 >a
    carried a c
    [ "$status" -eq 1 ]
    [[ $output == *'NOT CARRIED: that is fewer bytes than all ranks sent'* ]]
}

@test "carried: what a peer has read counts" {
    sent >sent
    counters 11 120 400 >a
    { counters 12 7 0; echo 'rma_bytes 900'; } >c
    carried a c
    [ "$status" -eq 0 ]
    { counters 12 7 0; echo 'rma_bytes 899'; } >c
    carried a c
    [ "$status" -eq 1 ]
}

@test "carried: no counters of a rank, or of none, is a failure" {
    sent >sent
    counters 11 120 1300 >a
    carried a
    [ "$status" -eq 1 ]
    [[ $output == *'NOT CARRIED: there are no counters of rank 1'* ]]
    carried
    [ "$status" -eq 1 ]
    [[ $output == *'NOT CARRIED: there are no counters of rank 0'* ]]
}

@test "carried: a program that did not say what it sent is a failure" {
    echo 'nothing of the kind' >sent
    counters 11 120 1300 >a
    carried a
    [ "$status" -eq 1 ]
    [[ $output == *'NOT CARRIED: the program did not say what it sent'* ]]
}

# table LATENCY BANDWIDTH RATE BARRIER
table()
{
    printf '# latency: one way\n# Size     Latency (us)\n8   %s\n\n' "$1"
    printf '# bw: many in flight\n# Size     Bandwidth (MB/s)\n8   %s\n\n' "$2"
    printf '# rate: pairs\n# Size     MB/s    Messages/s\n8   1.00   %s\n\n' "$3"
    printf '# barrier: has no size\n# Avg Latency(us)\n      %s\n' "$4"
}

@test "compare: more than 1 means that the first is better" {
    table 0.50 200.00 5000.00 2.00 >one
    table 1.00 100.00 20000.00 1.00 >two
    run awk -f "$contrib/compare.awk" daqiri=one other=two
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk '$1 == "8" || $1 == "-" { printf "%s ", $4 }' <<<"$output")" = \
        '2.00x 2.00x 0.25x 0.50x ' ]
}

@test "compare: a value that is missing is shown as missing" {
    table 0.50 200.00 5000.00 2.00 >one
    table 1.00 100.00 20000.00 1.00 | head -n 3 >two
    run awk -f "$contrib/compare.awk" daqiri=one other=two
    [ "$status" -eq 0 ]
    [ "$(awk '$1 == "8" || $1 == "-" { printf "%s ", $4 }' <<<"$output")" = \
        '2.00x - - - ' ]
    run awk -f "$contrib/compare.awk" daqiri=none other=two
    [ "$status" -ne 0 ]
}

@test "options: nonsense gets a sentence and exit status 2" {
    run "$contrib/demo" --seconds nonsense
    [ "$status" -eq 2 ]
    [[ $output == *'--seconds nonsense: not a whole number above 0'* ]]
    run "$contrib/demo" --seconds
    [ "$status" -eq 2 ]
    run "$contrib/demo" --frobnicate
    [ "$status" -eq 2 ]
    run "$contrib/demo" --help
    [ "$status" -eq 0 ]
    [[ $output == *--no-setup* ]]
}

# Both MPIs, and this build in the place where demo looks for its own.
need_both()
{
    [ -n "$T_MPIRUN_OMPI" ] || skip 'Open MPI is not installed'
    [ -n "$T_MPIRUN_MPICH" ] || skip 'MPICH is not installed'
    export DAQIRI_BUILD_ROOT=$PWD/root
    mkdir root
}

@test "the demo itself, in short" {
    need_both
    ln -s "$T_TOP_BUILDDIR" root/release
    run "$contrib/demo" --no-setup --seconds 1 --device soft
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'daqiri carried all of it' <<<"$output")" -eq 2 ]
    [ "$(grep -c '^latency, us' <<<"$output")" -eq 2 ]
}

@test "a silent fallback fails the demo" {
    need_both
    mkdir -p root/release/src/tools
    ln -s "$T_TOP_BUILDDIR"/src/tools/daqiri-mpi-sweep-* root/release/src/tools
    # A launcher that lets UCX use whatever it likes.
    cat >root/release/src/tools/daqiri <<'EOF'
#!/bin/sh
while [ "$1" != --tls ]; do shift; done
shift 2
export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
export OMPI_MCA_osc=ucx UCX_TLS=self,sm
exec "$@"
EOF
    chmod +x root/release/src/tools/daqiri
    run "$contrib/demo" --no-setup --seconds 1 --device soft
    echo "$output" | tail -n 20
    [ "$status" -eq 1 ]
    [ "$(grep -c 'NOT CARRIED: there are no counters of rank' <<<"$output")" -eq 4 ]
}

@test "a device that is not there fails the demo with its sentence" {
    need_both
    ln -s "$T_TOP_BUILDDIR" root/release
    run "$contrib/demo" --no-setup --seconds 1 --device nonsense0
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"there is no device 'nonsense0'; there are: "* ]]
}
