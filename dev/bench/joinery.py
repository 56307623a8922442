"""CPU seconds per million changes of a join's two steps: to route them, and to join each with one row. No servers.

Orders are updated that have a user each: messages of 93 to 130 bytes, half of them with the row before the change. The
state is a RocksDB. What Kafka's clients and Spark cost comes on top.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import fastavro

from cdc_common.messages import wire
from dev.bench.avro import encoded
from dev.bench.results import report
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from joinery.records import Stage
from stream_runtime.records import Record, SourcePartition, SourceRecord, TopicShape
from stream_runtime.source_batch import SourceBatch
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version
from tests.support.joinery import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_runtime.records import Message
    from stream_runtime.state.rocksdb import LocalStore

USERS, ORDERS, CHUNK, ROUNDS = 5_000, 20_000, 2_000, 3
SCHEMAS = {1: tables.value_schema("users", tables.USERS), 2: tables.value_schema("orders", tables.ORDERS)}
SHAPE = TopicShape(1, "an-id")


class _Schemas:
    """A catalogue that only knows schemas."""

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return SCHEMAS[schema_id]


class Bench:
    """A join of orders with their users: an internal topic of one partition."""

    def __init__(self) -> None:
        plan = tables.plan_of()
        shapes = {given.schema.topic: SHAPE for given in plan.inputs}
        self.stage = Stage(plan, shapes, "internal", SHAPE, "target", 3, 4)
        self.rng = random.Random(1)  # noqa: S311 - the same in each run
        users = [{"id": number, "name": f"Ada {number}", "city": None} for number in range(USERS)]
        orders = [self._order(number) for number in range(ORDERS)]
        self.users = self._changes(1, [(None, user) for user in users])
        self.inserts = self._changes(2, [(None, order) for order in orders])
        self.updates = self._changes(2, [(order, {**order, "total": self.rng.random()}) for order in orders])

    def _order(self, number: int) -> dict[str, Any]:
        return {"id": number, "user_id": self.rng.randrange(USERS), "total": 1.0, "note": f"{number:020}"}

    def _changes(self, schema_id: int, images: Sequence[tuple[Any, Any]]) -> list[SourceRecord]:
        parsed = fastavro.parse_schema(SCHEMAS[schema_id])
        values = [
            wire.header(schema_id) + encoded(parsed, tables.envelope(before, after, 1 + (before is not None)))
            for before, after in images
        ]
        return [SourceRecord(b"key", value, number) for number, value in enumerate(values)]

    def route(self, table: str, records: Sequence[SourceRecord]) -> list[Message]:
        router = Router(self.stage, SourcePartition(f"cdc.shop.{table}", 0), _Schemas())  # type: ignore[arg-type]
        return list(router.route_chunk(records).messages)

    def route_seconds(self, *, by_core: bool) -> float:
        """CPU seconds per million changes."""
        router = Router(self.stage, SourcePartition("cdc.shop.orders", 0), _Schemas())  # type: ignore[arg-type]
        records = self.inserts[: ORDERS // 2] + self.updates[: ORDERS // 2]
        given = SourceBatch.of(records) if by_core else records
        route = router.route_together if by_core else router.route_one_by_one
        return seconds(lambda: route(given)) / len(records) * 1e6

    def join_seconds(self, folder: Path) -> float:
        """CPU seconds per million messages that each update one joined row: read, joined, encoded and stored."""
        messages = [self.route("users", self.users), *(self.route("orders", of) for of in (self.inserts, self.updates))]
        loaded = [message for part in messages[:2] for message in part]
        with closing(open_local_store(folder)) as store:
            self._join(store, records_of(loaded, 0))
            updates = records_of(messages[2], len(loaded))
            started = time.process_time()
            changes = self._join(store, updates)
            taken = time.process_time() - started
        assert changes == len(updates) == ORDERS
        return taken / len(updates) * 1e6

    def _join(self, store: LocalStore, records: Sequence[Record]) -> int:
        """Join the records in chunks. Return the number of messages of the target."""
        partition = SourcePartition("internal", 0)
        processor = JoinProcessor(self.stage, partition, 1 << 30)
        made = 0
        for first in range(0, len(records), CHUNK):
            result = processor.fold(store, records[first : first + CHUNK])
            assert not result.left
            made += len(list(processor.messages(partition, result)))
            head = Head(next_version(store.version), first, 0, 1)
            store.apply(Changelog(head, store.version, 0, result.writes))
        return made


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
    figures = {
        "route, by the core": bench.route_seconds(by_core=True),
        "route, by Python": bench.route_seconds(by_core=False),
    }
    joined = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            joined.append(bench.join_seconds(Path(folder)))
    figures["join with one row"] = statistics.median(joined)
    report("joinery", "CPU seconds per million changes", {"one row": figures}, {"changes": ORDERS, "rounds": ROUNDS})


if __name__ == "__main__":
    main()
