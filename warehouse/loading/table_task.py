"""The task of a table: it takes messages of a topic's partitions, and loads them together.

1. Read the table's state. Its offsets say where to read on.
2. Take messages, in memory, until a load is due: by rows, bytes or time.
3. Keep the newest version of each row, see that the columns can hold the values, and load them in one transaction of
   the warehouse with the offsets after them.

After any exception a task must be closed. The next one reads the state, which says whether the last load was done.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.fault_points import reach
from stream_runtime.records import SourcePartition, TopicShape
from warehouse.fault_points import WarehousePoint
from warehouse.faults import WAREHOUSE_FAULTS, state_foreign, table_paused
from warehouse.loading.fitting import Fitting
from warehouse.loading.report import LoadReport
from warehouse.loading.rows import RowMaker, SchemaRows, newest
from warehouse.loading.table_columns import ColumnRules
from warehouse.loading.tombstones import Tombstones
from warehouse.records import Load, State, TableName
from warehouse.tables.columns import PersonalData, loaded_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_runtime.source_batch import SourceBatch
    from warehouse.tables.schemas import RowSchema, Schemas
    from warehouse.targets.loader import Loader


class TaskSettings(NamedTuple):
    """When a task loads, and what it does with values that do not fit."""

    # The number of messages after which it loads.
    rows: int
    # Their size in bytes.
    bytes: int
    # The time after the first of them, in seconds.
    seconds: float
    # Whether a value that does not fit becomes null.
    nulls_refused: bool
    # What is done with personal fields.
    personal_data: PersonalData = "refuse"


class Source(NamedTuple):
    """What a task loads."""

    # The table.
    table: TableName
    # The topic.
    topic: str
    # Its partitions and its id.
    shape: TopicShape


@dataclass
class _Taken:
    """What is taken and not loaded."""

    # The rows, in the order in which they were read.
    rows: list[SchemaRows] = field(default_factory=list)
    # The first offset of each partition.
    starts: dict[int, int] = field(default_factory=dict)
    # The size of the messages.
    bytes: int = 0
    # The number of messages.
    messages: int = 0
    # When the first of them was taken.
    since: float | None = None


class TableTask:
    """The open task of a table. `offsets`: the next offset of each partition that it takes."""

    def __init__(
        self,
        source: Source,
        loader: Loader,
        schemas: Schemas,
        settings: TaskSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Step 1. CdcError."""
        self.loader = loader
        self._source = source
        self._schemas = schemas
        self._maker = RowMaker(schemas, shows_deleted=loader.form.shows_deleted)
        self._settings = settings
        self._fitting = Fitting(source.topic, loader.connection.dialect, nulls_refused=settings.nulls_refused)
        self._clock = clock
        self.state = loader.read_state(source.table)
        self._rules = ColumnRules(source.topic, settings.personal_data, loader.connection.dialect, loader.form)
        self._tombstones = Tombstones(source.topic, schemas, self._check_state())
        known = {} if self.state is None else self.state.offsets
        self.offsets: dict[int, int | None] = {number: known.get(number) for number in range(source.shape.partitions)}
        self._taken = _Taken()

    def take(self, partition: int, batch: SourceBatch | None, following: int) -> None:
        """Step 2: messages of a partition, which end before `following`. CdcError."""
        taken, start = self._taken, self.offsets[partition]
        if batch is None and start == following:
            return
        if batch is not None and start is not None and batch[0].offset < start:
            raise ValueError(f"partition {partition} was read from {batch[0].offset}, and not from {start}")
        if start is None:
            start = following if batch is None else batch[0].offset
        taken.starts.setdefault(partition, start)
        if taken.since is None:
            taken.since = self._clock()
        if batch is not None:
            taken.bytes += batch.size
            taken.messages += len(batch)
            where = SourcePartition(self._source.topic, partition)
            taken.rows += self._maker.make(where, batch, deletes_by_tombstone=self._tombstones.delete(where, batch))
        self.offsets[partition] = following
        reach(WarehousePoint.BATCH_TAKEN)

    def is_due(self) -> bool:
        """Whether a load is due."""
        taken, settings = self._taken, self._settings
        if taken.since is None:
            return False
        is_full = taken.messages >= settings.rows or taken.bytes >= settings.bytes
        return is_full or self._clock() - taken.since >= settings.seconds

    def load_due(self) -> LoadReport | None:
        """Step 3, if it is time. CdcError. LoadTakenError if another task has loaded the table."""
        taken, before = self._taken, self.state
        if not self.is_due() or (before is None and not taken.rows):
            return None
        started = self._clock()
        schemas = {made.schema.schema_id: made.schema for made in taken.rows if made.schema is not None}
        columns, schema_id, comments = self._rules.merge(before, schemas.values())
        versions = [made.rows for made in taken.rows]
        rows, nulled = self._fitting.fit(versions if self.loader.form.keeps_all else newest(versions), columns)
        offsets = {partition: offset for partition, offset in self.offsets.items() if offset is not None}
        version = 1 if before is None else before.version + 1
        after = State(version, self._source.topic, self._source.shape.topic_id, offsets, columns, schema_id)
        reach(WarehousePoint.LOAD_DECIDED)
        self.loader.load(Load(self._source.table, before, after, taken.starts, tuple(rows), comments))
        self.state, self._taken = after, _Taken()
        migrations = int(before is not None and before.columns != columns)
        staged, seconds = sum(map(len, rows)), self._clock() - started
        return LoadReport(1, taken.messages, staged, nulled, migrations, seconds, offsets)

    def close(self) -> None:
        """Give up what is taken and not loaded."""
        self.loader.connection.release()

    def _check_state(self) -> RowSchema | None:
        """The newest schema that was loaded. CdcError if the state does not continue with this topic."""
        state = self.state
        if state is None:
            return None
        if state.topic != self._source.topic:
            raise state_foreign(
                self._source.table, f"is that of the topic {state.topic}, and not of {self._source.topic}"
            )
        if state.topic_id != self._source.shape.topic_id:
            raise WAREHOUSE_FAULTS.topic_recreated(self._source.topic)
        if state.paused:
            raise table_paused(self._source.table, state.paused)
        schema = self._schemas.find(state.schema_id)
        loaded_fields(schema, state.columns, self._settings.personal_data, state.topic)
        if not schema.has_sequence and len(state.offsets) < self._source.shape.partitions:
            # Only offsets tell which version of a row is newer, and those of two partitions do not compare.
            raise WAREHOUSE_FAULTS.partition_count_changed(
                self._source.topic, len(state.offsets), self._source.shape.partitions
            )
        return schema
