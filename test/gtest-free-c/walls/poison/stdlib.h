/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <stdlib.h>: it neither allocates nor ends the process"
