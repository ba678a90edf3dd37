/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is the UCX that this process has loaded the one that the plugin was built
 * for? Asked before any of UCX's structures is trusted: a plugin of another
 * version crashes UCX when it registers.
 */
#include "../daqiri.h"

#include <ucp/api/ucp.h>


/* Build options (statistics) change the size of these. */
static int uct_daqiri_compat_fits_sizes(void)
{
    return (uct_base_iface_t_class.size == sizeof(uct_base_iface_t)) &&
           (uct_base_ep_t_class.size == sizeof(uct_base_ep_t));
}


int uct_daqiri_compat_fits(char *why, size_t size)
{
    int fits = uct_daqiri_compat_fits_sizes();
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    snprintf(why, size, "built for UCX %d.%d, loaded into UCX %u.%u.%u%s",
             UCT_VERNO_MAJOR, UCT_VERNO_MINOR, major, minor, release,
             fits ? "" : " with other build options");
    return fits && (major == UCT_VERNO_MAJOR) && (minor == UCT_VERNO_MINOR);
}
