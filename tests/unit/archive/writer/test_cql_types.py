"""docs/reference/archive-types.md: the column of each CQL type in Iceberg and Parquet has every value exactly."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import schemaless_reader

from archive.registrar.lake_table import schema_of
from archive.writer.schema_plans import columns_folder, newest_columns
from cdc_common.messages import wire
from dev.local_stack.process.paths import project_root
from tests.support.archive.cql_columns import CQL_COLUMNS
from tests.support.archive.scene import MemoryRegistry, Topic, archive_of
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.archive.cql_columns import CqlColumn

PAGE = (project_root() / "docs" / "reference" / "archive-types.md").read_text()
SHOWN = {
    row[0].replace("`", ""): row[1:]
    for row in (line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| "))
    if len(row) > 2
}
MOST_US = 2**63 // 1000


@pytest.mark.parametrize("column", CQL_COLUMNS, ids=lambda column: column.shown)
def test_its_column_has_every_value(tmp_path: Path, column: CqlColumn) -> None:
    avro_type = column.avro_type("cdc.shop.orders")
    record = {"type": "record", "name": "Row", "fields": [{"name": "c", "type": ["null", avro_type.schema]}]}
    topic = Topic(1, MemoryRegistry({7: record}))
    bare = {**record, "fields": [{"name": "c", "type": ["null", without_logical_types(avro_type.schema)]}]}
    wanted: list[Any] = []
    fits: list[bool] = []
    for value in column.values():
        message = b"\x02" + avro_type.encode(value)
        topic.send(0, wire.header(7) + message)
        found: Any = schemaless_reader(BytesIO(message), bare, None)
        wanted.append(found["c"])
        fits.append(column.name != "timestamp" or abs(wanted[-1]) < MOST_US)
    topic.send(0, wire.header(7) + b"\x00")
    archive = archive_of(topic, tmp_path, on_error="bytes")
    [path] = [path for path in archive.paths() if "-bytes" not in path]
    found_column = pq.read_table(tmp_path / "lake" / path).column("c").combine_chunks()
    assert list(map(bits, plain(found_column))) == [
        *(bits(value) for value, is_held in zip(wanted, fits, strict=True) if is_held),
        bits(None),
    ]
    kept = [path for path in archive.paths() if "-bytes" in path]
    assert sum(pq.read_metadata(tmp_path / "lake" / path).num_rows for path in kept) == fits.count(False)
    _, columns = newest_columns(archive.store, columns_folder("cdc_shop.orders"), 1)
    iceberg = str(schema_of(columns).find_field("c").field_type)
    assert SHOWN[column.shown] == [f"`{iceberg}`", f"`{parquet_type(tmp_path / 'lake' / path)}`"]


def test_the_page_has_every_type_and_form() -> None:
    assert SHOWN.keys() - {"CQL", "---"} == {column.shown for column in CQL_COLUMNS}


def parquet_type(path: Path) -> str:
    """The leaf columns of c: their physical types, with the logical type that Parquet has for them."""
    schema = pq.ParquetFile(path).schema
    leaves = [schema.column(number) for number in range(len(schema))]
    found = []
    for leaf in leaves:
        if leaf.path.split(".")[0] == "c":
            logical = str(leaf.logical_type).partition(",")[0].replace("(", " ")
            known = leaf.physical_type if logical == "None" else f"{leaf.physical_type} {logical}"
            found.append(known.replace("Decimal precision=12", "Decimal"))
    return ", ".join(found)


def plain(column: pa.Array) -> list[Any]:
    """The values without logical types, as Avro has them."""
    convert: Any = lambda value: value  # noqa: E731 - most are
    if pa.types.is_timestamp(column.type):
        column, convert = column.cast(pa.int64()), lambda micros: micros // 1000
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_decimal(column.type):
        convert = unscaled
    elif pa.types.is_map(column.type):
        convert = dict
    return [None if value is None else convert(value) for value in column.to_pylist()]


def unscaled(value: Any) -> bytes:  # noqa: ANN401 - a decimal
    number = int(value.scaleb(-value.as_tuple().exponent))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def bits(value: Any) -> Any:  # noqa: ANN401 - any value
    """A value that equals another one only if all bits do."""
    return ("float", struct.pack(">d", value)) if isinstance(value, float) else value
