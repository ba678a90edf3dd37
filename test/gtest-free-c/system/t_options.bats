#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# Every option of every subcommand, as --help lists them, with what is no value
# of it; and options that make no sense together. Each gets one sentence on
# stderr, status 2, and nothing is done.

bats_require_minimum_version 1.5.0
load tools.bash

setup()
{
    tools_setup
    # In a process of its own: here bats would trace each of some thousand commands.
    cat > matrix <<'END'
# refused WORD...: by a sentence that has $sentence in it.
refused()
{
    local status=0

    count=$((count + 1))
    timeout 20 "$T_DAQIRI" "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] && [ ! -s out ] &&
        [ "$(grep "^daqiri $1: " err | grep -c -F -e "$sentence")" -eq 1 ] || {
        printf '%q ' "$@"
        printf 'has ended with %s, and should have said: %s\n' "$status" "$sentence"
        cat out err
        bad=1
    }
}

# Each option in --help: its name, and VALUE, [=VALUE], or nothing.
options()
{
    "$T_DAQIRI" "$1" --help | sed -n -E \
        's/^ +(-[a-z], )?--([a-z-]+)(\[?[= ]([A-Z][A-Za-z:]*|\[HOST\]:PORT|HOST\[:PORT\]|soft)\]?)?( .*|$)/\2 \3/p'
}

# Without an MPI mpi-sweep says that, whatever the options (t_run_mpi has these).
subcommands()
{
    "$T_DAQIRI" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p' |
        grep -vx mpi-sweep
}

count=0
bad=0
END
    cat > end <<'END'
echo "$count commands"
exit "$bad"
END
}

# matrix LEAST: runs the standard input after what is above, so many commands at least.
matrix()
{
    cat matrix - end > script
    run bash script
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[-1]% commands}" -ge "$1" ]
}

@test "an option without its value, with an empty one, and with one that it does not take" {
    matrix 120 <<'END'
for name in $(subcommands); do
    while read -r option value; do
        case $value in
            '')
                [ "$option" = help ] && continue
                sentence="doesn't allow an argument"
                refused "$name" "--$option=x"
                ;;
            \[*)
                sentence="--$option"
                refused "$name" "--$option="
                ;;
            *)
                sentence='requires an argument'
                refused "$name" "--$option"
                sentence=$option
                case $name in
                    faults) continue ;; # an empty plan is one
                    run) refused "$name" "--$option" '' true ;;
                    *) refused "$name" "--$option=" ;;
                esac
                ;;
        esac
    done < <(options "$name")
done
END
}

@test "numbers, sizes, times and lists that are none, are too large, or have another unit" {
    matrix 250 <<'END'
for name in $(subcommands); do
    while read -r option value; do
        value=${value#\[}
        case ${value%\]} in
            =N|=SIZE|=TIME|=PERCENT)
                sentence="--$option"
                for word in -1 99999999999999999999999 none 1x ' 1' nan inf 0x +5 1.2.3 10xs 1K1 '1 ' -0; do
                    refused "$name" "--$option=$word"
                done
                ;;
            =LIST)
                [ "$name" != run ] || continue # UCX reads it
                sentence="--$option: it is a list with commas between"
                refused "$name" "--$option=,"
                case $option in
                    transports) word=tcp ;;
                    patterns) word=stream ;;
                    *) word=64 ;;
                esac
                refused "$name" "--$option=$word,"
                sentence='it is there twice'
                refused "$name" "--$option=$word,$word"
                ;;
            =HOST\[:PORT\]|=\[HOST\]:PORT)
                sentence='is no address'
                for word in '[::1' '[::1]9' host:65536 :99999999999999999999999; do
                    refused "$name" "--$option=$word"
                done
                ;;
        esac
    done < <(options "$name")
done
END
}

@test "options that make no sense together, or have no effect" {
    while IFS='|' read -r words sentence; do
        # shellcheck disable=SC2086
        daqiri $words
        refused 2 "$sentence"
    done <<'END'
drop-curve --targets 5 --gbps 1|--targets and --gbps exclude each other
drop-curve --gbps 1 --targets 5|--targets and --gbps exclude each other
sweep --patterns pingpong --windows 4|--windows is not for pingpong
serve --device none --port 1|--port, --gid-index and --traffic-class are of a device
serve --device none --traffic-class 8|--port, --gid-index and --traffic-class are of a device
serve --gid-index 0 --device none|--port, --gid-index and --traffic-class are of a device
pingpong --listen :0 --size 64|--size, --iters, --duration and --uc are the client's
pingpong --listen :0 --iters 1|--size, --iters, --duration and --uc are the client's
pingpong --listen :0 --duration 1s|--size, --iters, --duration and --uc are the client's
pingpong --listen :0 --uc|--size, --iters, --duration and --uc are the client's
stats --all|--all is for one process, or with --json or --csv
stats --count 1|--count is for --watch
run --tls , true|--tls names no transport
faults check -e x -e y|--rules is there twice
faults check --rules x word|there are too many words
END
}
