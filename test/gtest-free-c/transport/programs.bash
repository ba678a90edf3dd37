# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# For tests that run the programs of this folder once more, with other settings.

# passes SECONDS PROGRAM: it passes within so many, or times as many in a slow flavour
passes()
{
    run timeout $(($1 * T_TIMEOUT_MULTIPLIER)) \
        "$T_TOP_BUILDDIR/test/gtest-free-c/transport/$2"
    echo "$output"
    [ "$status" -eq 0 ]
}
