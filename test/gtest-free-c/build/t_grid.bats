# SPDX-License-Identifier: BSD-3-Clause
#
# contrib/check --long grid: that it runs every cell, and what it says of what is wrong. The
# verdicts are those of daqiri drop-curve (t_verdict, t_sweep); what the figures
# are, no test looks at.

bats_require_minimum_version 1.5.0

setup()
{
    grid=$T_TOP_SRCDIR/contrib/check.d/long/grid
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
    [[ $output == *' of 8 rows have a verdict; all of them are in kept' ]]
    cat kept
    [ "$(wc -l <kept)" -eq 9 ]
    [ "$(grep -c '^daqiri,softverbs0:1,\(64\|65536\),[28],' kept)" -eq 8 ]
    run grep -E 'missing|drops' <(tail -n +2 kept)
    [ "$status" -eq 1 ]
}

# A daqiri that has measured this, and thinks this of it.
fake()
{
    mkdir -p fake/src/tools
    printf '#!/bin/sh\necho "$@" >args\ncat rows\nexit %d\n' "$1" >fake/src/tools/daqiri
    chmod +x fake/src/tools/daqiri
    cat >rows
}

@test "with --csv the rows that have a verdict are printed, and the others kept" {
    fake 1 <<'END'
transport,device,size,gbps,verdict,why
daqiri,softverbs0:1,8,1.5,ok,
daqiri,softverbs0:1,64,0.5,collapse,"run 1 had 0.50 of the median, ok"
daqiri,softverbs0:1,512,0.5,"missing, collapse",it broke
daqiri,softverbs0:1,4096,1.5,ok,"run 1 was made once more: at worst it had 0.50, collapse"
END
    run -1 --separate-stderr "$grid" --build "$PWD/fake" --stalled 1 --csv kept
    [ "${#lines[@]}" -eq 4 ]
    [ "${lines[0]}" = transport,device,size,gbps,verdict,why ]
    [[ ${lines[1]} == daqiri,softverbs0:1,64,* ]]
    [[ ${lines[2]} == daqiri,softverbs0:1,512,* ]]
    [ "${lines[3]}" = '2 of 4 rows have a verdict; all of them are in kept' ]
    [ -z "$stderr" ]
    cmp rows kept
    grep -q -- '--stalled 1 .*--collapse 90 --rate 5 --pace 0.05 --strict --csv$' args
    fake 0 <<<$'size,verdict,why\n8,ok,'
    run -0 "$grid" --build "$PWD/fake" --csv kept
    [ "${lines[1]}" = '0 of 1 rows have a verdict; all of them are in kept' ]
    fake 2 </dev/null # it has said why
    run -2 "$grid" --build "$PWD/fake" --csv kept
    [ -z "$output" ]
}

@test "nonsense in an option gets a sentence and status 2" {
    local build=(--build "$T_TOP_BUILDDIR")

    run -2 --separate-stderr "$grid" "${build[@]}" --sizes 64,nonsense
    [[ $stderr == *'--sizes nonsense: it is a size'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --repeats 5,6
    [[ $stderr == *'--repeats 5,6: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --windows 1K
    [[ $stderr == *'--windows 1K: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --paces 10K
    [[ $stderr == *'--targets 10K: it is a number'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --stalled 0
    [[ $stderr == *'--stalled 0: it is a number from 0.1 to 100'* ]]
    run -2 --separate-stderr "$grid" "${build[@]}" --nonsense
    [[ $stderr == *'unknown option'* ]]
    run -2 --separate-stderr "$grid" --sizes
    [[ $stderr == *'needs a value'* ]]
    run -1 --separate-stderr "$grid" --build /nowhere
    [[ $stderr == *'/nowhere is not a build of ucx-daqiri'* ]]
}
