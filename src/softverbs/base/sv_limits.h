/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of the devices and their limits, as ibv_query_device() tells them.
 */
#ifndef SV_LIMITS_H
#define SV_LIMITS_H

#define SV_DEVICE         "softverbs" /* then its number */
#define SV_DEVICE_NAME    SV_DEVICE "0" /* the only one, unless more are asked for */
#define SV_DEVICES_MAX    4
#define SV_DEVICES_ENV    "SOFTVERBS_DEVICES"
#define SV_GID_PLACES     4 /* that a GID can be moved to */
#define SV_GUID           0x0273667462730001ull

/* Limits of the device, as ibv_query_device() tells them. */
enum {
    SV_LIMIT_WR     = 16384, /* depth of a send or receive queue */
    SV_LIMIT_SRQ_WR = 32768, /* depth of a shared receive queue: it serves many QPs */
    SV_LIMIT_SGE    = 16,
    SV_LIMIT_INLINE = 256,
    SV_LIMIT_CQE    = 1 << 17,
    SV_LIMIT_PD     = 1024,
    SV_LIMIT_AH     = 65536,
    SV_LIMIT_RD     = 16,
    SV_UD_MTU       = 4096,
    SV_GRH_BYTES    = 40
};

#define SV_LIMIT_MSG      (1u << 30)

#endif
