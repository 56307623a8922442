"""The protocol of a partition whose messages become objects: each message is in exactly one committed signal.

The committed offset is that before or that after a batch, whatever is killed, because of the order of the steps:

1. open the commit protocol, which fences an older task; only then read the committed offset; it must be the end of the
   last signal; then look for an intent that begins there. If there is one, the task finishes it;
2. take messages, in memory, until the batch ends;
3. store the intent, only once; whoever comes second gives up, and begins with the intent of the first;
4. make and store the objects that the store does not have yet;
5. commit the signal together with the offset.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from stream_runtime.exactly_once.commits import Commits, NotOwnerError, StoredOffset
from stream_runtime.exactly_once.committed import Committed, decode, encode
from stream_runtime.fault_points import reach
from stream_runtime.records import Message
from stream_runtime.stores.store import Store
from warehouse.fault_points import WriterPoint
from warehouse.faults import WAREHOUSE_FAULTS, batch_differs, signals_differ
from warehouse.loading.fitting import Fitting
from warehouse.loading.report import LoadReport
from warehouse.loading.rows import RowMaker
from warehouse.loading.table_columns import ColumnRules
from warehouse.loading.tombstones import Tombstones
from warehouse.records import Rows, StoredObject
from warehouse.signals import Signal
from warehouse.tables.schemas import Schemas
from warehouse.targets.objects import OWN, object_rows, read_object, write_object
from warehouse.writing.intent import Intent, Paths, PlannedObject, delete_intents, read_intent, store_intent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.records import SourcePartition, TopicShape
    from stream_runtime.source_batch import SourceBatch


class IntentTakenError(NotOwnerError):
    """Another task has stored the intent of the batch, or has finished it: a new task begins there."""


class BatchSettings(NamedTuple):
    """When a batch ends."""

    # The number of messages.
    rows: int
    # Their size in bytes.
    bytes: int
    # The time after the first of them, in seconds.
    seconds: float
    # The time, in s, that an offset which only markers have moved waits for a signal.
    idle_seconds: float
    # The age, in s, of an offset that is committed again.
    refresh_seconds: float


class BatchParts(NamedTuple):
    """The clients and places that a task works with."""

    # The protocol that commits offsets.
    commits: Commits
    # The store of the objects.
    store: Store
    # The names of what it stores.
    paths: Paths
    # The topic's schemas.
    schemas: Schemas
    # How columns are made of them.
    rules: ColumnRules
    # The rule for values that do not fit.
    fitting: Fitting
    # The topic of the signals.
    signals: str
    # Returns the last committed signal of the partition.
    last_signal: Callable[[], Signal | None]
    # Returns the first available offset of the partition.
    first_offset: Callable[[], int]


class _Made(NamedTuple):
    """The rows of an object."""

    # The fields, in the order of its columns.
    fields: tuple[str, ...]
    # The rows.
    rows: pa.Table


@dataclass
class _Taken:
    """What is taken and not committed."""

    # The rows, by the ids of their schemas.
    rows: dict[int | None, list[Rows]] = field(default_factory=dict)
    # The size of the messages.
    bytes: int = 0
    # The number of messages.
    messages: int = 0
    # When the first of them was taken.
    since: float | None = None
    # Whether a schema was met that the task did not know.
    has_new_schema: bool = False


class BatchTask:
    """The open task of a partition. After any exception it must be closed, and a new one opened."""

    def __init__(
        self,
        partition: SourcePartition,
        shape: TopicShape,
        parts: BatchParts,
        settings: BatchSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1: `parts.commits` has fenced older tasks. CdcError."""
        reach(WriterPoint.WRITER_FENCED)
        self._partition = partition
        self._shape = shape
        self._parts = parts
        self._settings = settings
        self._clock = clock
        last = parts.last_signal()
        self._committed = self._read_offset(last)
        self._known = {found.schema_id for found in last.objects} if last is not None else set()
        newest = max((found for found in self._known if found is not None), default=None)
        self._tombstones = Tombstones(
            partition.topic, parts.schemas, None if newest is None else parts.schemas.find(newest)
        )
        self._maker = RowMaker(parts.schemas, shows_deleted=parts.rules.form.shows_deleted)
        self._intent = self._read_intent()
        self._taken = _Taken()
        self.offset = self._committed.offset
        """The next offset that it takes."""

    @property
    def is_retry(self) -> bool:
        """Whether the batch was begun by an earlier task, whose end may lie before what was read."""
        return self._intent is not None

    def take(self, batch: SourceBatch | None, following: int) -> None:
        """Step 2: the next messages, which end before `following`. CdcError."""
        if self._intent is not None:
            batch = None if batch is None else batch.before(self._intent.end)
            following = min(following, self._intent.end)
        if batch is not None and len(batch):
            if batch[0].offset < self.offset:
                raise ValueError(f"{self._partition} was read from {batch[0].offset}, and not from {self.offset}")
            self._take(batch)
        self.offset = max(following, self.offset)

    def _take(self, batch: SourceBatch) -> None:
        taken = self._taken
        deletes = self._tombstones.delete(self._partition, batch)
        for made in self._maker.make(self._partition, batch, deletes_by_tombstone=deletes):
            schema_id = None if made.schema is None else made.schema.schema_id
            taken.rows.setdefault(schema_id, []).append(made.rows)
            if schema_id not in self._known:
                taken.has_new_schema |= bool(self._known)
                self._known.add(schema_id)
        if taken.since is None:
            taken.since = self._clock()
        taken.bytes += batch.size
        taken.messages += len(batch)
        reach(WriterPoint.MESSAGES_TAKEN)

    def commit_due(self) -> LoadReport | None:
        """Steps 3 to 5 if the batch ends now. CdcError, IntentTakenError, or what a commit raises: then it is not known
        whether it was done, which the next task sees.
        """
        if self._intent is not None:
            return self._finish(self._intent) if self.offset >= self._intent.end else None
        if not self._is_over():
            return None
        if self.offset == self._committed.offset:
            self._commit_offset(self._committed.offset)  # it would expire
            return None
        started = self._clock()
        tables, nulled = self._tables(None)
        report = self._finish(self._store_intent(tables), tables)
        return report._replace(nulled=nulled, seconds=self._clock() - started)

    def close(self) -> None:
        """Forget what is not committed."""
        self._taken = _Taken()
        self._parts.commits.close()

    def _read_offset(self, last: Signal | None) -> Committed:
        """The committed offset; a partition without one begins at its first message. It is the end of the last signal.
        CdcError.
        """
        at = self._partition
        stored = self._parts.commits.read()[at]
        reach(WriterPoint.OFFSET_READ)
        if stored is not None:
            found = decode(stored.offset, stored.metadata, at, self._shape, WAREHOUSE_FAULTS)
            if last is None and found.sent:
                raise signals_differ(at, found.offset, "there is no signal of it")
        elif last is None:
            first = self._parts.first_offset()
            found = Committed(first, self._clock(), sent=False)
            self._commit(first, sent=False)
        else:
            raise signals_differ(at, None, f"its last signal ends at {last.end}")
        if last is not None and (last.end, last.topic_id) != (found.offset, self._shape.topic_id):
            raise signals_differ(at, found.offset, f"its last signal ends at {last.end} of the topic {last.topic_id}")
        return found

    def _read_intent(self) -> Intent | None:
        """The intent that begins at the committed offset."""
        delete_intents(self._parts.store, self._parts.paths, self._committed.offset)
        path = self._parts.paths.intent(self._committed.offset)
        try:
            found = read_intent(self._parts.store, path)
        except (ValueError, KeyError, TypeError) as error:
            raise batch_differs(self._partition, f"its intent {path} is damaged") from error
        if found is not None:
            reach(WriterPoint.BATCH_INTENT_READ)
        return found

    def _is_over(self) -> bool:
        """Whether the batch ends now. Without messages, an offset that markers have moved or that would expire does."""
        taken, own = self._taken, self._settings
        if taken.since is not None:
            is_full = taken.messages >= own.rows or taken.bytes >= own.bytes or taken.has_new_schema
            return is_full or self._clock() - taken.since >= own.seconds
        age = self._clock() - self._committed.at
        return age > own.refresh_seconds or (self.offset > self._committed.offset and age > own.idle_seconds)

    def _tables(self, intent: Intent | None) -> tuple[dict[int | None, _Made], int]:
        """The rows of each object, with its fields: those of the intent, or those that the table may have; and the
        number of values that became null. CdcError.
        """
        planned = {} if intent is None else {one.schema_id: one.fields for one in intent.objects}
        made: dict[int | None, _Made] = {}
        nulled = 0
        for schema_id, found in sorted(self._taken.rows.items(), key=lambda item: item[0] or 0):
            if intent is not None and schema_id not in planned:
                raise batch_differs(self._partition, f"a message has the schema {schema_id}, which is not in it")
            schemas = [] if schema_id is None else [self._parts.schemas.find(schema_id)]
            columns = self._parts.rules.merge(None, schemas).columns
            fields = planned.get(schema_id, tuple(column.fields[0] for column in columns))
            fitting, count = self._parts.fitting.fit(found, columns)
            made[schema_id] = _Made(fields, object_rows(fitting, columns, fields, self._parts.rules.dialect))
            nulled += count
        return made, nulled

    def _store_intent(self, tables: Mapping[int | None, _Made]) -> Intent:
        """Step 3."""
        at, paths, dialect = self._partition, self._parts.paths, self._parts.rules.dialect.objects
        assert dialect, "the target copies no objects"
        start, end = self._committed.offset, self.offset
        objects = tuple(
            PlannedObject(paths.object(start, end, schema_id, dialect), schema_id, made.fields, len(made.rows))
            for schema_id, made in tables.items()
        )
        mine = Intent(at.topic, self._shape.topic_id, at.partition, start, end, dialect, objects)
        reach(WriterPoint.BATCH_DECIDED)
        stored = store_intent(self._parts.store, paths.intent(start), mine)
        reach(WriterPoint.BATCH_INTENT_STORED)
        if stored != mine:
            raise IntentTakenError(paths.intent(start))
        return mine

    def _finish(self, intent: Intent, tables: Mapping[int | None, _Made] | None = None) -> LoadReport:
        """Steps 4 and 5."""
        if tables is None:
            tables, _ = self._tables(intent)
        objects = [self._store_object(intent, one, tables.get(one.schema_id)) for one in intent.objects]
        reach(WriterPoint.ALL_OBJECTS_STORED)
        own = intent._asdict() | {"objects": tuple(found for found in objects if found is not None)}
        signal = Signal(**own)
        key = f"{signal.topic}-{signal.partition}".encode()
        self._parts.commits.send(Message(self._parts.signals, signal.partition, key, signal.encode()))
        reach(WriterPoint.SIGNAL_SENT)
        messages = self._taken.messages
        self._commit_offset(intent.end)
        self._parts.store.delete(self._parts.paths.intent(intent.start))
        self._taken, self._intent = _Taken(), None
        return LoadReport(1, messages, signal.rows, 0, 0, 0.0, {signal.partition: signal.end})

    def _store_object(self, intent: Intent, planned: PlannedObject, made: _Made | None) -> StoredObject | None:
        """Make an object unless the store has it. None for one without rows: compaction has removed its messages."""
        store, path = self._parts.store, planned.path
        rows = 0 if made is None else len(made.rows)
        if rows > planned.rows:
            raise batch_differs(self._partition, f"{path} has {rows} rows, and its intent {planned.rows}")
        data = b"" if made is None else write_object(made.rows, intent.dialect)
        if rows and store.put_new_bytes(path, data):
            size = len(data)
        else:
            stored = store.read(path)
            if stored is None:
                return None
            # An earlier task has stored it. Compaction may have removed messages since.
            names = [*(name for name, _ in OWN), *planned.fields]
            size, rows = len(stored), len(read_object(stored, intent.dialect, names))
        reach(WriterPoint.OBJECT_STORED)
        return StoredObject(store.uri(path), planned.schema_id, planned.fields, rows, size)

    def _commit_offset(self, offset: int) -> None:
        sent = self._committed.sent or offset > self._committed.offset
        self._commit(offset, sent=sent)
        self._committed = Committed(offset, self._clock(), sent)
        reach(WriterPoint.SIGNAL_COMMITTED)

    def _commit(self, offset: int, *, sent: bool) -> None:
        metadata = encode(self._shape, self._clock(), sent=sent)
        self._parts.commits.commit({self._partition: StoredOffset(offset, metadata)})
