#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# terminal.py COLUMNSxLINES STEP... -- COMMAND...
#
# Runs a command on a terminal of its own, whose screen it keeps as TERM=vt100 and
# TERM=xterm would show it. The steps are done in turn:
#
#   see:TEXT       wait until a line of the screen matches this regular expression
#   not:TEXT       wait until none does
#   keys:TEXT      type it; \e is Esc
#   size:80x24     another size, which the command is told (SIGWINCH)
#   signal:NAME    to the command
#   run:COMMAND    by a shell, beside it
#   show:FILE      write the screen to it
#   close          close the terminal under the command
#   end:STATUS     wait until the command has ended with it (-N: by signal N), and that
#                  the terminal is as it was before: its modes, and the screen that was
#                  there before the command
#
# Every wait is bounded, which ends a hang and decides nothing else. The first step that
# fails is named on stderr, with the screen, and the status is 1.

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

BOUND = 60  # s, of a step


class Screen:
    """What is on the screen, from the bytes that were sent to it."""

    def __init__(self, columns, lines):
        self.saved = None      # the screen below, of smcup
        self.is_hidden = False
        self.rest = ''
        self.at = (0, 0)       # line, column
        self.kept = (0, 0)
        self.cells = []
        self.last = ' '
        self.resize(columns, lines)

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        old = self.cells
        self.cells = [[' '] * columns for _ in range(lines)]
        for row, line in zip(self.cells, old):
            row[:min(columns, len(line))] = line[:columns]
        self.margins = (0, lines - 1)
        self.move(*self.at)

    def text(self):
        return [''.join(row).rstrip() for row in self.cells]

    def move(self, line, column):
        self.at = (max(0, min(line, self.lines - 1)), max(0, min(column, self.columns - 1)))

    def blank(self, line, first, last):
        for column in range(first, min(last, self.columns)):
            self.cells[line][column] = ' '

    def scroll(self, first, count):
        """Up by so many lines within the margins, or down if it is negative."""
        last = self.margins[1]
        region = self.cells[first:last + 1]
        new = [[' '] * self.columns for _ in range(min(abs(count), len(region)))]
        region = (region[count:] + new) if count > 0 else (new + region[:count])
        self.cells[first:last + 1] = region[:last + 1 - first]

    def newline(self):
        line, column = self.at
        if line == self.margins[1]:
            self.scroll(self.margins[0], 1)
        else:
            self.move(line + 1, column)

    def put(self, char):
        line, column = self.at
        if column >= self.columns:  # it has waited at the edge
            self.at = (line, 0)
            self.newline()
            line, column = self.at
        self.cells[line][column] = char
        self.at = (line, column + 1)
        self.last = char

    def control(self, char):
        line, column = self.at
        if char == '\r':
            self.move(line, 0)
        elif char == '\n':
            self.newline()
        elif char == '\b':
            self.move(line, min(column, self.columns - 1) - 1)
        elif char == '\t':
            self.move(line, (column // 8 + 1) * 8)
        # the others: bell, padding, character sets

    def mode(self, numbers, is_set):
        if 25 in numbers:
            self.is_hidden = not is_set
        if 1049 in numbers and is_set:
            self.saved = (self.cells, self.at)
            self.cells = [[' '] * self.columns for _ in range(self.lines)]
        elif 1049 in numbers and self.saved:
            cells, at = self.saved
            self.saved = None
            self.cells = cells
            self.resize(self.columns, self.lines)
            self.move(*at)

    def erase_screen(self, kind):
        line, column = self.at
        if kind == 0:
            self.blank(line, column, self.columns)
        for other in range(self.lines):
            if (kind == 2 or (kind == 0 and other > line) or (kind == 1 and other < line)):
                self.blank(other, 0, self.columns)
        if kind == 1:
            self.blank(line, 0, column + 1)

    def command(self, private, numbers, name):
        line, column = self.at
        count = max(1, numbers[0] if numbers else 1)
        second = max(1, numbers[1] if len(numbers) > 1 else 1)
        row = self.cells[line]
        if name in 'hl' and private:
            self.mode(numbers, name == 'h')
        elif name in 'Hf':
            self.move(count - 1, second - 1)
        elif name in 'AF':
            self.move(line - count, column)
        elif name in 'BE':
            self.move(line + count, column)
        elif name == 'C':
            self.move(line, column + count)
        elif name == 'D':
            self.move(line, column - count)
        elif name == 'G':
            self.move(line, count - 1)
        elif name == 'd':
            self.move(count - 1, column)
        elif name == 'J':
            self.erase_screen(numbers[0] if numbers else 0)
        elif name == 'K':
            kind = numbers[0] if numbers else 0
            self.blank(line, 0 if kind else column,
                       column + 1 if kind == 1 else self.columns)
        elif name == 'X':
            self.blank(line, column, column + count)
        elif name == '@':
            row[column:] = ([' '] * count + row[column:])[:self.columns - column]
        elif name == 'P':
            row[column:] = (row[column + count:] + [' '] * count)[:self.columns - column]
        elif name == 'L':
            self.scroll(line, -count)
        elif name == 'M':
            self.scroll(line, count)
        elif name == 'S':
            self.scroll(self.margins[0], count)
        elif name == 'T':
            self.scroll(self.margins[0], -count)
        elif name == 'b':
            for _ in range(count):
                self.put(self.last)
        elif name == 'r':
            last = numbers[1] if len(numbers) > 1 else self.lines
            self.margins = (count - 1, min(last, self.lines) - 1)
            self.move(0, 0)
        elif name not in 'mtnc' and name not in 'hl':
            raise SystemExit(f'terminal.py does not know CSI {numbers} {name}')

    def escape(self, text):
        """Returns how many characters it takes, or 0 if some are missing."""
        found = re.match(r'\x1b\[([?>]?)([0-9;]*)([@-~])', text)
        if found:
            self.command(found[1], [int(n or 0) for n in found[2].split(';')]
                         if found[2] else [], found[3])
            return found.end()
        if text.startswith('\x1b[') or len(text) < 2:
            return 0
        if text[1] in '()':
            return 3 if len(text) > 2 else 0
        if text[1] == '7':
            self.kept = self.at
        elif text[1] == '8':
            self.at = self.kept
        elif text[1] == 'M':
            if self.at[0] == self.margins[0]:
                self.scroll(self.margins[0], -1)
            else:
                self.move(self.at[0] - 1, self.at[1])
        return 2

    def feed(self, data):
        text = self.rest + data.decode('utf-8', 'replace')
        while text:
            if text[0] == '\x1b':
                used = self.escape(text)
                if used == 0:
                    break
            else:
                used = 1
                if text[0] >= ' ' and text[0] != '\x7f':
                    self.put(text[0])
                else:
                    self.control(text[0])
            text = text[used:]
        self.rest = text


class Terminal:
    def __init__(self, columns, lines, command):
        self.screen = Screen(columns, lines)
        self.master, self.slave = pty.openpty()
        self.set_size(columns, lines)
        os.write(self.slave, b'before\r\n')
        self.modes = termios.tcgetattr(self.slave)
        self.status = None
        self.child = subprocess.Popen(command, stdin=self.slave, stdout=self.slave,
                                      stderr=self.slave, start_new_session=True,
                                      preexec_fn=self.own)

    def own(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def set_size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack('HHHH', lines, columns, 0, 0))

    def read(self):
        if self.master < 0:
            time.sleep(0.05)
            return
        ready, _, _ = select.select([self.master], [], [], 0.05)
        if ready:
            self.screen.feed(os.read(self.master, 65536))

    def wait(self, is_so):
        end = time.monotonic() + BOUND
        while not is_so():
            if time.monotonic() > end:
                return False
            self.read()
        return True

    def sees(self, text):
        return any(re.search(text, line) for line in self.screen.text())

    def has_ended(self):
        self.status = self.child.poll()
        return self.status is not None

    def is_restored(self):
        if self.master < 0:
            return True
        for _ in range(3):
            self.read()
        return (termios.tcgetattr(self.slave) == self.modes and
                not self.screen.is_hidden and self.screen.saved is None)

    def step(self, name, text):
        if name == 'see':
            return self.wait(lambda: self.sees(text))
        if name == 'not':
            return self.wait(lambda: not self.sees(text))
        if name == 'keys':
            os.write(self.master, text.replace('\\e', '\x1b').encode())
        elif name == 'size':
            columns, lines = map(int, text.split('x'))
            self.screen.resize(columns, lines)
            self.set_size(columns, lines)
        elif name == 'signal':
            self.child.send_signal(getattr(signal, 'SIG' + text))
        elif name == 'run':
            return subprocess.run(text, shell=True, timeout=BOUND).returncode == 0
        elif name == 'show':
            with open(text, 'w', encoding='utf-8') as file:
                file.write('\n'.join(self.screen.text()) + '\n')
        elif name == 'close':
            os.close(self.slave)
            os.close(self.master)
            self.master = -1
        elif name == 'end':
            return (self.wait(self.has_ended) and self.status == int(text) and
                    self.is_restored())
        else:
            raise SystemExit(f'terminal.py: there is no step {name}')
        return True


def main():
    words = sys.argv[1:]
    cut = words.index('--')
    columns, lines = map(int, words[0].split('x'))
    terminal = Terminal(columns, lines, words[cut + 1:])
    try:
        for word in words[1:cut]:
            name, _, text = word.partition(':')
            if not terminal.step(name, text):
                print(f'failed: {word}; status {terminal.status}', file=sys.stderr)
                print('\n'.join(terminal.screen.text()), file=sys.stderr)
                return 1
    finally:
        if terminal.child.poll() is None:
            terminal.child.kill()
            terminal.child.wait()
    return 0


sys.exit(main())
