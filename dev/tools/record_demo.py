"""Records a look at the running project, and draws docs/images/demo.svg: `python -m dev.tools.record_demo`.

It starts the stack of `make stack`: real servers and programs. In one terminal it types statements into `make cqlsh`,
in another one `make follow TABLE=shop.orders` runs. What both print is kept as asciicasts in docs/diagrams.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from dev.local_stack.clients import cql
from dev.local_stack.demo import shop
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.stack import Stack
from dev.tools.terminal_svg import CASTS, PANES, PICTURE, Cast, animate, write_cast

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = 104
KEY_SECONDS = 0.035  # between two keys
READY_SECONDS = 60.0
# Each with the seconds to wait after it for the changes that it causes.
STATEMENTS = (
    ("INSERT INTO shop.orders (id, customer, status, lines) VALUES (1, 'ada', 'new', {'tea': 2});", 6.0),
    ("UPDATE shop.orders SET status = 'paid', lines['cup'] = 1 WHERE id = 1;", 6.0),
    ("UPDATE shop.orders USING TTL 5 SET note = 'gift' WHERE id = 1;", 14.0),
    ("DELETE FROM shop.orders WHERE id = 1;", 7.0),
)
COMMANDS = (
    ("make cqlsh", ["dev.local_stack.clients.cqlsh"], 6),
    ("make follow TABLE=shop.orders", ["dev.local_stack.clients.follow", "--new", "--table", "shop.orders"], 17),
)


@dataclass
class Terminal:
    """A program in a pseudo-terminal."""

    # The command, as shown.
    title: str
    # The height in lines.
    rows: int
    # The file descriptor of the pseudo-terminal.
    file: int
    # The output: the second of the recording, and the text.
    events: list[tuple[float, str]] = field(default_factory=list)

    @classmethod
    def start(cls, title: str, module: Sequence[str], rows: int) -> Terminal:
        child, file = pty.fork()
        if child == 0:
            os.environ.update(
                TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(rows), PYTHONPATH=str(project_root())
            )
            os.execv(sys.executable, [sys.executable, "-m", *module])  # noqa: S606 - a program of this project
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
        return cls(title, rows, file)

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    @property
    def text(self) -> str:
        return "".join(data for _, data in self.events)

    def cast(self) -> Cast:
        return Cast(COLUMNS, self.rows, self.title, self.events)


def listen(terminals: Sequence[Terminal], began: float, seconds: float) -> None:
    """Note what the terminals print for so long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readable, _, _ = select.select([terminal.file for terminal in terminals], [], [], left)
        for terminal in terminals:
            if terminal.file in readable:
                data = os.read(terminal.file, 65536).decode(errors="replace")
                terminal.events.append((time.monotonic() - began, data))


def record() -> list[Cast]:
    """The panes. They begin with the prompt: what cqlsh says first names files of this machine."""
    with Stack(static_rows="leave_out", report=click.echo) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            shop.create(client)
            client.execute("INSERT INTO shop.customers (name, email) VALUES ('warm', 'up')")
        time.sleep(READY_SECONDS / 3)  # the raw topics are made, the job has folded once
        shell, follow = terminals = [Terminal.start(title, module, rows) for title, module, rows in COMMANDS]
        began = time.monotonic()
        while "cqlsh>" not in shell.text and time.monotonic() - began < READY_SECONDS:
            listen(terminals, began, 0.5)
        listen(terminals, began, 8.0)  # the follower has subscribed
        shift = time.monotonic() - began
        for terminal in terminals:
            terminal.events = [(0.0, terminal.text.rpartition("\n")[2])]  # only the prompt
        began += shift
        for statement, seconds in STATEMENTS:
            listen(terminals, began, 1.2)
            for key in statement:
                shell.type(key)
                listen(terminals, began, KEY_SECONDS)
            listen(terminals, began, 0.4)
            shell.type("\n")
            listen(terminals, began, seconds)
        for terminal in terminals:
            terminal.type("\x03" if terminal is follow else "\x04")
        return [terminal.cast() for terminal in terminals]


def main() -> int:
    casts = record()
    for name, cast in zip(PANES, casts, strict=True):
        (CASTS / f"{name}.cast").write_text(write_cast(cast), encoding="utf-8")
    PICTURE.write_text(animate(casts), encoding="utf-8")
    click.echo(f"{PICTURE}: {PICTURE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
