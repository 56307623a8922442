"""What a changed schema changes in the rows that are there, as messages: docs/formats/messages.md lists the statements.

A dropped column is deleted in every row, one that was added again shows what is newer than its drop, a table that was
made anew under its name, or whose key has other names, ends all keys. Rows are looked at partition by partition: a few
thousand of them in each chunk, and each partition at the latest before its next write. So `SHOWN` tells by key ranges
under which schema the rows have been published last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.compact_tables import hidden_columns
from cassandra_storage.deletion import NO_LIVENESS, NO_TIMESTAMP, DeletionTime, RowDeletion
from cassandra_storage.dropped_columns import without_dropped
from cassandra_storage.rows import Row
from cassandra_storage.schema import TableMetadata
from cdc_messages.changes import RowChange, Source
from materializer.rows.budget import Budget
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import SchemaMove, put_unfinished
from materializer.rows.expiry import Moment, deletion_second
from materializer.rows.keys import (
    EVOLVED,
    EVOLVED_END,
    PARTITION,
    PARTITION_END,
    RANGES_SECTION,
    ROWS_END,
    ROWS_SECTION,
    SHOWN,
    partition_prefix,
    split_data_key,
)
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import PartitionFacts, PartitionState, RowCodec, SequenceFloor, StoredRow
from materializer.rows.range_tombstones import decode_range
from materializer.rows.row_image import RowImager
from materializer.rows.timers import Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cassandra_storage.clustering import Clustering
    from cdc_messages.changes import ColumnImage, Op, RowImage
    from materializer.rows.catalog import TableCatalog

SWEPT_ROWS = 10_000
_NO_HOST = bytes(16)
_LAST = b"\xff"  # behind all keys of a partition


class ShownFrom(NamedTuple):
    """From the key `start` on rows have been published under `schema`, as far as the next entry."""

    start: bytes
    schema: SchemaId


class Stores(NamedTuple):
    """Where a chunk reads and writes, where its changes go, and how much it may do."""

    overlay: Overlay
    queues: Queues
    floor: SequenceFloor
    changes: list[RowChange]
    budget: Budget


class Version(NamedTuple):
    """A schema as rows are read and shown by it; `topic` None if nothing can be published under it."""

    id: SchemaId
    table: TableMetadata
    codec: RowCodec
    imager: RowImager
    topic: str | None


def shown_table(overlay: Overlay) -> bytes | None:
    """The id of the table that the state is of; None of an empty state."""
    shown = read_shown(overlay)
    return shown[0].schema.table_id if shown else None


class SchemaChange:
    """Brings the rows of a state to `target`.

    `clustering_key` is the target's.
    """

    def __init__(
        self, stores: Stores, catalog: TableCatalog, target: SchemaId, clustering_key: Callable[[Clustering], bytes]
    ) -> None:
        self._stores = stores
        self._overlay = overlay = stores.overlay
        self._catalog = catalog
        self._clustering_key = clustering_key
        self._versions: dict[SchemaId, Version] = {}
        self._target = self._version(target)
        self._stored = read_shown(overlay)
        self._shown = self._begin(self._stored or [ShownFrom(b"", target)])
        self._save()

    def reach(self, partition_key: bytes, now: int) -> None:
        """Bring one partition to the target, as seen at `now` (s), before it is written to."""
        prefix = partition_prefix(partition_key)
        if len(self._shown) == 1 or self._shown_of(prefix) == self._target.id:
            return
        self._bring(partition_key, now)
        self._overlay.put(EVOLVED + prefix, b"".join(self._target.id))

    def resume(self, move: SchemaMove) -> None:
        """Go on with a partition that an earlier chunk has not finished."""
        self._move(move)
        self._overlay.put(EVOLVED + partition_prefix(move.partition_key), b"".join(self._target.id))

    def sweep(self, now: int) -> None:
        """Bring some more partitions to the target, in the order of their keys; CutShortError as for `reach`."""
        budget = self._stores.budget
        enough = budget.rows - SWEPT_ROWS
        try:
            while len(self._shown) > 1 and budget.rows > enough:
                self._sweep_next(now)
        finally:
            self._save()

    def _sweep_next(self, now: int) -> None:
        """Another partition, or none: then that range of keys is done."""
        end = self._shown[2].start if len(self._shown) > 2 else PARTITION_END
        found = next(self._overlay.scan(self._shown[1].start, end), None)
        if found is None:
            if len(self._shown) == 2:
                self._forget_marks()
            del self._shown[1]
            return
        self._stores.budget.check()
        self._stores.budget.spend(0)
        partition_key, _ = split_data_key(found[0])
        prefix = partition_prefix(partition_key)
        self._bring(partition_key, now)
        if self._overlay.get(EVOLVED + prefix) is not None:
            self._overlay.put(EVOLVED + prefix, None)
        self._shown[1] = self._shown[1]._replace(start=prefix + _LAST)

    def _forget_marks(self) -> None:
        for key, _ in self._overlay.scan(EVOLVED, EVOLVED_END):
            self._stores.budget.check()
            self._stores.budget.spend(0)
            self._overlay.put(key, None)

    def _begin(self, shown: list[ShownFrom]) -> list[ShownFrom]:
        """The ranges, with a new one in front of them if rows are shown otherwise under the target."""
        target = self._target
        begun = [ShownFrom(b"", target.id)]
        for each in shown:
            start = each.start or PARTITION
            schema = each.schema if shows_otherwise(self._version(each.schema), target) else target.id
            if schema != begun[-1].schema:
                begun.append(ShownFrom(start, schema))
        return begun

    def _save(self) -> None:
        if self._shown != self._stored:
            entries = [[each.start.hex(), *(part.hex() for part in each.schema)] for each in self._shown]
            self._overlay.put(SHOWN, json.dumps(entries, separators=(",", ":")).encode())
            self._stored = list(self._shown)

    def _shown_of(self, prefix: bytes) -> SchemaId:
        mark = self._overlay.get(EVOLVED + prefix)
        if mark is not None:
            return SchemaId(mark[:16], mark[16:])
        return next(each.schema for each in reversed(self._shown) if each.start <= prefix)

    def _version(self, schema: SchemaId) -> Version:
        version = self._versions.get(schema)
        if version is None:
            table = self._catalog.schema(*schema)
            codec = RowCodec(self._overlay, self._catalog, schema.table_id)
            topic = self._catalog.topics.get(schema.digest)
            version = self._versions[schema] = Version(schema, table, codec, RowImager(table), topic)
        return version

    def _bring(self, partition_key: bytes, now: int) -> None:
        shown = self._shown_of(partition_prefix(partition_key))
        if shown != self._target.id:
            self._move(SchemaMove(partition_key, self._target.id, shown, b"", now))

    def _move(self, move: SchemaMove) -> None:
        change = _PartitionChange(self._stores, self._version(move.shown), self._target, move)
        if move.shown.table_id == move.schema.table_id:
            change.alter()
        else:
            change.replace(self._clustering_key)


class _PartitionChange:
    """One partition's rows brought from one schema to another; call one method, once. OverBudgetError or CutShortError
    where the budget ends: then the state says where it goes on.
    """

    def __init__(self, stores: Stores, old: Version, new: Version, move: SchemaMove) -> None:
        self._stores = stores
        self._old = old
        self._new = new
        self._progress = move
        self._partition_key = move.partition_key
        self._now = move.now
        self._moment = Moment(move.now, move.now)
        self._gone = DeletionTime(NO_TIMESTAMP + 1, move.now)
        self._source = Source(new.table.altered_at, _NO_HOST, "", 0, "schema")
        # Of one table both codecs read the same; what is written is the new schema's.
        codec = new.codec if old.id.table_id == new.id.table_id else old.codec
        self._state = PartitionState(stores.overlay, codec, stores.queues, move.partition_key)
        self._statics = self._static_columns(old)

    def alter(self) -> None:
        """Show the same rows under another schema of the same table."""
        statics = self._static_columns(self._new)
        for key, value in self._entries(ROWS_SECTION):
            self._alter_row(key, self._old.codec.decode(value, is_static=False), statics)
        if self._old.table.clustering:
            self._alter_facts(statics)

    def replace(self, clustering_key: Callable[[Clustering], bytes]) -> None:
        """End all rows: the table was made anew. How far each row has counted stays as long as the topic does, if it
        lies where the new table has it; else all that is new begins above.
        """
        is_same_topic = self._old.topic == self._new.topic
        for key, value in self._entries(RANGES_SECTION):
            section = key[len(self._state.prefix) :]
            if section[:1] == RANGES_SECTION:
                self._stores.queues.move_purge(key, deletion_second(decode_range(b"", value).deletion), None)
                self._stores.overlay.put(key, None)
            elif section[:1] == ROWS_SECTION:
                stored = self._old.codec.decode(value, is_static=False)
                stays = is_same_topic and clustering_key(stored.row.clustering) == section[1:]
                self._end_row(key, stored, stays=stays)
        self._end_facts(stays=is_same_topic)

    def _entries(self, first: bytes) -> Iterator[tuple[bytes, bytes]]:
        """What is stored from a section on, or from where this goes on, to the last row."""
        prefix, budget = self._state.prefix, self._stores.budget
        for key, value in self._stores.overlay.scan(prefix + (self._progress.at or first), prefix + ROWS_END):
            if budget.is_spent:
                if budget.can_cut:
                    put_unfinished(self._stores.overlay, self._progress._replace(at=key[len(prefix) :]))
                budget.cut()
            budget.spend(self._new.codec.size(value))
            yield key, value

    def _alter_row(self, key: bytes, stored: StoredRow, statics: Mapping[str, ColumnImage]) -> None:
        before = _image(self._old, stored.row, self._now, self._statics)
        after = _image(self._new, stored.row, self._now, statics)
        if after is not None:
            self._progress = self._progress._replace(visible=self._progress.visible + 1)
        sequence = self._emit(stored.row.clustering, before, after, stored.row_sequence)
        row = without_dropped(stored.row, self._new.table)
        if row.is_empty:
            row = row._replace(deletion=RowDeletion(self._gone))
        self._state.put_row(key, stored, StoredRow(row, sequence), self._moment)

    def _alter_facts(self, statics: Mapping[str, ColumnImage]) -> None:
        facts, visible = self._state.facts, self._progress.visible
        alone = None if visible else statics or None
        start = facts.static_sequence or self._stores.floor.value
        sequence = self._emit(None, self._alone(), alone, start)
        facts = facts._replace(visible_rows=visible)
        if sequence != start:
            facts = facts._replace(static_sequence=sequence)
        if self._state.static is not None:
            self._state.put_static(without_dropped(self._state.static, self._new.table), self._moment)
            if self._state.static is None and facts.deletion.is_live:
                facts = facts._replace(deletion=self._gone)
        self._state.put_facts(facts)

    def _end_row(self, key: bytes, stored: StoredRow, *, stays: bool) -> None:
        before = _image(self._old, stored.row, self._now, self._statics)
        sequence = self._emit(stored.row.clustering, before, None, stored.row_sequence)
        if stays:  # with a tombstone, which deletes nothing and is purged like any other
            row = Row(stored.row.clustering, {}, NO_LIVENESS, RowDeletion(self._gone))
            self._state.put_row(key, stored, StoredRow(row, sequence), self._moment)
        else:
            self._stores.floor.raise_to(sequence)
            self._state.put_row(key, stored, None, self._moment)

    def _end_facts(self, *, stays: bool) -> None:
        sequence = self._emit(None, self._alone(), None, self._state.facts.static_sequence)
        self._state.put_static(None, self._moment)
        if stays and sequence:
            self._state.put_facts(PartitionFacts(deletion=self._gone, static_sequence=sequence))
        else:
            self._stores.floor.raise_to(sequence)
            self._state.put_facts(PartitionFacts())

    def _alone(self) -> RowImage | None:
        """The row that stands for a partition with only statics, as it was."""
        return None if self._state.facts.visible_rows else self._statics or None

    def _static_columns(self, version: Version) -> Mapping[str, ColumnImage]:
        return {} if self._state.static is None else version.imager.columns(self._state.static, self._now)

    def _emit(self, clustering: Clustering | None, before: RowImage | None, after: RowImage | None, count: int) -> int:
        """The row_sequence after the changes from one image to the other."""
        for one, other, schema in steps(before, after, self._old, self._new):
            count += 1
            op: Op = "c" if one is None else "d" if other is None else "u"
            change = RowChange(self._partition_key, clustering, op, one, other, count, self._source, schema)
            self._stores.changes.append(change)
        return count


def steps(
    before: RowImage | None, after: RowImage | None, old: Version, new: Version
) -> Iterator[tuple[RowImage | None, RowImage | None, bytes]]:
    """The changes that lead from a row under the old schema to it under the new one, with the digest of each: what goes
    is told in the old schema, which has a place for it, what comes in the new one.
    """
    if old.topic is None and before is not None:
        before = {name: image for name, image in before.items() if name in new.imager.names}
    elif old.topic != new.topic:
        if before is not None:
            yield before, None, old.id.digest
        before = None
    elif before is not None:
        left = None if after is None else {name: each for name, each in after.items() if name in old.imager.names}
        if left != before:
            yield before, left, old.id.digest
        before = left
    if before != after:
        yield before, after, new.id.digest


def shows_otherwise(old: Version, new: Version) -> bool:
    """Whether rows that were published under the old schema may be shown otherwise under the new one."""
    if old.id.table_id != new.id.table_id or (old.topic is not None and old.topic != new.topic):
        return True
    if old.imager.names - new.imager.names:
        return True
    if new.imager.names & {column.name for column in hidden_columns(old.table)}:
        return True  # DROP COMPACT STORAGE
    dropped, dropped_before = new.table.dropped_columns, old.table.dropped_columns
    return any(
        name in dropped and (name not in old.imager.names or dropped[name] != dropped_before.get(name))
        for name in new.imager.names
    )


def _image(version: Version, row: Row, now: int, statics: Mapping[str, ColumnImage]) -> RowImage | None:
    columns = version.imager.image(row, now)
    return {**statics, **columns} if columns is not None and statics else columns


def read_shown(overlay: Overlay) -> list[ShownFrom]:
    """From which keys on rows are shown under which schema; nothing of an empty state."""
    stored = overlay.get(SHOWN)
    entries = [] if stored is None else json.loads(stored)
    return [
        ShownFrom(bytes.fromhex(start), SchemaId(bytes.fromhex(table_id), bytes.fromhex(digest)))
        for start, table_id, digest in entries
    ]
