"""How a join's state grows, and what that costs: bytes of a row, CPU of a change, and memory of a large group.

Orders meet their users, ten orders each. Columns are random bytes, which do not compress. The state is a RocksDB, whose
size is that of a snapshot. No servers: what Kafka's clients and Spark cost comes on top.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import deque
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil

from cdc_common.messages.avro.encoding import VALUE, encode_bytes, encode_long
from dev.bench.joinery import INTERNAL, SHAPE
from dev.bench.results import report
from joinery.internal.codec import encode
from joinery.job.join_processor import JoinProcessor
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from joinery.records import Stage
from stream_runtime.records import Record
from stream_runtime.source_batch import MessageGroups
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version
from tests.support.joinery import tables
from tests.support.joinery.changelogs import mark_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dev.bench.results import Figures
    from stream_runtime.state.rocksdb import LocalStore

ROWS = (100_000, 1_000_000, 3_000_000)
GROUPS = (10_000, 100_000, 1_000_000)
FAN_OUT = 10
UPDATES = 20_000
CHUNK = 10_000
PART_BYTES = 8 << 20
NOTE_BYTES = 40
MIB = 1 << 20
ORDERS_INPUT, USERS_INPUT = 0, 1
GOAL_FACTOR, GOAL_BYTES = 1.25, 24
RANDOM = random.Random(1)  # noqa: S311 - not for secrets


class StateBench:
    """A join of orders with their users whose messages are made one after the other."""

    def __init__(self, folder: Path) -> None:
        plan = tables.plan_of(select=["o.id as order_id", "o.note", "u.name as user_name"])
        stage = Stage(plan, {}, "internal", SHAPE, "target", 3, 4)
        self.store: LocalStore = open_local_store(folder)
        self.rows = self.bytes = 0
        self._processor = JoinProcessor(stage, INTERNAL, PART_BYTES)
        self._offset = 0

    def order(self, number: int, user: int, sequence: int = 1) -> Routed:
        note = VALUE + encode_bytes(RANDOM.randbytes(NOTE_BYTES))
        row = Row(Group(encode_long(user)), encode_long(number), note)
        return Routed(Kind.UPDATE if sequence > 1 else Kind.PUT, row, Origin(ORDERS_INPUT, 0, number, sequence, 0, "w"))

    def user(self, number: int, sequence: int = 1) -> Routed:
        name = VALUE + encode_bytes(RANDOM.randbytes(NOTE_BYTES))
        row = Row(Group(encode_long(number)), b"", name)
        return Routed(Kind.UPDATE if sequence > 1 else Kind.PUT, row, Origin(USERS_INPUT, 0, number, sequence, 0, "w"))

    def load(self, messages: Iterable[Routed]) -> None:
        """Join messages, and count their rows."""

        def counted() -> Iterator[Routed]:
            for routed in messages:
                self.rows += 1
                self.bytes += len(routed.row.group.key) + len(routed.row.ident) + len(routed.row.columns)
                yield routed

        self.join(counted())

    def join(self, messages: Iterable[Routed]) -> int:
        """Join messages. The number of changes of joined rows."""
        made = 0
        left = iter(messages)
        while records := self.records(islice(left, CHUNK)):
            made += self.join_records(records)
        return made

    def records(self, messages: Iterable[Routed]) -> list[Record]:
        """The messages in bytes."""
        made = [Record(*encode(routed), self._offset + at, 0) for at, routed in enumerate(messages)]
        self._offset += len(made)
        return made

    def join_records(self, records: list[Record], after_part: Callable[[], None] = lambda: None) -> int:
        """Join records, in parts. The number of changes of joined rows."""
        made = 0
        while records:
            part = records[:CHUNK]
            result = self._processor.fold(self.store, part)
            messages = self._processor.messages(INTERNAL, result)
            if not isinstance(messages, MessageGroups):  # those are sent as they are
                deque(messages, maxlen=0)
            after_part()
            records = records[len(part) - result.left :]
            made += result.total
            head = Head(next_version(self.store.version), self._offset, 0, 1)
            self.store.apply(Changelog(head, self.store.version, 0, result.writes))
        return made

    def begin(self) -> None:
        """The state is loaded from the first message on; its joined rows are sent now."""
        self.join([mark_of(of, 0, partitions=1) for of in (ORDERS_INPUT, USERS_INPUT)])

    def stored_bytes(self) -> int:
        """The bytes of a snapshot."""
        copy = self.store.copy()
        try:
            return sum(path.stat().st_size for path, _ in copy.files())
        finally:
            copy.remove()


def measure_size(rows: int) -> Figures:
    """Bytes of a row, and CPU seconds per million changes of random orders that meet one user."""
    users = rows // (FAN_OUT + 1)
    orders = rows - users
    with tempfile.TemporaryDirectory() as folder:
        bench = StateBench(Path(folder))
        with closing(bench.store):
            bench.begin()
            bench.load(bench.order(number, number % users) for number in range(orders))
            bench.load(bench.user(number) for number in range(users))
            stored = bench.stored_bytes() / bench.rows
            goal = GOAL_FACTOR * bench.bytes / bench.rows + GOAL_BYTES
            chosen = [RANDOM.randrange(orders) for _ in range(UPDATES)]
            updates = bench.records(bench.order(number, number % users, 2 + at) for at, number in enumerate(chosen))
            started = time.process_time()
            made = bench.join_records(updates)
            seconds = time.process_time() - started
    assert made == UPDATES, made
    return {"bytes a row": stored, "goal": goal, "CPU s per million changes": seconds / UPDATES * 1e6}


def measure_group(rows: int) -> Figures:
    """Memory while a user changes that meets all orders of a group, and CPU seconds per million joined rows."""
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        bench = StateBench(Path(folder))
        with closing(bench.store):
            bench.begin()
            bench.load(bench.order(number, 7) for number in range(rows))
            before = process.memory_info().rss
            seen = [before]
            change = bench.records([bench.user(7)])
            started = time.process_time()
            made = bench.join_records(change, lambda: seen.append(process.memory_info().rss))
            seconds = time.process_time() - started
    assert made == rows, made
    return {"MiB more": (max(seen) - before) / MIB, "CPU s per million joined rows": seconds / rows * 1e6}


@click.command()
@click.option("--rows", multiple=True, type=int, default=ROWS, help="Sizes of states. Repeatable.")
@click.option("--groups", multiple=True, type=int, default=GROUPS, help="Sizes of a group. Repeatable.")
def main(rows: tuple[int, ...], groups: tuple[int, ...]) -> None:
    """Measure states of several sizes, and groups of several sizes."""
    found = {f"{count:,} rows": measure_size(count) for count in rows}
    found |= {f"group of {count:,}": measure_group(count) for count in groups}
    report("joinery-state", "States of joins", found, {"updates": UPDATES, "fan_out": FAN_OUT})


if __name__ == "__main__":
    main()
