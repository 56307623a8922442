"""Raw messages of tables and rows that the native core takes, mostly: any types, ties, TTLs, tombstones, odd values."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType, fixed_length
from cassandra_storage.formats.types.native_order import KEY_TYPES
from cdc_common.errors.codes import CdcError, Code
from dev.verify.fuzz.mutate import mutated
from materializer.fold.native_fold import decode_plain
from materializer.fold.row_updates import decode_record, read_row_updates
from materializer.records import Arrival
from materializer.rows.keys import PARTITION, ROWS_SECTION, SCHEMA, partition_prefix
from materializer.rows.settings import FoldSettings
from tests.support.materializer.both_folds import DifferenceError, fold_both
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.odd_messages import NOW_S, OddTable
from tests.support.materializer.raw_builder import catalog_of

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import Kind as MessageKind
    from materializer.records import RawRecord, UnreadableError
    from tests.support.materializer.both_folds import Counts

_NOW_US = NOW_S * 1_000_000
_TIMES = (0, _NOW_US - 1, _NOW_US, _NOW_US, _NOW_US + 1, _NOW_US + 5_000_000, -5, 2**62)
_PARTITION_TYPES = sorted({*KEY_TYPES, "varint", "decimal"} - {"boolean"})


class PlainTable(OddTable):
    """Few damaged messages, no counters, and key types that the core has; the rest is as odd as before."""

    def record(self, offset: int, timestamp_ms: int) -> RawRecord:
        self.now_s = max(timestamp_ms // 1000, 1)
        return super().record(offset, timestamp_ms)

    def _kinds(self) -> list[MessageKind]:
        rows: list[MessageKind] = ["row"] * 24
        kinds: list[MessageKind] = [*rows, "partition_deletion", "heartbeat"]
        return [*kinds, "static", "range_deletion"] if self.table.static_columns else kinds

    def _damaged(self, record: RawRecord) -> RawRecord:
        return super()._damaged(record) if self._rng.random() < 0.02 else record

    def _key(self, kind: ColumnKind, at: int) -> ColumnMetadata:
        is_reversed = kind is ColumnKind.CLUSTERING and self._rng.random() < 0.5
        name = self._rng.choice(_PARTITION_TYPES if kind is ColumnKind.PARTITION_KEY else sorted(KEY_TYPES))
        return ColumnMetadata(f"{kind}{at}", NativeType(name), kind, at, is_reversed)

    def _columns(self, prefix: str, kind: ColumnKind, *, is_counter: bool) -> tuple[ColumnMetadata, ...]:  # noqa: ARG002
        return super()._columns(prefix, kind, is_counter=False)

    def _row(self, columns: tuple[ColumnMetadata, ...], clustering: Clustering, *, is_static: bool) -> Row:
        if is_static:
            return super()._row(columns, clustering, is_static=True)
        chosen = self._rng.sample(columns, self._rng.randint(0, len(columns)))
        data = {column.name: self._data(column) for column in chosen}
        deletion = RowDeletion(self._deletion()) if not data or self._rng.random() < 0.1 else NO_ROW_DELETION
        return Row(clustering, data, self._liveness(), deletion)

    def _liveness(self) -> LivenessInfo:
        time, ttl = self._rng.choice(_TIMES), self._rng.choice((1, 2, 5, 100))
        end = self.now_s + ttl - (self._rng.random() < 0.1) * 3
        return self._rng.choice((NO_LIVENESS, LivenessInfo(time), LivenessInfo(time, ttl, end)))

    def _data(self, column: ColumnMetadata) -> ColumnData:
        if not column.is_complex:
            return self._cell(column.type, None)
        found = {}
        encode = path_encoder(column.type)
        for path in self._rng.choices(self._paths[column.name], k=self._rng.randint(0, 3)):
            try:
                found[encode(path)] = path
            except FormatError:
                continue
        deletion = LIVE if found and self._rng.random() < 0.5 else self._deletion()
        of = self._element(column.type)
        return ComplexColumnData(deletion, tuple(self._cell(of, found[key]) for key in sorted(found)))

    def _element(self, type_: CqlType) -> CqlType:
        """The type of a cell's value."""
        values = getattr(type_, "values", None) or getattr(type_, "elements", None)
        return values if values is not None and self._rng.random() < 0.95 else NativeType("blob")

    def _cell(self, type_: CqlType, path: bytes | None) -> Cell:
        time, ttl = self._rng.choice(_TIMES), self._rng.choice((1, 2, 5, 100))
        end = self.now_s + ttl - (self._rng.random() < 0.05) * 3
        value = self._value(type_)
        if path is not None and fixed_length(type_) is not None and self._rng.random() < 0.5:
            value = self._value(type_)
        return self._rng.choice(
            (
                Cell(time, b"", self.now_s, path=path),
                Cell(time, value, end, ttl, path),
                *[Cell(time, value, path=path)] * 3,
            )
        )

    def _deletion(self) -> DeletionTime:
        return DeletionTime(self._rng.choice(_TIMES), self._rng.choice((NOW_S, NOW_S + 1, 2**31 + 5)))


def check_plain_messages(seed: int, counts: Counts | None = None, *, damages_state: bool = False) -> None:
    """Fold random messages of a PlainTable by both folds; damages_state: with stored values that are damaged."""
    rng = random.Random(seed)
    table = PlainTable(rng)
    catalog, state = catalog_of(table.table), MemoryState()
    fold_settings = FoldSettings(
        purge_margin_seconds=0,
        max_dead_letters=1000,
        max_changes=rng.choice((3, *[40_000] * 5)),
        max_bytes=rng.choice((300, *[1 << 20] * 5)),
    )
    now_ms, offset, seen = NOW_S * 1000, 0, [b"\0"]
    for _ in range(6):
        records = []
        for _ in range(rng.randint(1, 12)):
            now_ms += rng.choice((0, 0, 1, 1000, 4000))
            offset += 1
            records.append(table.record(offset, now_ms))
        while records:
            try:
                result = fold_both(
                    state, records, catalog, fold_settings, counts=counts, is_state_damaged=damages_state
                )
            except DifferenceError:
                raise
            except Exception as error:
                if damages_state or (isinstance(error, CdcError) and error.code in _REFUSED):
                    break
                raise
            state.apply(result.writes)
            records = records[len(records) - result.left :]
        if damages_state:
            _damage(rng, state, seen)


def check_damaged_messages(seed: int, counts: Counts | None = None) -> None:
    """Decode damaged messages by both: where the core takes one, both must find the same."""
    rng = random.Random(seed)
    table = PlainTable(rng)
    catalog = catalog_of(table.table)
    plan = catalog.native_plan(table.table.id.bytes)
    if plan is None:
        return
    clustering_key = catalog.key_encoders(plan.table_id, plan.digest).clustering
    seen = [b"\0"]
    for offset in range(30):
        record = table.record(offset, NOW_S * 1000)
        seen.append(record.value)
        cut = rng.randint(0, len(record.value))
        for value in (mutated(rng, record.value, seen), mutated(rng, record.value, seen), record.value[:cut]):
            damaged = record._replace(value=value)
            (update,) = decode_plain(plan, [damaged], [5], None)
            if counts is not None:
                counts.records += 1
                counts.native += update is not None
            if update is None:
                continue
            (expected,) = read_row_updates([Arrival(damaged, decode_record(damaged), 5)], catalog, _refuse)
            assert expected.row is not None
            place = partition_prefix(expected.partition_key) + ROWS_SECTION + clustering_key(expected.row.clustering)
            assert (update.order, update.partition_key, update.key) == (expected.order, expected.partition_key, place)
            assert update.file == expected.source.file


def _refuse(_: RawRecord, problem: UnreadableError) -> None:
    raise AssertionError(f"the core took what cannot be read: {problem.reason}")


_REFUSED = {Code.SCHEMA_UNKNOWN, Code.STATE_FORMAT, Code.NOT_SUPPORTED}


def _damage(rng: random.Random, state: MemoryState, seen: list[bytes]) -> None:
    keys = [key for key in state.data if key.startswith((PARTITION, SCHEMA))]
    for key in rng.sample(keys, min(len(keys), 2)):
        seen.append(state.data[key])
        state.data[key] = mutated(rng, state.data[key], seen)
