/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <ucs/time/time.h>: it knows no UCX"
