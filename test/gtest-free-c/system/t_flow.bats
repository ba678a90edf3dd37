# SPDX-License-Identifier: BSD-3-Clause
#
# daqiri-flow: messages that arrive, at the pace that was asked for or not, and
# what it says of what is wrong. How fast they are, no test looks at.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    flow=$T_TOP_BUILDDIR/src/tools/daqiri-flow
    case $T_FLAVOUR in
        asan|tsan)
            skip "flavour $T_FLAVOUR: it is loaded with the plugin into another program"
            ;;
    esac
}

# flow_runs [OPTION]...: over daqiri on softverbs; its CSV row is in $row, what
# it says beside it in the file err.
flow_runs()
{
    timeout 60 "$T_DAQIRI" run --device soft "$flow" --csv "$@" >out 2>err ||
        { cat out err; return 1; }
    row=$(tail -n 1 out)
    [ -n "$row" ]
    ! grep -vE '^daqiri run: (device |way into UCX)' err
}

column()
{
    cut -d , -f "$1" <<<"$row"
}

# All that was sent has arrived, in order.
arrived()
{
    echo "$row"
    [ "$(column 9)" -ge "${1:-64}" ]
    [ "$(column 9)" -eq "$(column 10)" ]
    [ "$(column 11)" -eq 0 ]
}

@test "short, copied and many fragments: all of them arrive" {
    local size

    for size in 8 9 64 128 4K 8252 8253 16424 16425 32848 32849 1M; do
        flow_runs --size "$size" --time 50ms --window 3
        arrived 1
    done
}

@test "raw verbs: messages of 1 byte, whose serial is beside them; a ping-pong ends after so many" {
    flow_runs --tl verbs --size 1 --time 50ms
    arrived 1
    flow_runs --tl verbs --size 1 --time 50ms --pattern duplex
    arrived 1
    flow_runs --tl verbs --size 7 --time 1h --pattern pingpong --iters 5
    arrived 10
    [ "$(column 9)" -eq 10 ]
}

@test "a window of one, and one that is larger than the run" {
    flow_runs --window 1 --time 50ms
    arrived 1
    flow_runs --window 1048576 --time 50ms
    arrived 1
}

@test "a pace sends as many bytes as it says" {
    # 0.001 Gb/s for 0.2 s are 25000 bytes: messages 0 to 250 are due by then
    flow_runs --size 100 --gbps 0.001 --time 200ms
    arrived 251
    [ "$(column 9)" -eq 251 ]
    # at least 64, however slow
    flow_runs --size 64 --gbps 0.001 --time 1ms
    arrived 64
    [ "$(column 9)" -eq 64 ]
}

@test "a pace that cannot be kept is given up" {
    flow_runs --gbps 100000 --time 100ms
    arrived
}

@test "raw verbs: messages go on when the RECVs of the beginning are used up" {
    local pattern time

    # 2 * (3 + 8) of them; what a busy machine does not send in 50 ms takes longer
    for pattern in stream duplex pingpong; do
        for time in 50ms 1s 20s; do
            flow_runs --tl verbs --pattern "$pattern" --window 3 --time "$time"
            [ "$(column 9)" -lt 23 ] || break
        done
        arrived 23
    done
}

@test "rc_verbs, which is connected by endpoint" {
    timeout 60 "$T_DAQIRI" run --device soft --tls rc_verbs "$flow" --tl rc_verbs \
        --size 64K --time 50ms --csv >out 2>err
    row=$(tail -n 1 out)
    arrived 1
}

@test "queue pairs that die lose nothing" {
    export SOFTVERBS_FAULTS='seed 5; qp-error qp=rc n=20 every=500'
    timeout 60 "$T_DAQIRI" run --device soft "$flow" --csv --size 4K --time 1s \
        >out 2>err
    # UCX speaks on stdout, too
    row=$(grep '^daqiri,' out)
    arrived 1
    grep -q 'daqiri: back, with' out
}

# The receiver has all when its sender loses the acknowledgement of the last
# message. The sender's next queue pair is made by both. One run in three ends so.
@test "a queue pair that dies after the last message has arrived" {
    local i

    export SOFTVERBS_FAULTS='seed 5; lose-ack qp=rc n=3' UCX_DAQIRI_TIMEOUT=1ms
    for i in 1 2 3 4 5 6 7 8 9 10; do
        timeout 30 "$T_DAQIRI" run --device soft "$flow" --csv --size 4K --time 5ms \
            >out 2>err
        row=$(grep '^daqiri,' out)
        arrived 1
        grep -q 'daqiri: back, with' out
    done
}

# The pid of the process of this test that was forked by another one of it.
find_receiver()
{
    local dir parent

    for dir in /proc/[0-9]*; do
        [ "$(readlink "$dir/exe" 2>/dev/null)" = "$(realpath "$flow")" ] &&
            grep -q -z -x "TEST_MARK=$BATS_TEST_TMPDIR" "$dir/environ" || continue
        parent=$(sed -n 's/^PPid:\t//p' "$dir/status")
        if [ "$(readlink "/proc/$parent/exe")" = "$(realpath "$flow")" ]; then
            basename "$dir"
            return 0
        fi
    done
    return 1
}

@test "it forks when UCX has no thread that may hold a lock" {
    local pid receiver given

    for given in '' UCX_VFS_ENABLE=y; do
        # shellcheck disable=SC2086 # nothing, or a word
        TEST_MARK=$BATS_TEST_TMPDIR timeout 60 env $given "$T_DAQIRI" run --device soft \
            "$flow" --time 50s >out 2>err &
        pid=$!
        until receiver=$(find_receiver); do
            kill -0 "$pid" || { cat out err; false; }
            sleep 0.05
        done
        grep -q -z -x UCX_VFS_ENABLE=n "/proc/$receiver/environ"
        kill -KILL "$receiver"
        wait "$pid" || true
    done
}

@test "a receiver that is killed ends the sender" {
    local pid receiver

    TEST_MARK=$BATS_TEST_TMPDIR timeout 60 "$T_DAQIRI" run --device soft \
        "$flow" --time 50s >out 2>err &
    pid=$!
    until receiver=$(find_receiver); do
        kill -0 "$pid" || { cat out err; false; }
        sleep 0.05
    done
    kill -KILL "$receiver"
    status=0
    wait "$pid" || status=$?
    cat out err
    [ "$status" -eq 1 ]
    grep -x -E 'daqiri-flow: the (receiver was killed|other end is gone)' err
}

# refuses WORDS [OPTION]...
refuses()
{
    local words=$1

    shift
    run -2 --separate-stderr "$flow" "$@"
    echo "$stderr"
    [[ $stderr == *"$words"* ]]
}

@test "nonsense in an option gets a sentence and status 2" {
    refuses 'it is a size from 1 B to 1 GiB' --size 0
    refuses '--size 7: with this transport it is 8 or more' --size 7
    refuses '--size 7: with this transport it is 8 or more' --size 7 --tl tcp
    refuses '--iters is for the pattern pingpong' --iters 3
    refuses '--by-hand is for a ping-pong over verbs' --by-hand client --pattern pingpong
    refuses 'it is a time' --setup-timeout 0
    refuses 'it is a size' --size nonsense
    refuses 'it is a size' --size 2G
    refuses 'it is a number from 1 to 1048576' --window 0
    refuses 'it is a number' --window 1x
    refuses 'it is a number from 0.000001' --gbps 0
    refuses 'it is a number' --gbps nan
    refuses 'it is a number' --gbps 1x
    refuses 'it is a time' --time 0
    refuses 'exclude each other' --json --csv
    refuses 'unrecognized option' --nonsense
    refuses 'Too many arguments' nonsense
}

@test "a transport or a device that is not there gets a sentence and status 1" {
    run -1 --separate-stderr timeout 60 "$T_DAQIRI" run --device soft "$flow" \
        --tl nonsense
    [[ $stderr == *'there is no transport nonsense on softverbs0:1'* ]]
    run -1 --separate-stderr timeout 60 "$T_DAQIRI" run --device soft "$flow" \
        --device nonsense:1
    [[ $stderr == *'there is no transport daqiri on nonsense:1'* ]]
}

# What a part of daqiri reads of another are objects, and no sentences: sweep, for one.
@test "what goes wrong is an object for who asks for --json, and the same for the receiver" {
    local pid receiver

    run -1 --separate-stderr timeout 60 "$T_DAQIRI" run --quiet --device soft "$flow" \
        --json --tl nonsense
    [ -z "$stderr" ]
    jq -e 'select(.daqiri == "failure") | .stage == "connect" and .failure_class == "local"
           and (.error | startswith("there is no transport nonsense"))' <<<"$output"

    TEST_MARK=$BATS_TEST_TMPDIR timeout 60 "$T_DAQIRI" run --quiet --device soft \
        "$flow" --json --time 50s >out 2>err &
    pid=$!
    until receiver=$(find_receiver); do
        kill -0 "$pid" || { cat out err; false; }
        sleep 0.05
    done
    kill -KILL "$receiver"
    status=0
    wait "$pid" || status=$?
    cat out err
    [ "$status" -eq 1 ]
    [ ! -s err ]
    jq -e 'select(.daqiri == "failure") | .error | test("^the (receiver was killed|other end is gone)$")' out
}

@test "--help fits a screen" {
    run -0 "$flow" --help
    [ "${#lines[@]}" -le 24 ]
}
