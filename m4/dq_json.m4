# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_JSON
#
# The library that writes and reads JSON for the command daqiri:
# JANSSON_CFLAGS, JANSSON_LIBS.

AC_DEFUN([DQ_CHECK_JSON], [
PKG_CHECK_MODULES([JANSSON], [jansson >= 2.10], [],
    [AC_MSG_ERROR([jansson was not found (on Debian: apt-get install libjansson-dev)])])
])
