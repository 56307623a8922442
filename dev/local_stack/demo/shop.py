"""The example keyspace `shop` of the demo and of `make stack`: its tables, and rows that mark an end of writing."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for, raw_topic
from dev.local_stack.clients.change_reader import partition_count
from dev.local_stack.clients.history import frozen

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dev.local_stack.clients.cql import CqlClient

KEYSPACE = "shop"
TOPIC_SECONDS = 60.0
SCHEMA = (
    "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE IF NOT EXISTS shop.address (street text, city text)",
    (
        "CREATE TABLE IF NOT EXISTS shop.orders (id bigint PRIMARY KEY, customer text, status text, total decimal,"
        " note text, lines map<text, int>, placed timestamp) WITH cdc = true"
    ),
    (
        "CREATE TABLE IF NOT EXISTS shop.customers (name text PRIMARY KEY, email text, home address, tags set<text>,"
        " joined date) WITH cdc = true"
    ),
    (
        "CREATE TABLE IF NOT EXISTS shop.stock (warehouse text, product text, amount int, price double,"
        " manager text static, PRIMARY KEY (warehouse, product)) WITH cdc = true"
    ),
)


@dataclass(frozen=True, slots=True)
class Marked:
    """The INSERT that writes a marker to a table."""

    # The statement. Its two parameters are the key and a token.
    insert: str
    # The name of the column that gets the token.
    marker_column: str
    # Returns the key of a marker's number.
    key: Callable[[int], int | str]
    # Returns the serialized key of a marker's number.
    serialized: Callable[[int], bytes]
    # Returns the Avro record of the key of a marker's number.
    record: Callable[[int], dict[str, object]]


MARKED = {
    "orders": Marked(
        "INSERT INTO shop.orders (id, note) VALUES (%s, %s)",
        "note",
        lambda number: -number,
        lambda number: struct.pack(">q", -number),
        lambda number: {"id": -number},
    ),
    "customers": Marked(
        "INSERT INTO shop.customers (name, email) VALUES (%s, %s)",
        "email",
        "marker {}".format,
        lambda number: f"marker {number}".encode(),
        lambda number: {"name": f"marker {number}"},
    ),
    "stock": Marked(
        "INSERT INTO shop.stock (warehouse, product, amount) VALUES (%s, 'marker', %s)",
        "amount",
        "marker {}".format,
        lambda number: f"marker {number}".encode(),
        lambda number: {"warehouse": f"marker {number}", "product": "marker"},
    ),
}


def create(client: CqlClient) -> None:
    for statement in SCHEMA:
        client.execute(statement)


class Markers:
    """Rows written to every raw partition of every table: all that was written before them has come out when they have.

    That holds for one node: its log, each raw partition and each state keep their order.
    """

    # Never the same twice: a marker that is written again unchanged is no change and would never come.
    _tokens = itertools.count(int(time.time()))

    def __init__(self, client: CqlClient, bootstrap: str, prefix: str) -> None:
        self._client = client
        self._bootstrap = bootstrap
        self._prefix = prefix

    def write(self, tables: tuple[str, ...] = tuple(MARKED)) -> dict[tuple[str, Hashable], tuple[str, object]]:
        """Write a marker to each raw partition; returns {(keyspace.table, key): (column, token that must come)}."""
        awaited: dict[tuple[str, Hashable], tuple[str, object]] = {}
        for table in tables:
            token = next(self._tokens)
            marked = MARKED[table]
            value: object = token if marked.marker_column == "amount" else f"marker {token}"
            for number in self._numbers(table):
                self._client.execute(marked.insert, (marked.key(number), value))
                awaited[f"{KEYSPACE}.{table}", frozen(marked.record(number))] = (marked.marker_column, value)
        return awaited

    def _numbers(self, table: str) -> list[int]:
        """One number for each raw partition, such that its key falls there."""
        topic = raw_topic(self._prefix, KEYSPACE, table)
        deadline = time.monotonic() + TOPIC_SECONDS
        while not (count := partition_count(self._bootstrap, topic)):
            if time.monotonic() > deadline:
                raise CdcError(Code.SERVER_FAILED, f"There is no topic {topic}.", "See the publisher's log in .run.")
            time.sleep(0.2)
        first: dict[int, int] = {}
        for number in itertools.count(1):
            first.setdefault(partition_for(MARKED[table].serialized(number), count), number)
            if len(first) == count:
                return sorted(first.values())
        raise AssertionError


def is_marker(key: dict[str, object]) -> bool:
    """Whether a change's key is a marker's."""
    return any(value < 0 if isinstance(value, int) else str(value).startswith("marker ") for value in key.values())
