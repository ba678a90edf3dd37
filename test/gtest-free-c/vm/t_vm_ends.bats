# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/vm/run: how a guest may end, and that nothing of it is left.

bats_require_minimum_version 1.5.0

load vm.bash

# The state has to say which process hangs and where, be it a child in a
# session of its own, and which QP it has.
@test "after the time limit the state of the guest is shown" {
    need_machine
    vm a --time-limit 4 \
        'ibv_rc_pingpong -d rxe0 -g 1 & setsid sleep 1000 & echo said; wait'
    [ "$status" -eq 124 ]
    [ "$(grep -c said "$dir/a.out")" -eq 1 ]
    grep -q '^run: the command was not done after 4 s' "$dir/a.err"
    grep -q '^link rxe0/1 state ACTIVE' "$dir/a.err"
    grep -q '^link rxe0/1 lqpn .* type RC .*comm ibv_rc_pingpong' "$dir/a.err"
    grep -q 'inet 10.2.0.1/24' "$dir/a.err"
    grep -q '^[0-9]*: sleep 1000' "$dir/a.err"
    grep -q 'sleep: S (sleeping), waits in .*nanosleep' "$dir/a.err"
    grep -q ' rdma_rxe: loaded' "$dir/a.err"
    [ "$(tail -n 1 "$dir/a.err")" = '--- end of the state' ]
}

@test "a guest that dies" {
    need_machine
    vm a --network none 'echo c > /proc/sysrq-trigger'
    [ "$status" -eq 125 ]
    grep -q '^run: host1 died without an answer' "$dir/a.err"
    grep -q 'Kernel panic - not syncing: sysrq triggered crash' "$dir/a.err"
}

# What watches in the guest is stopped, as a guest that has hung would be.
@test "a guest that hangs" {
    need_machine
    export VM_SPARE=15
    vm a --time-limit 1 --network none 'kill -STOP -1'
    [ "$status" -eq 124 ]
    grep -q '^run: host1 did not answer 16 s after its start' "$dir/a.err"
    grep -q 'NMI' "$dir/a.err"
}

@test "QEMU does not start" {
    fake_qemu 'echo "qemu: no memory" >&2; exit 1'
    need_machine
    run -125 --separate-stderr with_fake_qemu :
    [[ $stderr == *'host1 died without an answer'*'qemu: no memory'* ]]
}

@test "statuses, one after the other" {
    need_machine
    fake_qemu 'echo "$n says"; echo "${statuses:n-1:1}" > "$job/$n/status"'
    for words in 0:000 3:300 4:040 3:340; do
        export statuses=${words#*:}
        run "-${words%:*}" with_fake_qemu --network hosts --peer : :
        [[ $output == *'1 says'* ]]
        [[ $output == *'host2: 2 says'* ]]
    done
}

# started: QEMU runs, for the run $1.
started()
{
    local children

    for i in $(seq 200); do
        children=$(cat "/proc/$1/task/$1/children" 2>/dev/null)
        for pid in $children; do
            grep -q -a '^qemu-system' "/proc/$pid/cmdline" && return 0
        done
        sleep 0.05
    done
    return 1
}

nothing_left()
{
    for i in $(seq 200); do
        [ -n "$(ls -A "$TMPDIR")" ] ||
            grep -l -a -F "$TMPDIR/" /proc/[0-9]*/cmdline > /dev/null 2>&1 ||
            return 0
        sleep 0.05
    done
    return 1
}

@test "whatever signal ends it, nothing is left" {
    local name run

    need_machine
    for name in INT TERM HUP KILL; do
        env --default-signal=INT "$vm/run" 'sleep 100' 3>&- > /dev/null 2>&1 &
        run=$!
        started "$run"
        kill -s "$name" "$run"
        status=0
        wait "$run" || status=$?
        [ "$status" -eq $((128 + $(kill -l "$name"))) ]
        nothing_left
    done
}
