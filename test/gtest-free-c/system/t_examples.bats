#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
#
# Every command that README.md and the man pages show is run as a user would type
# it, from an installed tree. What stands for something of the user's is replaced
# (adapt), what takes long is cut short, what needs a second host has its server
# on this one, and what cannot be run here is on a list (cannot): a line that is
# on no list is run, and has to succeed.

bats_require_minimum_version 1.5.0
load tools.bash

setup_file()
{
    local folder

    case $T_FLAVOUR in
        asan|tsan) return 0 ;; # each test says why
    esac
    for folder in softverbs uct/daqiri tools ../man; do
        make -C "$T_TOP_BUILDDIR/src/$folder" install DESTDIR="$BATS_FILE_TMPDIR/root" \
            >"$BATS_FILE_TMPDIR/install.log" 2>&1 || { cat "$BATS_FILE_TMPDIR/install.log"; return 1; }
    done
}

setup()
{
    tools_setup
    unset SOFTVERBS_FAULTS SOFTVERBS_FAULTS_LOG SOFTVERBS_PROCESS
    bin=$(dirname "$(find "$BATS_FILE_TMPDIR/root" -name daqiri -path '*/bin/*')")
    man=$(dirname "$(find "$BATS_FILE_TMPDIR/root" -name daqiri.1)")
    prefix=${bin%/bin}
    PATH=$bin:$PATH
    # README.md says that they are needed: for root, and on few processors.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # from Open MPI 5 on
    export PRTE_MCA_hwloc_default_binding_policy=none
    # The user's program, of whatever MPI: a short sweep.
    printf '#!/bin/sh\nexec daqiri mpi-sweep -t latency -T 0.2 --step 64\n' >a.out
    chmod +x a.out
    cp a.out osu_latency
    own_host
    serve_default
    job
}

teardown()
{
    end_running
}

# A /dev/shm and a network that nobody else is in: `all` are the processes of this
# test, and the port that daqiri serve has by default is free.
own_host()
{
    local place=(unshare -mn) enter=(nsenter -m -n)

    command -v ip >/dev/null || skip 'ip (iproute2) is not installed'
    if [ "$(id -u)" -ne 0 ]; then
        place=(unshare -rmn) enter=(nsenter -U --preserve-credentials -m -n)
    fi
    "${place[@]}" mount -t tmpfs tmpfs /dev/shm 2>own.err ||
        skip "a namespace cannot be made here: $(head -n 1 own.err)"
    "${place[@]}" sh -c 'mount -t tmpfs tmpfs /dev/shm && ip link set lo up && : >ready &&
        exec sleep 1000' >/dev/null 2>own.err 3>&- &
    running+=($!)
    inside=("${enter[@]}" --wd="$PWD" -t $!)
    wait_for 60 test -e ready
}

serve_default()
{
    start serve "${inside[@]}" daqiri serve --device soft
    running+=("$pid")
    listening serve
}

has_stats()
{
    "${inside[@]}" daqiri stats "$job" >/dev/null 2>&1
}

# Something to look at, and to fail: it runs until the test ends.
job()
{
    start job "${inside[@]}" daqiri run --device soft \
        ucx_perftest -l -x daqiri -d softverbs0:1 -t am_lat -n 1000000000
    job=$pid
    running+=("$pid")
    wait_for 60 has_stats
}

# --- what the pages show

# The code blocks of README.md, a command in a line.
of_readme()
{
    awk '
        /^```/ { fenced = !fenced; next }
        fenced || /^    / { sub(/^    /, ""); print }' "$T_TOP_SRCDIR/README.md" | in_lines
}

# All that is in EXAMPLES, and what else is typed as an example (.EX), as man
# would show it.
of_page()
{
    awk '
        /^\.SH/ { inside = ($2 == "EXAMPLES"); next }
        /^\.EX/ { typed = 1; next }
        /^\.EE/ { typed = 0; next }
        /^\./   { next }
        inside || typed' "$1" |
        sed 's/\\-/-/g; s/\\f[A-Z]//g; s/\\e/\\/g' | in_lines
}

# Continued lines made one, without comments and what is empty.
in_lines()
{
    awk '
        /\\$/ { sub(/ *\\$/, ""); sub(/^ +/, ""); line = line $0 " "; next }
        { sub(/^ +/, ""); print line $0; line = "" }' |
        { grep -v -e '^ *#' -e '^ *$' || true; }
}

# cannot LINE: why it is not run.
cannot()
{
    case $1 in
        contrib/demo*)       echo 'it installs packages, and has a test of its own (t_demo)' ;;
        contrib/check*)      echo 'it runs this test' ;;
        contrib/autogen)     echo 'it is how this build was begun' ;;
        *../../configure*)   echo 'it is how this build was begun' ;;
        'mkdir -p build/mine && cd build/mine') echo 'for the one before' ;;
        'make && make install'*) echo 'setup_file does' ;;
        contrib/deb*)        echo 'it builds the packages, and has a run of its own (contrib/check-debian --package)' ;;
        apt*)                echo 'it installs them, and is in the same run' ;;
        'daqiri serve '*)    echo 'setup does' ;;
        *) return 1 ;;
    esac
}

# lacks LINE: which program it needs that is not installed.
lacks()
{
    local program

    for program in mpirun mpirun.openmpi mpiexec.mpich ibv_devinfo ucx_info gnuplot; do
        [[ " $1 " == *" $program "* || ($program == gnuplot && $1 == *' -plot '*) ]] || continue
        command -v "$program" >/dev/null || { echo "$program is not installed"; return 0; }
    done
    return 1
}

# adapt LINE: as it is for this host and this test.
adapt()
{
    sed -E -e "s|/usr/local|$prefix|g" \
        -e 's/\b(HOST|node2)\b/127.0.0.1/' \
        -e "s/\[PID\]/$job/" \
        -e 's/\bmlx5_0\b/soft/' \
        -e 's/^daqiri probe/& --device soft/' \
        -e 's/--watch/--watch=10ms --count 2/' \
        -e 's/^daqiri tcp/& --duration 50ms/' \
        -e 's/^daqiri pingpong/& --iters 100/' \
        -e 's/^daqiri (sweep|drop-curve)/& --duration 10ms --repeats 1 --collapse 1 --rate 100/' \
        -e 's/daqiri mpi-sweep/& -T 0.2 --step 64/' <<<"$1"
}

# --- running them

# Prints nothing, for it sets something.
is_silent()
{
    [[ $1 == eval* || $1 == *'daqiri faults set'* || ($1 == [A-Z]*=* && $1 != *' '*) ]]
}

# Jobs of an MPI over daqiri: it has carried the messages of two processes or more.
is_carried()
{
    [[ $1 != *' ./a.out'* && $1 != *mpi-sweep* ]] ||
        [ "$(grep -l '^am_tx [1-9]' stats/* | wc -l)" -ge 2 ]
}

# run_line LINE: what went wrong with it, if something did, in the file wrong.
run_line()
{
    local line status=0 why=

    line=$(adapt "$1")
    rm -rf stats
    mkdir stats
    DAQIRI_STATS_DIR=$PWD/stats timeout -k 5 300 "${inside[@]}" \
        bash -c "set -e -o pipefail; $line" >out 2>err 3>&- || status=$?
    [ "$status" -eq 0 ] || why="status $status"
    [ -s out ] || is_silent "$line" || why="$why, nothing is printed"
    is_carried "$line" || why="$why, daqiri has carried nothing"
    printf '%s\n    status %s\n' "$line" "$status"
    if [ -n "$why" ]; then
        tail -n 20 out err
        printf '%s: %s\n' "$1" "$why" >>wrong
    fi
    # It is for the lines after it.
    [[ $line != [A-Z]*=* || $line == *' '* ]] || export "${line?}"
}

# all_of: the lines of the input, each by itself.
all_of()
{
    local line why

    : >wrong
    ran=0
    while read -r line; do
        if why=$(cannot "$line") || why=$(lacks "$line"); then
            printf '%s\n    not run: %s\n' "$line" "$why"
        else
            run_line "$line" </dev/null
            ran=$((ran + 1))
        fi
    done
    cat wrong
    [ ! -s wrong ]
}

@test "README.md" {
    of_readme >lines
    all_of <lines
    [ "$ran" -ge 15 ]
}

@test "the man pages" {
    local page

    for page in "$man"/*.1; do
        of_page "$page" >>lines
    done
    all_of <lines
    [ "$ran" -ge 10 ]
}

# A list that keeps what no page shows any more would hide what comes to be shown.
@test "what is not run is shown somewhere" {
    of_readme >lines
    declare -f cannot | sed -n "s/^ *\([^ ].*\))\$/\1/p" | grep -v -x '\*' >patterns
    [ "$(wc -l <patterns)" -ge 6 ]
    while read -r pattern; do
        pattern=${pattern//\'/}
        found=
        while read -r line; do
            # shellcheck disable=SC2053
            [[ $line != $pattern ]] || found=1
        done <lines
        [ -n "$found" ] || { echo "no page shows $pattern"; false; }
    done <patterns
}
