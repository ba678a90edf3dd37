/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the UCX of this process, and becoming a transport of it.
 */
#ifndef UCT_DAQIRI_UCX_TABLES_H
#define UCT_DAQIRI_UCX_TABLES_H

#include "ucx_options.h"
#include "ucx_types.h"

/* ---- ucx_find.c ---- */

/* An address in the libuct that @a code of UCX, or of a program, uses; NULL: none
 * is loaded. */
const void *uct_daqiri_ucx_of(const void *code);

/* The same in what every object of the process can see. */
const void *uct_daqiri_ucx_global(void);

/* The function that a libuct exports under this name, or NULL. */
void *uct_daqiri_ucx_symbol(const void *libuct, const char *name);

/* Finds out the version, checks that the libraries are what that version has, and
 * fills uct_daqiri_ucx and uct_daqiri_ucx_layout. Nothing of UCX is written to, or
 * called but what tells its version. Returns 0 if this UCX is none of ours, or not
 * whole, with @a why. */
int uct_daqiri_ucx_find(const void *libuct, char *why, size_t size);

/* Is the UCX that was found at least 1.@a minor? */
int uct_daqiri_ucx_is_since(unsigned minor);

/* ---- ucx_tables.c ---- */

typedef ucs_status_t (*uct_daqiri_ucx_query_mds_t)(uct_component_t *component,
                                                   uct_md_resource_desc_t **md_p,
                                                   unsigned *num_md_p);

/* Another copy of the plugin was faster. */
int uct_daqiri_ucx_is_taken(void);

/* Fills all tables and registers. Returns 0 if memory ran out. */
int uct_daqiri_ucx_register(void);

/* For uct_base_iface_t_init(); the second is opaque. */
extern uct_iface_ops_t uct_daqiri_iface_ops;
extern void *uct_daqiri_iface_internal_ops[];

/* Is what UCX has made of an interface where it is expected? */
int uct_daqiri_ucx_is_sound(const uct_base_iface_t *iface, uct_md_h md,
                            uct_worker_h worker);

#endif
