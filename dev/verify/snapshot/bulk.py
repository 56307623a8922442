"""Many rows of one table, written before CDC is on, with TTLs, statics, collections and deletions of each kind."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from dev.verify.model.kinds import INT, TEXT, map_of, set_of
from dev.verify.model.tables import Clustering, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.model.writer import Writer

ROWS_PER_PARTITION = 50
DAY = 86_400
STATIC_SHARE = 0.5
DELETED_SHARE = 0.1  # of the partitions lose a row, a range, a cell, or all

NAME = "bulk"
INSERT = "INSERT INTO $k.{table} (p, c, v, n, s, m) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP {timestamp} AND TTL ?"


def table(rows: int, name: str = NAME) -> Table:
    """It is not truncated, so that its rows are there to be compared."""
    return Table(
        name,
        max(1, rows // ROWS_PER_PARTITION),
        clustering=(Clustering("c", INT),),
        static=(("st", TEXT),),
        regular=(("v", TEXT), ("n", INT), ("s", set_of(TEXT)), ("m", map_of(TEXT, INT))),
        weight=0.5,
        is_truncated=False,
    )


def fill(writer: Writer, client: CqlClient, keyspace: str, partitions: int, written_at: int, table: str = NAME) -> None:
    """`written_at`: the timestamp of the rows, µs; the deletions are one later."""
    pick = random.Random(partitions)
    insert = INSERT.format(table=table, timestamp=written_at)
    writer.run_prepared(insert, (_rows(pick, number) for number in range(partitions)))
    for number in range(partitions):
        if pick.random() < STATIC_SHARE:
            client.execute(
                f"UPDATE {keyspace}.{table} USING TIMESTAMP {written_at} SET st = 'of {number}' WHERE p = {number}"
            )
        if pick.random() < DELETED_SHARE:
            client.execute(_deletion(pick, f"{keyspace}.{table}", number, written_at + 1))


def _rows(pick: random.Random, number: int) -> Iterator[tuple[object, ...]]:
    for c in range(ROWS_PER_PARTITION):
        tags = {pick.choice("abcd") for _ in range(pick.randrange(3))}
        ttl = pick.choice((0, 0, 0, 0, 5, DAY))
        yield number, c, "v" * pick.randrange(40), c, tags, {"k": number, pick.choice("xyz"): c}, ttl


def _deletion(pick: random.Random, table: str, number: int, timestamp: int) -> str:
    start = pick.randrange(ROWS_PER_PARTITION)
    what, where = pick.choice(
        (
            ("", f"AND c = {start}"),
            ("", f"AND c >= {start} AND c < {start + 7}"),
            ("v", f"AND c = {start}"),
            ("m['k']", f"AND c = {start}"),
            ("", ""),
        )
    )
    return f"DELETE {what} FROM {table} USING TIMESTAMP {timestamp} WHERE p = {number} {where}"
