/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/daqiri_draw.h"

#include <sys/random.h>


ucs_status_t uct_daqiri_draw(uct_daqiri_log_limit_t *limit, void *bytes,
                             size_t length)
{
    ssize_t ret;

    /* up to 256 bytes the kernel gives all of them or none */
    do {
        ret = getrandom(bytes, length, 0);
    } while ((ret < 0) && (errno == EINTR));
    if (ret != (ssize_t)length) {
        uct_daqiri_log_verb_rarely(limit, UCS_LOG_LEVEL_ERROR, UCT_DAQIRI_NAME,
                                   "getrandom", (ret < 0) ? errno : EIO);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}
