"""The types that DuckDB's read_avro gives the fields of a row, and dates and timestamps made of its numbers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import fastavro
import pytest

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from tests.support.cdc_common.messages.from_avro import without_logical_types
from tests.support.consumers import tool_chains
from tests.support.consumers.sql_types import DUCKDB_TYPES
from tests.support.consumers.typed_topic import row_fields
from tests.support.consumers.wide_table import NAMES, wide_messages

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

QUERY = """
import json, sys
from pathlib import Path
import duckdb
extension = next((Path(duckdb.__file__).parents[1] / "duckdb_ext" / "extensions").rglob("avro.duckdb_extension"))
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.load_extension(str(extension))
print(json.dumps([list(map(str, row)) for row in connection.execute(sys.argv[1]).fetchall()]))
"""


def rows(query: str) -> list[list[str]]:
    packages = tool_chains.packages("duckdb", tool_chains.DUCKDB)
    found: list[list[str]] = json.loads(tool_chains.run([sys.executable, "-c", QUERY, query], PYTHONPATH=str(packages)))
    return found


def write(file: Path, forms: TypeForms) -> str:
    """A file of the first row; its fields' schema."""
    schema = wide_messages(forms)[0].value_schema
    row = without_logical_types(json.loads(schema)["fields"][0]["type"][1])
    dates = {name_of("date"): 1, name_of("timestamp"): 1_795_000_000_123}
    with file.open("wb") as opened:
        fastavro.writer(opened, fastavro.parse_schema(row), [{"id": 0, **dates}])
    return schema


def name_of(cql_type: str) -> str:
    return next(name for name, of in NAMES.items() if of.name == cql_type)


@pytest.mark.parametrize("forms", [DEFAULT_FORMS, EXACT], ids=["default", "exact"])
def test_types(tmp_path: Path, forms: TypeForms) -> None:
    schema = write(tmp_path / "rows.avro", forms)
    described = rows(f"DESCRIBE SELECT * FROM read_avro('{tmp_path}/rows.avro')")
    shown = {name: of.replace('"', "") for name, of, *_ in described}  # it quotes its keywords
    assert shown == {field["name"]: DUCKDB_TYPES.of(field["type"]) for field in row_fields(schema)}


def test_dates_and_timestamps(tmp_path: Path) -> None:
    write(tmp_path / "rows.avro", DEFAULT_FORMS)
    columns = f"DATE '1970-01-01' + {name_of('date')}, make_timestamp_ms({name_of('timestamp')})"
    found = rows(f"SELECT {columns} FROM read_avro('{tmp_path}/rows.avro')")
    assert found == [["1970-01-02", "2026-11-18 11:06:40.123000"]]
