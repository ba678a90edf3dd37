#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# The man pages say what --help says: the same options, subcommands and tests.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    man=$T_TOP_SRCDIR/man
    case $T_FLAVOUR in
        asan|tsan) skip "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
    esac
}

# Long options in --help of a command; in a man page, where roff wants a
# backslash before each dash.
help_options()
{
    "$@" --help | grep -o -E -- '--[a-z][a-z-]*' | sort -u
}

man_options()
{
    sed 's/\\-/-/g' "$1" | grep -o -E -- '--[a-z][a-z-]*' | sort -u
}

same()
{
    diff <(man_options "$1") <(help_options "${@:2}")
}

@test "daqiri.1 has the options and subcommands of --help" {
    same "$man/daqiri.1" "$T_DAQIRI"
    for name in $("$T_DAQIRI" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        grep -q "^\.BR daqiri-$name (1)" "$man/daqiri.1"
        [ -f "$man/daqiri-$name.1" ]
    done
}

@test "the pages of the subcommands that measure and look have the options of --help" {
    for name in drop-curve interfaces pingpong probe serve stats sweep tcp top; do
        same "$man/daqiri-$name.1" "$T_DAQIRI" "$name"
    done
}

@test "the exit statuses of --help are those of the man pages" {
    for name in drop-curve interfaces pingpong probe serve stats sweep tcp top; do
        "$T_DAQIRI" "$name" --help | sed -n '/^Exit status/,$p' | grep -o -w -E '[0-9]+' | sort -u >help
        [ -s help ]
        sed -n '/^\.SH EXIT STATUS/,/^\.SH [^E]/s/^\.B \([0-9]*\)$/\1/p' "$man/daqiri-$name.1" | sort -u | diff help -
    done
}

@test "--help fits a screen" {
    for name in $("$T_DAQIRI" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        "$T_DAQIRI" "$name" --help > help
        [ "$(wc -l < help)" -le 24 ]
        run -1 grep -E '^.{81,}' help
    done
}

@test "completion knows the subcommands, their options and devices" {
    . "$T_TOP_SRCDIR/src/tools/daqiri.bash"
    completes()
    {
        COMP_WORDS=("$T_DAQIRI" "$@")
        COMP_CWORD=$#
        COMPREPLY=()
        _daqiri
    }
    completes pro
    [ "${COMPREPLY[*]}" = probe ]
    completes hel
    [ "${COMPREPLY[*]}" = help ]
    completes help swe
    [ "${COMPREPLY[*]}" = sweep ]
    completes --ver
    [ "${COMPREPLY[*]}" = --version ]
    completes probe --gid
    [ "${COMPREPLY[*]}" = --gid-index ]
    completes probe --device so
    [ "${COMPREPLY[*]}" = soft ]
    completes run ech
    [[ " ${COMPREPLY[*]} " == *' echo '* ]]
    for name in $("$T_DAQIRI" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        completes "$name" --
        [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$(help_options "$T_DAQIRI" "$name")" ]
        completes "$name" -
        [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$(help_options "$T_DAQIRI" "$name")" ]
    done
}

@test "daqiri-run.1 has the options of --help" {
    same "$man/daqiri-run.1" "$T_DAQIRI" run
}

@test "daqiri-faults.1 has the options, faults and keys that there are" {
    same "$man/daqiri-faults.1" "$T_DAQIRI" faults
    for word in $("$T_DAQIRI" faults check -e x 2>&1 | sed 's/.*there are: //; s/,//g'); do
        sed 's/\\-/-/g' "$man/daqiri-faults.1" | grep -q -E "[ \"]$word( |\$|\")"
        for key in $("$T_DAQIRI" faults check -e "$word x=1" 2>&1 | sed 's/.*it has: //; s/,//g'); do
            grep -q "$key=" "$man/daqiri-faults.1"
            grep -q "\`$key=" "$T_TOP_SRCDIR/docs/faults.md"
        done
        grep -q "^| \`$word\` |" "$T_TOP_SRCDIR/docs/faults.md"
    done
}

@test "daqiri-mpi-sweep.1 has the options and tests of --help" {
    local sweep

    sweep=$(ls "$T_TOP_BUILDDIR"/src/tools/daqiri-mpi-sweep-{ompi,mpich} 2>/dev/null | head -n 1)
    [ -n "$sweep" ] || skip 'no MPI is installed, so there is no sweep'
    same "$man/daqiri-mpi-sweep.1" "$sweep"
    for name in $("$sweep" --help | sed -n '/^Tests/,$s/^  \([a-z]*\) .*/\1/p'); do
        grep -q "^\.B $name\$" "$man/daqiri-mpi-sweep.1"
    done
}

@test "man can show the pages without a warning" {
    command -v man >/dev/null || skip 'man is not installed'
    command -v groff >/dev/null || skip 'groff is not installed'
    for page in "$man"/*.1; do
        run man --warnings -E UTF-8 -l -Tutf8 "$page"
        [ "$status" -eq 0 ]
        run bash -c 'man --warnings -E UTF-8 -l -Tutf8 "$1" 2>&1 >/dev/null' - "$page"
        [ -z "$output" ]
    done
}
