# SPDX-License-Identifier: BSD-3-Clause
#
# What the tests of the subcommands share; they load it.
# shellcheck shell=bash

# Call it first in setup().
tools_setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
    esac
    shims=$T_TOP_BUILDDIR/test/gtest-free-c/system/.libs
    unset LD_PRELOAD UCX_TLS UCX_NET_DEVICES
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

# has FILTER: the output is JSON of which this jq filter is true.
has()
{
    jq -e "$1" <<<"$output" >/dev/null || {
        echo "not so: $1"
        return 1
    }
}

need_jq()
{
    command -v jq >/dev/null || skip 'jq is not installed'
}

# valid NAME [FILE]: FILE, or the output, is as docs/schema/NAME.json says.
valid()
{
    local file=${2:-valid.json}

    [ -x /usr/bin/jsonschema ] || skip 'python3-jsonschema is not installed'
    [ -n "${2:-}" ] || printf '%s\n' "$output" > "$file"
    PYTHONWARNINGS=ignore /usr/bin/jsonschema -i "$file" "$T_TOP_SRCDIR/docs/schema/$1.json"
}

# In the background; the process is `pid`, its files are NAME.out, NAME.err.
# start NAME COMMAND...
start()
{
    local name=$1

    shift
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
