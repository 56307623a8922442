"""Random rows of one clustering that collide as often as can be, and what to merge of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.deletion import (
    EXPIRED_LIVENESS_TTL,
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    NO_TIMESTAMP,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from dev.verify.oracle.merge_wire import (
    COUNTER,
    DECIMAL_SET,
    DOUBLE_MAP,
    LIST,
    MAP,
    SET,
    STATIC,
    USER_TYPE,
    Merge,
    MergedTable,
    is_complex,
)

if TYPE_CHECKING:
    import random

    from cassandra_storage.formats.types.marshal import CqlType

POOL, MERGES = 200, 2000  # rows and merges of one request
_ACTIVE = 8

_TIMESTAMPS = (1, 2, 3, 4)
_RARE_TIMESTAMPS = (NO_TIMESTAMP + 1, -1, 0, 2**63 - 1)
_SECONDS = (100, 101, 102, 103)
_LAST_SECONDS = {
    True: (2**31 - 1, 2**31, 2**32 - 3),
    False: (2**31 - 2,),
}  # Cell.MAX_DELETION_TIME, unsigned from 5.0 on
_TTLS = (1, 2, 3)
_VALUES = (b"", b"x", b"y", b"\x80", b"xy")
_NAN, _OTHER_NAN = b"\x7f\xf8" + bytes(6), b"\xff\xf8" + bytes(5) + b"\x01"


def _timeuuid(time: int) -> bytes:
    return UUID(fields=(time, 0, 0x1000, 0x80, 0, 0)).bytes


_PATHS: dict[CqlType, tuple[bytes, ...]] = {
    SET: (b"", b"a", b"b", b"ab"),
    MAP: tuple(struct.pack(">i", number) for number in (-1, 0, 1, 2**31 - 1)),
    LIST: tuple(map(_timeuuid, (0, 1, 2**16))),
    # Some of them are one to the comparator: 1.0 and 1.00, NaNs of other bits.
    DECIMAL_SET: tuple(struct.pack(">ib", *parts) for parts in ((0, 1), (1, 10), (-1, 1), (0, 10), (5, 0), (0, 0))),
    DOUBLE_MAP: (*(struct.pack(">d", number) for number in (0.0, -0.0, 1.5)), _NAN, _OTHER_NAN),
    USER_TYPE: tuple(struct.pack(">H", field) for field in range(3)),
}


class Batch(NamedTuple):
    """One request to the oracle."""

    # The table.
    table: MergedTable
    # The rows.
    pool: list[Row]
    # The deletions that are active in merges.
    active: list[DeletionTime]
    # The merges of these rows.
    merges: list[Merge]


class RowMaker:
    """Draws from one random generator; `wide_seconds`: local deletion times as 5.0 may have them."""

    def __init__(self, rng: random.Random, *, wide_seconds: bool) -> None:
        self._rng = rng
        self._last_seconds = _LAST_SECONDS[wide_seconds]

    def batch(self, table: MergedTable, size: int = MERGES) -> Batch:
        pool = [self.row(table) for _ in range(POOL)]
        active = [LIVE] * 4 + [self._deletion() for _ in range(_ACTIVE - 4)]
        return Batch(table, pool, active, [self._merge() for _ in range(size)])

    def _merge(self) -> Merge:
        count = self._rng.choice((2, 2, 3, 3, 4))
        how = self._rng.choice("rrrrw")
        return Merge(how, self._rng.randrange(_ACTIVE), tuple(self._rng.randrange(POOL) for _ in range(count)))

    def row(self, table: MergedTable) -> Row:
        """Return a row that is not empty. It may hold what its own deletions shadow, which Cassandra's builders never
        leave.
        """
        while (row := self._row(table)).is_empty:
            pass
        return row

    def _row(self, table: MergedTable) -> Row:
        rng = self._rng
        columns: dict[str, ColumnData] = {}
        for name in sorted(rng.sample(sorted(table.columns), rng.randint(0, min(4, len(table.columns))))):
            data = self._data(table, table.columns[name].type)
            if data is not None:
                columns[name] = data
        if table is STATIC:
            return Row((), columns)
        return Row((), columns, self._liveness(table), self._row_deletion())

    def _liveness(self, table: MergedTable) -> LivenessInfo:
        rng = self._rng
        if table is COUNTER or rng.random() < 0.4:
            return NO_LIVENESS
        ttl = rng.choice((0, 0, *_TTLS, EXPIRED_LIVENESS_TTL))
        return LivenessInfo(self._timestamp(), ttl, self._second()) if ttl else LivenessInfo(self._timestamp())

    def _row_deletion(self) -> RowDeletion:
        if self._rng.random() < 0.6:
            return NO_ROW_DELETION
        return RowDeletion(self._deletion(), is_shadowable=self._rng.random() < 0.3)

    def _data(self, table: MergedTable, type_: CqlType) -> ColumnData | None:
        if table.is_counter:
            return self._counter()
        if not is_complex(type_):
            return self._cell(None)
        paths = self._rng.sample(_PATHS[type_], self._rng.randint(0, 3))
        encode = path_encoder(type_)
        by_key = {encode(path): path for path in paths}  # no two that are one to the comparator
        deletion = self._deletion() if self._rng.random() < 0.4 else LIVE
        cells = tuple(self._cell(by_key[key]) for key in sorted(by_key))
        return ComplexColumnData(deletion, cells) if cells or not deletion.is_live else None

    def _cell(self, path: bytes | None) -> Cell:
        kind = self._rng.choice(("live", "live", "expiring", "expiring", "tombstone"))
        if kind == "tombstone":
            return Cell(self._timestamp(), b"", self._second(), path=path)
        value = self._rng.choice(_VALUES)
        if kind == "live":
            return Cell(self._timestamp(), value, path=path)
        return Cell(self._timestamp(), value, self._second(), self._rng.choice(_TTLS), path)

    def _counter(self) -> Cell:
        rng = self._rng
        kind = rng.random()
        if kind < 0.15:
            return Cell(self._timestamp(), b"", self._second())
        return Cell(self._timestamp(), b"" if kind < 0.3 else self._context())

    def _context(self) -> bytes:
        """Shards of up to four ids, each global, local or remote."""
        rng = self._rng
        header, body = [], b""
        for index, id_ in enumerate(sorted(rng.sample(range(1, 5), rng.randint(1, 4)))):
            kind = rng.choice(("global", "global", "local", "remote", "remote", "remote"))
            if kind != "remote":
                header.append(index if kind == "local" else index - 2**15)
            # A remote shard's clock is not 0: between that and a positive one Cassandra takes the second it meets.
            clocks = (-2, -1, 1, 2, 3) if kind == "remote" else (-1, 0, 1, 2, 3)
            clock, count = rng.choice(clocks), rng.choice((-1, 0, 1, 2**63 - 1))
            body += struct.pack(">16sqq", bytes([id_]) * 16, clock, count)
        return struct.pack(f">h{len(header)}h", len(header), *header) + body

    def _deletion(self) -> DeletionTime:
        return DeletionTime(self._timestamp(), self._second())

    def _timestamp(self) -> int:
        return self._rng.choice(_TIMESTAMPS if self._rng.random() < 0.97 else _RARE_TIMESTAMPS)

    def _second(self) -> int:
        return self._rng.choice(_SECONDS if self._rng.random() < 0.95 else self._last_seconds)
