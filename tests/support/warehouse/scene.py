"""A topic in memory whose messages are loaded into a table, and the plain fold that the table must equal."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages import wire
from stream_runtime.records import SourcePartition
from tests.support.archive.scene import ENVELOPE, MemoryRegistry, Topic, encode_avro
from warehouse.loading.table_task import Source, TableTask, TaskSettings
from warehouse.records import TableName
from warehouse.tables.forms import CURRENT, Form
from warehouse.tables.schemas import Schemas
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.loader import Loader
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warehouse.targets.connection import Connection

TOPIC = "cdc.shop.orders"
TABLE = TableName("shop", "orders")
KEY_SCHEMA: dict[str, Any] = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
KEY_ID = 1
EVERYTHING = TaskSettings(10**9, 10**12, 0.0, nulls_refused=False)
Row = dict[str, Any]


def envelope(fields: list[Any]) -> Any:  # noqa: ANN401 - JSON
    """The schema of change messages with these fields in a row."""
    schema: Any = deepcopy(ENVELOPE)
    schema["fields"][1]["type"][1]["fields"] = fields
    return schema


def nullable(name: str, kind: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": name, "type": ["null", kind], "default": None, **more}


ID = {"name": "id", "type": "int"}
SCHEMAS: dict[int, Any] = {
    KEY_ID: KEY_SCHEMA,
    10: envelope([ID, nullable("name", "string")]),
    11: envelope([ID, nullable("name", "string"), nullable("qty", "int")]),
    12: envelope([ID, nullable("qty", "long"), nullable("tags", {"type": "array", "items": "string"})]),
    13: envelope([ID, nullable("title", "string", aliases=["name"]), nullable("qty", "long")]),
}
"""By id: a column is added; another one widened and one dropped; one is renamed."""


class Sent(NamedTuple):
    """A change message."""

    key: int
    op: str
    sequence: int
    time_us: int
    # The row after it; of one that deletes, before it.
    image: Row


class Shop:
    """A change topic with the rows that it describes."""

    def __init__(self, partitions: int = 2, schemas: Mapping[int, Any] = SCHEMAS) -> None:
        self.topic = Topic(partitions, MemoryRegistry(schemas))
        self.changes: list[list[tuple[int, Row | None]]] = [[] for _ in range(partitions)]
        """Of each partition: key and row, None where it is deleted; one for each message."""
        self.sent: list[list[Sent | None]] = [[] for _ in range(partitions)]
        """Of each partition, for each message: what was sent; None for a tombstone."""
        self._sequences: dict[int, int] = {}
        self._rows: dict[int, Row] = {}

    def put(self, key: int, schema_id: int, **row: Any) -> None:  # noqa: ANN401 - values
        self._send(key, schema_id, {"id": key, **row})

    def delete(self, key: int, schema_id: int) -> None:
        self._send(key, schema_id, None)

    def put_after(self, before: Row | None, key: int, schema_id: int, **row: Any) -> None:  # noqa: ANN401 - values
        """As `put`. The change says that the row was another one before."""
        del self._rows[key]
        if before is not None:
            self._rows[key] = {"id": key, **before}
        self._send(key, schema_id, {"id": key, **row})

    def _send(self, key: int, schema_id: int, row: Row | None) -> None:
        partition = key % self.topic.shape.partitions
        self._sequences[key] = sequence = self._sequences.get(key, 0) + 1 + key
        before, time_us = self._rows.pop(key, None), sequence * 7919 % 11 * 1000
        source = {"ts_us": time_us, "row_sequence": sequence}
        change = {"op": "u" if row else "d", "before": before, "after": row, "source": source, "ts_ms": 0}
        self.topic.send(partition, self.topic.encode(schema_id, change), key_bytes(key))
        self.changes[partition].append((key, row))
        fields = [field["name"] for field in SCHEMAS[schema_id]["fields"][1]["type"][1]["fields"]] if before else []
        image = row if row or before is None else {name: before.get(name) for name in fields}
        self.sent[partition].append(Sent(key, "u" if row else "d", sequence, time_us, image or {}))
        if row is not None:
            self._rows[key] = row
        if row is None:
            self.topic.send(partition, None, key_bytes(key))
            self.changes[partition].append((key, None))
            self.sent[partition].append(None)

    def rows_at(self, offsets: Mapping[int, int]) -> dict[int, Row]:
        """The plain fold: the rows by key, up to these offsets."""
        found: dict[int, Row] = {}
        for partition, changes in enumerate(self.changes):
            for key, row in changes[: offsets.get(partition, 0)]:
                if row is None:
                    found.pop(key, None)
                else:
                    found[key] = row
        return found


def key_bytes(key: int) -> bytes:
    return wire.header(KEY_ID) + encode_avro(KEY_SCHEMA, {"id": key})


class Warehouse:
    """A table that a topic is loaded into."""

    def __init__(self, topic: Topic, connect: Callable[[], Connection], form: Form = CURRENT) -> None:
        self.topic = topic
        self.connect = connect
        self.form = form
        self.table = TABLE._replace(table=TABLE.table + form.suffix)
        self.settings = EVERYTHING
        self.deleted_days = 0.0
        self.loader = Loader(connect(), "cdc_warehouse", form)
        self.loader.prepare()
        self.loader.connection.release()

    def open(self) -> TableTask:
        """A task with a connection of its own, as another process has it."""
        loader = Loader(self.connect(), "cdc_warehouse", self.form, self.deleted_days)
        schemas = Schemas(self.topic.registry, TOPIC)
        return TableTask(Source(self.table, TOPIC, self.topic.shape), loader, schemas, self.settings)

    def take(self, task: TableTask, most: int) -> None:
        """Read each partition once."""
        for partition, offset in task.offsets.items():
            batch, following = self.topic.read(SourcePartition(TOPIC, partition), offset or 0, most)
            task.take(partition, batch, following)

    def run(self, most: int = 1000) -> None:
        """Load until nothing is left to read."""
        task = self.open()
        try:
            while any((task.offsets[number] or 0) < end for number, end in enumerate(self.topic.ends)):
                self.take(task, most)
                task.load_due()
        except LoadTakenError:
            self.run(most)
        finally:
            task.close()

    def offsets(self) -> Mapping[int, int]:
        """The offsets that the table is at."""
        state = self.loader.read_state(self.table)
        return {} if state is None else state.offsets

    def rows(self, *own: str) -> list[Row]:
        """The table's rows. own: those of the warehouse's own columns, as SQL."""
        state = self.loader.read_state(self.table)
        if state is None:
            return []
        names = [column.fields[0] for column in state.columns]
        columns = ", ".join([*own, *(f'"{column.name}"' for column in state.columns)])
        found = self.loader.connection.run(f"SELECT {columns} FROM {full_name(self.table)}")
        return [dict(zip([*own, *names], values, strict=True)) for values in found]

    def close(self) -> None:
        self.loader.connection.close()
