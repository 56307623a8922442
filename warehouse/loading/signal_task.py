"""The task of a table that is loaded by signals: the warehouse copies the objects that they name.

1. Read the table's state. Its offsets say which signals are loaded, and where to read signals on.
2. Take signals until a load is due: by their number, or by time. Those of a partition follow each other.
3. Load their objects in one transaction of the warehouse with the offsets after them.

After any exception a task must be closed. The next one reads the state, which says whether the last load was done.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.fault_points import reach
from stream_runtime.records import SourcePartition, TopicShape
from warehouse.fault_points import WarehousePoint
from warehouse.faults import WAREHOUSE_FAULTS, offsets_differ, signal_unreadable, state_foreign, table_paused
from warehouse.loading.report import LoadReport
from warehouse.records import Load, ObjectField, ObjectGroup, State, TableName
from warehouse.signals import Signal
from warehouse.tables.columns import taken_columns
from warehouse.tables.types import sql_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stream_runtime.source_batch import SourceBatch
    from warehouse.loading.table_columns import ColumnRules
    from warehouse.records import Column, StoredObject
    from warehouse.tables.schemas import RowSchema, Schemas
    from warehouse.targets.loader import Loader


class SignalSettings(NamedTuple):
    """When a task loads."""

    # The number of signals after which it loads.
    signals: int
    # The time after the first of them, in seconds.
    seconds: float


class SignalSource(NamedTuple):
    """What a task loads."""

    # The table.
    table: TableName
    # The topic whose messages are in the objects.
    topic: str
    # The topic of the signals.
    signals: str
    # Its partitions and its id.
    shape: TopicShape


@dataclass
class _Taken:
    """What is taken and not loaded."""

    # The signals, in the order in which they were read.
    signals: list[Signal] = field(default_factory=list)
    # When the first of them was taken.
    since: float | None = None


class SignalTask:
    """The open task of a table. `offsets`: the next offset of each partition of signals that it takes."""

    def __init__(
        self,
        source: SignalSource,
        loader: Loader,
        schemas: Schemas,
        rules: ColumnRules,
        settings: SignalSettings,
    ) -> None:
        """Step 1. CdcError."""
        self._source = source
        self._loader = loader
        self._schemas = schemas
        self._rules = rules
        self._settings = settings
        self.state = loader.read_state(source.table)
        self._check_state()
        state = self.state
        known = {} if state is None or state.signals_id != source.shape.topic_id else state.signals
        self.offsets: dict[int, int | None] = {number: known.get(number) for number in range(source.shape.partitions)}
        self._ends: dict[int, int] = {} if state is None else dict(state.offsets)
        self._topic_id = "" if state is None else state.topic_id
        self._taken = _Taken()

    def take(self, partition: int, batch: SourceBatch | None, following: int) -> None:
        """Step 2: messages of a partition of signals, which end before `following`. CdcError."""
        start = self.offsets[partition]
        if batch is not None:
            if start is not None and batch[0].offset < start:
                raise ValueError(f"partition {partition} was read from {batch[0].offset}, and not from {start}")
            for message in batch:
                self._take(self._decode(partition, message.offset, message.value))
        self.offsets[partition] = following
        reach(WarehousePoint.BATCH_TAKEN)

    def load_due(self) -> LoadReport | None:
        """Step 3, if it is time. CdcError. LoadTakenError if another task has loaded the table."""
        taken, before, settings = self._taken, self.state, self._settings
        if taken.since is None:
            return None
        if len(taken.signals) < settings.signals and time.monotonic() - taken.since < settings.seconds:
            return None
        objects = [found for signal in taken.signals for found in signal.objects]
        if before is None and not any(found.fields for found in objects):
            return None  # nothing says yet what columns the table has
        started = time.monotonic()
        ids = {found.schema_id for found in objects if found.schema_id is not None}
        schemas = {schema_id: self._schemas.find(schema_id) for schema_id in ids}
        columns, schema_id, comments = self._rules.merge(before, schemas.values())
        after = State(
            1 if before is None else before.version + 1,
            self._source.topic,
            self._topic_id,
            {**({} if before is None else before.offsets), **{one.partition: one.end for one in taken.signals}},
            columns,
            schema_id,
            signals={partition: offset for partition, offset in self.offsets.items() if offset is not None},
            signals_id=self._source.shape.topic_id,
        )
        groups = tuple(self._groups(objects, schemas, columns))
        reach(WarehousePoint.LOAD_DECIDED)
        self._loader.load(Load(self._source.table, before, after, _starts(taken.signals), (), comments, groups))
        self.state, self._taken = after, _Taken()
        migrations = int(before is not None and before.columns != columns)
        rows, messages = sum(found.rows for found in objects), sum(one.end - one.start for one in taken.signals)
        return LoadReport(1, messages, rows, 0, migrations, time.monotonic() - started, after.signals)

    def close(self) -> None:
        """Give up what is taken and not loaded."""
        self._loader.connection.release()

    def _check_state(self) -> None:
        """CdcError if the state does not continue with this topic, or if somebody has paused the table."""
        state, source = self.state, self._source
        if state is None:
            return
        if state.topic != source.topic:
            raise state_foreign(source.table, f"is that of the topic {state.topic}, and not of {source.topic}")
        if state.paused:
            raise table_paused(source.table, state.paused)

    def _decode(self, partition: int, offset: int, value: bytes | None) -> Signal:
        where = SourcePartition(self._source.signals, partition)
        try:
            signal = Signal.decode(value or b"")
        except (ValueError, KeyError, TypeError) as error:
            raise signal_unreadable(where, offset) from error
        if signal.topic != self._source.topic or signal.dialect != self._rules.dialect.objects:
            raise signal_unreadable(where, offset)
        return signal

    def _take(self, signal: Signal) -> None:
        """Signals at or below the table's offsets are loaded already. Others begin where the ones before end."""
        self._topic_id = self._topic_id or signal.topic_id
        if signal.topic_id != self._topic_id:
            raise WAREHOUSE_FAULTS.topic_recreated(self._source.topic)
        known = self._ends.get(signal.partition)
        if known is not None and signal.end <= known:
            return
        if known is not None and signal.start != known:
            raise offsets_differ(self._source.table, signal.topic, signal.partition, known, signal.start)
        self._ends[signal.partition] = signal.end
        self._taken.signals.append(signal)
        if self._taken.since is None:
            self._taken.since = time.monotonic()

    def _groups(
        self, objects: Iterable[StoredObject], schemas: Mapping[int, RowSchema], columns: Sequence[Column]
    ) -> Iterator[ObjectGroup]:
        """The objects that have the same columns."""
        found: dict[tuple[int | None, tuple[str, ...]], list[StoredObject]] = {}
        for one in objects:
            found.setdefault((one.schema_id, one.fields), []).append(one)
        for (schema_id, names), members in found.items():
            fields = self._fields(names, None if schema_id is None else schemas[schema_id], columns)
            yield ObjectGroup(tuple(fields), tuple(members))

    def _fields(
        self, names: Sequence[str], schema: RowSchema | None, columns: Sequence[Column]
    ) -> Iterator[ObjectField]:
        if schema is None:
            return
        by_name = {one.name: one for one in schema.fields}
        taken = {name: column for column, name in taken_columns(columns, names)}
        for name in names:
            one = by_name[name]
            yield ObjectField(sql_type(one.form, self._rules.dialect, is_json=one.is_json), taken.get(name))


def _starts(signals: Iterable[Signal]) -> dict[int, int]:
    """The first offset of each partition."""
    starts: dict[int, int] = {}
    for signal in signals:
        starts.setdefault(signal.partition, signal.start)
    return starts
