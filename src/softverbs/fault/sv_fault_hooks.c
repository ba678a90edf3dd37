/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks of a device with faults: takes the place of the core's empty
 * table. */
#include "softverbs/fault/sv_fault.h"

const struct sv_hooks sv_hooks = {
    .open        = sv_fault_open,
    .node_up     = sv_fault_node_up,
    .node_down   = sv_fault_node_down,
    .orphan      = sv_fault_orphan,
    .rung        = sv_control_answer,
    .tick        = sv_fault_tick,
    .verb        = sv_fault_verb,
    .qp_number   = sv_fault_qp_number,
    .qp_attach   = sv_fault_qp_attach,
    .qp_detach   = sv_fault_qp_detach,
    .refuse_send = sv_fault_refuse_send,
    .refuse_recv = sv_fault_refuse_recv,
    .execute     = sv_fault_execute,
    .tx_reset    = sv_fault_tx_reset,
    .receive     = sv_fault_receive
};
