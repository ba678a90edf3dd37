# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f calls.awk -v test=T -v side=S -v n=MESSAGES CLIENT SERVER
# awk -f calls.awk -v heading=1
#
# One line of the table of verbs calls, from the files that verbs_counter.c
# writes (lines "NAME NUMBER"), or the table's heading.

BEGIN {
    if (heading) {
        printf "%-22s%38s%38s%12s\n", "", "sender:", "receiver:", ""
        printf "%-10s%-12s", "test", ""
        for (i = 1; i <= 2; ++i) {
            printf "%9s %9s %8s %9s", "requests", "doorbells", "syscalls", "signalled"
        }
        printf "%12s\n", "RECVs/call"
        exit
    }
}

FNR == 1 { ++file }

{ sum[file, $1] += $2 }

function columns(file)
{
    printf "%9.3f %9.3f %8.3f %9.3f", sum[file, "requests"] / n, \
           sum[file, "doorbells"] / n, sum[file, "syscalls"] / n, \
           sum[file, "signalled"] / n
}

END {
    if (heading) {
        exit
    }
    printf "%-10s%-12s", test, side
    columns(1)
    columns(2)
    calls = sum[2, "recv_calls"]
    printf "%12.1f\n", calls ? sum[2, "recvs"] / calls : 0
}
