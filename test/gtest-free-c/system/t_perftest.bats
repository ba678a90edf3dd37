# SPDX-License-Identifier: BSD-3-Clause
#
# Every test that UCX's own ucx_perftest lists, over daqiri, in one process that talks
# to itself: of UCT with each way to pass data, of UCP with small and large messages. A
# newer UCX lists more.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR"
    export LD_PRELOAD="${T_SAN_PRELOAD:+$T_SAN_PRELOAD }$T_SOFTVERBS $T_PLUGIN" UCX_TLS=daqiri
    case $T_FLAVOUR in
        asan | tsan) skip "flavour $T_FLAVOUR: ucx_perftest was not built with it" ;;
    esac
}

# tests UCT|UCP: their names
tests()
{
    LD_PRELOAD= ucx_perftest -h 2>&1 |
        sed -n "s/^ *\([a-z_0-9]*\) - $1 .*/\1/p"
}

# runs OPTION...: without a word of UCX's about it
runs()
{
    tried=$((tried + 1))
    if ! timeout 60 ucx_perftest "$@" >out 2>&1 </dev/null ||
        grep -E ' (ERROR|WARN|FATAL) ' out || ! grep -q '^Final:' out; then
        echo "ucx_perftest $*"
        cat out
        return 1
    fi
}

# Verbs have no swap, and a get that is short neither.
@test "UCT" {
    local tried=0 test layout

    for test in $(tests UCT); do
        for layout in short bcopy zcopy; do
            case $test/$layout in
                swap/* | get*/short) continue ;;
            esac
            runs -l -x daqiri -d softverbs0:1 -t "$test" -D "$layout" -n 300 -w 10
        done
    done
    echo "$tried runs"
    [ "$tried" -ge 20 ]
}

# is_for_gpu TEST: it is listed by a UCX that cannot run it on any transport here
is_for_gpu()
{
    UCX_TLS=self LD_PRELOAD= ucx_perftest -l -t "$1" -s 8 -n 1 -w 1 2>&1 </dev/null |
        grep -q 'Invalid test case'
}

@test "UCP" {
    local tried=0 test size

    for test in $(tests UCP); do
        ! is_for_gpu "$test" || continue
        for size in 8 1000 70000; do
            case $test/$size in # of numbers
                *add*/[17]* | *swap/[17]*) continue ;;
            esac
            runs -l -t "$test" -s "$size" -n 100 -w 10
        done
    done
    echo "$tried runs"
    [ "$tried" -ge 30 ]
}
