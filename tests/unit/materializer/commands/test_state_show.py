"""`state show` of a table that was dropped and created again: rows are of the table that they came from."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind
from materializer.commands.state_show import cassandra_partition_json
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import (
    INT,
    TABLE,
    WRITER,
    TableWriter,
    catalog_of_recreated,
    column,
    int_bytes,
    raw_record,
)

NEXT = TableWriter(
    replace(TABLE, id=UUID(int=2), altered_at=2, regular_columns=(column("other", INT, ColumnKind.REGULAR),))
)


def test_rows_of_the_table_before_are_shown_until_they_end() -> None:
    run = FoldRun(WRITER)
    keys = [int_bytes(number) for number in range(3)]
    run.chunk(*(raw_record(key, "row", Row((int_bytes(1),), {"a": Cell(1, b"old")})) for key in keys))
    run.catalog = catalog_of_recreated(TABLE, NEXT.table)
    for key in keys:
        shown = cassandra_partition_json(run.state, run.catalog, key, with_values=True)
        assert shown["rows"][0]["columns"]["a"]["value"] == "old"
    run.chunk(raw_record(keys[0], "row", Row((int_bytes(1),), {"other": Cell(2, int_bytes(7))}), writer=NEXT))
    shown = cassandra_partition_json(run.state, run.catalog, keys[0], with_values=True)
    assert shown["rows"][0]["columns"].keys() == {"other"}
