# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_TESTS
#
# What the tests run on: the check library for C, bats for shell.

AC_DEFUN([DQ_CHECK_TESTS], [
PKG_CHECK_MODULES([CHECK], [check >= 0.15], [],
    [AC_MSG_ERROR([the check unit test library was not found (on Debian: apt-get install check)])])
AC_PATH_PROG([BATS], [bats])
])
