/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control verbs that can be made to fail on purpose.
 */
#ifndef SV_VERB_H
#define SV_VERB_H

enum sv_verb {
    SV_VERB_ANY,
    SV_VERB_OPEN_DEVICE,
    SV_VERB_QUERY_DEVICE,
    SV_VERB_QUERY_PORT,
    SV_VERB_QUERY_GID,
    SV_VERB_ALLOC_PD,
    SV_VERB_REG_MR,
    SV_VERB_CREATE_AH,
    SV_VERB_CREATE_COMP_CHANNEL,
    SV_VERB_CREATE_CQ,
    SV_VERB_RESIZE_CQ,
    SV_VERB_CREATE_SRQ,
    SV_VERB_MODIFY_SRQ,
    SV_VERB_CREATE_QP,
    SV_VERB_MODIFY_QP,
    SV_VERB_QUERY_QP
};

#endif
