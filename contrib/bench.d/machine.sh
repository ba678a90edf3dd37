# SPDX-License-Identifier: BSD-3-Clause
#
# Read by contrib/bench transports: who else uses the machine meanwhile. Times that were
# taken while others computed are told, and told to be doubtful.
# shellcheck shell=bash

# More than this of a CPU is too much: two sides that poll need one each.
foreign_limit=0.10

# -> seconds of CPU time, all CPUs together: "busy own". Own is what this
# script and everything below it has used, a virtual machine included.
cpu_seconds()
{
    cat /proc/stat /proc/[0-9]*/stat 2>/dev/null |
        awk -f "$bench_d/cpu.awk" -v root="$$" -v hz="$(getconf CLK_TCK)"
}

now_seconds()
{
    cut -d' ' -f1 /proc/uptime
}

mark_machine()
{
    mark="$(now_seconds) $(cpu_seconds)"
}

# CPUs that others have used since the mark, on average.
foreign_since_mark()
{
    echo "$mark $(now_seconds) $(cpu_seconds)" | awk '{
        foreign = (($5 - $2) - ($6 - $3)) / (($4 > $1) ? $4 - $1 : 1)
        printf "%.2f\n", (foreign > 0) ? foreign : 0
    }'
}

# tell_foreign: since the last time, if that is too much. In a virtual machine
# only the host knows.
tell_foreign()
{
    local foreign

    [ "$inside" = no ] || return 0
    foreign=$(foreign_since_mark)
    echo "$foreign" >> "$work/foreign"
    if is_too_much "$foreign"; then
        say "meanwhile others used $foreign of $(nproc) CPUs"
    fi
    mark_machine
}

is_too_much()
{
    awk -v x="$1" -v limit="$foreign_limit" 'BEGIN { exit !(x > limit) }'
}

print_machine()
{
    local most

    [ -s "$work/foreign" ] || return 0
    most=$(sort -g "$work/foreign" | tail -n 1)
    printf '\n%s, Linux %s, %s CPUs, %s.\n' "$(date '+%Y-%m-%d %H:%M')" \
        "$(uname -r)" "$(nproc)" "$(processor_name)"
    printf 'Others used %s CPUs at most in any part of this.\n' "$most"
    ! is_too_much "$most" ||
        printf 'That is too much: do not trust the times above.\n'
}

processor_name()
{
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
}

# become_urgent ARGUMENT...: starts this script again, in a session of its own
# that goes before all others; only the superuser may do that. A signal that
# ends us ends all of that session's processes.
become_urgent()
{
    local session

    [ -z "${BENCH_URGENT:-}" ] || return 0
    export BENCH_URGENT=yes
    # shellcheck disable=SC2016
    setsid bash -c '
        if ! echo -20 2>/dev/null > /proc/self/autogroup; then
            echo "bench: --urgent: this user or this kernel cannot" >&2
            exit 1
        fi
        exec "$@"' bench "$0" "$@" &
    session=$!
    # shellcheck disable=SC2064
    trap "kill -TERM -- -$session" INT TERM HUP
    wait "$session"
    exit
}
