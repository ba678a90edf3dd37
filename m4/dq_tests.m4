# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_TESTS
#
# What the tests run on: the check library for C, bats for shell. Neither is needed
# to build and install: HAVE_CHECK says whether there are C tests to be built.

AC_DEFUN([DQ_CHECK_TESTS], [
PKG_CHECK_MODULES([CHECK], [check >= 0.15], [have_check=yes], [have_check=no])
AM_CONDITIONAL([HAVE_CHECK], [test "$have_check" = yes])
AC_PATH_PROG([BATS], [bats])
])
