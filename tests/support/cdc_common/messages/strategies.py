"""Hypothesis strategies for tables and their types."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)

NATIVE = (
    *("ascii", "text", "tinyint", "smallint", "int", "bigint", "boolean", "float", "double", "blob", "varint"),
    *("uuid", "timeuuid", "timestamp", "date", "time", "decimal", "inet", "duration"),
)
# Cassandra's own rule for the names of keyspaces, tables and types; columns and fields may have any name.
NAMES = st.from_regex(r"[a-zA-Z0-9_]{1,48}", fullmatch=True)
COLUMN_NAMES = st.one_of(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), st.text(min_size=1, max_size=8))


def _containers(inner: st.SearchStrategy[CqlType]) -> st.SearchStrategy[CqlType]:
    return st.one_of(
        st.builds(ListType, inner, st.just(value=False)),
        st.builds(SetType, inner, st.just(value=False)),
        st.builds(MapType, inner, inner, st.just(value=False)),
        st.builds(TupleType, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(VectorType, inner, st.integers(1, 4)),
        _user_types(inner, is_multi_cell=False),
    )


def _user_types(inner: st.SearchStrategy[CqlType], *, is_multi_cell: bool) -> st.SearchStrategy[UserType]:
    fields = st.dictionaries(COLUMN_NAMES, inner, min_size=1, max_size=3)
    return st.builds(
        lambda keyspace, name, of: UserType(keyspace, name, tuple(of), tuple(of.values()), is_multi_cell),
        NAMES,
        NAMES,
        fields,
    )


FROZEN_TYPES: st.SearchStrategy[CqlType] = st.recursive(
    st.sampled_from(NATIVE).map(NativeType) | st.just(CustomType("org.apache.cassandra.db.marshal.X")),
    _containers,
    max_leaves=4,
)
MULTI_CELL_TYPES: st.SearchStrategy[CqlType] = st.one_of(
    st.builds(ListType, FROZEN_TYPES, st.just(value=True)),
    st.builds(SetType, FROZEN_TYPES, st.just(value=True)),
    st.builds(MapType, FROZEN_TYPES, FROZEN_TYPES, st.just(value=True)),
    _user_types(FROZEN_TYPES, is_multi_cell=True),
)
TYPES: st.SearchStrategy[CqlType] = FROZEN_TYPES | MULTI_CELL_TYPES


# For tests over whole tables, which take their time to make.
whole_tables = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    """A table with one to three columns of each kind, statics only if it has clusterings."""
    names = draw(st.lists(COLUMN_NAMES, min_size=8, max_size=8, unique=True))
    key_size, clustering_size = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    kinds: dict[ColumnKind, list[ColumnMetadata]] = {kind: [] for kind in ColumnKind}
    for index, name in enumerate(names):
        if index < key_size:
            kind, position, of = ColumnKind.PARTITION_KEY, index, FROZEN_TYPES
        elif index < key_size + clustering_size:
            kind, position, of = ColumnKind.CLUSTERING, index - key_size, FROZEN_TYPES
        else:
            choices = [ColumnKind.STATIC, ColumnKind.REGULAR] if clustering_size else [ColumnKind.REGULAR]
            kind, position, of = draw(st.sampled_from(choices)), -1, TYPES
        is_reversed = kind is ColumnKind.CLUSTERING and draw(st.booleans())
        kinds[kind].append(ColumnMetadata(name, draw(of), kind, position, is_reversed))
    dropped = kinds[ColumnKind.REGULAR][3:]
    return TableMetadata(
        draw(NAMES),
        draw(NAMES),
        draw(st.uuids()),
        tuple(kinds[ColumnKind.PARTITION_KEY]),
        tuple(kinds[ColumnKind.CLUSTERING]),
        in_order(kinds[ColumnKind.STATIC]),
        in_order(kinds[ColumnKind.REGULAR][:3]),
        {column.name: DroppedColumn(column, draw(st.integers(0, 2**62))) for column in dropped},
        frozenset(draw(st.sets(st.sampled_from(["compound", "dense", "super", "counter"])))),
        draw(st.integers(0, 2**31 - 1)),
    )
