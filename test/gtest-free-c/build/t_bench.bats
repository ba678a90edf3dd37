# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/bench transports, and what the other two say of what is wrong: that its
# numbers are what the programs have said. What the numbers are, no test looks at.

bats_require_minimum_version 1.5.0

setup()
{
    bench=$T_TOP_SRCDIR/contrib/bench
    bench_d=$T_TOP_SRCDIR/contrib/bench.d
    build=$T_TOP_BUILDDIR
    cd "$BATS_TEST_TMPDIR" || return 1
}

need_release()
{
    [ "$T_FLAVOUR" = release ] ||
        skip 'ucx_perftest was not built with the sanitizer or for waiting so long'
    command -v ucx_perftest > /dev/null || skip 'ucx_perftest is not installed'
}

# other_vm TEXT: bench in a checkout of its own, where contrib/vm/run does TEXT.
other_vm()
{
    mkdir -p contrib/vm test
    cp -r "$T_TOP_SRCDIR"/contrib/{bench,bench.d,lib.sh} contrib
    cp -r "$T_TOP_SRCDIR"/test/bench test
    bench=$PWD/contrib/bench
    [ -z "${1:-}" ] || {
        printf '#!/bin/bash\n%s\n' "$1" > contrib/vm/run
        chmod +x contrib/vm/run
    }
}

refuses()
{
    local sentence=$1

    shift
    run -2 --separate-stderr "$bench" transports "$@"
    [ -z "$output" ]
    [ "$stderr" = "bench transports: $sentence" ]
}

# check_build WHAT: it refuses what is no build.
check_build()
{
    run -1 "$bench" "$1" --build /nowhere
    [ "$output" = "bench $1: /nowhere is not a build of ucx-daqiri (contrib/setup makes one)" ]
}

@test "it measures one of seven, each with its help" {
    local what

    run -2 "$bench"
    [ "$output" = 'bench: say what to measure: transports, cold, protocols, tools, peers, jobs, streams, connects, many or scale (try bench --help)' ]
    run -2 "$bench" nonsense
    [[ $output == 'bench: there is nothing to measure that is called "nonsense": it is transports, cold, protocols, tools, peers, jobs, streams, connects, many or scale' ]]
    for what in transports cold protocols tools peers jobs streams many scale; do
        run -0 "$bench" "$what" --help
        [[ ${lines[0]} == "contrib/bench $what "* ]]
        run -2 "$bench" "$what" --nonsense
        [ "$output" = "bench $what: unknown option \"--nonsense\" (try bench $what --help)" ]
    done
}

@test "bench cold: a row for each size, and what it refuses" {
    run -2 "$bench" cold --rounds 50
    [ "$output" = 'bench cold: --rounds wants TIMED/BEFORE, not "50"' ]
    run -2 "$bench" cold --rounds 50/x
    [ "$output" = 'bench cold: --rounds wants a number from 1 on, not "x"' ]
    run -2 "$bench" cold --compare daqiri
    [ "$output" = 'bench cold: --compare wants two transports, A,B, not "daqiri"' ]
    check_build cold

    [ "$T_FLAVOUR" = release ] || skip "only a release build is measured"
    run -1 "$bench" cold --build "$T_TOP_BUILDDIR" --runs 1 --rounds 5/1 --sizes 8 --compare nonsense,daqiri
    [ "${lines[-1]}" = 'bench cold: ucx_perftest did not run over nonsense on softverbs0:1' ]
    run -0 "$bench" cold --build "$T_TOP_BUILDDIR" --runs 2 --rounds 5/1 --sizes 8,4096 \
        --compare daqiri,daqiri+UCX_DAQIRI_RX_WINDOW_START=256
    [[ ${lines[2]} =~ ^\ +8\ +5\ +1\ +[0-9.]+\ \([0-9.]+\ to\ [0-9.]+\)\ .*\ [0-9.]+\ \([0-9.]+\ to\ [0-9.]+\) ]]
    [[ ${lines[3]} =~ ^\ +4096\  ]]
}

@test "bench connects: a row with a ratio, and what it refuses" {
    run -2 "$bench" connects --peers 0
    [ "$output" = 'bench connects: --peers wants a number from 1 on, not "0"' ]
    run -2 "$bench" connects --peers 201
    [ "$output" = 'bench connects: --peers wants 200 at most, not "201"' ]
    run -2 "$bench" connects --compare daqiri
    [ "$output" = 'bench connects: --compare wants two transports, A,B, not "daqiri"' ]
    check_build connects
    [ "$T_FLAVOUR" = release ] || skip 'what is measured is the release build'
    run -0 --separate-stderr "$bench" connects --build "$build" --runs 1 --peers 5
    [[ ${lines[1]} == 'daqiri, 1/s '*'rc_verbs, 1/s '*' ratio' ]]
    [[ ${lines[2]} =~ ^[0-9]+\ \([0-9]+\ to\ [0-9]+\)\ .*\ [0-9]+\.[0-9]+\ \([0-9.]+\ to\ [0-9.]+\)$ ]]
    [ ${#lines[@]} -eq 3 ]
}

@test "bench jobs: a row with a ratio, and what it refuses" {
    run -2 "$bench" jobs --mpi lam
    [ "$output" = 'bench jobs: --mpi wants mpich, openmpi or both, not "lam"' ]
    run -2 "$bench" jobs --np 0
    [ "$output" = 'bench jobs: --np wants a number from 1 on, not "0"' ]
    check_build jobs
    [ "$T_FLAVOUR" = release ] || skip 'what is measured is the release build'
    run -0 --separate-stderr "$bench" jobs --build "$build" --runs 1 --np 3 --seconds 30
    mapfile -t lines < <(grep -v 'hung in MPI_Finalize()' <<< "$output")
    [ ${#lines[@]} -eq 4 ]
    [[ ${lines[2]} =~ ^mpich\ +3\ +[0-9.]+\ \([0-9.]+\ to\ [0-9.]+\)\ .*\ [0-9.]+\ \([0-9.]+\ to\ [0-9.]+\)$ ]]
    [[ ${lines[3]} =~ ^openmpi\ +3\ .*\ [0-9.]+\ \([0-9.]+\ to\ [0-9.]+\)$ ]]
}

@test "bench streams: a row with a ratio, and what it refuses" {
    run -2 "$bench" streams --peers 4097
    [ "$output" = 'bench streams: --peers wants 4096 at most, not "4097"' ]
    run -2 "$bench" streams --size 8193
    [ "$output" = 'bench streams: --size wants 8192 at most, not "8193"' ]
    run -2 "$bench" streams --compare daqiri,tcp
    [ "$output" = 'bench streams: --compare wants daqiri twice, not "tcp"' ]
    check_build streams
    [ "$T_FLAVOUR" = release ] || skip 'what is measured is the release build'
    run -0 --separate-stderr "$bench" streams --build "$build" --runs 1 --peers 3 --rounds 50
    [[ ${lines[2]} =~ ^[0-9]+\ \([0-9]+\ to\ [0-9]+\)\ .*\ [0-9]+\.[0-9]+\ \([0-9.]+\ to\ [0-9.]+\)$ ]]
    [ ${#lines[@]} -eq 3 ]
}

@test "bench streams: 4096 interfaces of four processes connect to one" {
    local few=daqiri+UCX_DAQIRI_RX_BUFFERS=32768+UCX_DAQIRI_SEG_SIZE

    check_build streams
    [ "$T_FLAVOUR" = release ] || skip 'what is measured is the release build'
    (ulimit -S -n 20000) 2> /dev/null || skip 'a process may not open so many files (ulimit -H -n)'
    run -0 --separate-stderr "$bench" streams --build "$build" --runs 1 --peers 4096 \
        --rounds 2 --compare "$few=1k,$few=2k"
    [[ ${lines[2]} =~ ^[1-9][0-9]*\ \([0-9]+\ to\ [0-9]+\)\ .*\ [0-9]+\.[0-9]+\ \([0-9.]+\ to\ [0-9.]+\)$ ]]
}

@test "bench many: what idle connections cost the others, and what it refuses" {
    run -2 "$bench" many --counts 0
    [ "$output" = 'bench many: --counts wants a number from 1 on, not "0"' ]
    run -2 "$bench" many --counts 4097
    [ "$output" = 'bench many: --counts wants 4096 endpoints at most, not "4097"' ]
    check_build many
    [ "$T_FLAVOUR" = release ] || skip 'what is counted is the release build'
    command -v valgrind > /dev/null || skip 'valgrind is not installed'
    run -0 --separate-stderr "$bench" many --build "$build" --counts 16,4096 --rounds 200
    # a row each; idle, send and receive of the plugin within 1.05 of those of the first
    awk 'NR == 2 { for (i = 2; i <= 6; i += 2) few[i] = $i }
         NR == 3 {
             for (i = 2; i <= 6; i += 2) {
                 if (few[i] < 20 || $i > 1.05 * few[i]) exit 1
             }
         }
         END { if (NR != 3) exit 1 }' <<< "$output"
}

@test "bench scale: a row for each loss, the same each time, and what it refuses" {
    local say='bench scale:'

    run -2 "$bench" scale --interfaces 1
    [ "$output" = "$say --interfaces wants 2 to 1000000, not \"1\"" ]
    run -2 "$bench" scale --interfaces many
    [ "$output" = "$say --interfaces wants a number from 1 on, not \"many\"" ]
    run -2 "$bench" scale --peers 3
    [ "$output" = "$say --peers wants an even number below that of the interfaces, not \"3\"" ]
    run -2 "$bench" scale --peers 4 --star
    [ "$output" = "$say --peers goes neither with --star nor with --in-order" ]
    run -2 "$bench" scale --loss 0,100
    [ "$output" = "$say --loss wants percent below 100, with commas between, not \"100\"" ]
    run -2 "$bench" scale --without sense
    [ "$output" = "$say --without wants pace, jitter, backlog or learning, not \"sense\"" ]
    run -2 "$bench" scale --qp-us 1000001
    [ "$output" = "$say --qp-us wants a second at most, not \"1000001\"" ]

    run -0 "$bench" scale --interfaces 40 --loss 0,10
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} =~ ^\ +0\ +3\.[0-9]{3}\ +0\.000\ .*\ 0\ +[0-9]+\ +0$ ]]
    [[ ${lines[2]} =~ ^\ +10\ +[0-9.]+\ +0\.[1-9] ]]
    first=$output
    run -0 "$bench" scale --interfaces 40 --loss 0,10
    [ "$output" = "$first" ]
    run -0 "$bench" scale --interfaces 300 --star --without pace,jitter,backlog,learning
    [ "${#lines[@]}" -eq 5 ]
    run -0 "$bench" scale --interfaces 300 --peers 10 --seed 7 --loss 0
    [ "${#lines[@]}" -eq 2 ]
}

@test "bench peers: memory by the number of ranks, and what it refuses" {
    run -2 "$bench" peers --np 1
    [ "$output" = 'bench peers: --np wants 2 ranks at least, not "1"' ]
    run -2 "$bench" peers --np 2,x
    [ "$output" = 'bench peers: --np wants a number from 1 on, not "x"' ]
    check_build peers
    [ -n "$T_SOFTVERBS" ] && command -v mpicc.mpich || skip 'MPICH is not installed'
    for mode in --rounds --stream; do
        run -2 "$bench" peers $mode 0
        [ "$output" = "bench peers: $mode wants a number from 1 on, not \"0\"" ]
        run -0 "$bench" peers --build "$T_TOP_BUILDDIR" --np 2,4 $mode 3 \
            --compare daqiri,tcp
        [[ ${lines[-2]} =~ ^\ +2\ +[0-9]+\ +[1-9][0-9]*\ +-\ +[0-9]+\ +0\ +-$ ]]
        [[ ${lines[-1]} =~ ^\ +4\ +[0-9]+\ +[1-9][0-9]*\ +-?[0-9]+\ +[0-9]+\ +0\ +-?[0-9]+$ ]]
    done
    run -1 "$bench" peers --build "$T_TOP_BUILDDIR" --np 2 --compare nonsense
    [ "${lines[-1]}" = 'bench peers: no job of 2 ranks ran over nonsense' ]
}

@test "wrong values of options are status 2 and one sentence" {
    refuses '--bed knows softverbs and softroce, not "hardware"' --bed hardware
    refuses '--runs wants a number from 1 on, not "0"' --runs 0
    refuses '--runs wants a number from 1 on, not "1x"' --runs 1x
    refuses '--boots wants a number from 1 on, not "0"' --bed softroce --boots 0
    refuses '--boots: only --bed softroce boots' --boots 2
    refuses '--compare wants two transports, A,B, not "daqiri"' --compare daqiri
    refuses '--compare wants two transports, A,B, not "a,b,c"' --compare a,b,c
    refuses '--compare wants two transports, A,B, not "a,"' --compare a,
    refuses '--compare wants two transports, A,B, not "a,a"' --compare a,a
    refuses '--compare: no blanks or signs in "a,b+C=$(x)"' --compare 'a,b+C=$(x)'
    refuses '--only knows time, instructions, calls, device and recovery, not "luck"' --only luck
    BENCH_PERCENT=x refuses 'BENCH_PERCENT is a number from 1 on, not "x"'
}

@test "a test that there is not, or not on this bed" {
    run -2 "$bench" transports --tests am_lat,nonsense
    [[ $output == 'bench transports: there is no test "nonsense": it is one of am_lat '* ]]
    run -2 "$bench" transports --tests ,
    [ "$output" = 'bench transports: --tests wants names of tests' ]
    refuses 'mpi_wire needs the two devices of --bed softroce' --tests mpi_wire
    run -2 "$bench" transports --bed softroce --only recovery
    [[ $output == *'use --bed softverbs' ]]
    refuses '--only recovery measures daqiri, not "rc_verbs"' --only recovery \
        --compare rc_verbs,daqiri
}

@test "--list names each test once, and each of them is known" {
    local name

    run -0 "$bench" transports --list
    [ "${lines[0]}" = am_lat ]
    [ "$(printf '%s\n' "${lines[@]}" | sort | uniq -d)" = '' ]
    for name in "${lines[@]}"; do
        run -1 "$bench" transports --bed softroce --tests "$name" --build none
        [[ $output == 'bench transports: none is not a build of ucx-daqiri'* ]]
    done
}

@test "no build" {
    check_build transports
}

@test "a transport or a device that there is not" {
    need_release
    run -1 "$bench" transports --build "$build" --compare nonsense,daqiri --only time
    [ "${lines[-1]}" = 'bench transports: there is no transport "nonsense" on softverbs0:1' ]
    run -1 "$bench" transports --build "$build" --device softverbs7:1 --only time
    [ "${lines[-1]}" = 'bench transports: there is no transport "daqiri" on softverbs7:1' ]
}

@test "softroce: no virtual machine, or one that fails" {
    other_vm
    run -1 "$bench" transports --bed softroce --build "$build" --only time
    [[ ${lines[-1]} == "bench transports: $PWD/contrib/vm/run is not there"* ]]
    other_vm 'echo "run: no kernel" >&2; exit 125'
    run -1 "$bench" transports --bed softroce --build "$build" --only time
    [ "${lines[-2]}" = 'run: no kernel' ]
    [ "${lines[-1]}" = 'bench transports: it failed in the virtual machine (status 125)' ]
}

@test "softroce: the same options go into the virtual machine" {
    other_vm 'for command; do :; done; echo "$*"
        echo "bench transports: round 1 of 1"; echo "bench transports: timed"; echo the table'
    run -0 "$bench" transports --bed softroce --build "$build" --only time --tests 'am_lat'
    [[ $output == *"$bench transports --bed softroce --build $build --only time --tests am_lat"* ]]
    [[ $output == *' --random-addresses '* ]]
    [[ $output == *$'bench transports: round 1 of 1\n'* ]]
    [[ $output == *$'\nthe table\n'* ]]
    [[ $output != *timed* ]]
    [[ $output == *'Others used '*' CPUs at most in any part of this.'* ]]
}

@test "softroce: what is counted has a boot of its own, with a clock that counts" {
    other_vm 'echo "boot: $*"'
    run -0 "$bench" transports --bed softroce --build "$build" --only instructions
    [ "$(grep -c '^boot: ' <<< "$output")" -eq 1 ]
    [[ $output == *'boot: '*' --count '*' BENCH_COUNTED=yes '* ]]
    run -0 "$bench" transports --bed softroce --build "$build"
    [ "$(grep -c '^boot: ' <<< "$output")" -eq 2 ]
    [ "$(grep -c '^boot: .* --count ' <<< "$output")" -eq 1 ]
    run -0 "$bench" transports --bed softroce --build "$build" --only time
    [[ $output == *'boot: '* ]] && [[ $output != *' --count '* ]]
}

@test "softroce: of several boots the ratios, too, until one fails" {
    other_vm 'echo >> boots; n=$(wc -l < boots)
        [ "$n" -lt 5 ] || exit 9
        echo "heading      daqiri     |  rc_verbs   | ratio"
        printf "%-30s%s\n" "am, 8 B, us" "1 1 1 | 2 2 2  |   1.$((n * n % 7))0 |  $n.5"
        printf "%-30s%s\n" "put, us" "1 1 1 | 2 2 2  |   0.5$n |     -"'
    run -0 "$bench" transports --bed softroce --build "$build" --only time --boots 3
    [[ $output == *'bench transports: boot 3 of 3'* ]]
    [ "$(grep -c '^put, us .*|' <<< "$output")" -eq 3 ]
    # (1.5 + 2.5 + 3.5) / sqrt(3)
    [[ ${lines[-2]} == 'am, 8 B, us '*' 1.10 '*' 1.20 '*' 1.40 '*' 3 '*' 4.3' ]]
    [[ ${lines[-1]} == 'put, us '*' 0.51 '*' 0.52 '*' 0.53 '*' 3 '*' -' ]]
    run -1 "$bench" transports --bed softroce --build "$build" --only time --boots 2
    [ "${lines[-1]}" = 'bench transports: it failed in the virtual machine (status 9)' ]
}

# By hand: of the first the ratios are 2, 1.5, 1.25, 1, 0.9, 2.5, 1.1, 1.2, 1, and
# the ranks of those that are not 1 are 6, 5, 4, -2, 7, 1, 3: of 1.1 and 0.9 the
# latter is the farther from 1. That is 24, and the root of the squares' sum 11.83.
@test "pairs: the median ratio, and how sure it is which of two is better" {
    pairs()
    {
        awk -v better="$1" -v least=9 -f "$bench_d/pairs.awk" ours theirs
    }
    printf '%s\n' 1 2 4 3 10 2 10 5 7 > ours
    printf '%s\n' 2 3 5 3 9 5 11 6 7 > theirs
    [ "$(pairs smaller)" = '1.2 2.0' ]
    mv ours mine; mv theirs ours; mv mine theirs
    [ "$(pairs bigger)" = '1.2 2.0' ]
    [[ $(pairs smaller) == '0.83'*' -2.0' ]]
    # a machine that is slower for both in each round says nothing of either
    printf '%s\n' 1 2 4 8 16 32 64 128 256 > ours
    cp ours theirs
    [ "$(pairs smaller)" = '1 0.0' ]
    # ours are always better, by the same: the ranks are equal, sqrt(9)
    printf '%s\n' 2 4 8 16 32 64 128 256 512 > theirs
    [ "$(pairs smaller)" = '2 3.0' ]
    [ "$(pairs bigger)" = '0.5 -3.0' ]
    printf '%s\n' 1 2 4 > ours
    printf '%s\n' 3 4 4 > theirs
    [ "$(pairs smaller)" = '2 -' ]
    [ "$(pairs bigger)" = '0.5 -' ]
}

@test "table: rows in which the other is better, and not by luck, are named" {
    counted=no runs=9
    . "$bench_d/table.sh"
    ours=daqiri theirs=other work=$PWD
    printf '%s\n' 5 6 7 8 9 10 11 12 13 > a.daqiri
    printf '%s\n' 4 5 6 7 8 9 10 11 12 > a.other
    cp a.daqiri b.daqiri
    printf '%s\n' 4 7 7 9 8 10 11 12 13 > b.other
    row 'one row' a bigger
    row 'another' b smaller
    run -0 print_behind
    [ "$output" = 'other is better, and not by luck, in no row.' ]
    row 'a third' a smaller
    run -0 print_behind
    [ "$output" = $'other is better, and not by luck, in:\n    a third' ]
    runs=8
    run -0 print_behind
    [ "$output" = 'Fewer than nine runs do not tell what is luck.' ]
}

@test "table: of what is counted, rows that are worse by half a per cent" {
    counted=yes runs=9
    . "$bench_d/table.sh"
    ours=daqiri theirs=other work=$PWD
    yes 1000 | head -n 9 > a.daqiri
    yes 996 | head -n 9 > a.other
    cp a.daqiri b.daqiri
    yes 994 | head -n 9 > b.other
    row 'as good as equal' a smaller
    row 'more' b bigger
    { yes 994 | head -n 6; yes 1005 | head -n 3; } > b.other
    row 'more or less' b smaller
    run -0 print_behind
    [ "$output" = 'other is better by half a per cent, and not by luck, in no row.' ]
    yes 994 | head -n 9 > b.other
    row 'less' b smaller
    run -0 print_behind
    [ "$output" = $'other is better by half a per cent, and not by luck, in:\n    less' ]
}

@test "figures: a line of ucx_perftest's, also one in which nothing has ended" {
    . "$bench_d/pair.sh"
    cat > client <<- 'END'
	iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
	     4,20.500,21.0,22.5,0.36,0.35,46000,45000
	      4,20.500,inf,22.5,0.00,0.35,0,45000
	      75,13235.000,-nan,13380.105,-nan,74.74,-nan,76
	      75,13235.000,a,13380.105,b,74.74,c,76
	END
    run -0 grep -cE "$csv_line" client
    [ "$output" -eq 3 ]
}

@test "steady: what ends with CPUs far from each other is run again, not for ever" {
    counted=no
    . "$bench_d/steady.sh"
    # one line for each look; those that are left tell that there were fewer
    line_ns()
    {
        sed -n 1p lines
        sed -i 1d lines
    }
    sleep()
    {
        :
    }
    # -> runs, and lines that are left
    runs_of()
    {
        printf '%s\n' "$@" > lines
        : > log
        steadily eval 'echo run >> log'
        echo "$(wc -l < log) $(wc -l < lines)"
    }
    [ "$(runs_of 60 60)" = '1 0' ]
    # it ends far; near is waited for, and this one ends near enough
    [ "$(runs_of 60 300 200 151 150 150)" = '2 0' ]
    [ "$(runs_of 60 151 60 151 60 151 60 151)" = '4 0' ]
    # nobody knows; all are as far
    [ "$(runs_of '' '')" = '1 0' ]
    [ "$(runs_of 300 300)" = '1 0' ]
    runs_of 60 151 60 151 60 151 60 151
    [ "$made_runs/$far_runs" = 4/1 ]
    [ "$least_line/$far_looks" = 60/4 ]
    # waits for ten looks and no longer
    runs_of 151 151 151 151 151 151 151 151 151 151 60
    [ ! -s lines ]
    [ "$made_runs/$far_runs" = 5/1 ]
    run -0 print_steadiness
    [[ $output == *' 60 ns there and back. Of 5'*' of the last ones 1 did.' ]]
    # and nothing at all when it was in vain too often: here at the second run
    far_looks=$((most_far_looks - 1))
    [ "$(runs_of 60 151 60)" = '1 1' ]
    far_looks=$most_far_looks
    [ "$(runs_of 151)" = '1 0' ]
}

@test "steady: a line of memory takes some time there and back" {
    command -v "${CC:-cc}" > /dev/null || skip 'no C compiler'
    [ "$(nproc)" -ge 2 ] || skip 'there is one CPU'
    "${CC:-cc}" -O2 -o line -I "$T_TOP_SRCDIR/test/bench" "$T_TOP_SRCDIR/test/bench/line.c"
    run ./line
    [ "$status" -ne 142 ] || skip 'the machine is busy: two processes did not get a CPU each' # SIGALRM
    [ "$status" -eq 0 ]
    [ "$output" -gt 1 ]
}

@test "limits: what a transport takes, of the device that is meant" {
    cat > info <<- 'END'
	#      Transport: one
	#         Device: a:1
	#             am_zcopy: <= 8255, up to 4 iov
	#            get_zcopy: 65..8M, up to 5 iov
	#            put_zcopy: unlimited
	#         Device: b:1
	#             am_zcopy: <= 1K
	#      Transport: two
	#         Device: a:1
	#             am_zcopy: <= 77
	END
    limit()
    {
        awk -f "$bench_d/limits.awk" -v transport="$1" -v device="$2" -v op="$3" info
    }
    [ "$(limit one a:1 am_zcopy)" = 8255 ]
    [ "$(limit one a:1 get_zcopy)" = 8388608 ]
    [ "$(limit one a:1 put_zcopy)" = 1099511627776 ]
    [ "$(limit one b:1 am_zcopy)" = 1024 ]
    [ "$(limit two a:1 am_zcopy)" = 77 ]
    [ "$(limit two a:1 put_zcopy)" = '' ]
    [ "$(limit two b:1 am_zcopy)" = '' ]
}

@test "cpu: own is the process and all below it, those that ended included" {
    cat > stat <<- 'END'
	cpu  100 20 30 9999 9999 4 6 0 0 0
	cpu0 1 1 1 1 1 1 1 1 1 1
	10 (bench) S 1 0 0 0 0 0 0 0 0 0 1 2 3 4 0
	11 (a ) b) S 10 0 0 0 0 0 0 0 0 0 10 0 0 0 0
	12 (deeper) S 11 0 0 0 0 0 0 0 0 0 100 0 0 0 0
	13 (other) S 1 0 0 0 0 0 0 0 0 0 1000 0 0 0 0
	END
    run -0 awk -f "$bench_d/cpu.awk" -v root=10 -v hz=10 stat
    [ "$output" = '16 12' ]
}

@test "calls: per message, client and server apart" {
    printf '%s\n' 'requests 200' 'doorbells 50' 'syscalls 50' 'signalled 2' > client
    printf '%s\n' 'requests 10' 'doorbells 10' 'recvs 320' 'recv_calls 20' > server
    run -0 awk -f "$bench_d/calls.awk" -v test=t -v side=daqiri -v n=200 \
        client server
    [ "$(echo $output)" = 't daqiri 1.000 0.250 0.250 0.010 0.050 0.050 0.000 0.000 16.0' ]
}

@test "times on softverbs: every test, with the ratio of the rounds" {
    need_release
    BENCH_PERCENT=1 run -0 "$bench" transports --build "$build" --runs 1 --only time \
        --tests am_lat,am_rate,am_bcopy,am_zcopy,put_bw,get_bw
    printf '%s\n' "${lines[@]}" | awk -F '|' '
        / B, (us|MB|Gb|messages)/ {
            split($1, own, " +")
            n = split($1, a, " ")
            m = split($2, b, " ")
            ratio = (/, us/) ? b[2] / a[n - 1] : a[n - 1] / b[2]
            if (m != 3 || ratio - $3 > 0.011 || $3 - ratio > 0.011) bad = 1
            ++rows
        }
        END { exit bad || rows != 7 }'
    [[ $output == *'Runs of each, the two in turns: 1.'* ]]
    [[ $output == *'am_zcopy with 8192 bytes instead of 65536'* ]]
}

@test "one transport with two settings" {
    need_release
    BENCH_PERCENT=1 run -0 "$bench" transports --build "$build" --only calls --tests am_rate \
        --compare daqiri,daqiri+UCX_DAQIRI_SIGNAL_EVERY=1
    printf '%s\n' "${lines[@]}" | awk '
        $1 == "am_rate" { ++rows; signalled[rows] = $6 / $3 }
        END { exit rows != 2 || signalled[1] > 0.2 || signalled[2] < 0.9 }'
}

@test "calls on softverbs: daqiri posts each message once" {
    need_release
    command -v "${CC:-cc}" > /dev/null || skip 'no C compiler'
    BENCH_PERCENT=1 run -0 "$bench" transports --build "$build" --only calls --tests am_rate
    [[ $output != *'ratio'* ]]
    printf '%s\n' "${lines[@]}" | awk '
        $1 == "am_rate" { ++rows; bad += $3 < 0.9 || $3 > 1.3 || $5 != 0 }
        END { exit bad || rows != 2 }'
}

@test "recovery: the 99th of a hundred is held against the limit" {
    row()
    {
        seq "$1" "$2" | sed 's/$/ 0/' |
            awk -f "$bench_d/recovery.awk" -v title=t -v limit="$3"
    }
    run -0 row 101 200 0.199
    [ "$(echo $output)" = 't 0.10 0.15 0.20 0.20 1 % 0/1' ]
    run -1 row 101 200 0.198
    [ "$(echo $output)" = 't 0.10 0.15 0.20 0.20 2 % 0/2' ]
    run -1 row 20001 20001 20
    [ "$(echo $output)" = 't 20.00 20.00 20.00 20.00 100 % 0/1' ]
    run -0 row 20000 20000 20
    [ "$(echo $output)" = 't 20.00 20.00 20.00 20.00 0 % -' ]
    run -2 row 1 0 20
}

@test "recovery: what is long because a CPU stood still is told from the rest" {
    row()
    {
        printf '%s\n' "$@" | awk -f "$bench_d/recovery.awk" -v title=t -v limit=20
    }
    run -1 row '21000 0' '22000 1999' '23000 3000' '24000 24000'
    [ "$(echo $output)" = 't 21.00 22.00 24.00 24.00 100 % 2/4' ]
    run -1 row '21000 -1' '22000 2000'
    [ "$(echo $output)" = 't 21.00 21.00 22.00 22.00 100 % ?' ]
}

@test "recovery: each way to die is measured, the verdict is the exit status" {
    local verdict

    need_release
    command -v "${CC:-cc}" > /dev/null || skip 'no C compiler'
    BENCH_PERCENT=1 run "$bench" transports --build "$build" --only recovery
    verdict=$status
    printf '%s\n' "status $verdict" "${lines[@]}" # shown where the test fails
    printf '%s\n' "${lines[@]}" | awk -v verdict="$verdict" '
        / % +([-?]|[0-9]+\/[0-9]+)$/ {
            ++rows
            over += $(NF - 4) > 20
            near += $(NF - 4) == 20
            bad += $(NF - 6) > $(NF - 3)
        }
        END { exit bad || rows != 5 || !near && (over > 0) != verdict }'
    [[ $output == *'10 of each'* ]]
}
