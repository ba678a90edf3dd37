# SPDX-License-Identifier: BSD-3-Clause
#
# Read by the tests of contrib/vm/run. A boot takes seconds, so each is used for
# much, and where QEMU need not be more than a program that answers, one of a
# few lines stands for it.
# shellcheck shell=bash

setup()
{
    vm=$T_TOP_SRCDIR/contrib/vm
    dir=$BATS_TEST_TMPDIR
    export TMPDIR=$dir/tmp
    mkdir "$TMPDIR"
    unset VM_SPARE VM_LIFE
}

# Nothing is left: no file of a run, and no process, all of which have the
# name of such a file in their arguments.
teardown()
{
    [ -z "$(ls -A "$TMPDIR")" ]
    ! grep -l -a -F "$TMPDIR/" /proc/[0-9]*/cmdline 2>/dev/null
}

# What needs a machine is skipped where there is none, but not in CI.
need_machine()
{
    [ -z "${T_BED_REQUIRED:-}" ] || return 0
    command -v qemu-system-x86_64 > /dev/null ||
        skip 'QEMU is not installed (contrib/setup installs it)'
    "$vm/image" > /dev/null || skip 'there is no kernel (contrib/setup fetches it)'
}

# vm NAME OPTION... COMMAND: its output goes to $dir/NAME.out and .err, its
# status into $status.
vm()
{
    local name=$1

    shift
    status=0
    "$vm/run" --time-limit $((120 * T_TIMEOUT_MULTIPLIER)) "$@" \
        > "$dir/$name.out" 2> "$dir/$name.err" < /dev/null || status=$?
    cat "$dir/$name.err"
}

# programs NAME...: a folder for PATH with nothing but these.
programs()
{
    local name

    mkdir -p "$dir/bin"
    for name; do
        ln -sf "$(command -v "$name")" "$dir/bin/$name"
    done
}

# fake_qemu TEXT: stands for QEMU in PATH; TEXT is run with $n, the number of
# the host, and $job, the folder that the guest would see.
fake_qemu()
{
    mkdir -p "$dir/fake"
    cat > "$dir/fake/qemu-system-x86_64" <<END
#!/bin/bash
for word; do
    case \$word in
        local,id=job,*) job=\${word#*path=}; job=\${job%%,*} ;;
        *' host='*) n=\${word##* host=} ;;
        file,id=stdout,*) exec > "\${word#*path=}" ;;
    esac
done
$1
END
    chmod +x "$dir/fake/qemu-system-x86_64"
}

with_fake_qemu()
{
    PATH=$dir/fake:$PATH "$vm/run" "$@"
}

refused()
{
    run -2 --separate-stderr "$vm/run" "${@:2}"
    echo "$stderr"
    [ "$stderr" = "run: $1" ]
    [ -z "$output" ]
}
