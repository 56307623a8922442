"""A table of the source datacenter as operators have them, filled by prepared statements: rows of five columns, some of
which expire, deleted rows, range tombstones, collections, statics.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from dev.verify.model.kinds import DOUBLE, INT, TEXT, native, set_of
from dev.verify.model.tables import Clustering, Table
from dev.verify.model.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.verify.model.check import Seed

ROWS_EACH = 27  # of a partition; one of them is deleted
RANGES_EVERY = 10  # partitions
RANGE = (15, 20)
TEXT_BYTES = 50
SHORT_TTL = 40  # of one row in a hundred: some expire before the rebuild, some after
TTLS = (*(0,) * 89, *(86_400,) * 10, SHORT_TTL)
STATEMENTS = (
    "INSERT INTO $k.{name} (p, c, v, w, n, d, s) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?",
    "UPDATE $k.{name} SET st = ? WHERE p = ?",
    "DELETE FROM $k.{name} WHERE p = ? AND c = ?",
    "DELETE FROM $k.{name} WHERE p = ? AND c >= ? AND c < ?",
)


def filled_table(partitions: int) -> Table:
    return Table(
        "readings",
        partitions,
        clustering=(Clustering("c", INT),),
        static=(("st", TEXT),),
        regular=(("v", TEXT), ("w", TEXT), ("n", native("bigint")), ("d", DOUBLE), ("s", set_of(TEXT))),
    )


def fill(one: Seed) -> None:
    """Write all rows of the seed's only table, a batch for each partition; what is deleted, afterwards."""
    [table] = one.tables
    pick = random.Random(one.seed)
    writer = Writer(one.run.client, one.keyspace)
    numbers = range(table.partitions)
    insert, static, row, several = (statement.format(name=table.name) for statement in STATEMENTS)
    writer.run_prepared(insert, (inserts(pick, p) for p in numbers))
    writer.run_prepared(static, ([(text(pick), p)] for p in numbers))
    writer.run_prepared(row, ([(p, pick.randrange(RANGE[0]))] for p in numbers))
    writer.run_prepared(several, ([(p, *RANGE)] for p in numbers[::RANGES_EVERY]))


def inserts(pick: random.Random, p: int) -> Iterator[tuple[object, ...]]:
    for c in range(ROWS_EACH):
        tags = {pick.choice(("new", "old", "hot", "cold")) for _ in range(pick.randrange(3))}
        yield p, c, text(pick), text(pick), pick.getrandbits(40), pick.random(), tags, pick.choice(TTLS)


def text(pick: random.Random) -> str:
    return pick.randbytes(TEXT_BYTES // 2).hex()
