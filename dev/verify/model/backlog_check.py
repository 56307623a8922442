"""Schema changes within backlogs: a program stops for statements and seconds, and every event must come.

All seeds are written at the same time, each to a keyspace of its own: a job takes long to start.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.process.lifecycle import Restartable
from dev.verify.model.backlog import Backlog
from dev.verify.model.backlog_judge import event_problems, select_problems
from dev.verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from dev.local_stack.clients.change import Change
    from dev.verify.model.backlog_model import ExpectedTable
    from dev.verify.model.check import Run

CHANGES_EVERY = 25  # statements, about
STOPS = 3  # of the job in a seed
QUIET_SECONDS = 8.0
PATIENCE = 5  # so many times longer while they are not as expected: a TRUNCATE and a DROP take effect later
MOST_SECONDS = 420.0
MARKED_SECONDS = 300.0  # a publisher that makes many topics is busy
PARTS = 2 * STOPS + 1  # a program is stopped during every second one
AT_A_TIME = 5  # seeds that are written: more schema changes at once are too slow for the client's timeout


@dataclass(slots=True)
class BacklogResult:
    """The result of a seed."""

    # The seed.
    seed: int
    # The name of the program that was stopped.
    stopped: str
    # The number of statements.
    statements: int = 0
    # The number of events.
    events: int = 0
    # The number of schema changes in each backlog of the stopped program.
    backlogs: list[int] = field(default_factory=list)
    # The time that the seed took, in s.
    seconds: float = 0.0
    # A line for each difference.
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

    # The program.
    program: Restartable[Any]
    # Whether it is a publisher, which stands still; otherwise it is the job, which ends and starts again.
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
    """Tells when the publisher has read the log as far as it goes. Close it."""

    def __init__(self, run: Run, keyspace: str) -> None:
        self._client, self._table = run.client, f"{keyspace}.rows"
        self._push = run.push
        self._number = 0
        self._client.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {run.replication}")
        self._client.execute(f"CREATE TABLE {self._table} (id int PRIMARY KEY) WITH cdc = true")
        self._consumer = Consumer({"bootstrap.servers": run.servers.kafka, "group.id": "marker"})
        self._topic = raw_topic(run.servers.topic_prefix, keyspace, "rows")
        self._await_topic()

    def close(self) -> None:
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


class SeedBacklog:
    """The keyspaces of a seed, and what comes of them. A context manager."""

    def __init__(self, run: Run, stopped: Stopped, seed: int, prefix: str) -> None:
        self.result = BacklogResult(seed, stopped.name)
        self.keyspace = f"{prefix}{stopped.name}_backlog_{seed}"
        self._marks = f"{prefix}{stopped.name}_marks_{seed}"
        self._run = run
        self._is_publisher_stopped = stopped.is_publisher
        self._pick = random.Random(f"backlogs {seed}")
        self._marker = Marker(run, self._marks)
        self._reader = ChangeReader.of_keyspace(run.servers, self.keyspace)
        self._backlog = Backlog(run.schema_client, self.keyspace, run.replication, seed, self._marker.barrier)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
        self._marker.close()

    @property
    def tables(self) -> list[tuple[str, str]]:
        return [(self.keyspace, table.name) for table in self._backlog.tables]

    def write(self, count: int, *, is_stopped: bool) -> None:
        """Write so many statements, with changes of the schema among them."""
        before, left = self._backlog.changes, count
        if is_stopped:
            self._backlog.begin_stop()
        while left > 0:
            some = min(left, self._pick.randint(1, 2 * CHANGES_EVERY))
            self._backlog.write(some)
            self._backlog.change(is_published=not (is_stopped and self._is_publisher_stopped))
            left -= some
        if is_stopped:
            self.result.backlogs.append(self._backlog.changes - before)

    def finish(self) -> None:
        self._backlog.finish()

    def judge(self, stuck: Mapping[str, str]) -> None:
        """Compare, once all is settled. stuck: raw topics that stand still, and why."""
        changes = read(self._reader, self._backlog.tables)
        raw_topics = [raw_topic(self._run.servers.topic_prefix, *table) for table in self.tables]
        self.result.statements, self.result.events = self._backlog.statements, len(changes)
        self.result.problems = [
            *(f"{topic}: {stuck[topic]}" for topic in raw_topics if topic in stuck),
            *select_problems(self._run.client, self._backlog),
            *(line for table in self._backlog.tables for line in event_problems(table, changes)),
        ]

    def drop(self) -> None:
        for name in (self.keyspace, self._marks):
            self._run.schema_client.execute(f"DROP KEYSPACE {name}")


def check_backlogs(
    run: Run,
    stopped: Stopped,
    seeds: Sequence[int],
    statements: int,
    check_programs: Callable[[], None],
    prefix: str = "",
) -> list[BacklogResult]:
    """Write so many statements of each seed while a program runs and while it does not, and compare. `check_programs`
    raises if a program has ended; `prefix` makes the names of the keyspaces others than those of the same seed before.
    """
    start = time.monotonic()
    pick = random.Random(f"stops {seeds}")
    with ExitStack() as exits, ThreadPoolExecutor(AT_A_TIME) as pool:
        made = pool.map(partial(SeedBacklog, run, stopped, prefix=prefix), seeds)
        backlogs = [exits.enter_context(one) for one in made]
        for part in range(PARTS):
            is_stopped = bool(part % 2)
            with stopped.for_a_while(pick.uniform(0.0, run.pause_seconds)) if is_stopped else ExitStack():
                run_all(pool, [partial(one.write, statements // PARTS, is_stopped=is_stopped) for one in backlogs])
        run_all(pool, [one.finish for one in backlogs])
        tables = [table for one in backlogs for table in one.tables]
        with TopicSettler(run.client, run.servers, run.replication, run.push) as settler:
            stuck = settler.wait_until_settled(tables, check_programs)
        run_all(pool, [partial(one.judge, stuck) for one in backlogs])
        for one in backlogs:
            one.result.seconds = time.monotonic() - start
            one.drop()
    return [one.result for one in backlogs]


def run_all(pool: ThreadPoolExecutor, calls: Sequence[Callable[[], None]]) -> None:
    """Run them at the same time. Raise the error of the first one that fails."""
    for future in [pool.submit(call) for call in calls]:
        future.result()


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
