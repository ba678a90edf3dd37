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
    bench_d=$contrib/bench.d
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
# Size            One way (us)
8                         0.50
# sent rank=0 pid=11 pt2pt_messages=100 pt2pt_bytes=1000 collective_messages_min=20 collective_bytes_min=300
# sent rank=1 pid=12 pt2pt_messages=7 pt2pt_bytes=0
EOF
}

carried()
{
    run awk -f "$bench_d/carried.awk" sent "$@"
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

# table FILE LATENCY BANDWIDTH RATE BARRIER: what the sweep prints.
table()
{
    {
        printf '# latency: one way\n# Size     One way (us)\n8   %s\n\n' "$2"
        printf '# bw: many in flight\n# Size     Gb/s\n8   %s\n\n' "$3"
        printf '# rate: pairs\n# Size     Gb/s    Messages/s\n8   1.00   %s\n\n' "$4"
        printf '# barrier: has no size\n# Mean (us)\n      %s\n' "$5"
    } > "$1"
}

# compare ROUNDS: the rounds of one and other
compare()
{
    run -0 awk -v rounds="$1" -v title=MPI -v data=data -f "$bench_d/column.awk" -f "$bench_d/rounds.awk" \
        daqiri=one other=other
    echo "$output"
}

# The ratio, its range and its sign in the row of a size, of all tables.
ratios()
{
    printf '%s\n' "${lines[@]}" | awk '$1 == "8" || $1 == "-" { print $4 ($5 == "" ? "" : " ") $5 ($6 == "" ? "" : " ") $6 }'
}

@test "rounds: more than 1 means that the first is better" {
    table one.1 0.50 200.00 5000.00 2.00
    table other.1 1.00 100.00 20000.00 1.00
    compare 1
    [ "$(ratios)" = '2.00x (2.00-2.00) +
2.00x (2.00-2.00) +
0.25x (0.25-0.25) -
0.50x (0.50-0.50) -' ]
}

@test "rounds: the median of the rounds' own ratios, not the ratio of the medians" {
    # round by round 1.2, 1.5, 1.1: of the medians it would be 2.0 / 1.2
    table one.1 1.00 1 1 1;   table other.1 1.20 1 1 1
    table one.2 1.20 1 1 1;   table other.2 1.80 1 1 1
    table one.3 10.00 1 1 1;  table other.3 11.00 1 1 1
    compare 3
    [ "$(ratios | head -n 1)" = '1.20x (1.10-1.50) +' ]
    [[ $output == *'latency, us: one way'*$'\n8 '*' 1.20 '*' 1.80 '* ]]
    grep -qx 'daqiri latency 8 1 1.2 10' data
}

@test "rounds: what one round sees otherwise, or is 5 % at most, may be luck" {
    table one.1 1.00 100 100 1;   table other.1 0.50 104 50 1
    table one.2 1.00 100 100 1;   table other.2 1.01 104 50 1
    compare 2
    [ "$(ratios)" = '0.76x (0.50-1.01)
0.96x (0.96-0.96)
2.00x (2.00-2.00) +
1.00x (1.00-1.00)' ]
    [[ ${lines[-1]} == 'summary: MPI, daqiri / other: latency 0.76x, bw 0.96x, rate 2.00x, barrier 1.00x; slower than other by more than luck: none' ]]
}

@test "rounds: the summary names what is slower, cell by cell" {
    table one.1 2.00 100 100 3;   table other.1 1.00 100 100 1
    table one.2 2.00 100 100 3;   table other.2 1.00 100 100 1
    compare 2
    [[ ${lines[-1]} == *'; slower than other by more than luck: latency 8, barrier' ]]
}

@test "rounds: a value that is missing is shown as missing, and judged by nobody" {
    table one.1 0.50 200.00 5000.00 2.00
    table other.1 1.00 100.00 20000.00 1.00
    sed -i '2,$d' other.1
    table one.2 0.50 200.00 5000.00 2.00
    table other.2 1.00 100.00 20000.00 1.00
    compare 2
    [ "$(ratios)" = '2.00x (2.00-2.00) ?
2.00x (2.00-2.00) ?
0.25x (0.25-0.25) ?
0.50x (0.50-0.50) ?' ]
    rm other.*
    compare 2
    [ "$(ratios | sort -u)" = '-' ]
    rm one.*
    run -1 awk -v rounds=2 -f "$bench_d/column.awk" -f "$bench_d/rounds.awk" daqiri=one other=other
}

@test "options: nonsense gets a sentence and exit status 2" {
    run -2 "$contrib/demo" --seconds nonsense
    [ "$output" = 'demo: --seconds wants a number from 1 on, not "nonsense"' ]
    run -2 "$contrib/demo" --rounds 0
    [ "$output" = 'demo: --rounds wants a number from 1 on, not "0"' ]
    run -2 "$contrib/demo" --plot x.pdf
    [ "$output" = 'demo: --plot wants FILE.svg or FILE.png, not "x.pdf"' ]
    run -2 "$contrib/demo" --seconds
    run -2 "$contrib/demo" --frobnicate
    run -0 "$contrib/demo" --help
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
    run "$contrib/demo" --no-setup --rounds 2 --seconds 1 --device soft --plot demo.png
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'daqiri carried all of it' <<<"$output")" -eq 2 ]
    [ "$(grep -c '^latency, us' <<<"$output")" -eq 2 ]
    [[ $output == *$'\ndevice softverbs0:1'*$'\n'*' processors: '*'=== Open MPI'* ]]
    [[ ${lines[-2]} == 'Open MPI, daqiri / rc_verbs: latency '*'; slower than rc_verbs by more than luck: '* ]]
    [[ ${lines[-1]} == 'MPICH, daqiri / rc_verbs: latency '*'; slower than rc_verbs by more than luck: '* ]]
    if command -v gnuplot >/dev/null; then
        [[ $output == *'demo: a picture of it: demo.png'* ]]
        [[ $(head -c 4 demo.png) == *PNG ]]
    fi
}

@test "a silent fallback fails the demo" {
    need_both
    mkdir -p root/release/src/tools
    ln -s "$T_TOP_BUILDDIR"/src/tools/daqiri-mpi-sweep-* root/release/src/tools
    # A launcher that lets UCX use whatever it likes.
    cat >root/release/src/tools/daqiri <<'EOS'
#!/bin/sh
while [ "$1" != --tls ]; do shift; done
shift 2
export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
export OMPI_MCA_osc=ucx UCX_TLS=self,sm
exec "$@"
EOS
    chmod +x root/release/src/tools/daqiri
    run "$contrib/demo" --no-setup --rounds 1 --seconds 1 --device soft
    echo "$output" | tail -n 20
    [ "$status" -eq 1 ]
    [ "$(grep -c 'NOT CARRIED: there are no counters of rank' <<<"$output")" -eq 4 ]
    [ "$(grep -c 'daqiri did not carry all of it' <<<"$output")" -eq 2 ]
}

@test "a device that is not there fails the demo with its sentence" {
    need_both
    ln -s "$T_TOP_BUILDDIR" root/release
    run "$contrib/demo" --no-setup --rounds 1 --seconds 1 --device nonsense0
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"there is no device 'nonsense0'; there are: "* ]]
}

@test "a run that does not end is told from one that fails" {
    need_both
    ln -s "$T_TOP_BUILDDIR" root/release
    mkdir bin
    printf '#!/bin/sh\n# as if its time were over\nexit 124\n' > bin/timeout
    chmod +x bin/timeout
    PATH=$PWD/bin:$PATH run "$contrib/demo" --no-setup --rounds 1 --seconds 1 --device soft
    echo "$output"
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = 'demo: the sweep had not ended after 123 s under Open MPI with UCX_TLS=daqiri' ]
}

@test "a comparison that hangs behind its last figure is used, with a sentence" {
    need_both
    ln -s "$T_TOP_BUILDDIR" root/release
    mkdir bin
    cat >bin/timeout <<'EOS'
#!/bin/sh
# as if each job over tcp hung in MPI_Finalize()
shift 3
"$@" || exit
case $* in *' --tls tcp '*) exit 124 ;; esac
EOS
    chmod +x bin/timeout
    PATH=$PWD/bin:$PATH run "$contrib/demo" --no-setup --rounds 1 --seconds 1 --device soft
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^demo: UCX_TLS=tcp under .*: all figures were there, but the job had not ended' <<<"$output")" -eq 2 ]
    [ "$(grep -c '^latency, us' <<<"$output")" -eq 2 ]
}
