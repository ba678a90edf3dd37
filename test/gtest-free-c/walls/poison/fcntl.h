/* SPDX-License-Identifier: BSD-3-Clause */
#error "src/dq is pure and must not include <fcntl.h>: it does no input or output"
