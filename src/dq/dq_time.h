/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converts the two times of a QP between seconds and the codes that verbs take,
 * 0 to 31. Code 0 is a trap: as an RNR timer it means 655.36 ms, as an ACK timeout
 * it means for ever.
 *
 * Sources: IBA 9.7.5.2.8 (RNR NAK timer, table 45), 9.7.6.1.3 (ACK timeout).
 */
#ifndef DQ_TIME_H
#define DQ_TIME_H

#include "dq.h"

enum {
    DQ_ACK_TIMEOUT_MIN = 1,
    DQ_ACK_TIMEOUT_MAX = 31,
    DQ_RNR_TIMER_CODES = 32
};

/* The smallest code whose time is not below @a seconds; the longest if none. */
uint8_t dq_ack_timeout_code(double seconds);
double dq_ack_timeout_seconds(uint8_t code);

/* The same; the code 0 only if its 655.36 ms are asked for. */
uint8_t dq_rnr_timer_code(double seconds);
double dq_rnr_timer_seconds(uint8_t code);

#endif
