"""Raw messages of any table and any value, also of values that CQL does not write, and damaged ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import (
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    UserType,
    fixed_length,
)
from cdc_common.messages.raw import decode, encode
from cdc_common.messages.snapshots import HOST_STATES
from dev.verify.fuzz.mutate import mutated
from dev.verify.oracle.type_values import TypeValues
from tests.support.materializer.raw_builder import TableWriter, as_image, raw_record, snapshot_step

if TYPE_CHECKING:
    import random

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import Kind as MessageKind
    from materializer.records import RawRecord

NOW_S = 1_700_000_000
_LONGS = (-(2**63), -(2**63) + 1, -1, 0, 1, NOW_S * 1_000_000, 2**62, 2**63 - 1)
_SECONDS = (0, 1, NOW_S, NOW_S + 1, NOW_S + 5, 2**31 - 2, 2**31 - 1, 2**31, 3_600_000_000, 2**32 - 3, 2**32 - 2)
_TTLS = (1, 5, 630_720_000, 2**31 - 2, 2**31 - 1)
_UNKNOWN = CustomType("org.apache.cassandra.db.marshal.DynamicCompositeType")


class OddTable:
    """A table of random types, and messages for it, drawn from one random generator."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._types = TypeValues(rng, is_plain=False)
        is_counter = rng.random() < 0.1
        clustering = tuple(self._key(ColumnKind.CLUSTERING, at) for at in range(rng.randint(0, 2)))
        self.writer = TableWriter(
            TableMetadata(
                keyspace="ks",
                name="odd",
                id=UUID(int=1),
                partition_key=tuple(self._key(ColumnKind.PARTITION_KEY, at) for at in range(rng.randint(1, 2))),
                clustering=clustering,
                static_columns=self._columns("s", ColumnKind.STATIC, is_counter=is_counter) if clustering else (),
                regular_columns=self._columns("r", ColumnKind.REGULAR, is_counter=is_counter),
                flags=frozenset({"compound", "counter"} if is_counter else {"compound"}),
                gc_grace_seconds=rng.choice((0, 3, 864_000)),
            )
        )
        self._seen: list[bytes] = [b"\0"]
        self._partition_keys = [self._any_partition_key() for _ in range(2)]
        self._clusterings = [self._any_clustering() for _ in range(3)]
        self._paths = {
            column.name: [self._any_path(column.type) for _ in range(3)]
            for column in self.table.static_columns + self.table.regular_columns
            if column.is_complex
        }

    @property
    def table(self) -> TableMetadata:
        return self.writer.table

    def record(self, offset: int, timestamp_ms: int) -> RawRecord:
        """Any message; in a third of all the update or the whole message is damaged."""
        if self._rng.random() < 0.1:
            return self._damaged(self._snapshot_step(timestamp_ms))
        kind = self._rng.choice(self._kinds())
        made = raw_record(
            self._rng.choice(self._partition_keys),
            kind,
            self._content(kind),
            offset=self._rng.choice((offset, 2**63 - 1)),
            timestamp_ms=timestamp_ms,
            host=self._rng.randint(1, 2),
            writer=self.writer,
            clock=self._rng.choice(_LONGS),
        )
        return self._damaged(as_image(made) if kind != "heartbeat" and self._rng.random() < 0.2 else made)

    def _snapshot_step(self, timestamp_ms: int) -> RawRecord:
        state = self._rng.choice(HOST_STATES)
        hosts = self._rng.choice(((1,), (1, 2)))
        return snapshot_step(state, ms=timestamp_ms, host=self._rng.randint(1, 2), hosts=hosts, writer=self.writer)

    def _kinds(self) -> list[MessageKind]:
        kinds: list[MessageKind] = ["row", "row", "row", "row", "partition_deletion", "heartbeat"]
        return [*kinds, "static", "range_deletion"] if self.table.static_columns else kinds

    def _content(self, kind: MessageKind) -> object:
        if kind == "row":
            return self._row(self.table.regular_columns, self._rng.choice(self._clusterings), is_static=False)
        if kind == "static":
            return self._row(self.table.static_columns, (), is_static=True)
        if kind == "range_deletion":
            start = self._bound(Kind.INCL_START_BOUND, Kind.EXCL_START_BOUND)
            return RangeTombstone(start, self._bound(Kind.INCL_END_BOUND, Kind.EXCL_END_BOUND), self._deletion())
        return self._deletion()

    def _damaged(self, record: RawRecord) -> RawRecord:
        message = decode(record.value)
        self._seen.append(message.update)
        match self._rng.randint(0, 5):
            case 0:
                damaged = replace(message, update=mutated(self._rng, message.update, self._seen))
                return record._replace(value=encode(damaged, 1))
            case 1:
                return record._replace(value=mutated(self._rng, record.value, self._seen))
        return record

    def _key(self, kind: ColumnKind, at: int) -> ColumnMetadata:
        type_ = _UNKNOWN if self._rng.random() < 0.05 else self._types.type()
        is_reversed = kind is ColumnKind.CLUSTERING and self._rng.random() < 0.5
        return ColumnMetadata(f"{kind}{at}", type_, kind, at, is_reversed)

    def _columns(self, prefix: str, kind: ColumnKind, *, is_counter: bool) -> tuple[ColumnMetadata, ...]:
        types: list[CqlType] = [NativeType("counter")]
        if not is_counter:
            types = [self._types.type(), self._types.multi_cell_type(), self._types.multi_cell_type()]
            if self._rng.random() < 0.1:
                types.append(MapType(_UNKNOWN, NativeType("int"), is_multi_cell=True))
        return in_order([ColumnMetadata(f"{prefix}{at}", type_, kind) for at, type_ in enumerate(types)])

    def _any_partition_key(self) -> bytes:
        values = [self._value(column.type) for column in self.table.partition_key]
        if len(values) == 1:
            return values[0]
        return b"".join((len(value) & 0xFFFF).to_bytes(2, "big") + value[:0xFFFF] + b"\0" for value in values)

    def _any_clustering(self) -> Clustering:
        return tuple(
            None if self._rng.random() < 0.05 else self._value(column.type) for column in self.table.clustering
        )

    def _bound(self, *kinds: Kind) -> ClusteringBound:
        clustering = self._rng.choice(self._clusterings)
        return ClusteringBound(self._rng.choice(kinds), clustering[: self._rng.randint(0, len(clustering))])

    def _row(self, columns: tuple[ColumnMetadata, ...], clustering: Clustering, *, is_static: bool) -> Row:
        chosen = self._rng.sample(columns, self._rng.randint(1, len(columns)))
        data = {column.name: self._data(column) for column in chosen}
        if is_static:
            return Row((), data)
        deletion = RowDeletion(self._deletion()) if self._rng.random() < 0.2 else NO_ROW_DELETION
        return Row(clustering, data, self._liveness(), deletion)

    def _liveness(self) -> LivenessInfo:
        timestamp, ttl = self._rng.choice(_LONGS[1:]), self._rng.choice(_TTLS)
        return self._rng.choice(
            (NO_LIVENESS, LivenessInfo(timestamp), LivenessInfo(timestamp, ttl, max(self._rng.choice(_SECONDS), ttl)))
        )

    def _data(self, column: ColumnMetadata) -> ColumnData:
        if not column.is_complex:
            return self._cell(column.type, None)
        paths = self._rng.choices(self._paths[column.name], k=self._rng.randint(0, 3))
        deletion = LIVE if paths and self._rng.random() < 0.5 else self._deletion()
        return ComplexColumnData(deletion, tuple(self._cell(NativeType("blob"), path) for path in paths))

    def _cell(self, type_: CqlType, path: bytes | None) -> Cell:
        timestamp, second, ttl = (self._rng.choice(of) for of in (_LONGS, _SECONDS, _TTLS))
        match self._rng.randint(0, 3):
            case 0:
                return Cell(timestamp, b"", second, path=path)
            case 1:
                return Cell(timestamp, self._value(type_), max(second, ttl), ttl, path)
        return Cell(timestamp, self._value(type_), path=path)

    def _any_path(self, type_: CqlType) -> bytes:
        match type_:
            case SetType(of, _) | MapType(of, _, _):
                return self._value(of)
            case ListType():
                return self._value(NativeType("timeuuid"))
            case UserType():
                return self._rng.choice((0, 1, 1, 2, 0xFFFF)).to_bytes(2, "big")
        raise AssertionError(type_)

    def _value(self, type_: CqlType) -> bytes:
        """A value; now and then one that CQL would refuse."""
        length = fixed_length(type_)
        if type_ == NativeType("counter"):
            shard = self._rng.randbytes(16) + self._rng.choice(_LONGS).to_bytes(8, "big", signed=True) * 2
            return self._rng.choice((b"\0\1\x80\0" + shard, b"\0\0" + shard * 2, b"\xff\xff\0\0" + shard, b"", b"\0"))
        if type_ == _UNKNOWN or self._rng.random() < 0.1:
            return self._rng.randbytes(self._rng.choice((0, length) if length else (0, 1, 4, 9)))
        value = self._types.value(type_)
        return value if length is None or len(value) in (0, length) else self._rng.randbytes(length)

    def _deletion(self) -> DeletionTime:
        return DeletionTime(self._rng.choice(_LONGS[1:]), self._rng.choice(_SECONDS))
