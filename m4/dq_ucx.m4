# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_UCX
#
# The installed UCX: its public headers, of any version from dq_ucx_first on. The
# plugin is the same whichever it is, and works with the UCX that a job loads
# (src/uct/daqiri/compat).
#   UCX_VERSION          1.13.1
#   UCX_PUBLIC_CPPFLAGS  for all that sees UCX
#   UCX_LIBS             libucp, libuct and libucs, for tests
#   UCX_SOURCE           a source tree of UCX, of any version, that a test holds
#                        our declarations against; or empty

m4_define([dq_ucx_first], [1.13])

AC_DEFUN([DQ_CHECK_UCX], [
AC_ARG_WITH([ucx-source],
    [AS_HELP_STRING([--with-ucx-source=DIR],
                    [a source tree of UCX to hold the plugin's declarations against, in a test for developers; nothing is built from it])],
    [], [with_ucx_source=])

AC_MSG_CHECKING([for UCX])
AS_IF([$PKG_CONFIG --exists ucx ucx-uct ucx-ucs], [],
    [AC_MSG_ERROR([UCX was not found by pkg-config (on Debian: apt-get install libucx-dev ucx-utils, or set PKG_CONFIG_PATH)])])
UCX_VERSION=`$PKG_CONFIG --modversion ucx`
AC_MSG_RESULT([$UCX_VERSION])

AS_IF([$PKG_CONFIG --atleast-version=dq_ucx_first ucx], [],
    [AC_MSG_ERROR([UCX $UCX_VERSION is older than dq_ucx_first, the first version this transport is built for])])

UCX_SOURCE=
AS_CASE([$with_ucx_source], [''|no], [],
    [AS_IF([test -f "$with_ucx_source/src/uct/base/uct_iface.h"],
        [UCX_SOURCE=`cd "$with_ucx_source" && pwd`],
        [AC_MSG_ERROR([$with_ucx_source is not a UCX source tree: it has no src/uct/base/uct_iface.h])])])

# Not ours to warn of.
UCX_PUBLIC_CPPFLAGS=`$PKG_CONFIG --cflags ucx | sed 's/-I/-isystem /g'`
UCX_LIBS="`$PKG_CONFIG --libs-only-L ucx` -lucp -luct -lucs"
AC_SUBST([UCX_VERSION])
AC_SUBST([UCX_SOURCE])
AC_SUBST([UCX_PUBLIC_CPPFLAGS])
AC_SUBST([UCX_LIBS])
])
