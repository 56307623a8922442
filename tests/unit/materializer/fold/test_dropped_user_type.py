"""A dropped column of a non-frozen user type, which 3.11 records as a frozen tuple although it was written in cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import LIVE, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn
from cassandra_storage.formats.types.marshal import TupleType, UserType
from cdc_common.errors.codes import CdcError, Code
from tests.support.materializer.altered_table import BASE_MS, BASE_US
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TABLE, TEXT, TableWriter, catalog_of, int_bytes, raw_record
from tests.support.materializer.wide_partition import bounded

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange, RowImage
    from cdc_common.messages.raw import Kind
    from materializer.records import RawRecord

KEY = int_bytes(1)
FIELDS = (TEXT, TEXT)
ADDRESS = UserType("shop", "address", ("street", "zip"), FIELDS, is_multi_cell=True)
A, B, _ = TABLE.regular_columns
U = ColumnMetadata("u", ADDRESS, ColumnKind.REGULAR)
SU = ColumnMetadata("su", ADDRESS, ColumnKind.STATIC)
BEFORE = TableWriter(replace(TABLE, static_columns=(SU,), regular_columns=(A, B, U)))
STREET, ZIP = b"\0\0", b"\0\1"
IMAGE = ((STREET, b"Elm"), (ZIP, b"10115"))
LATER = 9  # after the drop


def dropped(time: int = 5, *, as_tuple: bool = True, altered_at: int = 1) -> TableWriter:
    """Return the table after the DROP of both columns, as 3.11 records them, or as a publisher that knew them does."""
    columns = [replace(column, type=TupleType(FIELDS) if as_tuple else column.type) for column in (U, SU)]
    drops = {column.name: DroppedColumn(column, BASE_US + time) for column in columns}
    return TableWriter(
        replace(BEFORE.table, static_columns=(), regular_columns=(A, B), dropped_columns=drops, altered_at=altered_at)
    )


def again() -> TableWriter:
    """3.11 lets nothing be added under the name but a frozen tuple."""
    column = replace(U, type=TupleType(FIELDS))
    return TableWriter(replace(dropped().table, regular_columns=(A, B, column), altered_at=2))


def address(number: int) -> ComplexColumnData:
    cells = (Cell(BASE_US + number, b"Elm", path=STREET), Cell(BASE_US + number, b"10115", path=ZIP))
    return ComplexColumnData(LIVE, cells)


def row(number: int, **columns: Cell | ComplexColumnData) -> Row:
    return Row((int_bytes(1),), columns, LivenessInfo(BASE_US + number))


def sent(writer: TableWriter, write: Row, offset: int = 0) -> RawRecord:
    kind: Kind = "row" if write.clustering else "static"
    return raw_record(KEY, kind, write, offset=offset, timestamp_ms=BASE_MS, writer=writer)


def written(number: int, writer: TableWriter = BEFORE) -> RawRecord:
    return sent(writer, row(number, a=Cell(BASE_US + number, b"A"), u=address(number)))


def heartbeat(writer: TableWriter) -> RawRecord:
    return raw_record(b"", "heartbeat", None, timestamp_ms=BASE_MS, writer=writer)


def run_of(*writers: TableWriter) -> FoldRun:
    run = FoldRun(BEFORE)
    read_schemas(run, *writers)
    return run


def read_schemas(run: FoldRun, *writers: TableWriter) -> None:
    run.catalog = catalog_of(*(writer.table for writer in (BEFORE, *writers)))


def images(changes: list[RowChange]) -> list[tuple[RowImage | None, RowImage | None]]:
    return [(change.before, change.after) for change in changes]


def test_a_node_that_has_not_heard_of_the_drop_writes_the_column() -> None:
    run = run_of(dropped())
    run.chunk(written(LATER))
    run.chunk(sent(BEFORE, Row((), {"su": address(LATER)})))
    assert run.visible(KEY) == {(int_bytes(1),): {"a": b"A"}}
    assert_writable(run, dropped())


@pytest.mark.parametrize("most", [1, 40_000], ids=["cut", "whole"])
@pytest.mark.parametrize("time", [5, 1 - BASE_US], ids=["the clock ahead", "USING TIMESTAMP 1"])
def test_a_cell_newer_than_the_drop_is_in_the_state(time: int, most: int) -> None:
    run = run_of()
    run.chunk(sent(BEFORE, Row((), {"su": address(LATER)})), written(LATER))
    run.fold_settings = bounded(most)
    read_schemas(run, dropped(time))
    for _ in range(3):
        run.chunk(heartbeat(dropped(time)))
    assert images(run.changes[-1:]) == [({"a": b"A", "u": IMAGE, "su": IMAGE}, {"a": b"A"})]
    assert_writable(run, dropped(time))


def test_a_tuple_of_the_same_name_does_not_show_the_cells_of_the_user_type() -> None:
    """Neither those in the state nor those that a node writes late; its own values are shown."""
    run = run_of()
    run.chunk(written(LATER))
    read_schemas(run, dropped(), again())
    run.chunk(heartbeat(again()))
    run.chunk(written(LATER + 1))
    assert run.visible(KEY) == {(int_bytes(1),): {"a": b"A"}}
    value = b"\0\0\0\1x"
    run.chunk(sent(again(), row(LATER + 2, u=Cell(BASE_US + LATER + 2, value))))
    assert run.visible(KEY) == {(int_bytes(1),): {"a": b"A", "u": value}}


def test_publishers_that_record_the_drop_differently() -> None:
    """The newest schema has the user type, then the tuple, then the user type again: rows follow each."""
    known, unknown = dropped(as_tuple=False), dropped(altered_at=2)
    run = run_of(known)
    run.chunk(written(LATER))
    assert_writable(run, known)
    for place, writer in enumerate((unknown, known)):
        read_schemas(run, *((known, unknown) if writer is unknown else (unknown, known)))
        run.chunk(heartbeat(writer))
        run.chunk(written(LATER + 10 + place))
        assert_writable(run, writer)
    assert run.visible(KEY) == {(int_bytes(1),): {"a": b"A", "b": b"B"}}


def test_a_schema_that_lacks_a_column_of_a_row_stops_the_raw_partition() -> None:
    """It is not the newest one, whatever the tables topic says: nothing is lost or stored unreadably."""
    run = run_of(replaced := TableWriter(replace(BEFORE.table, regular_columns=(A,), altered_at=9)))
    with pytest.raises(CdcError, match="lacks columns of a raw message: u") as raised:
        run.chunk(written(LATER))
    assert raised.value.code is Code.SCHEMA_UNKNOWN
    assert run.chunk(sent(replaced, row(1, a=Cell(BASE_US, b"A")))).changes


def assert_writable(run: FoldRun, writer: TableWriter) -> None:
    """The stored rows can be read and changed under the newest schema."""
    before = run.visible(KEY)[int_bytes(1),]
    number = LATER + 100 + len(run.changes)
    run.chunk(sent(writer, row(number, b=Cell(BASE_US + number, b"B"))))
    assert run.visible(KEY) == {(int_bytes(1),): {**before, "b": b"B"}}
    assert run.merged()
