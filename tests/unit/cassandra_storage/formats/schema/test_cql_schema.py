"""Tables from CQL are those that a node has in system_schema."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.cql_schema import parse_schema
from cassandra_storage.formats.schema.tables import ColumnKind
from cassandra_storage.formats.types.marshal import NativeType, TupleType
from dev.verify.oracle.type_values import KEYSPACE
from tests.support.vectors import sstables
from tests.support.workload.tables import create_types, tables

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


def plain(table: TableMetadata) -> TableMetadata:
    """Return the table without what CQL does not say."""
    return replace(table, id=UUID(int=0), cdc=False, altered_at=0, dropped_columns=MappingProxyType({}))


@pytest.mark.parametrize("form", sstables.FORMS_MADE)
def test_create_statements(form: str) -> None:
    """Tables that the workload does not alter, compact ones among them."""
    real = {table.name: table for table in sstables.load(form).tables.values()}
    line = sstables.line_of(form)
    made = [table for table in tables(line, sstables.SEED) if table.name not in ("altered", "doomed", "viewed")]
    text = ";\n".join([f"USE {KEYSPACE}", *create_types(), *(table.create() for table in made)])
    found = parse_schema(text)
    assert {table.name for table in found} == {table.name for table in made}
    for table in found:
        expected = real[table.name]
        if any("evolving" in str(column.type) for column in table.columns):
            continue  # the workload extends the type
        assert plain(table) == plain(expected)


SNAPSHOT = """
/* a comment; with a semicolon */
CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'};
CREATE TYPE IF NOT EXISTS shop."Odd" ("a b" int, c frozen<list<text>>);
CREATE TABLE IF NOT EXISTS shop.orders (
    id int,
    "C" text,
    s int static,
    gone frozen<tuple<int, text>>,
    u frozen<"Odd">,  -- a comment
    PRIMARY KEY ((id), "C")
) WITH ID = a3f1c1e6-c075-11ee-9c5e-0b2b6d3f7c1a
    AND CLUSTERING ORDER BY ("C" DESC)
    AND compaction = {'class': 'x', 'y': 'it''s; (1)'}
    AND gc_grace_seconds = 60
    AND comment = '';
ALTER TABLE shop.orders DROP gone USING TIMESTAMP 1700000000123000;
ALTER TABLE shop.orders ADD later int;
CREATE INDEX IF NOT EXISTS i ON shop.orders (later);
"""


def test_snapshot() -> None:
    [table] = parse_schema(SNAPSHOT)
    assert (table.qualified_name, str(table.id)) == ("shop.orders", "a3f1c1e6-c075-11ee-9c5e-0b2b6d3f7c1a")
    assert [column.name for column in table.columns] == ["id", "C", "s", "later", "u"]
    assert table.clustering[0].is_reversed
    assert table.gc_grace_seconds == 60
    dropped = table.dropped_columns["gone"]
    assert dropped.dropped_time == 1_700_000_000_123_000
    assert dropped.column.type == TupleType((NativeType("int"), NativeType("text")))
    assert dropped.column.kind is ColumnKind.REGULAR


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t",
        "CREATE TABLE t (a int)",
        "CREATE TABLE t (a nothing, PRIMARY KEY (a))",
        "CREATE TABLE t (a int, PRIMARY KEY (a)) WITH ID = 5",
        "CREATE TABLE t (a int, PRIMARY KEY (a",
        "CREATE TYPE t (a",
    ],
)
def test_damaged(text: str) -> None:
    with pytest.raises(FormatError):
        parse_schema(text)
