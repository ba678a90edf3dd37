/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <uct/api/uct.h>: it knows no UCX"
