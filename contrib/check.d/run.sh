# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/check: set-up, builds, and how each job is run.
# shellcheck shell=bash

declare -A broken=()   # by flavour: it did not build

# The virtual machine is fetched for --all alone; a part of contrib/check that
# could use it is skipped where it is missing.
set_up()
{
    local options=(--no-build)

    # contrib/check-debian has done it
    [ -n "${T_DEBIAN:-}" ] && options+=(--no-packages)
    if [ "$tier" = all ]; then
        # there a machine that cannot be booted is a failure and no reason to skip
        export T_BED_REQUIRED=yes
    else
        options+=(--no-vm)
    fi
    "$top/contrib/setup" "${options[@]}" || die 1 'setup failed'
    SECONDS=0 # what is told is without the set-up
    : > "$build_root/log/skips"
}

# A build, and its tests: configure, compile, link, with all processors.
build_seconds=40
build_flavours()
{
    local flavour log started

    for flavour in $(chosen_flavours); do
        started=$SECONDS
        log=$build_root/log/$flavour-make.log
        rm -f "$log"
        if ! "$top/contrib/setup" --flavour "$flavour" --no-vm --no-packages; then
            broken[$flavour]=yes
            step_failed "$flavour: build" "contrib/setup --flavour $flavour" "$log"
            continue
        fi
        no_warnings "$flavour: build without warnings" "$log" \
            "rm -rf $build_root/$flavour; contrib/setup --flavour $flavour"
        build_tests "$flavour"
        took["build-$flavour"]=$((SECONDS - started))
    done
}

# What does not compile fails when it is run.
build_tests()
{
    local suite

    for suite in $(chosen_suites "$1"); do
        make -C "$build_root/$1/test/gtest-free-c/$suite" -k -j"$(nproc)" check \
            TESTS= >"$build_root/log/$1-$suite-make.log" 2>&1 </dev/null
    done
}

# run_job JOB SLOT: becomes it.
run_job()
{
    local log=$build_root/log/${1//\//-}.log
    local dir

    # device/programs.bash takes ports from here on
    export T_PORTS=$((20000 + $2 * 1200)) T_JOBS=1
    case $1 in
        */*/*)
            dir=${1%/*}
            dir=$build_root/${dir%%/*}/test/gtest-free-c/${dir#*/}
            rm -f "$dir/${1##*/}.log" "$dir/${1##*/}.trs"
            exec "${own_world[@]}" make -C "$dir" "${1##*/}.log" >"$log" 2>&1 </dev/null
            ;;
        *) "part_${1//-/_}" >"$log" 2>&1 </dev/null ;;
    esac
}

# --- parts that are no suite; each becomes its command

part_ucx_slice()
{
    exec "${own_world[@]}" "$check_d/long/ucx" --tests uct
}

part_ucx_ci()
{
    exec "${own_world[@]}" "$check_d/long/ucx" --tests ci
}

part_ucx_budget()
{
    exec "${own_world[@]}" "$check_d/long/ucx" --tests ci --budget
}

part_fuzz_short()
{
    exec "${own_world[@]}" "$check_d/long/fuzz" --seconds 20
}

part_debian_trixie()
{
    run_debian trixie --quick
}

part_debian_trixie_all()
{
    run_debian trixie --commands
}

# run_debian NAME OPTION...: no more tests at a time than it takes slots.
run_debian()
{
    export T_SLOTS
    T_SLOTS=$(slots_of debian-)
    exec "${own_world[@]}" "$top/contrib/check-debian" "$@" --or-skip
}

# Style is gcc's and the walls script's business; this looks for mistakes. gcc
# knows better than cppcheck what is used before it is set, and counters that
# wrap are meant to.
part_cppcheck()
{
    exec setsid cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr \
        --enable=warning,portability --suppress=missingIncludeSystem \
        --suppress=uninitvar --suppress=signConversion \
        --include="$top/contrib/cppcheck.h" \
        -D_GNU_SOURCE -I "$top/src" -j"$(nproc)" "$top/src" \
        "$top/test/gtest-free-c/t.c"
}

# Another processor: its compiler alone. contrib/setup does not install it.
part_aarch64()
{
    if ! command -v "${AARCH64_CC:-aarch64-linux-gnu-gcc}" >/dev/null; then
        echo 'aarch64: no compiler for it is installed (gcc-aarch64-linux-gnu)' \
            >> "$build_root/log/skips"
        echo '0 passed, 0 failed, 1 skipped'
        return
    fi
    exec setsid "$check_d/aarch64"
}

# The archive must hold all that a build, its tests' build and an installation
# need. The tests themselves run elsewhere.
part_distcheck()
{
    exec setsid make -C "$build_root/release" -j"$(nproc)" distcheck TESTS=
}

# --- long runs

# run_long NAME [OPTION]...: becomes it.
run_long()
{
    local name minutes what

    while IFS='|' read -r name minutes what; do
        [ "$name" != "${1:-}" ] || exec "$check_d/long/$name" "${@:2}"
    done < <(table "$check_d/long.list")
    die 2 "there is no long run \"$1\": they are $(table "$check_d/long.list" | cut -d'|' -f1 | paste -s -d' ')"
}

# --- the checkout

checkout_state()
{
    git -C "$top" status --porcelain 2>/dev/null
}

check_checkout()
{
    local what='the checkout is left as it was'

    if ! git -C "$top" rev-parse >/dev/null 2>&1; then
        skipped=$((skipped + 1))
        echo "$what: git does not know this folder" >> "$build_root/log/skips"
    elif [ "$(checkout_state)" = "$state_before" ]; then
        step_passed "$what"
    else
        checkout_state > "$build_root/log/checkout"
        step_failed "$what" 'git status' "$build_root/log/checkout"
    fi
}
