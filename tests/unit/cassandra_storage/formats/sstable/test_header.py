"""An SSTable's header and its table go together: user types of 3.x, dropped columns, no table at all."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

import pytest

from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnsupportedError
from cassandra_storage.formats.rows.header import EncodingStats
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.sstable.header import resolve
from cassandra_storage.formats.sstable.metadata import HeaderColumn, HeaderComponent
from cassandra_storage.formats.sstable.versions import BIG, sstable_format
from cassandra_storage.formats.types.marshal import NativeType, SetType, TupleType, UserType
from cassandra_storage.formats.types.type_names import NamedType

INT, TEXT = NativeType("int"), NativeType("text")
UDT = UserType("ks", "point", ("x",), (INT,), is_multi_cell=True)
FROZEN = replace(UDT, is_multi_cell=False)
SET = SetType(INT, is_multi_cell=True)
NAME = ("ks", "t", UUID(int=5))
ME, NB = sstable_format("me", BIG), sstable_format("nb", BIG)


def header(*columns: tuple[str, object], key: NamedType | None = None) -> HeaderComponent:
    regular = tuple(HeaderColumn(name.encode(), NamedType(type_)) for name, type_ in columns)  # type: ignore[arg-type]
    clustering = (NamedType(TEXT, is_reversed=True),)
    return HeaderComponent(EncodingStats(), key or NamedType(INT), clustering, (), regular)


def table(*columns: ColumnMetadata, dropped: dict[str, DroppedColumn] | None = None) -> TableMetadata:
    return TableMetadata(
        "ks",
        "t",
        UUID(int=5),
        (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
        (ColumnMetadata("c", TEXT, ColumnKind.CLUSTERING, 0, is_reversed=True),),
        regular_columns=columns,
        dropped_columns=MappingProxyType(dropped or {}),
    )


def regular(name: str, type_: object) -> ColumnMetadata:
    return ColumnMetadata(name, type_, ColumnKind.REGULAR)  # type: ignore[arg-type]


def is_complex(found: HeaderComponent, of: TableMetadata | None, form: object = ME) -> list[bool]:
    schema = resolve(found, ME if form is ME else NB, of, NAME)
    return [layout.is_complex for layout in schema.header.regular_columns.layouts]


def test_user_types_of_3x_are_frozen_if_the_table_says_so() -> None:
    assert is_complex(header(("u", UDT)), table(regular("u", FROZEN))) == [False]
    assert is_complex(header(("u", UDT)), table(regular("u", UDT))) == [True]
    assert is_complex(header(("u", UDT)), table(regular("u", FROZEN)), NB) == [True]  # 4.0 writes what is


def test_the_order_of_columns_may_tell() -> None:
    assert is_complex(header(("u", UDT), ("v", INT)), None) == [False, False]
    assert is_complex(header(("a", SET), ("u", UDT)), None) == [True, True]


def test_else_it_is_refused() -> None:
    dropped = {"u": DroppedColumn(regular("u", TupleType((INT,))), 7)}
    for of in (None, table(dropped=dropped)):
        with pytest.raises(UnsupportedError, match=r"'u' .*frozen user type or not.*upgradesstables"):
            resolve(header(("u", UDT)), ME, of, NAME)


def test_dropped_columns() -> None:
    dropped = {"gone": DroppedColumn(regular("gone", INT), 7)}
    found = resolve(header(("gone", INT), ("v", INT)), NB, table(regular("v", INT), dropped=dropped), NAME)
    assert [layout.dropped_time for layout in found.header.regular_columns.layouts] == [7, -(2**63) - 1]


def test_unknown_column() -> None:
    with pytest.raises(UnknownColumnError, match=r"unknown column 'w' of ks\.t"):
        resolve(header(("w", INT)), NB, table(regular("v", INT)), NAME)


def test_another_clustering() -> None:
    with pytest.raises(FormatError, match="1 clustering columns, the table 0"):
        resolve(header(("v", INT)), NB, replace(table(regular("v", INT)), clustering=()), NAME)


def test_types_are_the_headers() -> None:
    """An int that has become a varint since."""
    found = resolve(header(("v", INT)), NB, table(regular("v", NativeType("varint"))), NAME)
    assert found.header.regular_columns.layouts[0].length == 4


def test_without_a_table() -> None:
    key = NamedType(TEXT, columns=(INT, TEXT))
    found = resolve(header(("n", NativeType("counter")), key=key), NB, None, NAME).table
    assert [column.name for column in found.columns] == ["key0", "key1", "clustering0", "n"]
    assert found.clustering[0].is_reversed
    assert found.is_counter
    assert (found.qualified_name, found.id) == ("ks.t", UUID(int=5))
