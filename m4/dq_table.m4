# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_TABLE
#
# The library that lays out tables for the command daqiri, as those of lsblk and findmnt of
# util-linux: it knows the width of the terminal and of characters.
# SMARTCOLS_CFLAGS, SMARTCOLS_LIBS.

AC_DEFUN([DQ_CHECK_TABLE], [
PKG_CHECK_MODULES([SMARTCOLS], [smartcols >= 2.30], [],
    [AC_MSG_ERROR([libsmartcols was not found (on Debian: apt-get install libsmartcols-dev)])])
])
