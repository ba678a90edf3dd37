/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of hooks of a device without faults. */
#include "softverbs/objects/sv_hooks.h"

__attribute__((weak)) const struct sv_hooks sv_hooks = {0};

atomic_bool sv_hooks_active;
