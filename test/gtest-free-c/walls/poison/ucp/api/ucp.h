/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <ucp/api/ucp.h>: it knows no UCX"
