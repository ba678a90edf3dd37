# SPDX-License-Identifier: BSD-3-Clause
#
# ucx_info -d | awk -f limits.awk -v transport=T -v device=D -v op=am_zcopy
#
# How long the longest message of that operation may be, in bytes. Nothing if
# there is no such operation.

/^# *Transport:/ { is_transport = ($3 == transport) }
/^# *Device:/ { is_device = ($3 == device) }

is_transport && is_device && $2 == op ":" {
    limit = $0
    sub(/.*(<= |\.\.)/, "", limit)
    sub(/,.*/, "", limit)
    printf "%.0f\n", (limit ~ /unlimited/) ? 2 ^ 40 : bytes(limit)
    exit
}

function bytes(text,    unit)
{
    unit = substr(text, length(text))
    return text * ((unit == "G") ? 2 ^ 30 : (unit == "M") ? 2 ^ 20 : \
                   (unit == "K") ? 2 ^ 10 : 1)
}
