"""A reader of the guides, who types each command and writes each file as it stands there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import click

from cdc_common.errors.codes import CdcError
from dev.verify.hosts.guide_page import Item, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dev.verify.hosts.host import Host

USERS = {"publisher": "cassandra", "filler": "cassandra", "materializer": "spark", "schematizer": "root"}
CHECKOUT = "/srv/checkout"
COMMAND_SECONDS = 1800.0
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
        self._left: dict[str, list[Item]] = {}
        self._ran: set[tuple[str, str]] = set()
        self._used: set[str] = set()
        self.counts = {"run": 0, "again": 0, "not run": 0}
        self.reasons: dict[str, list[str]] = {}
        self.wrong: list[str] = []

    def read(self, page: str, *sections: str, only_blocks: bool = False) -> None:
        """Do what these sections of the page show, in its order; by default all that is left. What the page marks for
        later stays for `read_later`. only_blocks: what stands within lines stays, too.
        """
        items = self._left.setdefault(page, items_of(page))
        due = [
            item
            for item in items
            if not (item.later or (only_blocks and item.is_inline)) and (not sections or item.heading in sections)
        ]
        self._left[page] = [item for item in items if item not in due]
        for item in due:
            self._do(item)

    def read_later(self, page: str, when: str) -> None:
        """Do what the page marks for this moment."""
        due = [item for item in self._left[page] if item.later == when]
        self._left[page] = [item for item in self._left[page] if item not in due]
        for item in due:
            self._do(item)

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
            else:
                statuses = self._statuses.get(item.text, (0,))
                command = self.as_user(self.own(item.text))
                self._host.run(command, folder=CHECKOUT, seconds=COMMAND_SECONDS, statuses=statuses)
        except CdcError as error:
            self.wrong.append(f"{item.where}: {item.text}\n{error}")
            click.secho(self.wrong[-1], fg="red", err=True)

    def own(self, text: str) -> str:
        """The text with the reader's own values."""
        for placeholder, value in self._replaced.items():
            text = text.replace(placeholder, value)
        return text

    def as_user(self, text: str) -> str:
        """The command, for one of our programs as install.md says: as its user, with its logins."""
        program = re.match(r"cassandra-(\w+) ", text)
        if program is None or program[1] not in USERS:
            return text
        name = program[1]
        return f"sudo -u {USERS[name]} env $(cat /etc/cdc/{name}.env) /opt/cassandra-cdc/bin/{text}"

    def _known(self, item: Item, table: Mapping[str, T]) -> T | None:
        for beginning, found in table.items():
            if item.text == beginning or (beginning.endswith("*") and item.text.startswith(beginning[:-1])):
                self._used.add(beginning)
                return found
        return None


def quoted(text: str) -> str:
    """One word of bash."""
    return "'" + text.replace("'", "'\\''") + "'"
