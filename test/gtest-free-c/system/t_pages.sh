#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every command line that README.md, the pages and the manual show is run as a user
# would type it, from an installed tree. Prints TAP, with a point for each line.
#
# What is a command line: each line of a block ```sh, the lines that begin with `$ ` of
# a block ```console, and in the manual each line below EXAMPLES or between .EX and .EE.
# What stands for something of the user's is replaced (adapt), what takes long is cut
# short, and what needs a second host has its server on this one. A block that cannot
# be run here says why, in the line before it: <!-- not run: REASON -->, in the manual
# .\" not run: REASON. Its lines are skipped with that reason.
#
# The lines of HACKING.md are those of a developer, who stands in a built checkout: a
# copy of the sources, whose build/FLAVOUR are this build. Each of its blocks is a shell
# of its own. What of it cannot be run, and why, is in exception() below.
#
# Then come the names: every option, link and option of UCX that a page names exists.
#
# CK_RUN_CASE=PAGE (contrib/check --case PAGE): the lines of this page only.

set -u

here=$(cd "$(dirname "$0")" && pwd)
number=0
failures=0

# result ok|'not ok' NAME [REASON]: with a reason it is skipped.
result()
{
    number=$((number + 1))
    [ "$1" = ok ] || failures=$((failures + 1))
    printf '%s %s - %s%s\n' "$1" "$number" "${2//#/}" "${3:+ # SKIP $3}"
}

skip_all()
{
    echo "1..0 # SKIP $1"
    exit 0
}

# diagnose FILE...: as a comment of TAP.
diagnose()
{
    tail -q -n 20 "$@" 2>/dev/null | sed 's/^/#     /'
}

case $T_FLAVOUR in
    asan | tsan) skip_all "flavour $T_FLAVOUR: other people's programs cannot load its objects" ;;
esac
. "$here/tools.bash" # for start, wait_for, listening, end_running

running=()
work=$(mktemp -d) || exit 99
ended_well=
finish()
{
    end_running
    rm -rf "$work"
    [ -n "$ended_well" ] || echo 'Bail out! the script did not reach its end'
}
trap finish EXIT
cd "$work" || exit 99

# --- what the pages show

# pages: those of the source tree, without the manual.
pages()
{
    (cd "$T_TOP_SRCDIR" && printf '%s\n' README.md HACKING.md CONTRIBUTING.md SECURITY.md docs/*.md)
}

# blocks FILE: the lines of its blocks that are commands, as "LINE<tab>REASON<tab>TEXT".
# A reason holds for the next block.
blocks()
{
    awk '
        function command(text) { print FNR "\t" reason "\t" text }
        FNR == 1 { kind = "" }
        /^```/ && kind != "" { kind = ""; reason = ""; next }
        /^```/ { kind = substr($0, 4); if (kind == "") kind = "text"; next }
        kind == "sh" { command($0); next }
        kind == "console" && /^[$] / { more = /\\$/; command(substr($0, 3)); next }
        kind == "console" && more { more = /\\$/; command($0); next }
        kind != "" { next }
        /^<!-- not run: .* -->$/ { reason = substr($0, 15, length($0) - 18); next }
        NF > 0 { reason = "" }' "$1"
}

# manual FILE: the same of a page of the manual, as man would show it.
manual()
{
    awk '
        /^\.\\" not run: / { reason = substr($0, 14); next }
        /^\.SH/ { inside = ($2 == "EXAMPLES"); next }
        /^\.EX/ { typed = 1; next }
        /^\.EE/ { typed = 0; reason = ""; next }
        /^\./   { next }
        inside || typed { print FNR "\t" reason "\t" $0 }' "$1" |
        sed 's/\\-/-/g; s/\\f[A-Z]//g; s/\\e/\\/g'
}

# in_lines: continued lines made one, without comments and what is empty.
in_lines()
{
    awk -F '\t' -v OFS='\t' '
        {
            text = $3
            sub(/^ +/, "", text)
            if (line == "") { at = $1; reason = $2 }
            if (text ~ /\\$/) { sub(/ *\\$/, "", text); line = line text " "; next }
            line = line text
            if (line !~ /^ *(#|$)/) print at, reason, line
            line = ""
        }'
}

# lines_of PAGE: its command lines.
lines_of()
{
    case $1 in
        *.[1-9]) manual "$T_TOP_SRCDIR/$1" ;;
        *) blocks "$T_TOP_SRCDIR/$1" ;;
    esac | in_lines
}

# --- the installed tree, and who else is there

install_tree()
{
    local folder

    for folder in src/softverbs src/uct/daqiri src/tools man; do
        env -u MAKEFLAGS -u MFLAGS make -C "$T_TOP_BUILDDIR/$folder" install \
            DESTDIR="$work/root" >>install.log 2>&1 || return 1
    done
    bin=$(dirname "$(find "$work/root" -name daqiri -path '*/bin/*')")
    prefix=${bin%/bin}
    libexec=$(dirname "$(find "$work/root" -name daqiri-flow)")
    PATH=$bin:$PATH
}

# A /dev/shm and a network that nobody else is in: `all` are the processes of this
# test, and the port that daqiri serve has by default is free.
own_host()
{
    local place=(unshare -mn) enter=(nsenter -m -n)

    command -v ip >/dev/null || skip_all 'ip (iproute2) is not installed'
    if [ "$(id -u)" -ne 0 ]; then
        place=(unshare -rmn) enter=(nsenter -U --preserve-credentials -m -n)
    fi
    "${place[@]}" mount -t tmpfs tmpfs /dev/shm 2>own.err ||
        skip_all "a namespace cannot be made here: $(head -n 1 own.err)"
    "${place[@]}" sh -c 'mount -t tmpfs tmpfs /dev/shm && ip link set lo up && : >ready &&
        exec sleep 3000' >/dev/null 2>own.err &
    running+=($!)
    inside=("${enter[@]}" -t $!)
    wait_for 60 test -e ready
}

has_stats()
{
    "${inside[@]}" daqiri stats "$job" >/dev/null 2>&1
}

# A server, and a job to look at and to fail, until the test ends.
others()
{
    start serve "${inside[@]}" daqiri serve --device soft
    running+=("$pid")
    listening serve || return 1
    start job "${inside[@]}" daqiri run --device soft \
        ucx_perftest -l -x daqiri -d softverbs0:1 -t am_lat -n 1000000000
    job=$pid
    running+=("$pid")
    wait_for 60 has_stats
}

# --- running a line

# lacks LINE: which program it needs that is not installed.
lacks()
{
    local program

    for program in git mpirun mpirun.openmpi mpiexec.mpich ibv_devinfo ibv_rc_pingpong \
            ib_send_lat ucx_info ucx_perftest gnuplot; do
        [[ " $1 " == *[\ \']"$program "* || ($program == gnuplot && $1 == *'--plot'*) ]] || continue
        command -v "$program" >/dev/null || { echo "$program is not installed"; return 0; }
    done
    return 1
}

# adapt LINE: as it is for this host and this test.
adapt()
{
    sed -E -e "s|/usr/local|$prefix|g" \
        -e 's/\b(HOST|node2)\b/127.0.0.1/' \
        -e "s/(\[PID\]|\bPID\b)/$job/" \
        -e 's/\bmlx5_0\b/soft/' \
        -e 's/^daqiri probe/& --device soft/' \
        -e 's/--watch\b/--watch=10ms --count 2/' \
        -e 's/^daqiri top\b/& --batch --interval 100ms --count 1/' \
        -e 's/^daqiri tcp/& --duration 50ms/' \
        -e 's/^daqiri pingpong/& --iters 100/' \
        -e 's/^daqiri (sweep|drop-curve)/& --duration 10ms --repeats 1 --collapse 1 --rate 100/' \
        -e '/daqiri mpi-sweep/s/ --(seconds|step) [0-9]+//g' \
        -e 's/daqiri mpi-sweep/& --seconds 0.2 --step 64/' <<<"$1"
}

# exception LINE: why a developer's line is not run here. Each has a line, or it is one
# too many.
exceptions=8
declare -A excepted=()
exception()
{
    local why=

    case $1 in
        contrib/setup*) why='it installs packages, and fetches some' ;;
        'contrib/check --list') ;;
        contrib/check | contrib/check\ *) why='it is what runs this test' ;;
        contrib/check-*) why='it needs another UCX, or another Debian' ;;
        contrib/vm/run*) why='it boots a virtual machine: the tests of vm and softroce do' ;;
        contrib/deb*) why='it takes minutes: t_packages and check-debian do' ;;
        make*\ dist) why='it takes minutes: the part distcheck does' ;;
        make*\ check\ *) why='it would write the logs of tests that may run now' ;;
        *gdb*) why='a debugger waits for a person' ;;
    esac
    [ -n "$why" ] && reason=$why && excepted[$why]=there
}

# is_kept LINE: the lines after it in the page's shell go on from there.
is_kept()
{
    [[ $1 == '. '* || $1 == 'cd '* ]] || { is_silent "$1" && [[ $1 != *daqiri\ faults* ]]; }
}

# Prints nothing, for it sets or changes something.
is_silent()
{
    [[ $1 == '. '* || $1 == 'cd '* || $1 == 'sed -i '* || $1 == 'git checkout '* ]] ||
    [[ $1 == eval* || $1 == export* || $1 == *'daqiri faults set'* ||
       $1 == *'daqiri faults clear'* || ($1 == [A-Z]*=* && $1 != *' '*) ]]
}

# Jobs of an MPI over daqiri: it has carried the messages of two processes or more.
is_carried()
{
    [[ $1 != *' ./a.out'* && $1 != *mpi-sweep* ||
       $1 == *'--tls'* || $1 == *DAQIRI_STATS_DIR=* ]] ||
        [ "$(cat stats/* 2>/dev/null | grep -c '^am_tx [1-9]')" -ge 2 ]
}

# pasted PAGE AT: what the page shows behind the command of a block ```console in this
# line: the lines that `daqiri run` and the sweep print in every run.
pasted()
{
    awk -v at="$2" '
        FNR <= at { next }
        /^(```|[$] )/ { exit }
        /^(daqiri run: |# (daqiri|latency|Size|sent))/' "$T_TOP_SRCDIR/$1"
}

# without_numbers: so that two runs are alike.
without_numbers()
{
    sed -E 's/0x[0-9a-f]+|[0-9]+([.][0-9]+)*/N/g; s/ +/ /g' | sort -u
}

# unlike PAGE AT: the first pasted line that the run did not print.
unlike()
{
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || return 0 # the pages have none
    pasted "$1" "$2" | without_numbers >shown
    cat out err | without_numbers | comm -23 shown - | head -n 1
}

# run_line NAME LINE [PAGE AT]
run_line()
{
    local name=$1 line status=0 why= other

    line=$(adapt "$2")
    rm -rf stats
    mkdir stats
    # in the page's own shell: what a line sets is for the lines after it
    cat >script <<END
cd here
set -a
[ ! -e $work/set ] || . $work/set
set +a
set -e -o pipefail
$line
END
    DAQIRI_STATS_DIR=$PWD/stats timeout -k 5 300 "${inside[@]}" --wd="$PWD" \
        bash script >out 2>err </dev/null || status=$?
    [ "$status" -eq 0 ] || why="status $status"
    [ -s out ] || is_silent "$line" || [[ $line == 'gnuplot '* ]] || why="${why:+$why, }nothing is printed"
    is_carried "$line" || why="${why:+$why, }daqiri has carried nothing"
    if [ -n "${3:-}" ] && other=$(unlike "$3" "$4") && [ -n "$other" ]; then
        why="${why:+$why, }the page shows what it does not print: $other"
    fi
    if [ -z "$why" ]; then
        result ok "$name"
    else
        result 'not ok' "$name: $why"
        printf '#   run as: %s\n' "$line"
        diagnose out err
    fi
    ! is_kept "$line" || printf '%s\n' "$line" >>set
}

# The user's program, of whatever MPI: a short sweep. And a plan of faults.
users_files()
{
    mkdir here
    printf '#!/bin/sh\nexec daqiri mpi-sweep --tests latency --seconds 0.2 --step 64\n' >here/a.out
    chmod +x here/a.out
    cp here/a.out here/osu_latency
    echo 'qp-error process=1 qp=rc n=50 times=1' >here/plan.txt
}

# A checkout, as a developer has it. build/FLAVOUR is this build, whatever its flavour.
developers_files()
{
    local flavour

    mkdir -p here/build
    tar -C "$T_TOP_SRCDIR" --exclude=./build --exclude=./.git -cf - . | tar -C here -xf -
    for flavour in release debug asan; do
        ln -s "$T_TOP_BUILDDIR" "here/build/$flavour"
    done
    ! command -v git >/dev/null ||
        (cd here && git init -q . && git add -A &&
         git -c user.name=t -c user.email=t@localhost commit -q -m t)
}

# block_of PAGE AT: where the block of this line begins.
block_of()
{
    awk -v at="$2" 'FNR < at && /^```/ { begin = FNR } END { print begin }' "$T_TOP_SRCDIR/$1"
}

# run_page PAGE
run_page()
{
    local at reason line name block='' last=''

    rm -rf here set
    [ "$1" = HACKING.md ] && developers_files || users_files
    while IFS=$'\1' read -r at reason line; do
        name="$1:$at: ${line%% \#*}"
        if [ "$1" = HACKING.md ]; then
            exception "${line%%  *}"
            block=$(block_of "$1" "$at")
            [ "$block" = "$last" ] || rm -f set
            last=$block
        fi
        if [ -n "$reason" ] || reason=$(lacks "$line"); then
            result ok "$name" "$reason"
            not_run=$((not_run + 1))
        else
            run_line "$name" "$line" "$1" "$at"
            ran=$((ran + 1))
        fi
    done < <(lines_of "$1" | tr '\t' '\1')
}

# --- names

# help_of WORD...: what this command prints about its options, once.
declare -A help_texts=()
help_of()
{
    local key="$*"

    if [ -z "${help_texts[$key]+there}" ]; then
        help_texts[$key]=$(
            case $1 in
                daqiri)
                    if [ "${2:-}" = mpi-sweep ]; then
                        sweep=$(find "$libexec" -name 'daqiri-mpi-sweep-*' | head -n 1)
                        "${sweep:-true}" --help
                    else
                        command "$@" --help # tools.bash has a function of that name
                    fi
                    ;;
                contrib/*) "$T_TOP_SRCDIR/$1" "${@:2}" --help ;;
            esac </dev/null 2>&1
        )
    fi
}

# has_option OPTION WORD...: that command has it.
has_option()
{
    local option=$1

    shift
    help_of "$@"
    [ "$*" != 'daqiri mpi-sweep' ] || [ -n "${help_texts[$*]}" ] || return 0 # no MPI here
    grep -qE -e "(^|[^[:alnum:]-])${option}([^[:alnum:]-]|\$)" <<<"${help_texts[$*]}"
}

# check_command TEXT: what is wrong with the options of our commands in it.
check_command()
{
    local words word after='' command=() option

    read -r -a words <<<"${1%% \#*}"
    for word in "${words[@]}"; do
        word=${word#[\'\"\(]}
        word=${word#\$(}
        word=${word%%[\'\")\`;]*}
        word=${word%,}
        case ${command[*]}/$word in
            */daqiri)
                case $after in
                    --tls | --transports | -x) ;; # the transport, not the command
                    *) command=(daqiri) ;;
                esac
                ;;
            */contrib/*) command=("$word") ;;
            */\|* | */\# | */--) command=() ;;
            daqiri/--help | daqiri/--version) ;;
            daqiri/-*) echo "daqiri has no option $word" ;;
            daqiri/help) command=() ;;
            daqiri/[a-z]*)
                has_option "$word" daqiri || { echo "there is no daqiri $word"; command=(); continue; }
                command+=("$word")
                ;;
            contrib/check/--long) command+=(--long) ;;
            'contrib/check --long/'[a-z]* | contrib/bench/[a-z]*) command+=("$word") ;;
            /*) ;;
            */-[a-z][a-z]*)
                [ "${command[0]}" != daqiri ] ||
                    echo "${command[*]}: $word has one dash; an option of it is written --name"
                ;;
            */--*)
                option=${word%%=*}
                option=${option%%\[*}
                has_option "$option" "${command[@]}" ||
                    echo "${command[*]} has no option $option"
                ;;
            */-*) ;;
            'daqiri run/'*=*) ;;
            'daqiri run/'*)
                # what comes behind the command that is run is that command's
                case $after in
                    --device | --tls | -d | -t) ;;
                    *) command=() ;;
                esac
                ;;
        esac
        after=$word
    done
}

# Options that pages speak of and that are others': of MPIs, of configure, of Docker, of
# programs that daqiri is compared with.
foreign='--mca --allow-run-as-root --oversubscribe --bind-to --map-by --disable-werror
    --with-ucx-source --ipc --pid --target-gbps --workload --mode
    --odp --host --export --mpi'

# all_options: of every command of ours.
all_options()
{
    local name

    for name in $(command daqiri --help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
        help_of daqiri "$name"
    done
    for name in check check-debian check-ucx bench deb demo setup vm/run record-session; do
        help_of "contrib/$name"
    done
    for name in $("$T_TOP_SRCDIR/contrib/bench" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        help_of contrib/bench "$name"
    done
    for name in $(ls "$T_TOP_SRCDIR/contrib/check.d/long"); do
        help_of contrib/check --long "$name"
    done
    printf '%s\n' "${help_texts[@]}" | grep -oE -e '--[a-z][a-z-]*' | sort -u
}

# check_option TEXT: what is wrong with an option that stands alone.
check_option()
{
    local name=${1%%[ =\[]*}

    [[ $name == --[a-z]* ]] || return 0
    [[ " $(echo $foreign) " == *" $name "* ]] || grep -qxF -e "$name" options ||
        echo "there is no option $name"
}

# spans FILE: "LINE<tab>TEXT" for each piece of code in a line of prose or of a table.
spans()
{
    awk '
        /^```/ { fenced = !fenced; next }
        fenced { next }
        {
            n = split($0, part, "`")
            for (i = 2; i <= n; i += 2) print FNR "\t" part[i]
        }' "$1"
}

# names_of FILE: what is wrong with the names in it, "LINE: what".
names_of()
{
    local file=$1 at text name

    { blocks "$file" | in_lines | cut -f 1,3; spans "$file"; } |
        while IFS=$'\t' read -r at text; do
            { check_command "$text"; check_option "$text"; } | sed "s|^|$at: |"
        done
    # options of UCX's
    grep -noE 'UCX_DAQIRI_[A-Z_]*[A-Z]' "$file" | sort -u -t : -k 2 |
        while IFS=: read -r at name; do
            grep -qx "$name" "$work/ucx_options" || echo "$at: there is no option $name"
        done
    # the first line is for whom it is
    awk 'NR > 1 && !/^#/ && NF > 0 { if (!/^For /) print FNR ": the page does not begin with who it is for"; exit }' "$file"
    # a command outside of a block that is run
    awk '
        /^```/ { fenced = !fenced }
        !fenced && /^    ([A-Z_]+=[^ ]* )*([$]|daqiri|contrib\/[a-z-]*|make|apt|mpirun[.a-z]*|mpiexec[.a-z]*|ucx_[a-z]+|ibv?_[a-z_]+) / {
            print FNR ": a command is not in a block ```sh or ```console"
        }
        /^<!-- not run:/ && !/^<!-- not run: .* -->$/ { print FNR ": not run: and why?" }
    ' "$file"
    links_of "$file"
}

# anchors FILE: of its headings, as they are made of them.
anchors()
{
    sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# links_of FILE: those to files and headings that do not exist.
links_of()
{
    local file=$1 at link target

    grep -noE '\]\([^)]+\)' "$file" | sed -E 's/\]\(//; s/\)$//' |
        while IFS=: read -r at link; do
            case $link in http:* | https:* | mailto:*) continue ;; esac
            target=$(dirname "$file")/${link%%#*}
            [ -n "${link%%#*}" ] || target=$file
            if [ ! -e "$target" ]; then
                echo "$at: there is no $link"
            elif [[ $link == *'#'* ]] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
                echo "$at: ${target##*/} has no heading for #${link#*#}"
            fi
        done
}

check_names()
{
    local page

    for page in $(pages); do
        [ -z "$case" ] || [ "$case" = "$page" ] || continue
        names_of "$T_TOP_SRCDIR/$page" >wrong
        if [ -s wrong ]; then
            result 'not ok' "$page names what does not exist"
            diagnose wrong
        else
            result ok "$page names what exists"
        fi
    done
}

# Each of these breaches is found, and nothing else.
plant()
{
    local found

    cat >planted.md <<'END'
<!-- SPDX-License-Identifier: BSD-3-Clause -->
# Planted

Nobody is named here. Neither `--nonsense` nor `daqiri probe --nonsense` and `daqiri nonsense` do not exist, nor does
`UCX_DAQIRI_NONSENSE`, nor [a page](nonsense.md), nor [a heading](planted.md#nonsense).

    daqiri probe --device soft

```sh
daqiri sweep -device soft --sizes 64
daqiri run --device soft mpirun --nonsense
contrib/check --nonsense
```
END
    names_of planted.md | sed 's/^[0-9]*: //' | LC_ALL=C sort >found
    LC_ALL=C sort >expected <<'END'
contrib/check has no option --nonsense
daqiri probe has no option --nonsense
daqiri sweep: -device has one dash; an option of it is written --name
the page does not begin with who it is for
there is no daqiri nonsense
there is no option --nonsense
there is no option UCX_DAQIRI_NONSENSE
there is no nonsense.md
planted.md has no heading for #nonsense
a command is not in a block ```sh or ```console
END
    if diff expected found >wrong; then
        result ok 'breaches in a planted page are found'
    else
        result 'not ok' 'breaches in a planted page are found'
        diagnose wrong
    fi
    # and a line that does not work is not taken for one that does, nor one that prints
    # something else than the page shows
    printf '%s\n' '```console' '$ true' 'daqiri run: device mlx5_0' '```' >planted.md
    found=$(
        number=0
        T_TOP_SRCDIR=$PWD
        run_line planted 'echo daqiri run: device softverbs0' planted.md 2
        run_line planted 'daqiri probe --nonsense'
        run_line planted 'true'
        run_line planted 'echo a.out; : ./a.out'
    )
    if [ "$(grep -c '^not ok' <<<"$found")" -eq 4 ]; then
        result ok 'lines that do not work are found'
    else
        result 'not ok' 'lines that do not work are found'
        sed 's/^/#     /' <<<"$found"
    fi
}

# -----------------------------------------------------------------------------

case=${CK_RUN_CASE:-}
unset SOFTVERBS_FAULTS SOFTVERBS_FAULTS_LOG SOFTVERBS_PROCESS
unset MAKEFLAGS MFLAGS MAKELEVEL LD_PRELOAD UCX_TLS UCX_NET_DEVICES DAQIRI_BUILD_ROOT CK_RUN_CASE
# docs/faq.md says that they are needed: for root, and on few processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # from Open MPI 5 on
export PRTE_MCA_hwloc_default_binding_policy=none

install_tree || { tail -n 20 install.log >&2; exit 99; }
own_host
others || { cat serve.err job.err >&2; exit 99; }
"${inside[@]}" daqiri run --device soft ucx_info -c 2>/dev/null |
    sed -n 's/^\(UCX_DAQIRI_[^=]*\)=.*/\1/p' >ucx_options

all_options >options
ran=0
not_run=0
[ -n "$case" ] || { mkdir here; plant; }
for page in $(pages) $(cd "$T_TOP_SRCDIR" && echo man/*.[1-9]); do
    [ -z "$case" ] || [ "$case" = "$page" ] || continue
    run_page "$page"
done
check_names
if [ -z "$case" ]; then
    [ "${#excepted[@]}" -eq "$exceptions" ] && verdict=ok || verdict='not ok'
    result "$verdict" "each exception of HACKING.md is one: ${#excepted[@]} of $exceptions"
    [ "$ran" -ge 60 ] && verdict=ok || verdict='not ok'
    result "$verdict" "60 lines at least are run: $ran were, $not_run were not"
fi
echo "1..$number"
ended_well=yes
[ "$failures" -eq 0 ]
