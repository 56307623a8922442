"""Mutations with dropped columns that were a non-frozen user type, or may have been (Cassandra 3.11)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import AmbiguousError, FormatError, UnknownTableError
from cassandra_storage.formats.rows.dropped_columns import cell_by_cell
from cassandra_storage.formats.rows.mutation import read_mutation
from cassandra_storage.formats.rows.readings import MOST_READINGS, Readings, WrittenAs
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.versions import VERSION_3014
from tests.support.cassandra_storage.dropped_user_type import AFTER, AGAIN, BEFORE, DROPPED_AT, TUPLE, insert, joined

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.row import Row

TABLE_ID = AFTER.id.bytes
BLOB_AGAIN = replace(AGAIN, regular_columns=(ColumnMetadata("u", NativeType("blob"), ColumnKind.REGULAR),))
OLDER = DROPPED_AT - 1_000_000
TEXTS = st.text("abc défgh", max_size=8)
UPDATES = st.tuples(
    st.tuples(st.integers(0, 300).map(lambda value: value.to_bytes(4, "big")), TEXTS.map(str.encode)),
    st.dictionaries(st.integers(0, 9), TEXTS, max_size=4).map(lambda cells: dict(sorted(cells.items()))),
)


def read(mutation: bytes, table: TableMetadata, written_as: WrittenAs | None) -> list[tuple[Row, ...]]:
    """The rows, as a materializer reads them with the schema that the publisher names."""
    tables = {TABLE_ID: table}
    doubts = {} if written_as is None else {TABLE_ID: {"u": written_as}}
    found = Readings(tables, doubts).find_tables(mutation, VERSION_3014)
    return [update.rows for update in read_mutation(mutation, VERSION_3014, {**tables, **found})]


def without_u(mutation: bytes) -> list[tuple[Row, ...]]:
    table = cell_by_cell(AFTER, {"u"})
    return [update.rows for update in read_mutation(mutation, VERSION_3014, {TABLE_ID: table})]


@given(UPDATES, st.sampled_from(WrittenAs))
def test_cells_are_never_read_as_one_value(update: tuple[tuple[bytes, bytes], dict[int, str]], how: WrittenAs) -> None:
    mutation = insert(BEFORE, *update, timestamp=OLDER)
    try:
        found = read(mutation, AFTER, how)
    except AmbiguousError:
        assert how is WrittenAs.EITHER
    else:
        assert found == without_u(mutation)


@given(UPDATES)
def test_one_value_is_never_read_as_cells(update: tuple[tuple[bytes, bytes], dict[int, str]]) -> None:
    fields, elements = update
    value = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    mutation = insert(AGAIN, (), elements, value=value)
    expected = [update.rows for update in read_mutation(mutation, VERSION_3014, {TABLE_ID: AGAIN})]
    try:
        assert read(mutation, AGAIN, WrittenAs.EITHER) == expected
    except AmbiguousError:
        return


def test_what_was_added_again_is_read_by_its_own_form() -> None:
    before, again = insert(BEFORE, (b"\0\0\0\1", b"y")), insert(AGAIN, value=b"\0\0\0\4\0\0\0\1")
    [[row]] = read(before, AGAIN, WrittenAs.EITHER)
    assert set(row.columns) == {"a"}
    [[row]] = read(again, AGAIN, WrittenAs.EITHER)
    assert set(row.columns) == {"a", "u"}


def test_a_frozen_value_is_read_although_cells_are_known() -> None:
    """The column was added again and dropped again between two looks at the schema."""
    mutation = insert(AGAIN, value=b"\0\0\0\4\0\0\0\1", timestamp=OLDER)
    assert read(mutation, AFTER, WrittenAs.CELLS) == without_u(insert(BEFORE, timestamp=OLDER))


def test_readings_with_different_contents_are_ambiguous() -> None:
    """The column was added again as a blob. Its value looks like the fields of a user type: a cell's flags are their
    number, its length the flags of the first.
    """
    dropped = DroppedColumn(BLOB_AGAIN.regular_columns[0], DROPPED_AT)
    table = replace(BLOB_AGAIN, dropped_columns={"u": dropped})
    empty_fields = b"".join(b"\x0c\x02\0" + bytes([place]) for place in range(1, 7))
    value = b"\x02\0\0" + empty_fields + b"\x08\x02\0\x07\x0c" + b"twelve bytes"
    mutation = insert(BLOB_AGAIN, value=value)
    assert len(value) == 0x2C
    with pytest.raises(AmbiguousError, match="dropped columns u"):
        read(mutation, table, WrittenAs.EITHER)
    as_blob = read_mutation(mutation, VERSION_3014, {TABLE_ID: table})
    assert read(mutation, table, None) == [update.rows for update in as_blob]


def test_each_table_of_a_mutation_is_read_by_itself() -> None:
    other_id = UUID(int=10)
    tables = {table.id.bytes: table for table in (AFTER, replace(AGAIN, id=other_id))}
    mutation = joined(
        insert(BEFORE, (b"\0\0\0\1", b"y"), {1: "tea"}),
        insert(replace(AGAIN, id=other_id), value=b"\0\0\0\4\0\0\0\1"),
    )
    doubts = {table_id: {"u": WrittenAs.EITHER} for table_id in tables}
    found = Readings(tables, doubts).find_tables(mutation, VERSION_3014)
    assert set(found) == {TABLE_ID}
    first, second = read_mutation(mutation, VERSION_3014, {**tables, **found})
    assert set(first.rows[0].columns) == {"a", "v"}
    assert set(second.rows[0].columns) == {"a", "u"}


def test_one_table_is_read_with_some_columns_as_cells() -> None:
    names = ("u", "w")
    dropped = {name: DroppedColumn(replace(TUPLE, name=name), DROPPED_AT) for name in names}
    table = replace(AFTER, dropped_columns=dropped)
    written = replace(
        BEFORE, regular_columns=(BEFORE.regular_columns[0], replace(TUPLE, name="w"), *BEFORE.regular_columns[1:])
    )
    mutation = insert(written, (b"\0\0\0\1", b"y"), {1: "tea"}, more={"w": b"\0\0\0\4\0\0\0\1"}, timestamp=OLDER)
    readings = Readings({TABLE_ID: table}, {TABLE_ID: dict.fromkeys(names, WrittenAs.EITHER)})
    found = readings.find_tables(mutation, VERSION_3014)
    assert found == {TABLE_ID: cell_by_cell(table, {"u"})}
    assert readings.find_tables(mutation, VERSION_3014)[TABLE_ID] is found[TABLE_ID]


def test_more_columns_than_can_be_tried_are_ambiguous() -> None:
    names = [f"u{number}" for number in range(MOST_READINGS.bit_length())]
    table = replace(
        AFTER, dropped_columns={name: DroppedColumn(replace(TUPLE, name=name), DROPPED_AT) for name in names}
    )
    alive = tuple(replace(TUPLE, name=name) for name in names)
    written = replace(AFTER, regular_columns=(AFTER.regular_columns[0], *alive))
    mutation = insert(written, more=dict.fromkeys(names, b"\0\0\0\4\0\0\0\1"))
    readings = Readings({TABLE_ID: table}, {TABLE_ID: dict.fromkeys(names, WrittenAs.EITHER)})
    with pytest.raises(AmbiguousError, match="may be frozen or not"):
        readings.find_tables(mutation, VERSION_3014)


def test_without_a_reading_the_error_is_that_of_the_known_table() -> None:
    doubts = {TABLE_ID: {"u": WrittenAs.EITHER}}
    mutation = insert(BEFORE, (b"\0\0\0\1", b"y"))
    with pytest.raises(FormatError):
        Readings({TABLE_ID: AFTER}, doubts).find_tables(mutation[:-9], VERSION_3014)
    other = insert(replace(BEFORE, id=UUID(int=10)), (b"\0\0\0\1",))
    with pytest.raises(UnknownTableError):
        Readings({TABLE_ID: AFTER}, doubts).find_tables(joined(mutation, other), VERSION_3014)


def test_only_mutations_with_a_table_in_doubt_are_concerned() -> None:
    readings = Readings({TABLE_ID: AFTER}, {TABLE_ID: {"u": WrittenAs.CELLS}})
    assert readings.concern(insert(BEFORE))
    assert not readings.concern(insert(replace(BEFORE, id=UUID(int=10))))
