"""The tables that wait: each has a problem of its own, and all others go on (decision 0045).

What the log has of a waiting table stays findable: `waiting.json` names the segments with mutations that are not sent,
and the position of the first one. SegmentCleanup keeps these segments. The file is saved before the position is: what
is not sent is either after the position or held here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.topics.raw_topics import RawTopic

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from publisher.log.position import Positions

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two tries

log = structlog.get_logger(__name__)


class ShownTable(NamedTuple):
    """A waiting table as the status shows it."""

    # The table, as KEYSPACE.TABLE.
    name: str
    # The error's code, such as CDC-061.
    code: str
    # Why it waits.
    text: str


class Reason(NamedTuple):
    """The error for which a table waits."""

    # The error's code, such as CDC-061.
    code: str
    # What is wrong.
    problem: str
    # What to do.
    fix: str


@dataclass(slots=True, eq=False)
class WaitingTable:
    """A table that waits."""

    # The table, as KEYSPACE.TABLE.
    name: str
    # Why it waits.
    reason: Reason
    # when it began to wait, in seconds since the epoch
    since: float
    # the segments with mutations that are not sent, and the position of the first one
    held: dict[int, int] = field(default_factory=dict)
    # Segments were let go: nothing is held any more, and the table needs a snapshot.
    has_lost: bool = False
    # Its raw topic is found again: what was held is being sent.
    ready: RawTopic | None = None
    # The pause before the next try, in seconds.
    pause: float = FIRST_PAUSE
    # When it is tried again, in monotonic seconds; infinite if it is tried when its schema changes.
    retry_at: float = 0.0
    # the state of the table at the last try
    tried: object = None

    def text(self) -> str:
        """A line for the status."""
        if self.ready is not None:
            return f"{self.name} sends what it has missed"
        lost = " Segments were let go: it needs a snapshot then." if self.has_lost else ""
        return f"{self.name}: {self.reason.code} {self.reason.problem} Fix: {self.reason.fix}{lost}"


class WaitingTables:
    """By the bytes of the tables' ids.

    held_back: the tables whose mutations are not sent now. skipped: tables that are not on the node any more, or have
    `cdc = false`, and whose topic cannot be opened: what the log still has of them is skipped. edition: changes with
    what the splitter must know.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_saved = True
        self.tables: dict[bytes, WaitingTable] = {}
        self.held_back: frozenset[bytes] = frozenset()
        self.skipped: frozenset[bytes] = frozenset()
        self.edition = 0

    @classmethod
    def load(cls, file: Path, positions: Positions) -> WaitingTables:
        """The tables in the file. CdcError POSITION_FILE if it is damaged.

        What is read again after a crash is held from there on.
        """
        waiting = cls(file)
        stored = state_files.read(file)
        try:
            tables = stored["tables"] if stored is not None else {}
            waiting.tables = {bytes.fromhex(key): _table(value) for key, value in tables.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The file of waiting tables {file} is damaged.",
                "Restore it. Without it, what a waiting table has in the log is lost: remove the file, and take a"
                " snapshot of the tables with cdc = true.",
            ) from error
        for table in waiting.tables.values():
            for segment in table.held.keys() & set(positions.begun()):
                table.held[segment] = min(table.held[segment], positions.resume_at(segment))
        waiting._changed()
        return waiting

    def begin(self, table_id: bytes, name: str, error: CdcError, now: float, tried: object = None) -> None:
        """The table waits because of an error. `now`: monotonic seconds; it is tried again after a growing pause."""
        reason = Reason(error.code.text, error.problem, error.fix)
        table = self.tables.get(table_id)
        if table is None:
            table = self.tables[table_id] = WaitingTable(name, reason, time())
            is_news = True
        else:
            is_news = table.ready is not None or table.reason != reason
            table.pause = min(table.pause * 2, LONGEST_PAUSE)
        table.reason, table.ready, table.tried = reason, None, tried
        table.retry_at = now + table.pause
        self._changed()
        if is_news:
            write = log.warning if error.code is Code.SCHEMA_UNKNOWN else log.error  # it is most often over in a moment
            write(
                "a table waits",
                code=Code.TABLE_WAITS.text,
                table=name,
                reason=reason.code,
                problem=reason.problem,
                fix=reason.fix,
            )

    def hold(self, table_id: bytes, segment: int, position: int) -> None:
        """The segment has mutations of the table from this position on that are not sent."""
        table = self.tables[table_id]
        if table.has_lost or table.held.get(segment, position + 1) <= position:
            return
        table.held[segment] = position
        self._changed()

    def hold_unacknowledged(self, table_id: bytes, positions: Positions, in_flight: Iterable[int]) -> None:
        """Hold what is not acknowledged. in_flight: the segments with messages in flight."""
        for segment in {*positions.begun(), *in_flight}:
            self.hold(table_id, segment, positions.resume_at(segment))

    def retry_now(self, table_id: bytes) -> None:
        """Something has changed that may have solved the problem."""
        table = self.tables[table_id]
        table.retry_at, table.pause = 0.0, FIRST_PAUSE

    def next_due(self, now: float) -> bytes | None:
        """A table to be tried again now: the one that has waited longest for it."""
        due = [(table.retry_at, table_id) for table_id, table in self.tables.items() if table.retry_at <= now]
        return min(due)[1] if due else None

    def begin_try(self, table_id: bytes, tried: object) -> None:
        """The table is being tried again."""
        self.tables[table_id].tried, self.tables[table_id].retry_at = tried, inf

    def set_ready(self, table_id: bytes, raw_topic: RawTopic) -> None:
        """The table's problem is solved."""
        self.tables[table_id].ready = raw_topic
        self.tables[table_id].retry_at = inf

    def ready(self) -> dict[bytes, RawTopic]:
        """The tables to catch up, and the raw topic of each."""
        return {table_id: table.ready for table_id, table in self.tables.items() if table.ready is not None}

    def release(self, table_id: bytes, segment: int) -> None:
        """Kafka has acknowledged what the segment has of the table."""
        if self.tables[table_id].held.pop(segment, None) is not None:
            self._changed()

    def end(self, table_id: bytes) -> None:
        """The table waits no more: all that the publisher has read of it is acknowledged."""
        table = self.tables.pop(table_id)
        self._changed()
        log.info("a table waits no more", table=table.name, waited_seconds=round(time() - table.since))

    def skip(self, table_id: bytes, name: str, error: CdcError) -> None:
        """The table is not published any more, and what the log still has of it cannot be sent."""
        self.tables.pop(table_id, None)
        self.skipped |= {table_id}
        self._changed()
        log.warning(
            "skipping what the log still has of a table that is not published any more",
            code=Code.TABLE_WAITS.text,
            table=name,
            reason=error.code.text,
            problem=error.problem,
        )

    def skip_no_more(self, table_ids: Iterable[bytes]) -> None:
        """These tables are published."""
        if rest := self.skipped & set(table_ids):
            self.skipped -= rest
            self._changed()

    def let_go_oldest(self, among: Container[int]) -> list[bytes]:
        """Give up the oldest of the segments `among`: the tables that it is held for lose what is held for them. Their
        ids.
        """
        oldest = min(segment for segment in self.segments() if segment in among)
        found = [table_id for table_id, table in self.tables.items() if oldest in table.held]
        for table_id in found:
            self.lose(table_id)
        return found

    def lose(self, table_id: bytes) -> None:
        """Something of what was held for the table cannot be sent any more."""
        table = self.tables[table_id]
        table.held.clear()
        table.has_lost = True
        self._changed()
        log.error(
            "a waiting table has lost changes",
            code=Code.NEEDS_SNAPSHOT.text,
            table=table.name,
            reason=table.reason.code,
            fix="Solve its problem, then take a snapshot of the table.",
        )

    def segments(self) -> set[int]:
        """The segments that are held."""
        return {segment for table in self.tables.values() for segment in table.held}

    def passed_over(self, segment: int) -> frozenset[bytes]:
        """The tables held back whose mutations in this segment need no attention: they are held already, or lost."""
        tables = self.tables
        return frozenset(
            table_id for table_id in self.held_back if tables[table_id].has_lost or segment in tables[table_id].held
        )

    def shown(self) -> tuple[ShownTable, ...]:
        """The tables, for the status."""
        return tuple(sorted(ShownTable(table.name, table.reason.code, table.text()) for table in self.tables.values()))

    def save(self) -> None:
        """Make the changes durable."""
        if self._is_saved:
            return
        state_files.write(self._file, {"tables": {key.hex(): _to_json(table) for key, table in self.tables.items()}})
        self._is_saved = True

    def _changed(self) -> None:
        self._is_saved = False
        self.held_back = frozenset(self.tables)
        self.edition += 1


def _table(stored: Mapping[str, Any]) -> WaitingTable:
    return WaitingTable(
        str(stored["name"]),
        Reason(*map(str, stored["reason"])),
        float(stored["since"]),
        {int(segment): int(position) for segment, position in stored["held"].items()},
        bool(stored["has_lost"]),
    )


def _to_json(table: WaitingTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "reason": list(table.reason),
        "since": table.since,
        "held": {str(segment): position for segment, position in table.held.items()},
        "has_lost": table.has_lost,
    }
