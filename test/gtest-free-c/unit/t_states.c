/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docs/states.md is the table of dq_conn, printed. `t_states --print` prints
 * it; the test compares.
 */
#include "t.h"
#include "dq/dq_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
        "# States of a connection\n"
        "\n"
        "Printed from the table in `src/dq/dq_conn.c`; a test holds it to "
        "that. After a\nchange of the table, in the build folder:\n"
        "\n"
        "    make -C test/gtest-free-c/unit print-states\n"
        "\n"
        "What the states and events are is said in `src/dq/dq_conn.h`. A cell "
        "names the\nnext state, if it is another one, and the actions, in the "
        "order in which they\nare performed. \"count\" counts a frame that "
        "changed nothing.\n";


static void print_actions(FILE *out, uint32_t actions)
{
    const char *comma = "";
    uint32_t bit;

    for (bit = 1; bit < DQ_ACT_LAST_BIT; bit <<= 1) {
        if (actions & bit) {
            fprintf(out, "%s%s", comma, dq_conn_action_name(bit));
            comma = ", ";
        }
    }
}


static void print_cell(FILE *out, dq_conn_state_t state, dq_conn_event_t event)
{
    dq_conn_cell_t cell = dq_conn_cell(state, event);

    fprintf(out, "| %s | %s | ", dq_conn_event_name(event),
            (cell.next == state) ? "" : dq_conn_state_name(cell.next));
    print_actions(out, cell.actions);
    fprintf(out, " |\n");
}


static void print_table(FILE *out)
{
    int state, event;

    fputs(head, out);
    for (state = 0; state < DQ_CONN_STATE_LAST; state++) {
        fprintf(out, "\n## %s\n\n| event | next | actions |\n|---|---|---|\n",
                dq_conn_state_name((dq_conn_state_t)state));
        for (event = 0; event < DQ_EV_LAST; event++) {
            print_cell(out, (dq_conn_state_t)state, (dq_conn_event_t)event);
        }
    }
}


START_TEST(test_states_md)
{
    t_check_page(T_STATES_MD, print_table, "print-states");
}
END_TEST


static Suite *suite_states(void)
{
    return t_suite("states", "page", test_states_md, NULL);
}


int main(int argc, char **argv)
{
    const t_suite_func_t suites[] = {suite_states};

    if ((argc == 2) && (strcmp(argv[1], "--print") == 0)) {
        print_table(stdout);
        return 0;
    }
    return t_main(suites, 1);
}
