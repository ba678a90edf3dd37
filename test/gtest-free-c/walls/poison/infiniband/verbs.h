/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <infiniband/verbs.h>: it knows no device"
