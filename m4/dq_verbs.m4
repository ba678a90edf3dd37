# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_CHECK_VERBS
#
# libibverbs and its headers: VERBS_LIBS.

AC_DEFUN([DQ_CHECK_VERBS], [
AC_CHECK_HEADER([infiniband/verbs.h], [],
    [AC_MSG_ERROR([infiniband/verbs.h was not found (on Debian: apt-get install libibverbs-dev)])])
AC_CHECK_LIB([ibverbs], [ibv_get_device_list], [VERBS_LIBS=-libverbs],
    [AC_MSG_ERROR([libibverbs was not found (on Debian: apt-get install libibverbs-dev)])])
AC_SUBST([VERBS_LIBS])
])
