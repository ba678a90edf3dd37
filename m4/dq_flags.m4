# SPDX-License-Identifier: BSD-3-Clause
#
# DQ_SET_FLAGS
#
# Flags that every object of this tree is compiled with, on top of CFLAGS:
#   DQ_CPPFLAGS  dialect of libc, version, DQ_DEBUG (defined or not at all)
#   DQ_CFLAGS    warnings, language, sanitizer
#   DQ_SOFLAGS   link flags of a shared object
#   T_*          what a sanitizer asks of the tests (see t-env.in)

AC_DEFUN([DQ_SET_FLAGS], [
AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--disable-werror],
                    [do not turn warnings into errors (for packagers)])],
    [], [enable_werror=yes])

DQ_CPPFLAGS="-D_GNU_SOURCE -DDAQIRI_VERSION='\"$PACKAGE_VERSION\"'"
AS_IF([test "$DQ_FLAVOUR" != release],
      [DQ_CPPFLAGS="$DQ_CPPFLAGS -DDQ_DEBUG=1"])

# clang warns of the {NULL} that ends UCX's tables; gcc knows the idiom.
DQ_CFLAGS="-std=gnu11 -Wall -Wextra -Wno-missing-field-initializers"
AS_IF([test "$enable_werror" != no], [DQ_CFLAGS="$DQ_CFLAGS -Werror"])
AS_IF([test -n "$DQ_SAN_CFLAGS"], [DQ_CFLAGS="$DQ_CFLAGS $DQ_SAN_CFLAGS"])

# A shared object with a symbol nobody defines would fail in the user's job
# instead of here. clang keeps the sanitizer's symbols in the program only, so
# a sanitized build cannot ask for this.
DQ_SOFLAGS=
AS_IF([test -z "$DQ_SAN_CFLAGS"], [DQ_SOFLAGS="-Wl,-z,defs"])

# A program that was not built with the sanitizer can load an object that was
# only if the sanitizer's own library comes first.
T_SAN_PRELOAD=
T_TIMEOUT_MULTIPLIER=1
AS_CASE([$DQ_FLAVOUR],
    [asan], [T_SAN_PRELOAD="`$CC -print-file-name=libasan.so` `$CC -print-file-name=libubsan.so`"
             T_TIMEOUT_MULTIPLIER=4],
    [tsan], [T_SAN_PRELOAD=`$CC -print-file-name=libtsan.so`
             T_TIMEOUT_MULTIPLIER=8])

AC_SUBST([DQ_CPPFLAGS])
AC_SUBST([DQ_CFLAGS])
AC_SUBST([DQ_SOFLAGS])
AC_SUBST([T_SAN_PRELOAD])
AC_SUBST([T_TIMEOUT_MULTIPLIER])
])
