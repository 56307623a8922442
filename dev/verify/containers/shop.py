"""The tables in which rows are written, and the topics, files and tables where their changes come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import click
import duckdb

from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import wait_until
from tests.support.e2e.one_change import wait_for_text

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra.cluster import Session

CHANGES, COPIES, JOINED = "cdc.shop.orders", "copies.shop.orders", "cdc.shop.orders_with_customers"
JOINS = (project_root() / "deploy" / "compose" / "joins.toml").read_text()
FILE_SECONDS = 180.0
TRANSFORMERS = """
[[transformer]]
name = "orders"
source = { namespace = "cdc.shop", source = "orders" }
target = { namespace = "copies.shop", source = "orders", owner = "team" }

[[transformer.step]]
kind = "docs"
table = "Orders, copied."
columns = { note = "What was ordered." }
"""


class Broker(Protocol):
    """A broker, wherever it runs."""

    @property
    def bootstrap_servers(self) -> str: ...


def make_tables(session: Session) -> None:
    """Make shop.orders, and shop.customers with a row."""
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")
    session.execute("CREATE TABLE shop.customers (id int PRIMARY KEY, name text) WITH cdc = true")
    session.execute("INSERT INTO shop.customers (id, name) VALUES (1, 'Ada')")


def insert(session: Session, number: int, note: str) -> None:
    """Write a row."""
    session.execute("INSERT INTO shop.orders (id, note) VALUES (%s, %s)", (number, note))


def wait_for_change(kafka: Broker, topic: str, note: str) -> None:
    """Wait until the topic has a change with the note, and say so."""
    wait_for_text(topic, {"bootstrap.servers": kafka.bootstrap_servers}, note, group=note.replace(" ", "-"))
    click.echo(f"{topic}: the change has come out")


def notes_of_changes(kafka: Broker, registry: str) -> list[str]:
    """The note of each change of shop.orders, as many times as it is there. Only committed changes count."""

    def is_orders(keyspace: str, table: str) -> bool:
        return (keyspace, table) == ("shop", "orders")

    with ChangeReader(kafka.bootstrap_servers, registry, "cdc", is_orders) as reader:
        return [change.value["after"]["note"] for change in reader.read_all() if change.value is not None]


def wait_for_file(lake: Path) -> None:
    """Wait until the archive has made a file of the changes."""
    table = lake / "cdc_shop" / "orders"
    wait_until(lambda: any(table.rglob("*.parquet")), f"a file in {table}", FILE_SECONDS)
    click.echo("cdc_shop.orders: the archive has made a file")


def wait_for_row(warehouse: Path, note: str) -> None:
    """Wait until the table in DuckDB's file has the row."""
    wait_until(lambda: note in _notes(warehouse), f"a row in {warehouse}", FILE_SECONDS)
    click.echo("shop.orders: the warehouse has the row")


def _notes(warehouse: Path) -> set[str]:
    """The notes in the warehouse; none before its first load, and while the job has the file open."""
    try:
        with duckdb.connect(str(warehouse), read_only=True) as database:
            return {note for (note,) in database.execute("SELECT note FROM shop.orders").fetchall()}
    except (duckdb.IOException, duckdb.CatalogException):
        return set()
