# SPDX-License-Identifier: BSD-3-Clause
#
# What tests share that meet more than one UCX, or another libibverbs; they load it.
# shellcheck shell=bash

# The one that programs are given: the system's, or that of contrib/check-ucx
# shellcheck disable=SC2034
libuct=${T_UCX_LIB:+$T_UCX_LIB/libuct.so.0}
[ -n "$libuct" ] || libuct=$(ldconfig -p | sed -n 's|.*libuct\.so\.0 .*=> ||p' | head -n 1)

# is_since VERSION: this UCX is that or newer
is_since()
{
    [ "$(printf '%s\n' "$1" "$T_UCX_VERSION" | sort -V | head -n 1)" = "$1" ]
}

# has_module_path: UCX looks for modules where it is told to, from 1.22 on
has_module_path()
{
    is_since 1.22
}

# other_verbs NAME: a libibverbs in $PWD/verbs that calls what it has as NAME otherwise
other_verbs()
{
    local from

    from=$(ldconfig -p | sed -n 's|.*libibverbs\.so\.1 .*=> ||p' | head -n 1)
    mkdir -p verbs
    sed "s/$1\x00/${1%?}#\x00/g" "$from" > verbs/libibverbs.so.1
    ! cmp -s "$from" verbs/libibverbs.so.1
}
