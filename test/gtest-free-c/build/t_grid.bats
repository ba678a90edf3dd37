# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/grid: that it finds the cliffs that there are, of figures that are
# made up; that it runs every cell; and what it says of what is wrong. What its
# own figures are, no test looks at.

bats_require_minimum_version 1.5.0

setup()
{
    grid=$T_TOP_SRCDIR/contrib/grid
    judge=$T_TOP_SRCDIR/contrib/grid.awk
    cd "$BATS_TEST_TMPDIR" || return 1
    : >runs
}

# ran SIZE BYTES PACE GBPS...: a row of window 4 with these runs.
ran()
{
    local size=$1 bytes=$2 pace=$3
    local repeat=0 gbps target=

    [ "$pace" = max ] || target=1
    shift 3
    for gbps in "$@"; do
        repeat=$((repeat + 1))
        awk -v OFS=, -v r="$repeat" -v s="$size" -v b="$bytes" -v p="$pace" \
            -v g="$gbps" -v t="$target" 'BEGIN {
                if (g == "failed") {
                    print r, s, 4, p, ""
                    exit
                }
                print r, s, 4, p, "daqiri", "softverbs0:1", b, 4, t, g, \
                    g * 1e9 / 8 / b, (t == "") ? "" : (g / t - 1) * 100, \
                    100, 100, 0, 0.5, 0.1, 0.1
            }' >>runs
    done
}

verdict()
{
    run awk -v want=verdict -v repeats=3 -f "$judge" runs
    echo "$output"
}

@test "figures without a fault" {
    ran 64 64 max 1 1.1 0.95
    ran 4K 4096 max 20 21 22
    ran 64 64 10 1 1.0004 0.9996
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *'3 rows: 0 with a cliff, 0 with a rate below that of longer messages, 0 with a pace missed, 0 with runs missing'* ]]
}

@test "one run of three below 0.9 of the median is a cliff" {
    ran 64 64 max 1 1.1 0.91
    verdict
    [ "$status" -eq 0 ]
    ran 4K 4096 max 20 20 17.9
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *'1 with a cliff'* ]]
}

@test "shorter messages at a lower rate than longer ones" {
    ran 64 64 max 0.9 0.9 0.9
    ran 4K 4096 max 64 64 64
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *'rate: 0.90 of that of 4K bytes'* ]]
    [[ $output == *'1 with a rate below'* ]]
}

@test "a pace that is missed by more than 0.05 % of its median" {
    ran 64 64 75 1 1.0006 1.0007
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *'+0.0600 %  pace missed'* ]]
    : >runs
    ran 64 64 75 0.9994 0.9994 1
    verdict
    [ "$status" -eq 1 ]
    : >runs
    ran 64 64 100 0.9 0.9 0.9 # more than there may be
    verdict
    [ "$status" -eq 0 ]
}

@test "a run that failed is missing, and so is a whole row, and all of them" {
    ran 64 64 max 1 failed 1
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *'missing: 1 of 3'* ]]
    ran 4K 4096 max failed failed failed
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *'missing: 3 of 3'* ]]
    [[ $output == *'2 with runs missing'* ]]
    : >runs
    verdict
    [ "$status" -eq 1 ]
}

@test "the target is a part of the median of the same size and window" {
    ran 64 64 max 1 3 2
    ran 4K 4096 max 30 10 20
    run -0 awk -v want=target -v size=4K -v window=4 -v pace=25 -f "$judge" runs
    [ "$output" = 5 ]
    run -0 awk -v want=target -v size=4K -v window=5 -v pace=25 -f "$judge" runs
    [ -z "$output" ]
}

@test "every cell is run" {
    case $T_FLAVOUR in
        asan | tsan) skip "flavour $T_FLAVOUR: the plugin is loaded into another program" ;;
    esac
    run "$grid" --build "$T_TOP_BUILDDIR" --sizes 64,64K --windows 2,8 \
        --paces 5 --repeats 2 --time 50ms --csv kept
    echo "$output"
    [ "$status" -le 1 ] # how fast it was may be anything
    [[ $output == *'8 rows: '*', 0 with runs missing'* ]]
    [ "$(wc -l <kept)" -eq 17 ]
    [ "$(awk -F , '{ print NF }' kept | sort -u)" -eq 18 ]
}

@test "nonsense in an option gets a sentence and status 2" {
    run -2 --separate-stderr "$grid" --sizes 64,nonsense
    [[ $stderr == *'--sizes wants numbers'* ]]
    run -2 --separate-stderr "$grid" --repeats ''
    [[ $stderr == *'--repeats wants numbers'* ]]
    run -2 --separate-stderr "$grid" --repeats 5,6
    [[ $stderr == *'--repeats wants one number'* ]]
    run -2 --separate-stderr "$grid" --repeats 0
    [[ $stderr == *'--repeats wants one number'* ]]
    run -2 --separate-stderr "$grid" --windows 1K
    [[ $stderr == *'--windows wants numbers'* ]]
    run -2 --separate-stderr "$grid" --paces 10K
    [[ $stderr == *'--paces wants numbers'* ]]
    run -2 --separate-stderr "$grid" --nonsense
    [[ $stderr == *'unknown option'* ]]
    run -2 --separate-stderr "$grid" --sizes
    [[ $stderr == *'needs a value'* ]]
    run -1 --separate-stderr "$grid" --build /nowhere
    [[ $stderr == *'/nowhere is not a build of ucx-daqiri'* ]]
}
