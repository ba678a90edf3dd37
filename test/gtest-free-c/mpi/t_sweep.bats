#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# The MPI sweep: it measures, it counts, and it notices wrong data.

load jobs

setup()
{
    jobs_setup
}

sweep()
{
    echo "$T_TOP_BUILDDIR/src/tools/daqiri-mpi-sweep-$1"
}

all_tests='latency bw bibw rate allreduce alltoall bcast barrier'

# Every table is there and has a line for each size; daqiri carried it all.
whole_sweep()
{
    local test

    need_mpi "$1"
    job_ok sweep daqiri "$1" 2 "$(sweep "$1")" --seconds 2 --step 16
    job_carried
    for test in $all_tests; do
        grep "^# $test: " "$job/out"
    done
    # 0 1 16 256 4K 64K 1M, sizes below 4 and 0 where they make no sense.
    run awk '/^# Size/ { ++tables } /^[0-9]+ +[0-9.]+/ { ++rows }
             END { print tables, rows }' "$job/out"
    [ "$output" = '7 43' ]
}

@test "Open MPI: the whole sweep" { whole_sweep ompi; }
@test "MPICH: the whole sweep" { whole_sweep mpich; }

# Each interval begins where the last one of this size ended, and has the columns of the
# size's own line, which comes after them.
@test "--interval: lines while a size is measured" {
    local mpi=ompi

    [ -n "$(jobs_starter ompi)" ] || mpi=mpich
    need_mpi "$mpi"
    job_ok sweep daqiri "$mpi" 2 "$(sweep "$mpi")" --seconds 2 --tests rate,barrier \
        --min 4K --max 4K --interval 200ms
    job_carried
    awk '/^# +[0-9.]+ to +[0-9.]+ s / {
             if (NF != (test == "rate" ? 7 : 6)) { print "columns: " $0; bad = 1 }
             if ($4 - $2 < 0.19) { print "short: " $0; bad = 1 }
             if ((at > 0) && ($2 != at)) { print "a gap: " $0; bad = 1 }
             if (($6 <= 0) || is_over) { print "wrong: " $0; bad = 1 }
             at = $4; ++lines[test]
             next
         }
         /^# [a-z]+: / { test = substr($2, 1, length($2) - 1); at = is_over = 0 }
         /^4096 / { is_over = 1 }
         END { exit bad || (lines["rate"] < 2) || (lines["barrier"] < 2) }' "$job/out"
    run --separate-stderr -2 "$(sweep "$mpi")" --interval 5ms
    [[ $stderr == *'--interval 5ms: it is 100ms at least'* ]]
}

# Pairs, rings and blocks for more ranks than two, and for an odd number.
more_ranks()
{
    need_mpi "$1"
    job_ok sweep daqiri "$1" 3 "$(sweep "$1")" --seconds 1 --step 64
    job_carried
    job_ok sweep daqiri "$1" 4 "$(sweep "$1")" --seconds 1 --step 64 \
        --ops 20 --seed 7 --max 64K
    job_carried
}

@test "Open MPI: 3 and 4 ranks" { more_ranks ompi; }
@test "MPICH: 3 and 4 ranks" { more_ranks mpich; }

# spoiled MPI FUNCTION TEST: a byte of what FUNCTION received was changed; the
# sweep fails, in order, and names the place.
spoiled()
{
    local spoil=$T_TOP_BUILDDIR/test/gtest-free-c/mpi/.libs/mt-spoil-$1.so
    local words

    [ -f "$spoil" ]
    export LD_PRELOAD=$spoil MT_SPOIL=$2
    run job_run "spoiled-$2-$3" daqiri "$1" 2 "$(sweep "$1")" --tests "$3" \
        --min 8 --max 8 --ops 200
    unset LD_PRELOAD MT_SPOIL
    job=$BATS_TEST_TMPDIR/spoiled-$2-$3.2
    jobs_show "$job/err"
    [ "$status" -eq 1 ]
    words='wrong data at offset 7 of message [0-9]+ from rank [01], size 8'
    if [ "$2" = allreduce ]; then
        words='wrong sum at offset 4 of operation [0-9]+, size 8'
    fi
    grep -E "rank [01]: $3: $words: expected 0x[0-9a-f]+, got 0x[0-9a-f]+" "$job/err"
    # All ranks got to their end.
    [ "$(grep -c '^# sent rank=' "$job/out")" -eq 2 ]
}

wrong_data()
{
    need_mpi "$1"
    spoiled "$1" recv latency
    spoiled "$1" irecv bw
    spoiled "$1" irecv bibw
    spoiled "$1" irecv rate
    spoiled "$1" allreduce allreduce
    spoiled "$1" alltoall alltoall
    spoiled "$1" bcast bcast
}

@test "Open MPI: wrong data is noticed in every test" { wrong_data ompi; }
@test "MPICH: wrong data is noticed in every test" { wrong_data mpich; }

# stalled MPI NAME ARG...: the half of a round trip in whole microseconds, by a
# clock in which one of 640 messages takes 2 s, and each other one 1 us.
stalled()
{
    local mpi=$1 name=$2

    shift 2
    export LD_PRELOAD=$T_TOP_BUILDDIR/test/gtest-free-c/mpi/.libs/mt-spoil-$mpi.so
    export MT_SPOIL=stall
    job_ok "$name" daqiri "$mpi" 2 "$(sweep "$mpi")" --tests latency --min 8 \
        --max 8 --ops 640 --seconds 600 "$@"
    unset LD_PRELOAD MT_SPOIL
    job_carried
    half=$(awk '/^8 / { print int($2) }' "$job/out")
}

median()
{
    need_mpi "$1"
    stalled "$1" mean
    [ "$half" -ge 1562 ] # 2 s / 640 / 2
    [ "$(grep -c 'medians of rounds' "$job/out")" -eq 0 ]
    stalled "$1" median --median
    [ "$half" -eq 0 ]
    grep '^# .*medians of rounds' "$job/out"
}

@test "Open MPI: a stall does not show in the median of the rounds" { median ompi; }
@test "MPICH: a stall does not show in the median of the rounds" { median mpich; }

# refused WORDS ARG...: exit status 2 and a sentence that has these words.
refused()
{
    local words=$1

    shift
    run "$program" "$@"
    echo "$output"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$words"* ]]
}

@test "options: nonsense gets a sentence and exit status 2" {
    if [ -n "$T_MPIRUN_OMPI" ]; then
        program=$(sweep ompi)
    else
        need_mpi mpich
        program=$(sweep mpich)
    fi
    refused "there is no test 'nonsense'" --tests latency,nonsense
    refused "there is no test ''" --tests ''
    refused 'it is a size' --min nonsense
    refused 'it is a size' --max 1T
    refused 'it is a size' --max 1G
    refused 'it is a size' --max -1
    refused 'it is a number from 2' --step 1
    refused 'it is a number from 1' --ops 0
    refused 'it is a number' --ops 1x
    refused 'not a number of seconds' --seconds 0
    refused 'not a number of seconds' --seconds nan
    refused 'it is a number' --seed 18446744073709551616
    refused '--min is larger than --max' --min 2K --max 1K
    refused 'takes options only' latency
    refused 'unrecognized option' --nonsense
    refused 'requires an argument' --seed
    refused 'needs at least 2 ranks'
}
