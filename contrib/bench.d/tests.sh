# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: what there is to measure, and how much of it.
# shellcheck shell=bash disable=SC2034

# name, then test, layout and size for ucx_perftest, messages on softverbs and
# on softroce, and what is told of it. Long enough that starting up does not
# show: some tenths of a second each.
uct_tests='
am_lat   am_lat  short 8       2000000 20000 latency
am_rate  am_bw   short 8       5000000 50000 rate
am_bcopy am_bw   bcopy 4096    1000000 20000 bandwidth
am_zcopy am_bw   zcopy 65536   300000  8000  bandwidth
put_lat  put_lat short 8       2000000 20000 latency
put_bw   put_bw  zcopy 1048576 4000    150   bandwidth
get_lat  get     bcopy 8       2000000 20000 latency
get_bw   get     zcopy 1048576 4000    150   bandwidth
'
# MPI by size: ranks on one device, and on the two ends of a wire.
mpi_tests='mpi mpi_wire'

# Instructions are counted of short messages, between two lengths of a run:
# their difference is messages and nothing else. Valgrind runs one thread at a
# time, and while a transport's connection is made the program polls; unless
# threads take turns fairly that makes millions of instructions more or less.
short_count=5000
long_count=105000

test_names()
{
    awk 'NF { print $1 }' <<< "$uct_tests"
    printf '%s\n' $mpi_tests
}

# The tests of a bed when none are named.
default_tests()
{
    case $bed in
        softverbs) echo am_lat am_rate ;;
        softroce) test_names | tr '\n' ' ' ;;
    esac
}

# choose_tests LIST -> $tests, names with spaces between
choose_tests()
{
    local name

    tests=${1//,/ }
    [ "$tests" != all ] || tests=$(test_names | tr '\n' ' ')
    if [ "$bed" = softverbs ] && [ "$1" = all ]; then
        tests=${tests/mpi_wire/}
    fi
    for name in $tests; do
        test_names | grep -qx "$name" ||
            die 2 "there is no test \"$name\": it is one of $(test_names | tr '\n' ' ')"
    done
    case $bed/" $tests " in
        softverbs/*' mpi_wire '*)
            die 2 'mpi_wire needs the two devices of --bed softroce' ;;
    esac
    [ -n "${tests// /}" ] || die 2 '--tests wants names of tests'
}

has_test()
{
    case " $tests " in
        *" $1 "*) return 0 ;;
    esac
    return 1
}

# The chosen tests of ucx_perftest.
chosen_uct_tests()
{
    local name

    for name in $(awk 'NF { print $1 }' <<< "$uct_tests"); do
        ! has_test "$name" || echo "$name"
    done
}

# load_test NAME -> $perf, $layout, $size, $count, $warmup, $kind and, in $op,
# the name of the operation in UCX: am_short, put_zcopy, ...
load_test()
{
    local soft roce

    read -r _ perf layout size soft roce kind < \
        <(awk -v name="$1" '$1 == name' <<< "$uct_tests")
    count=$soft
    [ "$bed" = softverbs ] || count=$roce
    [ "$counted" = no ] || count=$((count / 20)) # they are all alike
    count=$((count * ${BENCH_PERCENT:-100} / 100))
    [ "$count" -gt 0 ] || count=1
    warmup=$((count / 10 + 1))
    [ "$warmup" -lt 10000 ] || warmup=10000
    op=${perf%%_*}_$layout
}

# limit_of OP SIDE -> the longest message of it, 0 if there is none.
limit_of()
{
    local limit

    limit=$(awk -f "$bench_d/limits.awk" -v op="$1" -v device="$device" \
        -v transport="$(transport_of "$2")" "$work/info.$2")
    echo "${limit:-0}"
}

# fit_test NAME: makes $size one that both transports can do. False: there is
# none. What differs from the plan is told below the table.
fit_test()
{
    local side limit
    local wanted=$size

    for side in $ours $theirs; do
        limit=$(limit_of "$op" "$side")
        if [ "$limit" -eq 0 ]; then
            note "$1 left out: $(transport_of "$side") has no $op on $device"
            return 1
        fi
        while [ "$size" -gt "$limit" ]; do
            size=$((size / 2))
        done
    done
    [ "$size" -eq "$wanted" ] || note "$1 with $size bytes instead of $wanted:" \
        "$op takes at most $(limit_of "$op" "$ours") of $ours," \
        "$(limit_of "$op" "$theirs") of $theirs"
    return 0
}

# note SENTENCE...: each once, below the table.
note()
{
    grep -qxF -- "$*" "$work/notes" 2>/dev/null || echo "$*" >> "$work/notes"
}
