"""With a thousand tables, a change of one costs what that one costs; and what is remembered is never out of date."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.schema_rows import ReadTables, read_each_table
from publisher.tables import node_schema, system_schema
from publisher.tables.node_schema import NodeSchema
from publisher.tables.published_table import digest_of
from publisher.tables.system_schema import SystemSchema, read_tables
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata

TABLES = 40


@pytest.fixture
def rows() -> SchemaRows:
    """Many tables, some of a user type."""
    found = SchemaRows()
    found.types = [user_type("int")]
    for number in range(TABLES):
        found.create("ks", f"t{number}", cdc=True)
        found.add_column("ks", f"t{number}", "v", "frozen<u>" if number % 4 == 0 else "text")
    return found


def user_type(field: str) -> dict[str, object]:
    return {"keyspace_name": "ks", "type_name": "u", "field_names": ["f"], "field_types": [field]}


def make_type_unreadable(rows: SchemaRows) -> None:
    rows.types = [user_type("frozen<list<" * 101 + "int" + ">>" * 101)]


def change_type(rows: SchemaRows) -> None:
    rows.types = [user_type("text")]


CHANGES: list[Callable[[SchemaRows], object]] = [
    lambda rows: rows.create("ks", "new", cdc=True),
    lambda rows: rows.alter("ks", "t1", gc_grace_seconds=7),
    lambda rows: rows.alter("ks", "t1", cdc=False),
    lambda rows: rows.alter("ks", "t1", altered_at=9),
    lambda rows: rows.add_column("ks", "t2", "w", "int"),
    lambda rows: rows.drop_column("ks", "t2", "v", "text", 5),
    lambda rows: rows.add_column("ks", "t3", "deep", "frozen<list<" * 101 + "int" + ">>" * 101),
    lambda rows: rows.drop_column("ks", "t3", "deep", "text", 5),
    lambda rows: rows.make_view("ks", "t5"),
    make_type_unreadable,
    change_type,
    lambda rows: rows.drop("ks", "t6"),
    lambda rows: rows.create("ks", "t6", cdc=True),
]


@pytest.mark.parametrize("seed", range(5))
def test_it_reads_what_a_new_reader_reads(rows: SchemaRows, seed: int) -> None:
    reader = SystemSchema(rows.run_query)
    changes = CHANGES if not seed else Random(seed).sample(CHANGES[:6], 6)
    for change in [lambda _: None, *changes]:
        change(rows)
        assert reader.read() == read_tables(rows.run_query)


def test_one_change_parses_one_table(rows: SchemaRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are parsed, its digest is computed, and its stored form is written; those of all others are known."""
    parsed: list[int] = []
    digested: list[str] = []

    def count(tables: list[Any], **others: Any) -> ReadTables:  # noqa: ANN401 - rows
        parsed.append(len(tables))
        return read_each_table(tables, **others)

    def count_digest(table: TableMetadata) -> bytes:
        digested.append(table.name)
        return digest_of(table)

    monkeypatch.setattr(system_schema, "read_each_table", count)
    monkeypatch.setattr(node_schema, "digest_of", count_digest)
    known = NodeSchema(tmp_path / "schema.json", rows.run_query, ("f", "f"))
    known.load()
    known.refresh()
    assert (parsed.pop(), len(digested)) == (TABLES, TABLES)
    digested.clear()
    rows.create("ks", "new", cdc=True)
    assert known.refresh()
    rows.alter("ks", "t3", gc_grace_seconds=77)
    assert known.refresh()
    assert (parsed, digested) == ([1, 1], ["new", "t3"])
    again = NodeSchema(tmp_path / "schema.json", rows.run_query, ("f", "f"))
    again.load()
    assert again.tables == known.tables
    assert {table.digest for table in again.published.values()} == {table.digest for table in known.published.values()}


def test_a_row_without_its_key(rows: SchemaRows) -> None:
    lost = {"keyspace_name": "ks", "table_name": None, "column_name": "c"}
    with pytest.raises(FormatError, match="without table_name"):
        read_tables(lambda query: [*rows.run_query(query), *([lost] if "system_schema.columns" in query else [])])
