# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_SET_FLAVOUR
#
# One option chooses the whole set of compiler flags, so that nobody makes up
# their own. It runs before AC_PROG_CC because that is what gives CFLAGS its
# default; CFLAGS set by the user still win over what is chosen here.
#
#   release  -O2, checks off: what is installed and what is measured
#   debug    -O0, ledger checks on (DQ_DEBUG)
#   asan     address and undefined-behaviour sanitizers, checks on
#   tsan     thread sanitizer, checks on

AC_DEFUN([DQ_SET_FLAVOUR], [
AC_ARG_ENABLE([flavour],
    [AS_HELP_STRING([--enable-flavour=release|debug|asan|tsan],
                    [set of compiler flags (release)])],
    [DQ_FLAVOUR=$enableval],
    [DQ_FLAVOUR=release])

DQ_SAN_CFLAGS=
AS_CASE([$DQ_FLAVOUR],
    [release], [: ${CFLAGS="-O2 -g"}],
    [debug],   [: ${CFLAGS="-O0 -g3"}],
    [asan],    [: ${CFLAGS="-O1 -g -fno-omit-frame-pointer"}
                DQ_SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined"],
    [tsan],    [: ${CFLAGS="-O1 -g -fno-omit-frame-pointer"}
                DQ_SAN_CFLAGS="-fsanitize=thread"],
    [AC_MSG_ERROR([--enable-flavour knows release, debug, asan and tsan, not "$DQ_FLAVOUR"])])
AC_SUBST([DQ_FLAVOUR])
AM_CONDITIONAL([DQ_RELEASE], [test "$DQ_FLAVOUR" = release])
AM_CONDITIONAL([DQ_SANITIZED], [test -n "$DQ_SAN_CFLAGS"])
])
