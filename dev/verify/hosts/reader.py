"""A reader of the guides, who types each command and writes each file as it stands there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import click

from cdc_common.errors.codes import CdcError, Code
from dev.verify.hosts.guide_page import FILES, Item, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dev.verify.hosts.host import Host

JOBS = ("materializer", "transformer", "archive", "warehouse", "joinery")
USERS = {"publisher": "cassandra", "filler": "cassandra", "schematizer": "root"} | dict.fromkeys(JOBS, "spark")
PROGRAMS = "/opt/cassandra-cdc/bin"
CHECKOUT = "/srv/checkout"
COMMAND_SECONDS = 1800.0
KAFKAS_OWN = re.compile(r"^%\d\|.*", re.MULTILINE)  # such as `%6|1795752344.875|BGQUEUE|…`
T = TypeVar("T")


class Reader:
    """Does what the guides show, and notes what it does not and why.

    replaced: what a reader replaces by own values, such as `KEYSPACE.TABLE`. not_run: the beginning of each text that
    is not run, with the reason. done_otherwise: texts with the function that does them, such as the start of a program.
    statuses: the exit statuses of commands that may end with others than 0.
    """

    def __init__(
        self,
        host: Host,
        replaced: Mapping[str, str],
        not_run: Mapping[str, str],
        done_otherwise: Mapping[str, Callable[[Item], None]],
        statuses: Mapping[str, Sequence[int]],
    ) -> None:
        self._host = host
        self._replaced = replaced
        self._not_run = not_run
        self._done_otherwise = done_otherwise
        self._statuses = statuses
        self._folder = CHECKOUT
        self._left: dict[str, list[Item]] = {}
        self._ran: set[tuple[str, str]] = set()
        self._used: set[str] = set()
        self.counts = {"run": 0, "again": 0, "not run": 0}
        self.reasons: dict[str, list[str]] = {}
        self.wrong: list[str] = []

    def read(self, page: str, *sections: str, only_blocks: bool = False, only_files: bool = False) -> None:
        """Do what these sections of the page show, in its order; by default all that is left. What the page marks for
        later stays for `read_later`. only_blocks: what stands within lines stays, too. only_files: all but files do.
        """
        items = self._left.setdefault(page, items_of(page))
        due = [
            item
            for item in items
            if not (item.later or (only_blocks and item.is_inline) or (only_files and item.kind not in FILES))
            and (not sections or item.heading in sections)
        ]
        self._left[page] = [item for item in items if item not in due]
        self._folder = CHECKOUT
        for item in due:
            self._do(item)

    def first_heading(self, page: str) -> str:
        """The page's own heading, below which its first commands are."""
        return self._left.setdefault(page, items_of(page))[0].heading

    def read_later(self, page: str, when: str) -> None:
        """Do what the page marks for this moment."""
        due = [item for item in self._left[page] if item.later == when]
        self._left[page] = [item for item in self._left[page] if item not in due]
        for item in due:
            self._do(item)

    def do_otherwise(self, texts: Mapping[str, Callable[[Item], None]]) -> None:
        """Let functions do more texts."""
        self._done_otherwise = {**self._done_otherwise, **texts}

    def unread(self) -> list[str]:
        """Return what of the pages has not been done, and reasons that nothing needs."""
        left = [f"{item.where}: not reached: {item.text}" for items in self._left.values() for item in items]
        known = self._not_run.keys() | self._done_otherwise.keys()
        return left + [f"no guide has {text!r} any more" for text in sorted(known - self._used)]

    def _do(self, item: Item) -> None:
        reason = self._known(item, self._not_run)
        if reason is not None:
            self.counts["not run"] += 1
            self.reasons.setdefault(reason, []).append(item.text)
            return
        if item.is_inline and (item.page, item.text) in self._ran:
            self.counts["again"] += 1
            return
        self._ran.add((item.page, item.text))
        self.counts["run"] += 1
        click.echo(f"{item.page}: {item.text.splitlines()[0][:140]}")
        try:
            other = self._known(item, self._done_otherwise)
            if other is not None:
                other(item)
            elif item.kind == "statement":
                self._host.run(f"cqlsh -e {quoted(self.own(item.text))}")
            elif item.text.startswith("cd "):
                self._folder = f"{self._folder}/{item.text.removeprefix('cd ')}"
            else:
                self.run(self.own(item.text), self._statuses.get(item.text, (0,)))
        except CdcError as error:
            self.wrong.append(f"{item.where}: {item.text}\n{error}")
            click.secho(self.wrong[-1], fg="red", err=True)

    def own(self, text: str) -> str:
        """The text with the reader's own values."""
        for placeholder, value in self._replaced.items():
            text = text.replace(placeholder, value)
        return text

    def run(self, command: str, statuses: Sequence[int] = (0,)) -> str:
        """Return what the command prints in the folder where the reader is. CdcError SERVER_FAILED if it fails, or if
        one of our programs lets Kafka's client print a line of its own.
        """
        own = self.as_user(command)
        line = command if own == command else f"{own} 2>&1"
        output = self._host.run(line, folder=self._folder, seconds=COMMAND_SECONDS, statuses=statuses)
        if own != command and (found := KAFKAS_OWN.search(output)):
            raise CdcError(Code.SERVER_FAILED, f"{command} printed {found[0]}", "Let the client log.")
        return output

    def as_user(self, text: str) -> str:
        """The command, for one of our programs as install.md says: as its user, with its logins."""
        program = re.match(r"cassandra-(\w+) (\w+)", text)
        if program is None:
            return text
        name, command = program[1], program[2]
        if name not in USERS or command == "pack":  # they need no settings
            return f"{PROGRAMS}/{text}"
        login = command if command == "topics" else name  # topic-files.md has a user of its own
        return f"sudo -u {USERS[name]} env $(cat /etc/cdc/{login}.env) {PROGRAMS}/{text}"

    def _known(self, item: Item, table: Mapping[str, T]) -> T | None:
        for beginning, found in table.items():
            if matches(beginning, item):
                self._used.add(beginning)
                return found
        return None


def matches(beginning: str, item: Item) -> bool:
    """Whether the item is meant: by its text, or by what is before a `*`; after `PAGE: `, on that page alone."""
    texts = (item.text, f"{item.page}: {item.text}")
    if beginning.endswith("*"):
        return any(text.startswith(beginning[:-1]) for text in texts)
    return beginning in texts


def quoted(text: str) -> str:
    """One word of bash."""
    return "'" + text.replace("'", "'\\''") + "'"
