# SPDX-License-Identifier: BSD-3-Clause
#
# A few of the device tests under valgrind, which sees what the sanitizers do
# not: memory that was never written. All of them: contrib/check --long valgrind.

bats_require_minimum_version 1.5.0

@test "memcheck is content" {
    case $T_FLAVOUR in
        asan | tsan) skip "flavour $T_FLAVOUR: valgrind and sanitizers exclude each other" ;;
    esac
    command -v valgrind >/dev/null || skip 'valgrind is not installed'
    CK_RUN_CASE=limit "$T_TOP_SRCDIR/contrib/check" --long valgrind \
        --build "$T_TOP_BUILDDIR" t_srq
    CK_RUN_CASE=full "$T_TOP_SRCDIR/contrib/check" --long valgrind \
        --build "$T_TOP_BUILDDIR" t_refuse
    CK_RUN_CASE=datagram "$T_TOP_SRCDIR/contrib/check" --long valgrind \
        --build "$T_TOP_BUILDDIR" t_send
}
