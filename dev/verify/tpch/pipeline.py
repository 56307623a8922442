"""Routes and joins in this process, by the modules that workers use."""

from __future__ import annotations

import io
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import fastavro

from cdc_common.messages import wire
from dev.verify.tpch.data import COLUMNS, KEYS
from joinery.audit.output import TargetFold
from joinery.audit.scratch import Scratch
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from joinery.planning.input_schema import InputSchema
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.planning.plan import plan_join
from joinery.records import Stage
from stream_runtime.records import Record, SourcePartition, SourceRecord, TopicShape
from tests.support.joinery import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dev.verify.tpch.data import Change
    from joinery.definition import Join

PARTITIONS = 2
SHAPE = TopicShape(1, "an-id")
CHUNK = 10_000
PART_BYTES = 8 << 20
_ALL = 1 << 62


class Catalogue:
    """The schemas of tables and of targets, by their ids."""

    def __init__(self) -> None:
        self.inputs: dict[str, InputSchema] = {}
        self._schemas: dict[int, Any] = {}

    def add(self, source: str, key: Any, value: Any) -> int:  # noqa: ANN401 - JSON
        """Add a source. The id of its values' schema."""
        self._schemas[len(self._schemas) + 1] = value
        self.inputs[source] = InputSchema.of(source, key, value)
        return len(self._schemas)

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return self._schemas[schema_id]


class TableLog:
    """The change messages of a table."""

    def __init__(self, catalogue: Catalogue, table: str) -> None:
        columns = COLUMNS[table]
        value = tables.value_schema(table, columns)
        key = tables.key_schema(table, {name: columns[name] for name in KEYS[table]})
        self._header = wire.header(catalogue.add(table, key, value))
        self._parsed = fastavro.parse_schema(value)
        self._next = 0

    def record(self, change: Change) -> SourceRecord:
        made = io.BytesIO()
        self._next += 1
        envelope = tables.envelope(change.before, change.after, self._next)
        fastavro.schemaless_writer(made, self._parsed, envelope)
        return SourceRecord(b"key", self._header + made.getvalue(), self._next)


class JoinRun:
    """A join in this process. routed, joined: CPU seconds. messages: how many of its inputs it has taken."""

    def __init__(self, join: Join, catalogue: Catalogue, folder: Path) -> None:
        self.routed = self.joined = 0.0
        self.messages = self.changes = 0
        self.plan = plan_join(join, {name: catalogue.inputs[given.source] for name, given in join.input.items()})
        keys, values = key_schema(self.plan), value_schema(self.plan)
        value_id = catalogue.add(join.target.source, keys, values)
        shapes = {given.schema.topic: SHAPE for given in self.plan.inputs}
        stage = Stage(self.plan, shapes, join.name, TopicShape(PARTITIONS, "x"), join.target.source, 0, value_id)
        schemas: Any = catalogue
        self._routers = {topic: Router(stage, SourcePartition(topic, 0), schemas) for topic in shapes}
        partitions = [SourcePartition(join.name, number) for number in range(PARTITIONS)]
        self._processors = [JoinProcessor(stage, partition, PART_BYTES) for partition in partitions]
        self._stores = [Scratch(folder / join.name / f"state-{number}") for number in range(PARTITIONS)]
        self._outputs = [Scratch(folder / join.name / f"rows-{number}") for number in range(PARTITIONS)]
        self._folds = [TargetFold(self.plan, schemas, _ALL, output) for output in self._outputs]
        self._values = fastavro.parse_schema(next(b for b in values["fields"][0]["type"] if b != "null"))
        self._next = self._sent = 0

    def take(self, topic: str, records: Sequence[SourceRecord]) -> list[SourceRecord]:
        """Route and join messages of an input. What comes out."""
        if topic not in self._routers:
            return []
        started = time.process_time()
        made = self._routers[topic].route_chunk(records)
        assert made.error is None, made.error
        self.routed += time.process_time() - started
        self.messages += len(records)
        return self._join(made.messages)

    def mark(self, topic: str) -> list[SourceRecord]:
        """All messages that an input had are taken."""
        return self._join(self._routers[topic].marks()) if topic in self._routers else []

    def rows(self) -> list[tuple[Any, ...]]:
        """The joined rows that the target has."""
        names = [field["name"] for field in self.plan.row_fields]
        found: list[tuple[Any, ...]] = []
        for output in self._outputs:
            for _, (_, data) in output.output():
                row: Any = fastavro.schemaless_reader(io.BytesIO(data), self._values, None)
                found.append(tuple(row[name] for name in names))
        return found

    def state_bytes(self) -> int:
        """The bytes of snapshots of all states."""
        total = 0
        for store in self._stores:
            copy = store.state.copy()
            total += sum(path.stat().st_size for path, _ in copy.files())
            copy.remove()
        return total

    def close(self) -> None:
        for store in (*self._stores, *self._outputs):
            store.close()

    def _join(self, messages: Iterable[Any]) -> list[SourceRecord]:
        by_partition: defaultdict[int, list[Record]] = defaultdict(list)
        for message in messages:
            self._next += 1
            by_partition[message.partition].append(Record(message.key, message.value or b"", self._next, 0))
        sent = []
        for number, records in by_partition.items():
            made = self._join_partition(number, records)
            self._folds[number].take(made)
            sent += made
        return sent

    def _join_partition(self, number: int, records: list[Record]) -> list[SourceRecord]:
        made: list[SourceRecord] = []
        processor, store = self._processors[number], self._stores[number]
        while records:
            part = records[:CHUNK]
            started = time.process_time()
            result = processor.fold(store.state, part)
            messages = processor.messages(SourcePartition(self.plan.join.name, number), result)
            store.apply(result.writes)
            self.joined += time.process_time() - started
            for message in messages:
                self._sent += 1
                made.append(SourceRecord(message.key, message.value, self._sent))
            self.changes += result.total
            records = records[len(part) - result.left :]
        return made
