/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docs/options.md and daqiri(7) are the option tables of the transport, printed.
 * `t_option_pages --print-md` and `--print-man` print them; the tests compare, and see
 * that every option says something in every cell.
 */
#include "t.h"
#include "base/daqiri_config.h"
#include "base/daqiri_log.h"

#include <stdio.h>
#include <string.h>

/* What is read from the environment and is no option of UCX's. */
typedef struct {
    const char *name, *value, *help;
} variable_t;

static const variable_t variables[] = {
    {"DAQIRI_STATS_DIR", "folder",
     "Each interface writes its counters to a file in this folder when it closes."},
    {"DAQIRI_UCX_ANY", "1",
     "Also use a UCX that daqiri does not know, or whose version and libraries "
     "contradict each other. If that UCX has changed what daqiri relies on, the job "
     "crashes, hangs or gets wrong keys."},
    {"SOFTVERBS_DEVICES", "1 to 4",
     "How many software devices there are: softverbs0, softverbs1 and so on. Without it "
     "there is one. daqiri run --rails sets it."},
    {"SOFTVERBS_FAULTS", "plan, or @file",
     "What goes wrong in the software device, see daqiri-faults(1)."},
    {"SOFTVERBS_FAULTS_LOG", "file",
     "The file to which the software device appends what it has made fail."},
    {"SOFTVERBS_PROCESS", "number",
     "The number of this process in plans of faults. Without it the number is the rank."},
};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

/* What a value looks like, as in the column "value". NULL: the row stands for options
 * of UCX's own. */
static const char *const values[UCT_DAQIRI_OPTION_LAST] = {
    [UCT_DAQIRI_OPTION_UINT]        = "number",
    [UCT_DAQIRI_OPTION_GID]         = "number or auto",
    [UCT_DAQIRI_OPTION_BOOL]        = "y or n",
    [UCT_DAQIRI_OPTION_ON_OFF_AUTO] = "on, off or auto",
    [UCT_DAQIRI_OPTION_TIME]        = "time",
    [UCT_DAQIRI_OPTION_TIME_UNITS]  = "time or auto",
    [UCT_DAQIRI_OPTION_SECONDS]     = "time or auto",
    [UCT_DAQIRI_OPTION_MEMUNITS]    = "size",
    [UCT_DAQIRI_OPTION_COUNT]       = "number, auto or inf",
    [UCT_DAQIRI_OPTION_ULUNITS]     = "number or inf",
};

static const struct {
    const char                *prefix, *title, *about;
    const uct_daqiri_option_t *options;
} tables[] = {
    {"UCX_DAQIRI_", "Connections and messages",
     "Each interface reads these when a job opens it.", uct_daqiri_iface_options},
    {"UCX_DAQIRI_MD_", "Registered memory", "The memory domain reads these.",
     uct_daqiri_md_options},
};

enum { TABLES = sizeof(tables) / sizeof(tables[0]) };


/* The table refers to it, and nothing here calls what does. */
void uct_daqiri_log(ucs_log_level_t level, const dq_facts_t *facts)
{
    (void)level;
    (void)facts;
}


static int is_ours(const uct_daqiri_option_t *option)
{
    return values[option->kind] != NULL;
}


/* The lines of the table end where ucx_info breaks them. */
static void print_joined(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        fputc((*text == '\n') ? ' ' : *text, out);
    }
}


/* --- docs/options.md */

static const char md_head[] =
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
        "# Options\n"
        "\n"
        "For users who run jobs over daqiri and want to change what it does. Most jobs "
        "need none of these.\n"
        "\n"
        "Every option is an environment variable. Set it to the same value in all ranks; "
        "`daqiri run` hands on what is set. With a value\n"
        "outside of its range the transport does not start, and a sentence names the "
        "option and the range. The options of the daqiri that\n"
        "is installed, with their values:\n"
        "\n"
        "```sh\n"
        "daqiri run ucx_info -c -f\n"
        "```\n"
        "\n"
        "A time is a number with `ns`, `us`, `ms` or `s`. A size is a number of bytes, "
        "or one with `k`, `m` or `g`, powers of 1024.\n"
        "[tuning.md](tuning.md) says which option to try for which purpose.\n";

static const char md_variables[] =
        "\n"
        "## Other environment variables\n"
        "\n"
        "| variable | value | what it does |\n"
        "|---|---|---|\n";

static const char md_foot[] =
        "\n"
        "UCX gives every transport some options of its own, such as "
        "`UCX_DAQIRI_MAX_NUM_EPS`. They differ between versions of UCX;\n"
        "`ucx_info` lists them, too.\n"
        "\n"
        "This page and daqiri(7) are printed from the tables in "
        "`src/uct/daqiri/base/daqiri_config.c`, and a test compares them. After a\n"
        "change, in the build folder:\n"
        "\n"
        "<!-- not run: it writes this page -->\n"
        "```sh\n"
        "make -C test/gtest-free-c/unit print-options\n"
        "```\n";


static void
md_option(FILE *out, const char *prefix, const uct_daqiri_option_t *option)
{
    fprintf(out, "| `%s%s` | `%s` | %s | ", prefix, option->name, option->preset,
            values[option->kind]);
    print_joined(out, option->help);
    fputs(" |\n", out);
}


static void md_table(FILE *out, size_t i)
{
    const uct_daqiri_option_t *option;

    fprintf(out, "\n## %s\n\n%s\n\n", tables[i].title, tables[i].about);
    fputs("| option | default | value | what it does |\n|---|---|---|---|\n", out);
    for (option = tables[i].options; option->name != NULL; option++) {
        if (is_ours(option)) {
            md_option(out, tables[i].prefix, option);
        }
    }
}


static void print_md(FILE *out)
{
    size_t i;

    fputs(md_head, out);
    for (i = 0; i < TABLES; i++) {
        md_table(out, i);
    }
    fputs(md_variables, out);
    for (i = 0; i < VARIABLES; i++) {
        fprintf(out, "| `%s` | %s | %s |\n", variables[i].name, variables[i].value,
                variables[i].help);
    }
    fputs(md_foot, out);
}


/* --- man/daqiri.7 */

static const char man_head[] =
        ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
        ".\\\" Printed from daqiri_config.c: make -C test/gtest-free-c/unit "
        "print-options\n"
        ".TH DAQIRI 7 \"\" \"ucx-daqiri\" \"Miscellaneous Information\"\n"
        ".SH NAME\n"
        "daqiri \\- options of the UCX transport daqiri\n"
        ".SH DESCRIPTION\n"
        "daqiri is an RDMA transport for UCX.\n"
        "Environment variables change what it does.\n"
        "Set them to the same values in all ranks of a job.\n"
        "With a value outside of its range the transport does not start, and a sentence "
        "names the option and the range.\n"
        ".PP\n"
        "A time is a number with ns, us, ms or s.\n"
        "A size is a number of bytes, or one with k, m or g, powers of 1024.\n";

static const char man_foot[] =
        ".SH EXAMPLES\n"
        ".EX\n"
        "# the options of the daqiri that is installed, with their values\n"
        "daqiri run ucx_info \\-c \\-f\n"
        "\n"
        "# give up a peer that has died after 5 s, and not after 30 s\n"
        "UCX_DAQIRI_RECOVERY_TIMEOUT=5s daqiri run mpirun \\-np 2 ./a.out\n"
        ".EE\n"
        ".SH SEE ALSO\n"
        ".BR daqiri (1),\n"
        ".BR daqiri\\-run (1)\n";


/* As groff reads a text of ours: a dash is a minus, and a dot that begins a line would
 * be a request. */
static void man_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if ((*text == '-') || (*text == '\\')) {
            fputs((*text == '-') ? "\\-" : "\\e", out);
        } else {
            fputc((*text == '\n') ? ' ' : *text, out);
        }
    }
    fputc('\n', out);
}


static void
man_option(FILE *out, const char *prefix, const uct_daqiri_option_t *option)
{
    fprintf(out, ".TP\n.BR %s%s \" (%s; %s)\"\n", prefix, option->name,
            values[option->kind], option->preset);
    man_text(out, option->help);
}


static void man_table(FILE *out, size_t i)
{
    const uct_daqiri_option_t *option;

    fprintf(out, ".SH \"%s\"\n%s\n", tables[i].title, tables[i].about);
    fputs("In brackets: what a value is; the default.\n", out);
    for (option = tables[i].options; option->name != NULL; option++) {
        if (is_ours(option)) {
            man_option(out, tables[i].prefix, option);
        }
    }
}


static void print_man(FILE *out)
{
    size_t i;

    fputs(man_head, out);
    for (i = 0; i < TABLES; i++) {
        man_table(out, i);
    }
    fputs(".SH \"Other environment variables\"\n", out);
    for (i = 0; i < VARIABLES; i++) {
        fprintf(out, ".TP\n.BR %s \" (%s)\"\n", variables[i].name, variables[i].value);
        man_text(out, variables[i].help);
    }
    fputs(man_foot, out);
}


/* --- tests */

START_TEST(test_options_md)
{
    t_check_page(T_OPTIONS_MD, print_md, "print-options");
}
END_TEST


START_TEST(test_daqiri_7)
{
    t_check_page(T_DAQIRI_7, print_man, "print-options");
}
END_TEST


/* Each option says something in every cell, and spoils no table. */
START_TEST(test_cells)
{
    const uct_daqiri_option_t *option;
    unsigned count = 0;
    size_t i;

    for (i = 0; i < TABLES; i++) {
        for (option = tables[i].options; option->name != NULL; option++) {
            ck_assert_int_lt(option->kind, UCT_DAQIRI_OPTION_LAST);
            if (!is_ours(option)) {
                ck_assert_msg(option->name[0] == '\0', "%s has no kind of value",
                              option->name);
                continue;
            }
            ck_assert_msg((option->preset[0] != '\0') && (option->help[0] != '\0') &&
                          (strchr(option->help, '|') == NULL) &&
                          (strchr(option->preset, '|') == NULL), "%s", option->name);
            count++;
        }
    }
    ck_assert_uint_gt(count, 30);
}
END_TEST


static Suite *suite_option_pages(void)
{
    return t_suite("option_pages", "pages", test_options_md, "pages", test_daqiri_7,
                   "pages", test_cells, NULL);
}


int main(int argc, char **argv)
{
    const t_suite_func_t suites[] = {suite_option_pages};

    if ((argc == 2) && (strcmp(argv[1], "--print-md") == 0)) {
        print_md(stdout);
        return 0;
    }
    if ((argc == 2) && (strcmp(argv[1], "--print-man") == 0)) {
        print_man(stdout);
        return 0;
    }
    return t_main(suites, 1);
}
