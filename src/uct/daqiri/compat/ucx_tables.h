/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the UCX of this process, and registers the transport with it.
 */
#ifndef UCT_DAQIRI_UCX_TABLES_H
#define UCT_DAQIRI_UCX_TABLES_H

#include "ucx_options.h"
#include "ucx_types.h"

/* ---- ucx_find.c ---- */

/* An address in the libuct that @a code, of UCX or of a program, uses. NULL if none is
 * loaded. */
const void *uct_daqiri_ucx_of(const void *code);

/* The same for the libuct that every object of the process sees. */
const void *uct_daqiri_ucx_global(void);

/* The function that a libuct exports under this name, or NULL. */
void *uct_daqiri_ucx_symbol(const void *libuct, const char *name);

/* Finds out the version, checks that the libraries belong to it, and fills uct_daqiri_ucx
 * and uct_daqiri_ucx_layout. Writes nothing of UCX's, and calls only the function that
 * tells the version. Returns 0, with the reason in @a why, if the plugin does not know
 * this UCX or it is not complete. */
int uct_daqiri_ucx_find(const void *libuct, char *why, size_t size);

/* Is the UCX that was found at least 1.@a minor? */
int uct_daqiri_ucx_is_since(unsigned minor);

/* ---- ucx_tables.c ---- */

typedef ucs_status_t (*uct_daqiri_ucx_query_mds_t)(uct_component_t *component,
                                                   uct_md_resource_desc_t **md_p,
                                                   unsigned *num_md_p);

/* Whether another copy of the plugin has registered already. */
int uct_daqiri_ucx_is_taken(void);

/* Fills all tables and registers. Returns 0 if memory ran out. */
int uct_daqiri_ucx_register(void);

/* For uct_base_iface_t_init(); the second is opaque. */
extern uct_iface_ops_t uct_daqiri_iface_ops;
extern void *uct_daqiri_iface_internal_ops[];

/* Whether UCX has filled an interface where the plugin expects it. */
int uct_daqiri_ucx_is_sound(const uct_base_iface_t *iface, uct_md_h md,
                            uct_worker_h worker);

#endif
