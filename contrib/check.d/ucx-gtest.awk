# SPDX-License-Identifier: BSD-3-Clause
#
# awk -f ucx-gtest.awk KNOWN SKIPS LOG
#
# Sums up a run of UCX's test suite. KNOWN has a line for each test that is
# known to fail, SKIPS for those that do not apply: the name without the number
# of its device, or a pattern with * and ?, then the reason. Fails unless
# exactly those fail that are known, and those skip that do not apply, of all
# that ran. A reason in KNOWN may begin with "Soft-RoCE of 6.12:": then the test
# is known to fail on that device, from this kernel on; with "6.12, sometimes:" it
# may pass there, too. A log of that device has a line "kernel RELEASE". A test has several names of devices and variants: it counts as
# skipped where none of them ran.

function name_of(test)
{
    sub(/,.*/, "", test)
    sub(/\/[0-9]+$/, "", test)
    return test
}

function regex_of(pattern)
{
    gsub(/[.]/, "[.]", pattern)
    gsub(/[*]/, ".*", pattern)
    gsub(/[?]/, ".", pattern)
    return "^" pattern "$"
}

function lines_of(text)
{
    return gsub(/\n/, "\n", text)
}

# The list's pattern for this name, or "".
function listed(name,    pattern)
{
    for (pattern in applies_not)
        if (name ~ applies_not[pattern])
            return pattern
    return ""
}

# 6012 of 6.12.117
function number_of(release,    part)
{
    split(release, part, /[.:,+-]/)
    return part[1] * 1000 + part[2]
}

FILENAME == ARGV[1] {
    if ($0 !~ /^#/ && NF > 0) {
        known[$1] = substr($0, length($1) + 2)
        if (known[$1] ~ /^Soft-RoCE of [0-9]/)
            since[$1] = number_of($4)
        if ($5 == "sometimes:")
            may_pass[$1] = 1
    }
    next
}

FILENAME == ARGV[2] {
    if ($0 !~ /^#/ && NF > 0) {
        applies_not[$1] = regex_of($1)
        sometimes[$1]   = $2 == "sometimes:"
        if (NF < 2) {
            print "FAILED: " $1 " is listed as skipped without a reason"
            failed++
        }
    }
    next
}

/^kernel [0-9]/ { kernel = number_of($2) }

/^\[ RUN      \]/ { skipped = 0; why = ""; told = "" }
/^\[ *SKIP *\]/   { skipped = 1; why = substr($0, 14) }

# What the suite says of a failure: an expectation, then the lines of its values; or
# the warnings and errors that it counted.
/: Failure$/ { telling = 5 }
/^\[/       { telling = /^\[ *INFO *\] < / && told ~ /errors and/ }
telling > 0 && lines_of(told) < 20 {
    told = told "    " $0 "\n"
    telling--
}

/^\[       OK \]/ {
    name = name_of($4)
    if (skipped) {
        skips++
        skip[name] = why
    } else {
        passed++
        good[name] = 1
    }
}

/^\[  FAILED  \] .* \([0-9]+ ms\)/ {
    bad[name_of($4)]++
    reason[name_of($4)] = told
}

END {
    for (name in since)
        if (kernel < since[name]) # 0: on softverbs
            delete known[name]
    for (name in bad) {
        if (name in known) {
            expected += bad[name]
            continue
        }
        print "FAILED: " name
        printf "%s", reason[name]
        failed += bad[name]
    }
    for (name in known)
        if ((name in good) && !(name in bad) && !(name in may_pass)) {
            print "FAILED: " name " passes, but is listed as: " known[name]
            failed++
        }
    for (name in skip)
        if (listed(name) == "") {
            print "FAILED: " name " skips, for no reason that is listed:" \
                skip[name]
            failed++
        }
    for (name in good)
        if (!(name in skip) && listed(name) != "" &&
            !sometimes[listed(name)]) {
            print "FAILED: " name " runs, but is listed as one that skips"
            failed++
        }
    if (passed + failed + expected + skips == 0)
        print "FAILED: no test has such a name (the names end with /0 or *)"
    printf "%d passed, %d failed, %d failed as known, %d skipped with a " \
        "reason\n", passed, failed, expected, skips
    exit failed > 0 || passed == 0
}
