"""Hypothesis strategies of tables and what their updates hold."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from hypothesis import strategies as st

from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.header import EncodingStats
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import (
    ListType,
    MapType,
    NativeType,
    SetType,
    UserType,
    VectorType,
    fixed_length,
)

if TYPE_CHECKING:
    from cassandra_storage.formats.types.marshal import CqlType

INT, TEXT, TIMEUUID = NativeType("int"), NativeType("text"), NativeType("timeuuid")
_TYPES: list[CqlType] = [
    *map(NativeType, ("int", "text", "boolean", "bigint", "uuid", "date", "inet", "decimal")),
    VectorType(NativeType("float"), 3),
    SetType(INT, is_multi_cell=False),
    SetType(INT, is_multi_cell=True),
    MapType(TEXT, TEXT, is_multi_cell=True),
    ListType(INT, is_multi_cell=True),
    UserType("k", "u", ("a", "b", "c"), (INT, TEXT, INT), is_multi_cell=True),
]
_KEY_TYPES = [*map(NativeType, ("int", "text", "uuid", "date"))]

timestamps = st.one_of(
    st.integers(0, 100),
    st.integers(1_700_000_000_000_000, 1_700_000_000_000_100),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
# Up to MAX_DELETION_TIME of 5.0 (2106).
deletion_seconds = st.one_of(st.integers(1_700_000_000, 1_700_000_100), st.integers(0, 2**32 - 3))
ttls = st.one_of(st.integers(1, 100), st.integers(1, 630_720_000))
deletion_times = st.builds(DeletionTime, timestamps, deletion_seconds)
stats = st.builds(EncodingStats, timestamps, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)) | st.just(
    EncodingStats()
)


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    size = draw(st.sampled_from([*["usual"] * 18, "many clustering columns", "many columns"]))
    clustering = (
        [INT] * 33 if size == "many clustering columns" else draw(st.lists(st.sampled_from(_KEY_TYPES), max_size=3))
    )
    statics = draw(st.lists(st.sampled_from(_TYPES), max_size=2)) if clustering else []
    regulars = [INT] * 63 + _TYPES if size == "many columns" else draw(st.lists(st.sampled_from(_TYPES), max_size=5))

    def columns(prefix: str, types: list[CqlType], kind: ColumnKind) -> list[ColumnMetadata]:
        return [ColumnMetadata(f"{prefix}{i}", type_, kind) for i, type_ in enumerate(types)]

    return TableMetadata(
        "k",
        "t",
        draw(st.uuids()),
        (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
        tuple(
            ColumnMetadata(f"c{i}", type_, ColumnKind.CLUSTERING, i, is_reversed=i % 2 == 1)
            for i, type_ in enumerate(clustering)
        ),
        in_order(columns("s", statics, ColumnKind.STATIC)),
        in_order(columns("r", regulars, ColumnKind.REGULAR)),
    )


def values(type_: CqlType, *, may_be_empty: bool = True) -> st.SearchStrategy[bytes]:
    """Bytes of a length that the type may have; what they mean does not matter here."""
    if type_ == TIMEUUID:  # Cassandra compares no others
        return st.integers(0, 2**16).map(_timeuuid)
    length = fixed_length(type_)
    if length is None:
        return st.binary(min_size=0 if may_be_empty else 1, max_size=20) | st.just(b"x" * 200)
    full = st.binary(min_size=length, max_size=length)
    return full | st.just(b"") if may_be_empty else full


def _timeuuid(time: int) -> bytes:
    return UUID(fields=(time, 0, 0x1000, 0x80, 0, 0)).bytes


def paths(type_: CqlType) -> st.SearchStrategy[bytes]:
    match type_:
        case ListType():
            return st.integers(0, 2**16).map(_timeuuid)
        case SetType(elements, _) | MapType(elements, _, _):
            if elements == INT:
                return st.integers(-9, 9).map(lambda number: number.to_bytes(4, "big", signed=True))
            return st.text(max_size=3).map(str.encode)
        case UserType(_, _, names, _, _):
            return st.integers(0, len(names) - 1).map(lambda index: index.to_bytes(2, "big"))
    raise AssertionError


@st.composite
def cells(draw: st.DrawFn, type_: CqlType, liveness: LivenessInfo, path: bytes | None = None) -> Cell:
    value_type = TEXT if path is not None else type_  # a multi-cell column's values have no fixed length
    kind = draw(st.sampled_from(("live", "live", "expiring", "expiring as its row", "tombstone")))
    timestamp = draw(timestamps)
    if not liveness.is_empty and draw(st.booleans()):
        timestamp = liveness.timestamp
    if kind == "tombstone":
        return Cell(timestamp, b"", draw(deletion_seconds), path=path)
    value = draw(values(value_type))
    if kind == "expiring as its row" and liveness.ttl:
        return Cell(timestamp, value, liveness.local_expiration_time, liveness.ttl, path)
    if kind != "live":
        ttl = draw(ttls)
        return Cell(timestamp, value, draw(deletion_seconds.filter(lambda s: s >= ttl)), ttl, path)
    return Cell(timestamp, value, path=path)


@st.composite
def livenesses(draw: st.DrawFn) -> LivenessInfo:
    timestamp = draw(timestamps)
    if draw(st.booleans()):
        return LivenessInfo(timestamp)
    ttl = draw(ttls)
    return LivenessInfo(timestamp, ttl, draw(deletion_seconds.filter(lambda s: s >= ttl)))


@st.composite
def _data(draw: st.DrawFn, column: ColumnMetadata, liveness: LivenessInfo) -> Cell | ComplexColumnData:
    type_ = column.type
    if not isinstance(type_, ListType | SetType | MapType | UserType) or not type_.is_multi_cell:
        return draw(cells(type_, liveness))
    encode = path_encoder(type_)
    found = sorted(draw(st.sets(paths(type_), max_size=3)), key=encode)
    deletion = draw(st.just(LIVE) | deletion_times) if found else draw(deletion_times)
    return ComplexColumnData(deletion, tuple(draw(cells(type_, liveness, path)) for path in found))


@st.composite
def clusterings(draw: st.DrawFn, table: TableMetadata, *, nulls: bool = False) -> Clustering:
    return tuple(draw(values(column.type) | st.none() if nulls else values(column.type)) for column in table.clustering)


@st.composite
def rows(draw: st.DrawFn, table: TableMetadata, *, is_static: bool = False, nulls: bool = True) -> Row:
    """A row that is not empty. `nulls`: clusterings may hold null, as in compact tables."""
    columns = table.static_columns if is_static else table.regular_columns
    liveness = NO_LIVENESS if is_static else draw(st.just(NO_LIVENESS) | livenesses())
    deletion = NO_ROW_DELETION
    if not is_static:
        deletion = draw(st.just(NO_ROW_DELETION) | st.builds(RowDeletion, deletion_times, st.booleans()))
    chosen = draw(st.sets(st.sampled_from(columns)) | st.just(set(columns))) if columns else set()
    if not chosen and liveness.is_empty and deletion.time.is_live:
        if columns:
            chosen = {columns[0]}
        else:
            liveness = LivenessInfo(1)
    data = {column.name: draw(_data(column, liveness)) for column in sorted(chosen, key=lambda column: column.name)}
    return Row(() if is_static else draw(clusterings(table, nulls=nulls)), data, liveness, deletion)


@st.composite
def ranges(draw: st.DrawFn, table: TableMetadata) -> RangeTombstone:
    def bound(*kinds: Kind) -> ClusteringBound:
        prefix = draw(clusterings(table))[: draw(st.integers(0, len(table.clustering)))]
        return ClusteringBound(draw(st.sampled_from(kinds)), prefix)

    start = bound(Kind.INCL_START_BOUND, Kind.EXCL_START_BOUND)
    end = bound(Kind.INCL_END_BOUND, Kind.EXCL_END_BOUND)
    return RangeTombstone(start, end, draw(deletion_times))


def example_table() -> TableMetadata:
    """PRIMARY KEY (p, c), a text `v`."""
    return TableMetadata(
        "k",
        "t",
        UUID(int=1),
        (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
        (ColumnMetadata("c", INT, ColumnKind.CLUSTERING, 0),),
        regular_columns=(ColumnMetadata("v", TEXT, ColumnKind.REGULAR),),
    )
