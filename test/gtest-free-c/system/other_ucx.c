/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says that this is a UCX of another version: what the plugin's guard sees
 * when it is loaded into one.
 */
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release);

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major   = 1;
    *minor   = 99;
    *release = 7;
}
