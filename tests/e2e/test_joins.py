"""Random statements on a real node, joined by the program of `make stack`: equal to the join of what SELECT returns."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.local_stack.demo import shop
from dev.local_stack.demo.joined_rows import SOURCE, joined_rows
from joinery.commands.audited import audit_joins
from joinery.settings import JoinerySettings, Settings
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.programs import Program

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

STATEMENTS = 600
JOINED_SECONDS = 180.0
NAMES = ["ada", "bob", "cyd", "dan"]
JOIN = "SELECT o.id, o.customer, o.status, c.email FROM o LEFT JOIN c ON o.customer = c.name"


def write(client: CqlClient, random: Random, count: int) -> None:
    """Rows of orders and customers, orders that get another customer or none, and deletions of both."""
    for _ in range(count):
        number, name, text = random.randrange(1000, 1040), random.choice(NAMES), f"text {random.randrange(5)}"
        statement, values = random.choice(
            (
                ("INSERT INTO shop.orders (id, customer, status) VALUES (%s, %s, %s)", (number, name, text)),
                ("UPDATE shop.orders SET customer = %s WHERE id = %s", (name, number)),
                ("UPDATE shop.orders SET status = %s WHERE id = %s", (text, number)),
                ("DELETE customer FROM shop.orders WHERE id = %s", (number,)),
                ("DELETE FROM shop.orders WHERE id = %s", (number,)),
                ("INSERT INTO shop.customers (name, email) VALUES (%s, %s)", (name, text)),
                ("DELETE FROM shop.customers WHERE name = %s", (name,)),
            )
        )
        client.execute(statement, values)


def selected(client: CqlClient) -> list[tuple[Any, ...]]:
    """DuckDB's join of what SELECT returns."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE o (id BIGINT, customer VARCHAR, status VARCHAR)")
        database.execute("CREATE TABLE c (name VARCHAR, email VARCHAR)")
        for statement, table in (
            ("SELECT id, customer, status FROM shop.orders", "o (id, customer, status)"),
            ("SELECT name, email FROM shop.customers", "c (name, email)"),
        ):
            for row in client.execute(statement):
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))
        return sorted(database.execute(JOIN).fetchall(), key=repr)


def joined(servers: Servers) -> list[tuple[Any, ...]]:
    """The joined rows that the target has, as any client reads them."""
    topic = f"{servers.topic_prefix}.{shop.KEYSPACE}.{SOURCE}"
    read = AvroDeserializer(SchemaRegistryClient({"url": servers.registry}))
    found: dict[bytes, Any] = {}
    for message in read_topic(servers.kafka, topic, 1):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if isinstance(value, bytes):
            change: Any = read(value, SerializationContext(topic, MessageField.VALUE))
            assert found.pop(key, None) == change["before"]
            if change["after"] is not None:
                found[key] = change["after"]
    names = ("id", "customer", "status", "email")
    return sorted((tuple(row[name] for name in names) for row in found.values()), key=repr)


def wait_until_equal(client: CqlClient, servers: Servers, joinery: Program) -> None:
    deadline = time.monotonic() + JOINED_SECONDS
    while joined(servers) != (wanted := selected(client)):
        joinery.check()
        assert time.monotonic() < deadline, f"{joined(servers)}\n{wanted}\n{joinery.output()}"
        time.sleep(2.0)


def test_joined_rows_equal_the_join_of_select(
    client: CqlClient, servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(1)
    shop.create(client)
    write(client, random, STATEMENTS // 2)
    with joined_rows(servers, print) as joinery:
        wait_until_equal(client, servers, joinery)
        write(client, random, STATEMENTS // 2)
        wait_until_equal(client, servers, joinery)
        assert len(selected(client)) > len(NAMES)
        settings = Settings(
            kafka=KafkaSettings(bootstrap_servers=servers.kafka),
            registry=RegistrySettings(url=servers.registry),
            joinery=JoinerySettings(state_directory=tmp_path),
        )
        audit_joins(settings, joinery.folder / "joins.toml", [])
    assert "0 differ" in capsys.readouterr().out
