"""Compact tables as CQL shows them (CompactTableMetadata)."""

from __future__ import annotations

from cassandra_storage.formats.schema.compact_tables import as_selected, hidden_columns
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from tests.support.materializer.raw_builder import TABLE

TEXT, EMPTY = NativeType("text"), NativeType("empty")
COLUMN1 = ColumnMetadata("column1", TEXT, ColumnKind.CLUSTERING, 0)
VALUE = ColumnMetadata("value", EMPTY, ColumnKind.REGULAR)


def table(flags: set[str], regular: tuple[ColumnMetadata, ...], *static: ColumnMetadata) -> TableMetadata:
    return TableMetadata("ks", "t", TABLE.id, TABLE.partition_key, (COLUMN1,), static, regular, flags=frozenset(flags))


def test_a_static_compact_table_has_its_statics_as_columns_and_no_clustering() -> None:
    stored = table(set(), (VALUE,), ColumnMetadata("a", TEXT, ColumnKind.STATIC))
    shown = as_selected(stored)
    assert [column.name for column in shown.columns] == ["k", "a"]
    assert shown.regular_columns[0].kind is ColumnKind.REGULAR
    assert hidden_columns(stored) == {COLUMN1, VALUE}


def test_a_dense_table_hides_a_value_of_no_type_only() -> None:
    stored = table({"dense"}, (VALUE,))
    assert [column.name for column in as_selected(stored).columns] == ["k", "column1"]
    full = table({"dense", "compound"}, (ColumnMetadata("v", TEXT, ColumnKind.REGULAR),))
    assert as_selected(full) is full


def test_any_other_table_is_shown_as_it_is() -> None:
    assert as_selected(TABLE) is TABLE
    assert hidden_columns(TABLE) == frozenset()
