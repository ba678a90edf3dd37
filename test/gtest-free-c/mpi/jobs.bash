# SPDX-License-Identifier: BSD-3-Clause
#
# For bats files that run MPI jobs over daqiri. They are started by run-test,
# which sets T_*. Everything a job writes goes to a folder of its own below
# $BATS_TEST_TMPDIR: out, err, and counters/, one file per interface.
# shellcheck shell=bash

# The major version of Open MPI, or nothing.
ompi_major()
{
    [ -z "$T_MPIRUN_OMPI" ] || "$T_MPIRUN_OMPI" --version |
        sed -n 's/.*(Open MPI) \([0-9]*\).*/\1/p'
}

# Ranks share two cores, so they must yield; root is who one is in a container.
jobs_setup()
{
    export OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_hwloc_base_binding_policy=none
    case $(ompi_major) in # warns of each other's names
        5)
            export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
            export PRTE_MCA_hwloc_default_binding_policy=none
            ;;
        [6-9]) export PRTE_MCA_mapby=:oversubscribe PRTE_MCA_bindto=none ;;
    esac
    # Open MPI does not take such a UCX for MPI_THREAD_MULTIPLE: mt asks for less
    ucx_info -b | grep -q '^#define ENABLE_MT *1' || export T_UCX_THREADS=no
    export OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_MCA_plm_rsh_agent=/bin/false
    export PRTE_MCA_plm_ssh_agent=/bin/false
    if [ "$(id -u)" -eq 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    case $T_FLAVOUR in
        asan|tsan)
            skip "flavour $T_FLAVOUR: an MPI program would have to be built with that sanitizer, and its MPI too"
            ;;
    esac
}

# Absolute path of what starts jobs of this MPI; without it the test is skipped.
jobs_starter()
{
    case $1 in
        ompi) echo "$T_MPIRUN_OMPI" ;;
        mpich) echo "$T_MPIRUN_MPICH" ;;
    esac
}

need_mpi()
{
    [ -n "$(jobs_starter "$1")" ] || skip "$1 is not installed"
}

# need_tls TLS: UCX's own transports for verbs are not in every package of it.
need_tls()
{
    case $1 in
        *_verbs*) ucx_info -b | grep -q '^#define HAVE_IB ' ||
            skip "this UCX was built without its transports for verbs (Debian's 1.23.0~rc1 was)" ;;
    esac
}

jobs_show()
{
    echo "--- $1"
    tail -n 25 "$1"
}

# job_run NAME TLS MPI NP PROGRAM [ARG]...: sets $job to the job's folder and
# returns its exit status; 124 is a hang, which takes JOB_LIMIT seconds (90). Each rank
# uses JOB_RAILS devices (1).
job_run()
{
    local name=$1 tls=$2 mpi=$3 np=$4

    shift 4
    job=$BATS_TEST_TMPDIR/$name.$np
    mkdir -p "$job/counters"
    DAQIRI_STATS_DIR=$job/counters timeout -k 5 \
        $((${JOB_LIMIT:-90} * T_TIMEOUT_MULTIPLIER)) \
        "$T_DAQIRI" run --device "${T_DEVICE:-soft}" --rails "${JOB_RAILS:-1}" --tls "$tls" \
        "$(jobs_starter "$mpi")" -np "$np" "$@" \
        >"$job/out" 2>"$job/err" </dev/null
}

# job_failed MPI STATUS FILE...: the last job has not ended well. mpiexec of MPICH 4.2.1
# does not always tell by its status: it was 0 after 6 of 40 jobs in which UCX had no
# transport at all, and never with MPICH 4.0. There a rank must have said that it aborts,
# in one of the files.
job_failed()
{
    [ "$2" -eq 0 ] || return 0
    [ "$1" = mpich ] && ! "$T_MPIRUN_MPICH" --version | grep -q 'Version: *4\.0\.' &&
        cat "${@:3}" | grep -q '^Abort('
}

# job_ok ...: the same, and it must have ended well and without a word.
job_ok()
{
    local status=0

    job_run "$@" || status=$?
    if [ "$status" -ne 0 ]; then
        jobs_show "$job/out"
        jobs_show "$job/err"
        echo "$3, $4 ranks, $1: exit status $status"
        return 1
    fi
    if grep -vE '^daqiri run: (device |way into UCX)' "$job/err"; then
        echo "$3, $4 ranks: the above on stderr was not expected"
        return 1
    fi
}

# Daqiri carried what the last job sent, and nothing was left in its hands.
job_carried()
{
    local zero='sq_in_use|rx_held|tx_buffers_out'

    if ! awk -f "$T_TOP_SRCDIR/contrib/bench.d/carried.awk" "$job/out" \
            "$job/counters"/*; then
        jobs_show "$job/out"
        return 1
    fi
    if grep -E "^(${zero})_at_close [1-9]|^(tx_errors|rx_dropped|rx_overrun|rx_out_of_order|posts_refused|stray_completions) [1-9]" \
            "$job/counters"/*; then
        echo 'the counters above must be 0; all that are not:'
        grep -vE ' 0$' "$job/counters"/*
        return 1
    fi
    for key in sq_in_use_at_close rx_held_at_close; do
        if grep -L "^$key 0\$" "$job/counters"/* | grep .; then
            echo "the files above do not say $key 0"
            return 1
        fi
    done
}

# device_sum DEVICE KEYS: the sum of these counters (a|b) of the last job's interfaces on
# this device
device_sum()
{
    awk -v device="$1" -v keys="^($2)\$" '
        FNR == 1       { is_its = 0 }
        $1 == "device" { is_its = $2 == device }
        $1 ~ keys      { sum[FILENAME] += $2 }
        is_its         { its[FILENAME] }
        END { for (f in its) n += sum[f]; print n + 0 }' "$job/counters"/*
}

# rails_carried BYTES DEVICE...: each of these carried at least so much of the last job.
rails_carried()
{
    local least=$1 device carried

    shift
    for device in "$@"; do
        carried=$(device_sum "$device" 'am_tx_bytes|rma_bytes')
        echo "$device carried $carried bytes"
        [ "$carried" -ge "$least" ] || return 1
    done
}

# What the last job put and got was written and read by RDMA, rank by rank: as
# messages it would not be in rma_bytes, and only a one-sided window puts.
job_was_one_sided()
{
    awk '
        /^# sent / {
            for (i = 3; i <= NF; i++) {
                split($i, pair, "=")
                word[pair[1]] = pair[2]
            }
            asked[word["pid"]] = word["one_sided_bytes"]
        }
        FILENAME != ARGV[1] && NF == 2 { value[FILENAME, $1] = $2; file[FILENAME] }
        END {
            for (f in file) {
                pid = value[f, "pid"]
                bytes[pid] += value[f, "rma_bytes"]
                puts[pid] += value[f, "put_short"] + value[f, "put_bcopy"] + \
                             value[f, "put_zcopy"]
            }
            for (pid in asked) {
                printf "pid %d put and got %d bytes of others; daqiri wrote " \
                       "and read %d, in %d puts and more\n", pid, asked[pid],
                       bytes[pid], puts[pid]
                bad = bad || bytes[pid] < asked[pid] || puts[pid] == 0
                ranks++
            }
            exit bad || ranks == 0
        }' "$job/out" "$job/counters"/*
}
