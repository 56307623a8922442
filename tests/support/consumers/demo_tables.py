"""The demo's three tables in a keyspace of a test's own, under the demo's load: what SELECT gives, and PostgreSQL."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cassandra.util import Date

from cdc_common.messages.topics import change_topic
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import STATEMENTS, Load
from tests.support.consumers.selected import read_topic
from tests.support.consumers.typed_topic import expected_rows

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from tests.support.consumers.jdbc_sink import JdbcSinks
    from tests.support.consumers.messages import Encoded

KEYSPACE = "sink"
KEYS = {"orders": ("id",), "customers": ("name",), "stock": ("warehouse", "product")}
LAST = "last"
SECONDS = 240.0
Table = dict[tuple[object, ...], dict[str, object]]
"""Rows by their keys."""


def create(client: CqlClient) -> None:
    for statement in shop.SCHEMA:
        client.execute(_here(statement))


def _here(statement: str) -> str:
    return statement.replace("shop.", f"{KEYSPACE}.").replace("EXISTS shop ", f"EXISTS {KEYSPACE} ")


def write(client: CqlClient, rate: float, seconds: float) -> None:
    """The demo's load, and a partition that has only its static column."""
    load = Load(client, rate, seconds, statements={_here(text): of for text, of in STATEMENTS.items()})
    load.start()
    load.wait()
    assert load.error is None, load.error
    client.execute(f"INSERT INTO {KEYSPACE}.stock (warehouse, manager) VALUES ('closed', 'Ann')")
    client.execute(f"INSERT INTO {KEYSPACE}.stock (warehouse, manager) VALUES ('north', 'Ben')")


def alter(client: CqlClient) -> None:
    """Add a column to each table and a field to the type, and write to each row: what was before it comes before it."""
    client.execute(f"ALTER TYPE {KEYSPACE}.address ADD zip text")
    for table, key in KEYS.items():
        client.execute(f"ALTER TABLE {KEYSPACE}.{table} ADD coupon text")
        where = " AND ".join(f"{name} = %s" for name in key)
        for row in list(selected(client, table)):
            client.execute(f"UPDATE {KEYSPACE}.{table} SET coupon = '{LAST}' WHERE {where}", row)
    client.execute(f"UPDATE {KEYSPACE}.customers SET home.zip = '69001' WHERE name = 'customer 1'")


def selected(client: CqlClient, table: str) -> Table:
    """The rows that SELECT gives, without the partitions that have only static columns."""
    found = client.rows(KEYSPACE, table)
    return {_key(table, row): plain(row) for row in found if None not in _key(table, row)}


def messages(servers: Servers, table: str, rows: int) -> list[Encoded]:
    """The table's messages, once the last write to each of so many rows has come."""
    topic = change_topic(servers.topic_prefix, KEYSPACE, table)
    deadline = time.monotonic() + SECONDS
    while True:
        found = read_topic(servers, topic, 1)
        came = sum(row.get("coupon") == LAST for row in expected_rows(found).values())
        if came >= rows:
            return found
        assert time.monotonic() < deadline, f"{table}: {came} of {rows} rows have come"
        time.sleep(2.0)


def in_postgresql(sinks: JdbcSinks, database: str, topic: str, table: str) -> Table:
    name = topic.replace(".", "_")
    names = [
        found
        for (found,) in sinks.rows(
            database,
            f"SELECT column_name FROM information_schema.columns WHERE table_name = '{name}' ORDER BY ordinal_position",
        )
    ]
    rows = (dict(zip(names, row, strict=True)) for row in sinks.rows(database, f'SELECT * FROM "{name}"'))
    return {_key(table, row): plain(row) for row in rows}


def _key(table: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in KEYS[table])


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - any value; one for each kind
    """A value of either driver's in one form: decimals as text, as the column is; a user type without nulls."""
    match value:
        case Decimal():
            return str(value)
        case Date():
            return value.date()
        case dt.datetime():
            return value.replace(tzinfo=None)
        case tuple() if hasattr(value, "_asdict"):
            return {name: item for name, item in plain(value._asdict()).items() if item is not None}
        case Mapping():
            return {name: plain(item) for name, item in value.items()}
        case AbstractSet():
            return sorted(value)
    return value
