# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f carried.awk OUTPUT COUNTERS...
#
# Holds what an MPI program says it sent against what daqiri says it carried.
# OUTPUT has lines `# sent rank=R pid=P KEY=N...` (the MPI sweep and the MPI
# tests end with them); keys ending in _messages or _messages_min, _bytes or
# _bytes_min are added up. COUNTERS are the files that daqiri's interfaces
# wrote to DAQIRI_STATS_DIR, lines `KEY N`, one of them `pid N`.
#
# Each message of a rank is at least one active message of its own. Its bytes
# may be carried by its peers instead: a large message is fetched by RDMA READ,
# which the reader counts. So messages are compared rank by rank, and bytes for
# all ranks together.
#
# Prints a line for each rank and one for all. Exit status 1 when daqiri
# carried less than was sent, or when that cannot be known.

function fail(sentence)
{
    print "NOT CARRIED: " sentence
    failed = 1
}

/^# sent / {
    delete word
    for (i = 3; i <= NF; ++i) {
        split($i, pair, "=")
        word[pair[1]] = pair[2]
    }
    rank = word["rank"]
    pid[rank] = word["pid"]
    for (key in word) {
        if (key ~ /_messages(_min)?$/) {
            sent_messages[rank] += word[key]
        } else if (key ~ /_bytes(_min)?$/) {
            sent_bytes[rank] += word[key]
        }
    }
    ++ranks
    next
}

FILENAME != ARGV[1] && NF == 2 {
    value[FILENAME, $1] = $2
    files[FILENAME] = 1
}

END {
    for (f in files) {
        p = value[f, "pid"]
        carried_messages[p] += value[f, "am_tx"]
        carried_bytes[p] += value[f, "am_tx_bytes"] + value[f, "rma_bytes"]
    }
    if (ranks == 0) {
        fail("the program did not say what it sent")
    }
    for (rank = 0; rank < ranks; ++rank) {
        p = pid[rank]
        known = (p in carried_messages)
        messages = carried_messages[p] + 0
        bytes = carried_bytes[p] + 0
        printf "rank %d (pid %s) sent at least %.0f messages, %.0f bytes; " \
               "daqiri carried %.0f messages, %.0f bytes\n",
               rank, p, sent_messages[rank], sent_bytes[rank], messages, bytes
        if (!known) {
            fail("there are no counters of rank " rank)
        } else if (messages < sent_messages[rank]) {
            fail("that is fewer messages than rank " rank " sent")
        }
        all_messages += messages
        all_bytes += bytes
        all_sent_bytes += sent_bytes[rank]
    }
    if (all_bytes < all_sent_bytes) {
        fail("that is fewer bytes than all ranks sent")
    }
    if (!failed) {
        printf "daqiri carried all of it: %.0f messages, %.0f bytes\n",
               all_messages, all_bytes
    }
    exit failed
}
