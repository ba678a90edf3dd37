/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Options of the subcommands that measure and look: glibc's argp reads them,
 * writes --help from the same table, and says what is wrong. An option is
 * written with two dashes, --json; one dash is for letters.
 *
 * A mistake ends the program at once with one sentence on stderr and
 * DAQIRI_EXIT_USAGE, so nothing may be owned yet that has to be given back.
 */

#ifndef DAQIRI_ARGS_H
#define DAQIRI_ARGS_H

#include "tools/base/report.h"

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

/* Keys of the options that have no letter; each subcommand counts on from the
 * last one. */
#define DAQIRI_ARGS_JSON  0x100
#define DAQIRI_ARGS_CSV   0x101
#define DAQIRI_ARGS_USAGE 0x102
#define DAQIRI_ARGS_COLUMNS 0x103
#define DAQIRI_ARGS_OWN   0x110

/* For the children of a subcommand's argp: --help. It needs no input. */
extern const struct argp daqiri_args_help;

/* For the children of a subcommand's argp: --json, --csv, --help. Its input is
 * the daqiri_format_t to be set (see daqiri_args_parse). */
extern const struct argp daqiri_args_output;

/* The same and --columns, for who prints tables (daqiri_args_check_columns). */
extern const struct argp daqiri_args_table;

/*
 * Reads all arguments. `opts` is handed to argp->parser as state->input; the
 * parser sets state->child_inputs[0] to a daqiri_format_t at ARGP_KEY_INIT.
 * Words that are no options are refused unless the parser takes them.
 */
void daqiri_args_parse(const struct argp *argp, int argc, char **argv,
                       void *opts);

/* The same, and what follows the first word that is no option is not looked at: the
 * parser is handed that word, and moves state->next to the end. */
void daqiri_args_parse_command(const struct argp *argp, int argc, char **argv,
                               void *opts);

/* A usage error if --columns names one that these sections do not have. */
void daqiri_args_check_columns(const char *speaker, daqiri_format_t format,
                               const daqiri_section_t *sections, size_t count);

/* Values; `name` is the option's, for the sentence. min and max are allowed. */
size_t daqiri_args_size(struct argp_state *state, const char *name,
                        const char *text, size_t min, size_t max);
uint64_t daqiri_args_count(struct argp_state *state, const char *name,
                           const char *text, uint64_t min, uint64_t max);
/* As people write it, such as "0.000001 to 1000000" in the sentence. */
double daqiri_args_number(struct argp_state *state, const char *name,
                          const char *text, double min, double max);
double daqiri_args_duration(struct argp_state *state, const char *name,
                            const char *text);

/* Of --interval: 100 ms at least. */
double daqiri_args_interval(struct argp_state *state, const char *text);

/* Any word but an empty one. Returns text. */
const char *daqiri_args_name(struct argp_state *state, const char *name,
                             const char *text);

/* Which of these words it is. */
int daqiri_args_word(struct argp_state *state, const char *name,
                     const char *text, const char *const *words, size_t count);

/* Of --user: a name, or a number that need not have one. */
uint32_t daqiri_args_user(struct argp_state *state, const char *text);

#endif
