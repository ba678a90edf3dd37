# SPDX-License-Identifier: BSD-3-Clause
#
# awk -v name=NAME -v sums=FILE -f merge.awk: makes the TAP of one program part
# of a greater whole. Results lose their number and their description gets the
# program's name in front; the plan is left out; all else becomes a comment.
# FILE gets the numbers of results, of failed ones, and of planned ones ("none"
# where no plan was printed).

BEGIN { planned = "none" }

/^(not )?ok([ \t]|$)/ {
    ran++
    result = /^not/ ? "not ok" : "ok"
    if (result == "not ok" && !/#[ \t]*[Tt][Oo][Dd][Oo]/)
        failed++
    sub(/^(not )?ok[ \t]*[0-9]*[ \t]*(- *)?/, "")
    print result " - " name ": " $0
    fflush()
    next
}

/^1\.\.[0-9]+/ {
    planned = substr($1, 4)
    if (planned == 0) {
        sub(/^1\.\.0[ \t]*/, "")
        print "ok - " name " " $0
        fflush()
    }
    next
}

/^Bail out!/ {
    failed++
    print "not ok - " name ": " $0
    fflush()
    next
}

{
    sub(/^#? ?/, "# ")
    print
    fflush()
}

END { print ran + 0, failed + 0, planned > sums }
