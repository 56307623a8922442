"""The table in which a row is written, and the topics where its changes come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tests.support.e2e.one_change import wait_for_text

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from dev.local_stack.servers.kafka import KafkaBroker

CHANGES, COPIES = "cdc.shop.orders", "copies.shop.orders"
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


def make_table(session: Session) -> None:
    """Make shop.orders."""
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")


def insert(session: Session, number: int, note: str) -> None:
    """Write a row."""
    session.execute("INSERT INTO shop.orders (id, note) VALUES (%s, %s)", (number, note))


def wait_for_change(kafka: KafkaBroker, topic: str, note: str) -> None:
    """Wait until the topic has a change with the note, and say so."""
    wait_for_text(topic, {"bootstrap.servers": kafka.bootstrap_servers}, note, group=note.replace(" ", "-"))
    click.echo(f"{topic}: the change has come out")
