"""CPU seconds per million changes of a join's two steps, by the native core and by Python code. No servers.

Orders meet their users. An order changes, and meets one user; a user changes, and meets ten orders; an order moves to
another user. Messages have 110 to 130 bytes. The state is a RocksDB. What Kafka's clients and Spark cost comes on top.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import fastavro

from cdc_common.messages import wire
from dev.bench.avro import encoded
from dev.bench.results import report
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from joinery.records import Stage
from stream_runtime.records import Record, SourcePartition, SourceRecord, TopicShape
from stream_runtime.source_batch import MessageGroups, SourceBatch
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version
from tests.support.joinery import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_runtime.records import Message
    from stream_runtime.state.rocksdb import LocalStore

ORDERS, CHUNK, ROUNDS = 20_000, 10_000, 3
FAN_OUT = 10
SCHEMAS = {1: tables.value_schema("users", tables.USERS), 2: tables.value_schema("orders", tables.ORDERS)}
SHAPE = TopicShape(1, "an-id")
INTERNAL = SourcePartition("internal", 0)


class _Schemas:
    """A catalogue that only knows schemas."""

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return SCHEMAS[schema_id]


class Workload(NamedTuple):
    """Changes of a table, while the state has all orders with their users."""

    # The table that changes.
    table: str
    # The changes.
    changes: list[SourceRecord]
    # How many joined rows change with each.
    fan_out: int


class Bench:
    """A join of orders with their users: an internal topic of one partition. Each user has FAN_OUT orders."""

    def __init__(self) -> None:
        plan = tables.plan_of()
        shapes = {given.schema.topic: SHAPE for given in plan.inputs}
        self.stage = Stage(plan, shapes, "internal", SHAPE, "target", 3, 4)
        users = [{"id": number, "name": f"Ada {number}", "city": None} for number in range(ORDERS // FAN_OUT)]
        orders = [self._order(number) for number in range(ORDERS)]
        moved = [{**order, "user_id": (order["user_id"] + 1) % len(users)} for order in orders]
        renamed = _changes(1, [(user, {**user, "name": "Bob"}) for user in users])
        self.users = _changes(1, [(None, user) for user in users])
        self.inserts = _changes(2, [(None, order) for order in orders])
        self.workloads = {
            "one row": Workload("orders", _changes(2, [(row, {**row, "total": 2.0}) for row in orders]), 1),
            f"fan-out {FAN_OUT}": Workload("users", renamed, FAN_OUT),
            "key move": Workload("orders", _changes(2, list(zip(orders, moved, strict=True))), 2),
        }

    def _order(self, number: int) -> dict[str, Any]:
        return {"id": number, "user_id": number * 7 % (ORDERS // FAN_OUT), "total": 1.0, "note": f"{number:020}"}

    def route_seconds(self, changes: Sequence[SourceRecord], *, in_core: bool) -> float:
        """CPU seconds per million changes of orders."""
        router = Router(self.stage, SourcePartition("cdc.shop.orders", 0), _Schemas())  # type: ignore[arg-type]
        given = SourceBatch.of(changes) if in_core else changes
        route = router.route_together if in_core else router.route_one_by_one
        return seconds(lambda: route(given)) / len(changes) * 1e6

    def join_seconds(self, workload: Workload, *, in_core: bool) -> float:
        """CPU seconds per million changes: their messages are read, joined, encoded and stored."""
        loaded = [*self._route("users", self.users), *self._route("orders", self.inserts), *self._marks()]
        updates = records_of(self._route(workload.table, workload.changes), len(loaded))
        with tempfile.TemporaryDirectory() as folder, closing(open_local_store(Path(folder))) as store:
            self._join(store, records_of(loaded, 0), in_core=True)
            started = time.process_time()
            made = self._join(store, updates, in_core=in_core)
            taken = time.process_time() - started
        assert made == len(workload.changes) * workload.fan_out
        return taken / len(workload.changes) * 1e6

    def _marks(self) -> list[Message]:
        """The messages that end the load: joined rows are sent once then."""
        sources = (SourcePartition(f"cdc.shop.{table}", 0) for table in ("users", "orders"))
        return [
            message
            for source in sources
            for message in Router(self.stage, source, _Schemas()).marks()  # type: ignore[arg-type]
        ]

    def _route(self, table: str, records: Sequence[SourceRecord]) -> list[Message]:
        router = Router(self.stage, SourcePartition(f"cdc.shop.{table}", 0), _Schemas())  # type: ignore[arg-type]
        return list(router.route_chunk(records).messages)

    def _join(self, store: LocalStore, records: Sequence[Record], *, in_core: bool) -> int:
        """Join the records in chunks. Return the number of changes of joined rows."""
        processor = JoinProcessor(self.stage, INTERNAL, 1 << 30, in_core=in_core)
        made = 0
        first = 0
        while first < len(records):
            chunk = records[first : first + CHUNK]
            result = processor.fold(store, chunk)
            first += len(chunk) - result.left
            made += result.total
            messages = processor.messages(INTERNAL, result)
            if not isinstance(messages, MessageGroups):  # those are sent as they are
                deque(messages, maxlen=0)
            head = Head(next_version(store.version), first, 0, 1)
            store.apply(Changelog(head, store.version, 0, result.writes))
        return made


def _changes(schema_id: int, images: Sequence[tuple[Any, Any]]) -> list[SourceRecord]:
    parsed = fastavro.parse_schema(SCHEMAS[schema_id])
    values = [
        wire.header(schema_id) + encoded(parsed, tables.envelope(before, after, 1 + (before is not None)))
        for before, after in images
    ]
    return [SourceRecord(b"key", value, number) for number, value in enumerate(values)]


def records_of(messages: Sequence[Message], first: int) -> list[Record]:
    return [Record(message.key, message.value or b"", first + at, 0) for at, message in enumerate(messages)]


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds, the median of the rounds."""
    found = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return statistics.median(found)


@click.command()
def main() -> None:
    """Measure both steps of a join."""
    bench = Bench()
    updates = bench.workloads["one row"].changes
    found = {
        "route": {
            "core": bench.route_seconds(updates, in_core=True),
            "Python": bench.route_seconds(updates, in_core=False),
        }
    }
    for name, workload in bench.workloads.items():
        found[name] = {
            way: statistics.median(bench.join_seconds(workload, in_core=in_core) for _ in range(ROUNDS))
            for way, in_core in (("core", True), ("Python", False))
        }
    report("joinery", "CPU seconds per million changes", found, {"changes": ORDERS, "rounds": ROUNDS})


if __name__ == "__main__":
    main()
