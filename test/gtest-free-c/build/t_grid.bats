# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/grid: that it runs every cell, and what it says of what is wrong. The
# verdicts are those of daqiri drop-curve (t_verdict, t_sweep); what the figures
# are, no test looks at.

bats_require_minimum_version 1.5.0

setup()
{
    grid=$T_TOP_SRCDIR/contrib/grid
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "every cell is run" {
    case $T_FLAVOUR in
        asan | tsan) skip "flavour $T_FLAVOUR: the plugin is loaded into another program" ;;
    esac
    run "$grid" --build "$T_TOP_BUILDDIR" --sizes 64,64K --windows 2,8 \
        --paces 5 --repeats 2 --time 50ms --csv kept
    echo "$output"
    [ "$status" -le 1 ] # how fast it was may be anything
    cat kept
    [ "$(wc -l <kept)" -eq 9 ]
    [ "$(grep -c '^daqiri,softverbs0:1,\(64\|65536\),[28],' kept)" -eq 8 ]
    run grep -E 'missing|drops' <(tail -n +2 kept)
    [ "$status" -eq 1 ]
}

@test "nonsense in an option gets a sentence and status 2" {
    local build=(--build "$T_TOP_BUILDDIR")

    run -2 --separate-stderr "$grid" "${build[@]}" --sizes 64,nonsense
    [[ $stderr == *'-sizes nonsense: it is a size'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --repeats 5,6
    [[ $stderr == *'-repeats 5,6: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --windows 1K
    [[ $stderr == *'-windows 1K: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --paces 10K
    [[ $stderr == *'-targets 10K: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --stalled 0
    [[ $stderr == *'-stalled 0: it is a number from 0.1 to 100'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --nonsense
    [[ $stderr == *'unknown option'* ]]
    run -2 --separate-stderr "$grid" --sizes
    [[ $stderr == *'needs a value'* ]]
    run -1 --separate-stderr "$grid" --build /nowhere
    [[ $stderr == *'/nowhere is not a build of ucx-daqiri'* ]]
}
