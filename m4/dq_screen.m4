# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_SCREEN
#
# The library that moves the cursor of any terminal and reads its keys, for daqiri top:
# NCURSES_CFLAGS, NCURSES_LIBS.

AC_DEFUN([DQ_CHECK_SCREEN], [
PKG_CHECK_MODULES([NCURSES], [ncurses], [],
    [AC_MSG_ERROR([ncurses was not found (on Debian: apt-get install libncurses-dev)])])
])
