# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_UCX
#
# The installed UCX, and a source tree of the same version for the private
# headers that a transport is built from:
#   UCX_VERSION   1.13.1
#   UCX_SOURCE    the source tree, absolute
#   UCX_CPPFLAGS  for code that sees the private headers: config.h first, then
#                 the source tree, then the installed headers, which alone
#                 have the generated uct/api/version.h
#   UCX_PUBLIC_CPPFLAGS  for code that uses UCX's installed API only
#   UCX_LIBS      libucp, libuct and libucs
#
# The private structures change their size with some of UCX's own configure
# options (statistics, assertions), so config.h must be the one UCX was built
# with: `ucx_info -b` prints it. It is copied as it is, since UCX asks with
# defined(): a `#define ENABLE_ASSERT 0` would switch assertions on.

m4_define([dq_ucx_first], [1.13])
m4_define([dq_ucx_beyond], [1.14])

AC_DEFUN([DQ_CHECK_UCX], [
AC_ARG_WITH([ucx-source],
    [AS_HELP_STRING([--with-ucx-source=DIR],
                    [source tree of exactly the installed UCX version, for its private headers (contrib/setup fetches one)])],
    [], [with_ucx_source=])

AC_MSG_CHECKING([for UCX])
AS_IF([$PKG_CONFIG --exists ucx ucx-uct ucx-ucs], [],
    [AC_MSG_ERROR([UCX was not found by pkg-config (on Debian: apt-get install libucx-dev ucx-utils, or set PKG_CONFIG_PATH)])])
UCX_VERSION=`$PKG_CONFIG --modversion ucx`
AC_MSG_RESULT([$UCX_VERSION])

AS_IF([$PKG_CONFIG --atleast-version=dq_ucx_first ucx], [],
    [AC_MSG_ERROR([UCX $UCX_VERSION is older than dq_ucx_first, the first version this transport is built for])])
AS_VERSION_COMPARE([$UCX_VERSION], [dq_ucx_beyond], [],
    [AC_MSG_ERROR([UCX $UCX_VERSION is newer than this transport is tested with: dq_ucx_first up to, not including, dq_ucx_beyond])],
    [AC_MSG_ERROR([UCX $UCX_VERSION is newer than this transport is tested with: dq_ucx_first up to, not including, dq_ucx_beyond])])

AS_IF([test -z "$with_ucx_source" || test "$with_ucx_source" = yes || test "$with_ucx_source" = no],
    [AC_MSG_ERROR([the source tree of UCX $UCX_VERSION is needed for its private headers: --with-ucx-source=DIR (contrib/setup fetches it and says where it is)])])
AS_IF([test -f "$with_ucx_source/src/uct/base/uct_iface.h"], [],
    [AC_MSG_ERROR([$with_ucx_source is not a UCX source tree: it has no src/uct/base/uct_iface.h])])
UCX_SOURCE=`cd "$with_ucx_source" && pwd`

# The tree writes its version as three m4 definitions: major, minor, patch.
AC_MSG_CHECKING([version of the UCX source tree])
dq_ucx_tree=`sed -n 's/.*\@<:@ucx_ver_\(major\|minor\|patch\)\@:>@, *\(@<:@0-9@:>@*\)).*/\2/p' "$UCX_SOURCE/configure.ac" | paste -sd. -`
AC_MSG_RESULT([$dq_ucx_tree])
AS_IF([test "$dq_ucx_tree" = "$UCX_VERSION"], [],
    [AC_MSG_ERROR([the UCX source tree $UCX_SOURCE is version $dq_ucx_tree but the installed UCX is $UCX_VERSION])])

dq_ucx_bindir=`$PKG_CONFIG --variable=bindir ucx`
AC_PATH_PROG([UCX_INFO], [ucx_info], [], [$dq_ucx_bindir$PATH_SEPARATOR$PATH])
AS_IF([test -n "$UCX_INFO"], [],
    [AC_MSG_ERROR([ucx_info was not found; it says how UCX was built (on Debian: apt-get install ucx-utils)])])
AC_MSG_CHECKING([version of ucx_info])
dq_ucx_info=`$UCX_INFO -v | sed -n 's/^# Version \(@<:@0-9.@:>@*\).*/\1/p'`
AC_MSG_RESULT([$dq_ucx_info])
AS_IF([test "$dq_ucx_info" = "$UCX_VERSION"], [],
    [AC_MSG_ERROR([$UCX_INFO belongs to UCX $dq_ucx_info but pkg-config finds UCX $UCX_VERSION])])
AC_CONFIG_COMMANDS([ucx-config/config.h],
    [AS_MKDIR_P([ucx-config])
     "$UCX_INFO" -b > ucx-config/config.h || AC_MSG_ERROR([$UCX_INFO -b failed])],
    [UCX_INFO='$UCX_INFO'])

UCX_PUBLIC_CPPFLAGS=`$PKG_CONFIG --cflags ucx`
UCX_CPPFLAGS="-I\$(abs_top_builddir)/ucx-config -isystem $UCX_SOURCE/src $UCX_PUBLIC_CPPFLAGS"
UCX_LIBS="`$PKG_CONFIG --libs-only-L ucx` -lucp -luct -lucs"
AC_SUBST([UCX_VERSION])
AC_SUBST([UCX_SOURCE])
AC_SUBST([UCX_CPPFLAGS])
AC_SUBST([UCX_PUBLIC_CPPFLAGS])
AC_SUBST([UCX_LIBS])
])
