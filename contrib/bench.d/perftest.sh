# SPDX-License-Identifier: BSD-3-Clause
#
# Read by what runs ucx_perftest: one that was built with an MPI takes itself for one
# of its jobs, without a terminal, unless it is told.
# shellcheck shell=bash disable=SC2034

ucx_perftest=(ucx_perftest)
! ucx_perftest -h 2>&1 </dev/null | grep -q -- '-P <0|1>' || ucx_perftest+=(-P 0)
