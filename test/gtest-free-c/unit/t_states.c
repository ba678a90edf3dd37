/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docs/states.md is the tables of dq_life, dq_qp and dq_conn, printed. `t_states
 * --print` prints it; the test compares.
 */
#include "t.h"
#include "dq/dq_conn.h"
#include "dq/dq_idle.h"
#include "dq/dq_life.h"
#include "dq/dq_pace.h"
#include "dq/dq_qp.h"
#include "dq/dq_recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
        "# States of a connection and of its queue pair\n"
        "\n"
        "For developers of the transport, and for readers of its log.\n"
        "\n"
        "Printed from the tables in `src/dq/dq_life.c`, `src/dq/dq_qp.c`, "
        "`src/dq/dq_recall.c`, `src/dq/dq_idle.c`,\n`src/dq/dq_pace.c` and "
        "`src/dq/dq_conn.c`; a test holds it to them. After a change of a table,\nin "
        "the build folder:\n"
        "\n"
        "<!-- not run: it writes this page -->\n"
        "```sh\n"
        "make -C test/gtest-free-c/unit print-states\n"
        "```\n"
        "\n"
        "Three machines, and one writer each. The **connection** is what UCP "
        "believes in; its thread is the\none that calls progress. Its **queue "
        "pair** is what the NIC has; a connection may go through\nseveral, and "
        "each begins anew. The **handshake** makes and connects queue pairs, on "
        "the async\nthread. They tell each other by messages: each names what "
        "has happened, and carries what the\nother has to know.\n"
        "\n"
        "What the states and events mean is said in the header beside each "
        "table.\n";

static const char life_head[] =
        "\n## The connection\n"
        "\n"
        "A cell names the next state; \".\" is the same state. An empty cell "
        "cannot be reached.\n\n";

static const char qp_head[] =
        "\n## The queue pair\n"
        "\n"
        "A cell names the next state and, after a colon, what is to be done. "
        "\".\" is the same state. An\nempty cell cannot be reached.\n\n";

static const char recall_head[] =
        "\n## Credits that are asked back\n"
        "\n"
        "Of each connection, for the window of its peer. A cell names the next "
        "state. An empty cell cannot\nbe reached.\n\n";

static const char pace_head[] =
        "\n## Places of those that ask\n"
        "\n"
        "Of each connection, on the async thread. A cell names the next state; "
        "\".\" is the same state. An\nempty cell cannot be reached.\n\n";

static const char idle_head[] =
        "\n## Queue pairs that are idle\n"
        "\n"
        "Of each connection: the two ends agree to close its queue pair. A cell "
        "names the next state. An empty\ncell cannot be reached, or the peer "
        "breaks the rules.\n\n";

static const char conn_head[] =
        "\n## The handshake\n"
        "\n"
        "One table for each state. A cell names the next state, if it is "
        "another one, and the actions, in\nthe order in which they are "
        "performed. \"count\" counts a frame that changed nothing.\n";


static void print_heads(FILE *out, unsigned count,
                        const char *(*name)(unsigned event))
{
    unsigned event;

    fputs("| state |", out);
    for (event = 0; event < count; event++) {
        fprintf(out, " %s |", name(event));
    }
    fputs("\n|---|", out);
    for (event = 0; event < count; event++) {
        fputs("---|", out);
    }
    fputs("\n", out);
}


static const char *qp_event(unsigned event)
{
    return dq_qp_event_name((dq_qp_event_t)event);
}


/* A machine without actions: NULL if the cell cannot be reached, or the next state. */
typedef struct {
    const char *head;
    unsigned   states, events;
    const char *(*state_name)(unsigned state);
    const char *(*event_name)(unsigned event);
    const char *(*next_name)(unsigned state, unsigned event);
} machine_t;

static const char *life_state(unsigned state)
{
    return dq_life_state_name((dq_life_state_t)state);
}


static const char *life_event(unsigned event)
{
    return dq_life_event_name((dq_life_event_t)event);
}


static const char *life_next(unsigned state, unsigned event)
{
    dq_life_cell_t cell = dq_life_cell((dq_life_state_t)state,
                                       (dq_life_event_t)event);

    return cell.is_legal ? life_state(cell.next) : NULL;
}


static const char *recall_state(unsigned state)
{
    return dq_recall_state_name((dq_recall_state_t)state);
}


static const char *recall_event(unsigned event)
{
    return dq_recall_event_name((dq_recall_event_t)event);
}


static const char *recall_next(unsigned state, unsigned event)
{
    dq_recall_cell_t cell = dq_recall_cell((dq_recall_state_t)state,
                                           (dq_recall_event_t)event);

    return cell.is_legal ? recall_state(cell.next) : NULL;
}


static const char *idle_state(unsigned state)
{
    return dq_idle_state_name((dq_idle_state_t)state);
}


static const char *idle_event(unsigned event)
{
    return dq_idle_event_name((dq_idle_event_t)event);
}


static const char *idle_next(unsigned state, unsigned event)
{
    dq_idle_cell_t cell = dq_idle_cell((dq_idle_state_t)state,
                                       (dq_idle_event_t)event);

    return cell.is_legal ? idle_state(cell.next) : NULL;
}


static const char *pace_state(unsigned state)
{
    return dq_pace_state_name((dq_pace_state_t)state);
}


static const char *pace_event(unsigned event)
{
    return dq_pace_event_name((dq_pace_event_t)event);
}


static const char *pace_next(unsigned state, unsigned event)
{
    dq_pace_cell_t cell = dq_pace_cell((dq_pace_state_t)state,
                                       (dq_pace_event_t)event);

    return cell.is_legal ? pace_state(cell.next) : NULL;
}


/* In the order of the page. The queue pair, which has actions, comes behind the first. */
static const machine_t machines[] = {
    {life_head, DQ_LIFE_STATE_LAST, DQ_LIFE_EV_LAST,
     life_state, life_event, life_next},
    {recall_head, DQ_RECALL_STATE_LAST, DQ_RECALL_EV_LAST,
     recall_state, recall_event, recall_next},
    {idle_head, DQ_IDLE_STATE_LAST, DQ_IDLE_EV_LAST,
     idle_state, idle_event, idle_next},
    {pace_head, DQ_PACE_STATE_LAST, DQ_PACE_EV_LAST,
     pace_state, pace_event, pace_next},
};


static void print_machine(FILE *out, const machine_t *machine)
{
    unsigned state, event;
    const char *name, *next;

    fputs(machine->head, out);
    print_heads(out, machine->events, machine->event_name);
    for (state = 0; state < machine->states; state++) {
        name = machine->state_name(state);
        fprintf(out, "| **%s** |", name);
        for (event = 0; event < machine->events; event++) {
            next = machine->next_name(state, event);
            fprintf(out, " %s |", (next == NULL) ? "" : (strcmp(next, name) == 0)
                                  ? "." : next);
        }
        fputs("\n", out);
    }
}


static void print_qp_cell(FILE *out, dq_qp_state_t state, dq_qp_event_t event)
{
    dq_qp_cell_t cell = dq_qp_cell(state, event);
    const char *sign  = ": ";
    uint32_t bit;

    if (!cell.is_legal) {
        fputs("  |", out);
        return;
    }
    fprintf(out, " %s", (cell.next == state) ? "." : dq_qp_state_name(cell.next));
    for (bit = 1; bit < DQ_QP_ACT_LAST; bit <<= 1) {
        if (cell.actions & bit) {
            fprintf(out, "%s%s", sign, dq_qp_action_name(bit));
            sign = ", ";
        }
    }
    fputs(" |", out);
}


static void print_qp(FILE *out)
{
    unsigned state, event;

    fputs(qp_head, out);
    print_heads(out, DQ_QP_EV_LAST, qp_event);
    for (state = 0; state < DQ_QP_STATE_LAST; state++) {
        fprintf(out, "| **%s** |", dq_qp_state_name((dq_qp_state_t)state));
        for (event = 0; event < DQ_QP_EV_LAST; event++) {
            print_qp_cell(out, (dq_qp_state_t)state, (dq_qp_event_t)event);
        }
        fputs("\n", out);
    }
}


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
    size_t i;

    fputs(head, out);
    print_machine(out, &machines[0]);
    print_qp(out);
    for (i = 1; i < sizeof(machines) / sizeof(machines[0]); i++) {
        print_machine(out, &machines[i]);
    }
    fputs(conn_head, out);
    for (state = 0; state < DQ_CONN_STATE_LAST; state++) {
        fprintf(out, "\n### %s\n\n| event | next | actions |\n|---|---|---|\n",
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
