# SPDX-License-Identifier: BSD-3-Clause
#
# Read by the bash scripts of this folder and below: how they speak, and where
# they put things. Nothing here does anything by itself.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A script speaks under the name that one types to start it.
case $0 in
    */check.d/long/*) me="check --long $(basename "$0")" ;;
    */bench.d/*) me="bench $(basename "$0")" ;;
    *) me=$(basename "$0") ;;
esac

# Everything a build writes is below here; git ignores it.
build_root=${DAQIRI_BUILD_ROOT:-$top/build}

# What takes long to fetch or to make is kept between checkouts.
if [ -n "${XDG_CACHE_HOME:-}" ]; then
    cache_root=$XDG_CACHE_HOME/ucx-daqiri
elif [ -n "${HOME:-}" ]; then
    cache_root=$HOME/.cache/ucx-daqiri
else
    cache_root=$build_root/cache
fi

all_flavours='release debug asan tsan'

say()
{
    printf '%s: %s\n' "$me" "$*"
}

# die STATUS SENTENCE: 1 = it did not work, 2 = it was called wrongly.
die()
{
    printf '%s: %s\n' "$me" "$2" >&2
    exit "$1"
}

# allow_files: lets a process have thousands of files open, as one with a thousand
# interfaces has. False if that is not allowed.
allow_files()
{
    ulimit -S -n 32768 2>/dev/null || ulimit -S -n 20000 2>/dev/null
}

# die_showing LOG SENTENCE: what LOG has comes first. The last line of it may have no end,
# because who wrote it was killed.
die_showing()
{
    awk 1 "$1" >&2
    die 1 "$2"
}

# The comment at the top of a script is its help.
print_help()
{
    sed -n '4,/^[^#]/{/^#/!q;s/^# \{0,1\}//;p}' "$0"
}

need_value()
{
    [ "$1" -ge 2 ] || die 2 "option $2 needs a value (try $me --help)"
}

need_count()
{
    case $2 in
        '' | *[!0-9]* | 0*) die 2 "$1 wants a number from 1 on, not \"$2\"" ;;
    esac
}

# need_build DIR: it is one; reads what its tests know of it (T_FLAVOUR, T_PLUGIN, ...).
need_build()
{
    [ -f "$1/test/gtest-free-c/t-env" ] ||
        die 1 "$1 is not a build of ucx-daqiri (contrib/setup makes one)"
    . "$1/test/gtest-free-c/t-env"
}

# ran_out_of_time STATUS: of timeout(1)
ran_out_of_time()
{
    [ "$1" -eq 124 ] || [ "$1" -eq 137 ]
}

need_flavour()
{
    case " $all_flavours " in
        *" $1 "*) ;;
        *) die 2 "there is no flavour \"$1\": it is one of $all_flavours" ;;
    esac
}

# run_logged LOG COMMAND...: the output goes to LOG; of a failure the end of
# it is shown.
run_logged()
{
    local log=$1

    shift
    mkdir -p "$(dirname "$log")"
    if "$@" >"$log" 2>&1 </dev/null; then
        return 0
    fi
    tail -n 40 "$log" | sed 's/^/    /'
    say "failed: $* (all of its output: $log)"
    return 1
}

# list_sources: what git knows or could know; in an unpacked archive, all that no build
# has written.
list_sources()
{
    if [ "$(git -C "$top" rev-parse --show-toplevel 2>/dev/null)" = "$(cd "$top" && pwd -P)" ]; then
        git -C "$top" ls-files -z --cached --others --exclude-standard
    else
        (cd "$top" && find . \( -path ./build -o -path ./.git -o -name .libs \
            -o -name .deps -o -name autom4te.cache \) -prune -o \
            -type f ! -name '*.o' ! -name '*.l[ao]' ! -name Makefile \
            ! -name config.status -print0)
    fi
}

# copy_sources FOLDER: into a new one.
copy_sources()
{
    local log=$build_root/log/copy.log

    rm -rf "$1" && mkdir -p "$1" "${log%/*}" || die 1 "cannot write $1"
    list_sources |
        tar -C "$top" --null -T - --ignore-failed-read -cf - 2>"$log" |
        tar -C "$1" -xf -
    [ -x "$1/debian/rules" ] || die 1 "the sources could not be copied to $1 (all that tar said: $log)"
}
