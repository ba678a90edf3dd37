# SPDX-License-Identifier: BSD-3-Clause
#
# The commands that README.md gives for starting a job by hand are run as they
# stand there, with the MPI sweep as ./a.out and this build as what is
# installed.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR"
    mkdir lib stats
    ln -s "$T_SOFTVERBS" "$T_PLUGIN" lib/
    export DAQIRI_STATS_DIR=$PWD/stats
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # from Open MPI 5 on
    unset LD_PRELOAD UCX_TLS
}

# by_hand STARTER: that command of README.md, from its name to ./a.out.
by_hand()
{
    awk -v starter="$1" '
        $1 == starter { inside = 1 }
        inside { print }
        inside && /a\.out$/ { exit }' "$T_TOP_SRCDIR/README.md"
}

# Both ranks must have carried their messages over daqiri.
carried_by_daqiri()
{
    local starter=$1
    local program=$T_TOP_BUILDDIR/src/tools/$2
    local text

    [ -x "$program" ] || skip "$2 was not built: that MPI is not installed"
    ln -s "$program" a.out
    text=$(by_hand "$starter")
    [[ $text == *"UCX_TLS"*"daqiri ./a.out" ]]
    LIB=$PWD/lib run -0 timeout $((60 * T_TIMEOUT_MULTIPLIER)) \
        bash -c "$text --seconds 1"
    [ "$(grep -l '^am_tx [1-9]' stats/* | wc -l)" -eq 2 ]
}

@test "mpirun of Open MPI by hand" {
    carried_by_daqiri mpirun.openmpi daqiri-mpi-sweep-ompi
}

@test "mpiexec of MPICH by hand" {
    carried_by_daqiri mpiexec.mpich daqiri-mpi-sweep-mpich
}

@test "ucx_info lists every option with the prefix that README.md names" {
    local text

    text=$(sed -n 's/^    \(LD_PRELOAD=.*ucx_info -c -f .*\)/\1/p' \
        "$T_TOP_SRCDIR/README.md")
    [ -n "$text" ]
    LIB=$PWD/lib run -0 bash -c "$text"
    [ "$(grep -c '^UCX_DAQIRI_' <<< "$output")" -ge 10 ]
}
