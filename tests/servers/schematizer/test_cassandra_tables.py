"""A CREATE TABLE is converted to the schemas of the table that a real Cassandra makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS
from cdc_common.messages.envelope import key_schema, value_schema
from publisher.tables.system_schema import read_tables
from schematizer.converters.cql import CqlConverter
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra.cluster import Session

    from cassandra_storage.formats.schema.tables import TableMetadata
    from dev.local_stack.servers.cassandra import CassandraCluster

pytestmark = pytest.mark.servers

TYPES = ['CREATE TYPE place (street text, "No" int)', "CREATE TYPE person (name text, homes list<frozen<place>>)"]
TABLES = {
    "plain": "CREATE TABLE plain (id int PRIMARY KEY, b text, a bigint)",
    "keyed": """CREATE TABLE IF NOT EXISTS keyed (
        "Second" timeuuid, first text, /* the partition */ third int, s text STATIC, v varchar, -- one line
        PRIMARY KEY ((first, "Second"), third)
    ) WITH CLUSTERING ORDER BY (third DESC) AND comment = 'it''s // no comment' AND compaction =
        {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '5'} AND gc_grace_seconds = 7;""",
    "types": """create columnfamily types (
        id uuid, tags set<text>, m map<text, frozen<list<int>>>, l list<frozen<place>>, who frozen<person>, at place,
        t tuple<int, frozen<set<ascii>>>, v vector<float, 3>, d decimal, x varint, i inet, tm time, du duration,
        primary key (id),)""",
    "counters": "CREATE TABLE counters (id int, c counter, PRIMARY KEY (id))",
    "masked": "CREATE TABLE masked (id int PRIMARY KEY, a text MASKED WITH DEFAULT, b int)",
    '"Odd name"': 'CREATE TABLE "Odd_name" ("primary" int, "key" int, static_ int, PRIMARY KEY ("primary", "key"))',
    "rawtext": "CREATE TABLE rawtext (id int PRIMARY KEY) WITH comment = $$it's; (raw)$$",
}


@pytest.fixture
def tables(cql: Session, fresh_keyspace: str) -> dict[str, TableMetadata]:
    """Return the tables by name, as the publisher reads them."""
    cql.set_keyspace(fresh_keyspace)
    for statement in [*TYPES, *TABLES.values()]:
        if "MASKED" not in statement:
            cql.execute(statement)
    found = read_tables(lambda query: [row._asdict() for row in cql.execute(query)])
    return {table.name: table for table in found.tables.values() if table.keyspace == fresh_keyspace}


def test_the_schemas_are_those_of_the_table(tables: dict[str, TableMetadata], fresh_keyspace: str) -> None:
    compared = set()
    for statement in TABLES.values():
        converted = CqlConverter().convert(";\n".join([*TYPES, statement]), f"cdc.{fresh_keyspace}")
        assert converted.key is not None
        table = tables.get(str(converted.source))
        if table is not None:
            assert json.loads(converted.value) == value_schema(table, "cdc", DEFAULT_FORMS)
            assert json.loads(converted.key) == key_schema(table, "cdc", DEFAULT_FORMS)
            compared.add(table.name)
    assert compared == tables.keys()


def test_a_masked_column_is_a_column() -> None:
    masked: Any = json.loads(CqlConverter().convert(TABLES["masked"], "cdc.shop").value)
    row = masked["fields"][0]["type"][1]
    assert [field["name"] for field in row["fields"]] == ["id", "a", "b"]


def test_comments_become_docs(
    cassandra: CassandraCluster, tables: dict[str, TableMetadata], fresh_keyspace: str, tmp_path: Path
) -> None:
    assert tables
    registry = Registry(tmp_path / "registry.db").start()
    try:
        command = [sys.executable, "-m", "schematizer", "docs", "comments", "--url", registry.url, fresh_keyspace]
        where = {"cassandra.contact_points": cassandra.contact_points[0], "cassandra.port": cassandra.port}
        command += [part for name, value in where.items() for part in ("--set", f"{name}={value}")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "2 comments applied"
        sources = registry.call("GET", f"/api/v1/namespaces/cdc.{fresh_keyspace}/sources").body
        assert {source["name"]: source["doc"] for source in sources} == {
            "keyed": "it's // no comment",
            "rawtext": "it's; (raw)",
        }
    finally:
        assert registry.stop() == 0
