# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f objects.awk CALLGRIND-FILE
#
# How many instructions each shared object has executed. A cost belongs to the
# object named last; the line after "calls=" is what the callee spent, which
# is counted where the callee is.

/^c?ob=/ {
    id = $1
    sub(/^c?ob=/, "", id)
    if (NF > 1) {
        name[id] = $2
        sub(/.*\//, "", name[id])
    }
    if (/^ob=/) {
        object = id
    }
    next
}

/^calls=/ {
    getline
    next
}

/^[-+*0-9]/ {
    sum[name[object]] += $2
}

END {
    for (n in sum) {
        print sum[n], n
    }
}
