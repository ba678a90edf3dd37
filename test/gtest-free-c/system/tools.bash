# SPDX-License-Identifier: BSD-3-Clause
#
# What the tests of the subcommands share; they load it.
# shellcheck shell=bash

# Of files that have none of their own.
setup()
{
    tools_setup
    need_jq
}

teardown()
{
    end_running
    remove_namespaces
}

# Call it first in setup(); what is put into $running end_running ends.
tools_setup()
{
    running=()
    cd "$BATS_TEST_TMPDIR" || return 1
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
    esac
    shims=$T_TOP_BUILDDIR/test/gtest-free-c/system/.libs
    # of contrib/check-debian; daqiri run hands on what is called so
    unset LD_PRELOAD UCX_TLS UCX_NET_DEVICES DAQIRI_BUILD_ROOT
}

# daqiri ARG...: stdout in $output, stderr in $stderr, status in $status.
# `with` is put before it: VARIABLE=VALUE words for env.
with=()
daqiri()
{
    run --separate-stderr timeout 100 env "${with[@]}" "$T_DAQIRI" "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}

# The last command said this, once, on stderr.
says()
{
    [ "$(grep -c -F -- "$1" <<<"$stderr")" -eq 1 ]
}

# refused STATUS SENTENCE: it said that and printed nothing.
refused()
{
    [ "$status" -eq "$1" ]
    [ -z "$output" ]
    says "$2"
}

# is_so FILTER: of the JSON on stdin. jq alone is content with nothing at all.
is_so()
{
    [ "$(jq -s "length > 0 and ([.[] | $1] | length > 0 and all)" 2>/dev/null)" = true ]
}

# has FILTER: the output is JSON of which this jq filter is true.
has()
{
    is_so "$1" <<<"$output" || {
        echo "not so: $1"
        return 1
    }
}

# run_is FILTER: the run of a command that makes one is so, and in FILE:
run_is()
{
    has ".rows[0].runs[0] | $1"
}

# run_of FILE FILTER
run_of()
{
    holds "$1" ".rows[0].runs[0] | $2"
}

need_jq()
{
    command -v jq >/dev/null || skip 'jq is not installed'
}

# valid NAME [FILE]: FILE, or the output, is as the schema of the command says.
valid()
{
    local file=${2:-valid.json} schema=$1

    case $1 in
        drop-curve|pingpong|tcp) schema=sweep ;;
    esac

    [ -x /usr/bin/jsonschema ] || skip 'python3-jsonschema is not installed'
    [ -n "${2:-}" ] || printf '%s\n' "$output" > "$file"
    PYTHONWARNINGS=ignore /usr/bin/jsonschema -i "$file" "$T_TOP_SRCDIR/docs/schema/$schema.json"
}

# valid_each NAME: so is each line of the input.
valid_each()
{
    local line i=0 files=()

    [ -x /usr/bin/jsonschema ] || skip 'python3-jsonschema is not installed'
    while read -r line; do
        printf '%s\n' "$line" > "$1.$i"
        files+=(-i "$1.$i")
        i=$((i + 1))
    done
    [ "$i" -gt 0 ]
    PYTHONWARNINGS=ignore /usr/bin/jsonschema "${files[@]}" "$T_TOP_SRCDIR/docs/schema/$1.json"
}

# failed CLASS STAGE: the last command, --json, did, there, and said so.
failed()
{
    local name

    [ "$status" -eq 1 ]
    name=$(jq -r .command <<<"$output")
    valid "$name"
    has "(.rows[0].runs[0] // .) | .failure_class == \"$1\" and .stage == \"$2\" and .ok == false"
    says "failed in stage $2 ($1)"
}

# In the background; the process is `pid`, its files are NAME.out, NAME.err.
# start NAME COMMAND...
start()
{
    local name=$1

    shift
    # Here, not in the process: who looks at once must not see an old file.
    : >"$name.out" >"$name.err"
    "$@" >"$name.out" 2>"$name.err" 3>&- </dev/null &
    pid=$!
}

# wait_for SECONDS COMMAND...: until it succeeds; the time only bounds a hang.
wait_for()
{
    local end=$((SECONDS + $1))

    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# --- a job with counters

# In a namespace of the test's, `inside` enters it.
inside=()
job=

# A program that sends messages to itself until it is killed; its pid is $job.
start_job()
{
    start job "${inside[@]}" env LD_PRELOAD="$T_SOFTVERBS:$T_PLUGIN" ucx_perftest -l \
        -x daqiri -d softverbs0:1 -t am_lat -n 2000000000 -w 1
    job=$pid
    wait_for 60 sends
}

# Peers are written when the transport looks at them, which it does now and then.
sends()
{
    "${inside[@]}" "$T_DAQIRI" stats "$job" --json 2>/dev/null | is_so '.interfaces[0] |
        (.values[] | select(.name == "am_rx") | .value > 100) and (.peers | length > 0)'
}

end_job()
{
    [ -z "$job" ] || kill -KILL "$job" 2>/dev/null || true
}

# --- two sides

# listening NAME: the address that the server whose files are NAME.* printed.
listening()
{
    wait_for 60 grep -q 'waiting for .* on' "$1.err" || {
        cat "$1.err"
        return 1
    }
    addr=$(sed -n 's/.*waiting for .* on //p' "$1.err" | head -n 1)
}

# ended PID: its status is in $ended.
ended()
{
    wait "$1" && ended=0 || ended=$?
}

# holds FILE FILTER: the JSON in FILE is so.
holds()
{
    is_so "$2" < "$1" || {
        echo "not so in $1: $2"
        cat "$1"
        return 1
    }
}

# serve [OPTION...]: in the background, on $host; its address is $addr, it is
# $server. `serve_with` is put before it: a namespace, or env and its words;
# `serve_options` are those of every server of a file.
serve_with=(env)
serve_options=()
host=127.0.0.1
serve()
{
    start serve "${serve_with[@]}" "$T_DAQIRI" serve --listen "$host:0" \
        "${serve_options[@]}" "$@"
    server=$pid
    running+=("$pid")
    listening serve
}

# said N: it has reported so many clients, or runs of theirs.
said()
{
    [ "$(wc -l < serve.out)" -ge "$1" ]
}

# line N FILTER: its Nth report is so.
line()
{
    wait_for 60 said "$1"
    sed -n "${1}p" serve.out > line.json
    holds line.json "$2"
}

# soft_gid: the GID of the software device here, 32 digits: one in a frame that is
# of another fabric would be refused.
soft_gid()
{
    timeout 60 "$T_DAQIRI" interfaces --device soft --json | jq -r '.gids[0].gid' |
        /usr/bin/python3 -c 'import ipaddress; print(ipaddress.ip_address(input()).packed.hex())'
}

need_python()
{
    [ -x /usr/bin/python3 ] || skip 'python3 is not installed'
    fake_peer=$T_TOP_SRCDIR/test/gtest-free-c/system/fake_peer.py
}

# fake_server WORD...: one that does this; sets addr and peer_pid.
fake_server()
{
    start peer /usr/bin/python3 "$fake_peer" listen "$@"
    peer_pid=$pid
    wait_for 60 grep -q . peer.out
    addr=127.0.0.1:$(head -n 1 peer.out)
}

# fake_client WORD...: one that does this to the server at addr.
fake_client()
{
    timeout 60 /usr/bin/python3 "$fake_peer" "${addr##*:}" "$@" 3>&- </dev/null
}

# Two network namespaces, $ns_a and $ns_b, with a veth between: 192.0.2.1 and .2.
make_namespaces()
{
    [ "$(id -u)" -eq 0 ] || skip 'not root, so no network namespace can be made'
    command -v ip >/dev/null || skip 'ip (iproute2) is not installed'
    ns_a=dqt$$a
    ns_b=dqt$$b
    ip netns add "$ns_a" 2>ip.err ||
        skip "a network namespace cannot be made here: $(head -n 1 ip.err)"
    ip netns add "$ns_b"
    ip -n "$ns_a" link add dqt0 type veth peer name dqt1 netns "$ns_b" 2>ip.err ||
        skip "a veth cannot be made here: $(head -n 1 ip.err)"
    ip -n "$ns_a" addr add 192.0.2.1/24 dev dqt0
    ip -n "$ns_b" addr add 192.0.2.2/24 dev dqt1
    ip -n "$ns_a" link set dqt0 up
    ip -n "$ns_b" link set dqt1 up
}

# From here on servers are in $ns_a.
serve_from_a()
{
    serve_with=(ip netns exec "$ns_a")
    host=192.0.2.1
}

# from_b ARG...: daqiri in $ns_b, otherwise as daqiri().
from_b()
{
    run --separate-stderr timeout 100 ip netns exec "$ns_b" "$T_DAQIRI" "$@"
    printf '%s\n' "stdout: $output" "stderr: $stderr" "status: $status"
}

remove_namespaces()
{
    [ -z "${ns_a:-}" ] || ip netns del "$ns_a" 2>/dev/null || true
    [ -z "${ns_b:-}" ] || ip netns del "$ns_b" 2>/dev/null || true
}

# end_running: what is in $running, by pid.
end_running()
{
    local pid

    for pid in "${running[@]}"; do
        # timeout passes it on; it could not pass on KILL.
        kill -TERM "$pid" 2>/dev/null || true
        kill -CONT "$pid" 2>/dev/null || true
    done
}
