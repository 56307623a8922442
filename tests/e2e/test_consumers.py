"""Flink, the JDBC sink, DuckDB, ClickHouse, Spark and clients show what SELECT gives: every type, an ALTER, statics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType
from tests.support.consumers.clients import CLIENTS, clickhouse, client_rows
from tests.support.consumers.flink_sql import FlinkError
from tests.support.consumers.selected import SelectedTable, every_type, read_topic, topic_of, write_every_type
from tests.support.consumers.typed_values import KEYSPACE
from tests.support.consumers.wide_table import NAMES, ROWS
from tests.support.e2e.raw_rows import RawRows, raw_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.addresses import Servers
    from tests.support.consumers.flink_sql import Flink
    from tests.support.consumers.jdbc_sink import JdbcSinks
    from tests.support.consumers.selected import Selected
    from tests.support.consumers.typed_topic import TypedTopic

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

FORMS = ("default_forms", "exact")  # the second is exact by the stack's type_forms
INT, TEXT = NativeType("int"), NativeType("text")
STATIC = {"s": TEXT, "v": TEXT}
BATCH = 4


@pytest.fixture(scope="module")
def rows(servers: Servers) -> Iterator[RawRows]:
    with raw_rows(servers) as found:
        found.session.execute(
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        found.session.execute(f"USE {KEYSPACE}")
        found.session.execute("CREATE TYPE address (street text, zip int)")
        yield found
        found.session.execute(f"DROP KEYSPACE {KEYSPACE}")


@pytest.fixture(scope="module")
def topics(rows: RawRows, servers: Servers) -> dict[str, TypedTopic]:
    counts = {name: write_every_type(rows, name) for name in FORMS}
    return {name: topic_of(servers, KEYSPACE, name, count) for name, count in counts.items()}


@pytest.mark.parametrize("forms", FORMS)
def test_flink_shows_every_type(flink: Flink, rows: RawRows, topics: dict[str, TypedTopic], forms: str) -> None:
    table = every_type(forms)
    selected = table.select(rows)
    assert table.in_bytes(topics[forms], flink.rows(topics[forms])) == selected
    assert len(selected) == ROWS + 4


@pytest.mark.parametrize("language", CLIENTS)
def test_a_client_shows_every_type(rows: RawRows, topics: dict[str, TypedTopic], tmp_path: Path, language: str) -> None:
    command = CLIENTS[language](tmp_path)
    for forms in FORMS:
        table = every_type(forms)
        assert table.in_bytes(topics[forms], client_rows(command, topics[forms])) == table.select(rows)


def test_clickhouse_shows_every_type(rows: RawRows, topics: dict[str, TypedTopic], tmp_path: Path) -> None:
    """In the default forms. Its arrays have no null."""
    table, topic = every_type("default_forms"), topics["default_forms"]
    found = table.in_bytes(topic, client_rows(clickhouse(tmp_path), topic))
    assert without_empty(table, found) == without_empty(table, table.select(rows))


def without_empty(table: SelectedTable, rows: Selected) -> Selected:
    """Rows whose empty collections are null."""
    collections = {name for name, of in table.columns.items() if isinstance(of, ListType | SetType | MapType)}
    return {
        key: {name: None if name in collections and value == bytes(4) else value for name, value in row.items()}
        for key, row in rows.items()
    }


def test_the_jdbc_sink_shows_every_type(
    sinks: JdbcSinks, database: str, rows: RawRows, topics: dict[str, TypedTopic], servers: Servers
) -> None:
    """PostgreSQL's text of each value that was written, which the other tests compare with SELECT."""
    topic = topics["default_forms"].name
    messages = read_topic(servers, topic, 1)
    sinks.run(database, topic, [messages[at : at + BATCH] for at in range(0, len(messages), BATCH)])
    columns = ", ".join(f"{name}::text" for name in NAMES)
    found = {
        number: dict(zip(NAMES, texts, strict=True))
        for number, *texts in sinks.rows(database, f'SELECT id, {columns} FROM "{topic.replace(".", "_")}"')
    }
    assert {json.dumps({"id": number}) for number in found} == every_type("default_forms").select(rows).keys()
    for number in (*range(ROWS), ROWS + 4):
        at = 1 if number > ROWS else number
        assert found[number] == {name: of.values[at % len(of.values)][1] for name, of in NAMES.items()}
    assert set(found[ROWS].values()) == set(found[ROWS + 2].values()) == {None}


def write_static(rows: RawRows, name: str) -> None:
    columns = "id int, c int, s text static, v text, PRIMARY KEY (id, c)"
    rows.session.execute(f"CREATE TABLE {name} ({columns}) WITH cdc = true")
    rows.session.execute(f"INSERT INTO {name} (id, s) VALUES (1, 'alone')")
    rows.session.execute(f"INSERT INTO {name} (id, s, c, v) VALUES (2, 'shared', 1, 'x')")
    rows.session.execute(f"INSERT INTO {name} (id, c, v) VALUES (2, 2, 'y')")


def test_rows_of_static_columns_are_left_out_or_have_no_key(flink: Flink, rows: RawRows, servers: Servers) -> None:
    names = ("left_out", "all_rows")  # by the stack's type_forms
    for name in names:
        write_static(rows, name)
    tables = {name: SelectedTable(name, {"c": INT, **STATIC}, ("id", "c")) for name in names}
    topics = {name: topic_of(servers, KEYSPACE, name, 2) for name in names}
    complete = tables["all_rows"].select(rows)
    alone = json.dumps({"id": 1, "c": None})
    assert complete.keys() > {alone}
    found = {name: tables[name].in_bytes(topics[name], flink.rows(topics[name], ("id", "c"))) for name in names}
    assert found["all_rows"] == complete
    assert found["left_out"] == {key: row for key, row in complete.items() if key != alone}
    declared = flink.rows(topics["left_out"], ("id", "c"), declared_key="id, c")
    assert tables["left_out"].in_bytes(topics["left_out"], declared) == found["left_out"]
    with pytest.raises(FlinkError):
        flink.rows(topics["all_rows"], ("id", "c"), declared_key="id, c")
