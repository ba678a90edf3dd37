/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The terminal of `daqiri top`, by curses: it knows what each terminal can do, sends
 * what has changed only, and reads keys. Bold and reverse are all that is asked for, so a
 * terminal without colours shows the same.
 *
 * curses leaves signals alone that are caught already (stop.h), and catches SIGWINCH and
 * SIGTSTP itself.
 */

#include "tools/base/clock.h"
#include "tools/base/exit_status.h"
#include "tools/base/stop.h"
#include "tools/cmd/top.h"

#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#undef lines /* of term.h, with two hundred other words */

/* ms that a key of several bytes may take; without more it was Esc. */
#define SCREEN_KEY_DELAY 50

static SCREEN *screen_open;

static int screen_refuse(const char *speaker, const char *what, const char *name,
                         const char *why)
{
    fprintf(stderr, "%s: %s%s%s: --batch prints lines, and so does 'daqiri stats "
            "--watch'\n", speaker, what, name, why);
    return DAQIRI_EXIT_FAILED;
}

/* What curses itself would say ends the program, with no word about what to do. */
static int screen_check(const char *speaker)
{
    const char *name = getenv("TERM");
    int error        = 0;
    int can_move;

    if (!isatty(STDOUT_FILENO)) {
        return screen_refuse(speaker, "the output is no terminal", "", "");
    }
    if (!isatty(STDIN_FILENO)) {
        return screen_refuse(speaker, "the input is no terminal", "", "");
    }
    if ((name == NULL) || (*name == '\0')) {
        return screen_refuse(speaker, "TERM does not say which terminal this is", "",
                             "");
    }
    if ((setupterm(NULL, STDOUT_FILENO, &error) != OK) && (error != 1)) {
        return screen_refuse(speaker, "this host does not know the terminal ", name,
                             " (TERM)");
    }
    can_move = (tigetstr("cup") != NULL) && (tigetstr("clear") != NULL);
    del_curterm(cur_term);
    if (!can_move) {
        return screen_refuse(speaker, "the terminal ", name, " (TERM) cannot move its "
                             "cursor");
    }
    return 0;
}

int top_screen_open(const char *speaker)
{
    int status = screen_check(speaker);

    if (status != 0) {
        return status;
    }
    screen_open = newterm(NULL, stdout, stdin);
    if (screen_open == NULL) {
        return screen_refuse(speaker, "the terminal cannot be used", "", "");
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(SCREEN_KEY_DELAY);
    curs_set(0);
    return 0;
}

void top_screen_close(void)
{
    if (screen_open != NULL) {
        endwin();
        delscreen(screen_open);
        screen_open = NULL;
    }
}

void top_screen_size(size_t *height, unsigned *width)
{
    *height = (size_t)LINES;
    *width  = (unsigned)COLS;
}

static void screen_line(int at, const top_line_t *line)
{
    static const attr_t attributes[] = {
        [TOP_PLAIN] = A_NORMAL, [TOP_BOLD] = A_BOLD, [TOP_HEADER] = A_REVERSE
    };
    attr_t attribute = attributes[line->style];

    attrset(attribute);
    mvaddnstr(at, 0, line->text, COLS);
    if ((line->style == TOP_HEADER) && ((int)strlen(line->text) < COLS)) {
        hline(' ' | attribute, COLS);
    }
    attrset(A_NORMAL);
}

static void screen_too_small(void)
{
    mvprintw(0, 0, "daqiri top needs %u columns", top_width_min());
    mvprintw(1, 0, "and %d lines, and there", TOP_HEIGHT_MIN);
    mvprintw(2, 0, "are %d and %d. q: quit", COLS, LINES);
}

void top_screen_show(const top_lines_t *lines, size_t offset)
{
    size_t height = (size_t)LINES;
    size_t i, line;

    erase();
    if ((LINES < TOP_HEIGHT_MIN) || ((unsigned)COLS < top_width_min())) {
        screen_too_small();
    } else {
        for (i = 0; i < height; ++i) {
            line = (i < lines->head) ? i : i + offset;
            if (line < lines->count) {
                screen_line((int)i, &lines->list[line]);
            }
        }
    }
    refresh();
}

static top_key_t screen_key(int c)
{
    switch (c) {
    case 'q':
    case 'Q':
        return TOP_KEY_QUIT;
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_PPAGE:
        return TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
    case ' ':
        return TOP_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TOP_KEY_HOME;
    case KEY_END:
        return TOP_KEY_END;
    case 's':
        return TOP_KEY_SORT;
    case 'c':
        return TOP_KEY_BRIEF;
    case 'h':
    case '?':
        return TOP_KEY_HELP;
    case KEY_RESIZE:
        return TOP_KEY_NONE;
    default:
        return TOP_KEY_OTHER;
    }
}

/* A signal that comes before the wait begins is noticed after so long. */
#define SCREEN_WAIT_MS 500

static int screen_wait_ms(uint64_t until_ns)
{
    uint64_t now_ns = daqiri_now_ns();
    uint64_t ms     = (until_ns > now_ns) ? (until_ns - now_ns) / 1000000 + 1 : 0;

    return (ms < SCREEN_WAIT_MS) ? (int)ms : SCREEN_WAIT_MS;
}

/* curses may hold a key that it has read already. It would wait, too, but could not tell
 * a key that is late from a terminal that has gone: one that is ready and gives none. */
top_key_t top_screen_wait(uint64_t until_ns)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int c               = getch();
    int is_ready;

    if (c != ERR) {
        return screen_key(c);
    }
    is_ready = poll(&input, 1, screen_wait_ms(until_ns)) > 0;
    c        = getch();
    if (c != ERR) {
        return screen_key(c);
    }
    return (is_ready && !daqiri_stop_asked()) ? TOP_KEY_GONE : TOP_KEY_NONE;
}
