"""Loads of one kind of write each, to a table that has rows already: what each kind costs the fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import LIVE, NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from dev.bench.raw_load import MIXED, PLAIN, START_US, TTL, Load, new_key, new_row, text, time_uuid

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from dev.bench.raw_load import Write

    Key = tuple[bytes, bytes]
    MakeWrite = Callable[[random.Random, Key, int], Write]

ROWS = 10  # of a partition
STATIC_SHARE = 0.03  # of the writes to a table with a static column


def _rows_of(make: MakeWrite) -> Callable[[random.Random, int], Iterator[Write]]:
    """INSERTs of all rows, and then as many writes of the kind to random rows."""

    def writes(rng: random.Random, count: int) -> Iterator[Write]:
        partitions = [new_key(rng)[0] for _ in range(max(1, count // (2 * ROWS)))]
        keys = [(partition, time_uuid(rng)) for partition in partitions for _ in range(ROWS)]
        for number, key in enumerate(keys):
            yield new_row(rng, key, START_US + number)
        for number in range(len(keys), count):
            yield make(rng, rng.choice(keys), START_US + number)

    return writes


def _ttl(rng: random.Random, key: Key, timestamp: int) -> Write:
    return new_row(rng, key, timestamp, ttl=TTL)


def _with_static(rng: random.Random, key: Key, timestamp: int) -> Write:
    if rng.random() < STATIC_SHARE:
        return key[0], "static", Row((), {"owner": Cell(timestamp, text(rng, 12))})
    return new_row(rng, key, timestamp)


def _update(rng: random.Random, key: Key, timestamp: int) -> Write:
    return key[0], "row", Row((key[1],), {"amount": Cell(timestamp, rng.randbytes(4))}, NO_LIVENESS)


def _null(_rng: random.Random, key: Key, timestamp: int) -> Write:
    return key[0], "row", Row((key[1],), {"note": Cell(timestamp, b"", timestamp // 10**6)}, NO_LIVENESS)


def _element(rng: random.Random, key: Key, timestamp: int) -> Write:
    added = ComplexColumnData(LIVE, (Cell(timestamp, text(rng, 8), path=text(rng, 1)),))
    return key[0], "row", Row((key[1],), {"tags": added}, NO_LIVENESS)


def _row_deletion(_rng: random.Random, key: Key, timestamp: int) -> Write:
    deletion = RowDeletion(DeletionTime(timestamp, timestamp // 10**6))
    return key[0], "row", Row((key[1],), {}, NO_LIVENESS, deletion)


def _conditional(rng: random.Random, key: Key, timestamp: int) -> Write:
    """Return a write as a conditional UPDATE is logged: its cells have the ballot's time, and the row
    has no liveness.
    """
    columns = {"amount": Cell(timestamp, rng.randbytes(4)), "kind": Cell(timestamp, rng.randbytes(4))}
    return key[0], "row", Row((key[1],), columns, NO_LIVENESS)


def _liveness(_rng: random.Random, key: Key, timestamp: int) -> Write:
    return key[0], "row", Row((key[1],), {}, LivenessInfo(timestamp))


KINDS = {
    kind.name: kind
    for kind in (
        Load("plain", PLAIN, _rows_of(new_row)),
        Load("ttl", PLAIN, _rows_of(_ttl)),
        Load("static table", MIXED, _rows_of(_with_static)),
        Load("update", PLAIN, _rows_of(_update)),
        Load("null", PLAIN, _rows_of(_null)),
        Load("map element", PLAIN, _rows_of(_element)),
        Load("row deletion", PLAIN, _rows_of(_row_deletion)),
        Load("conditional", PLAIN, _rows_of(_conditional)),
        Load("key only", PLAIN, _rows_of(_liveness)),
    )
}
