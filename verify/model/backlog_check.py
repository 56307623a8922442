"""One seed of schema changes within backlogs: a program stops for statements and seconds, and every event must come.

A row that moves to another topic has a `d` and an `r` of the cause `moved` there, wherever its move falls among its
changes. These are checked as pairs. A pair whose images are equal is left out of the comparison; another one is the
change that the schema of the new topic makes.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from cdc_messages.topics import raw_topic
from local_stack.clients.change_reader import Change, ChangeReader
from local_stack.clients.history import changes_nothing
from local_stack.process.lifecycle import Restartable
from verify.model.backlog import Backlog
from verify.model.backlog_model import Expected, Key
from verify.model.outcome import base_of
from verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from local_stack.clients.cql import CqlClient
    from verify.model.backlog_model import ExpectedTable, Image, Kind
    from verify.model.check import Run

CHANGES_EVERY = 25  # statements, about
STOPS = 3  # of the job in a seed
QUIET_SECONDS = 8.0
PATIENCE = 5  # so many times longer while they are not as expected: a TRUNCATE and a DROP take effect later
MOST_SECONDS = 420.0
MARKED_SECONDS = 300.0  # a publisher that makes many topics is busy
SHOWN = 3  # events around a difference


@dataclass(slots=True)
class BacklogResult:
    """`backlogs`: how many schema changes were in each backlog of the program that was `stopped`."""

    seed: int
    stopped: str
    statements: int = 0
    events: int = 0
    backlogs: list[int] = field(default_factory=list)
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        return (
            f"backlogs of seed {self.seed}: {self.statements} statements, {self.events} events, schema changes while "
            f"the {self.stopped} was stopped: {self.backlogs}, {len(self.problems) or 'no'} problems "
            f"({self.seconds:.0f} s)"
        )


class Stopped(NamedTuple):
    """The program that is stopped: the job ends and starts again, a publisher stands still."""

    program: Restartable[Any]
    is_publisher: bool = False

    @property
    def name(self) -> str:
        return "publisher" if self.is_publisher else "job"

    @contextmanager
    def for_a_while(self, seconds: float) -> Iterator[None]:
        """Stop it for what is done within, and so many seconds more."""
        program = self.program
        (program.pause if self.is_publisher else program.stop)()
        try:
            yield
            time.sleep(seconds)
        finally:
            (program.resume if self.is_publisher else program.start)()


class Marker:
    """Tells when the publisher has read the log as far as it goes. A context manager."""

    def __init__(self, run: Run, keyspace: str) -> None:
        self._client, self._table = run.client, f"{keyspace}.rows"
        self._push = run.push
        self._number = 0
        self._client.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {run.replication}")
        self._client.execute(f"CREATE TABLE {self._table} (id int PRIMARY KEY) WITH cdc = true")
        self._consumer = Consumer({"bootstrap.servers": run.servers.kafka, "group.id": "marker"})
        self._topic = raw_topic(run.servers.topic_prefix, keyspace, "rows")
        self._await_topic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def barrier(self) -> None:
        """Write a row, and return when its raw message is there."""
        self._number += 1
        wanted = self._number.to_bytes(4, "big")
        self._client.execute_at_all(f"INSERT INTO {self._table} (id) VALUES ({self._number})")
        self._push()
        deadline = time.monotonic() + MARKED_SECONDS
        while not any(message.key() == wanted for message in self._consumer.consume(500, 0.05)):
            assert time.monotonic() < deadline, "the publisher does not read the log"

    def _await_topic(self) -> None:
        deadline = time.monotonic() + MARKED_SECONDS
        while not (found := self._consumer.list_topics(timeout=10).topics.get(self._topic)):
            assert time.monotonic() < deadline, f"no topic {self._topic}"
            time.sleep(0.2)
        self._consumer.assign([TopicPartition(self._topic, at, OFFSET_END) for at in found.partitions])
        self._consumer.poll(1.0)


class Event(NamedTuple):
    """A change of one row, its key by the values alone."""

    key: Key
    sequence: int
    change: Change


def check_backlogs(
    run: Run, stopped: Stopped, seed: int, statements: int, check_programs: Callable[[], None], prefix: str = ""
) -> BacklogResult:
    """Write while a program runs and while it does not, and compare. `check_programs` raises if a program has ended;
    `prefix` makes the names of the keyspaces others than those of the same seed before.
    """
    start = time.monotonic()
    result = BacklogResult(seed, stopped.name)
    keyspace = f"{prefix}{stopped.name}_backlog_{seed}"
    marks = f"{prefix}{stopped.name}_marks_{seed}"
    with (
        Marker(run, marks) as marker,
        ChangeReader.of_keyspace(run.servers, keyspace) as reader,
    ):
        backlog = Backlog(run.schema_client, keyspace, run.replication, seed, marker.barrier)
        pick = random.Random(f"stops {seed}")
        for part in range(2 * STOPS + 1):
            count = statements // (2 * STOPS + 1)
            if part % 2 == 0:
                write_part(backlog, pick, count, is_published=True)
                continue
            before = backlog.changes
            backlog.begin_stop()
            with stopped.for_a_while(pick.uniform(0.0, run.pause_seconds)):
                write_part(backlog, pick, count, is_published=not stopped.is_publisher)
            result.backlogs.append(backlog.changes - before)
        backlog.finish()
        with TopicSettler(run.client, run.servers, run.replication, run.push) as settler:
            stuck = settler.wait_until_settled([(keyspace, table.name) for table in backlog.tables], check_programs)
        changes = read(reader, backlog.tables)
        result.statements = backlog.statements
        result.events = len(changes)
        result.problems = [
            *(f"{topic}: {why}" for topic, why in stuck.items()),
            *select_problems(run.client, backlog),
            *(line for table in backlog.tables for line in event_problems(table, changes)),
        ]
    for name in (keyspace, marks):
        run.schema_client.execute(f"DROP KEYSPACE {name}")
    result.seconds = time.monotonic() - start
    return result


def write_part(backlog: Backlog, pick: random.Random, count: int, *, is_published: bool) -> None:
    left = count
    while left > 0:
        some = min(left, pick.randint(1, 2 * CHANGES_EVERY))
        backlog.write(some)
        backlog.change(is_published=is_published)
        left -= some


def read(reader: ChangeReader, tables: Sequence[ExpectedTable]) -> list[Change]:
    """The changes that have come when nothing more does for a while: a longer one while they are not as expected."""
    found: list[Change] = []
    start = last = time.monotonic()
    is_right = False
    while True:
        changes = [change for change in reader.poll(0.2) if change.value is not None]
        found += changes
        now = time.monotonic()
        if changes:
            last, is_right = now, not any(True for table in tables for _ in event_problems(table, found))
        if now - last > QUIET_SECONDS * (1 if is_right else PATIENCE) or now - start > MOST_SECONDS:
            return found


def is_moved(change: Change) -> bool:
    return change.value is not None and change.value["source"]["cause"] == "moved"


def select_problems(client: CqlClient, backlog: Backlog) -> Iterator[str]:
    """A line for each row that SELECT shows otherwise than the model: then the model is wrong."""
    for table in backlog.tables:
        shown = {}
        for row in client.rows(backlog.keyspace, table.name):
            key = tuple(row[name] for name in table.key)
            shown[(*key, None)[:2]] = image(table, row, {name: c.kind for name, c in table.columns.items()})
        expected = table.rows()
        for key in sorted(shown.keys() | expected.keys(), key=repr):
            if shown.get(key) != expected.get(key):
                yield f"{table.name} {key}: SELECT shows {shown.get(key)}, the model {expected.get(key)}"


def event_problems(table: ExpectedTable, changes: Sequence[Change]) -> Iterator[str]:
    """A line for each key whose events are not the model's, and for each break of a sequence."""
    came: dict[Key, list[Event]] = defaultdict(list)
    for change in changes:
        if base_of(change.table) == table.name:
            event = event_of(change)
            came[event.key].append(event)
    for key in sorted(came.keys() | table.events.keys(), key=repr):
        events = sorted(came.get(key, ()), key=lambda event: event.sequence)
        yield from (f"{table.name} {key}: {line}" for line in sequence_problems(events))
        yield from (
            f"{table.name} {key}: {line}"
            for line in compared(list(seen_events(table, events)), table.events.get(key, []))
        )


def event_of(change: Change) -> Event:
    assert change.value is not None
    first, second, *_ = *change.key.values(), None
    return Event((first, second), change.value["source"]["row_sequence"], change)


def sequence_problems(events: Sequence[Event]) -> Iterator[str]:
    """What is wrong in the events themselves: the sequence, no-op changes, and moves that are no pairs."""
    for before, after in itertools.pairwise(events):
        if after.sequence != before.sequence + 1:
            yield f"row_sequence {after.sequence} follows {before.sequence}"
    for event in events:
        value = event.change.value
        if value is not None and value["op"] == "u" and changes_nothing(value):
            yield f"row_sequence {event.sequence} changes nothing"
    moves = [value["op"] for event in events if is_moved(event.change) and (value := event.change.value)]
    if moves != ["d", "r"] * (len(moves) // 2):
        yield f"moves are not pairs: {moves}"


def compared(seen: Sequence[Expected], expected: Sequence[Expected]) -> Iterator[str]:
    """The first difference, with what is around it."""
    if list(seen) == list(expected):
        return
    at = next((at for at, pair in enumerate(zip(seen, expected, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(seen), len(expected)) if at is None else at
    yield (
        f"{len(seen)} events came of {len(expected)}; from event {at + 1} on came "
        f"{list(map(text, seen[at : at + SHOWN]))}, expected {list(map(text, expected[at : at + SHOWN]))}"
    )


def text(event: Expected) -> str:
    return f"{event.op} {dict(event.before or ())} -> {dict(event.after or ())}"


def seen_events(table: ExpectedTable, events: Iterable[Event]) -> Iterator[Expected]:
    """The operations and the images, as the model has them."""
    left: Image | None = None  # the row as it was in the topic that it leaves
    for event in events:
        value = event.change.value
        assert value is not None
        before, after = (
            None if value[which] is None else image(table, value[which], table.kinds) for which in ("before", "after")
        )
        if not is_moved(event.change):
            yield Expected(value["op"], before, after)
        elif value["op"] == "d":
            left = before
        elif after != left:
            yield Expected("u", left, after)


def image(table: ExpectedTable, row: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Image:
    """The columns that are not null, without the key's, whatever these were called."""
    found = {}
    for name, value in row.items():
        if name in table.key_names or value is None:
            continue
        kind = kinds.get(name)
        plain = repr(value) if kind is None else kind.shown(kind.plain(value))
        if plain is not None:
            found[name] = plain
    return tuple(sorted(found.items()))
