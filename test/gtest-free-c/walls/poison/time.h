/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <time.h>: time comes in as an argument"
