/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <pthread.h>: its callers hold the lock"
