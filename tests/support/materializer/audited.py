"""A table in memory that an audit reads by SELECT, and the same table in a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cdc_common.clients.cassandra import PageUnreadableError, RawPage
from cdc_common.messages.tables import canonical, digest, to_json
from cdc_common.program.pace import Pace
from materializer.commands.audit.first_look import SpanComparison, SpanResult, StateUnit
from materializer.commands.audit.plan import AuditOptions, AuditPlan
from materializer.commands.audit.shown import ROW_UNIT, STATIC_UNIT
from materializer.fold.chunk import fold_chunk
from materializer.planning.plan import TableSchema
from materializer.settings import Settings
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, TABLE, WRITER, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdc_common.clients.cassandra import Unreadable

WHOLE_RING = Span(MINIMUM, MAXIMUM)
RELEASE = "5.0.6"
SECOND = 1_800_000_000
_LONG = 8


class PlainRow(NamedTuple):
    """A row of raw_builder's table: text columns a and b, a set s and a static column st. Times in µs; ttl in s."""

    k: int
    c: int
    a: str | None = None
    s: tuple[str, ...] = ()
    st: str | None = None
    time: int = 1000
    ttl: int | None = None

    @property
    def partition_key(self) -> bytes:
        return int_bytes(self.k)


def make_plan(options: AuditOptions | None = None) -> AuditPlan:
    schema = TableSchema(TABLE.id.bytes, digest(canonical(TABLE)), to_json(TABLE))
    return AuditPlan(
        Settings(), "cdc.raw.shop.orders", 2, (schema,), TABLE.id.bytes, RELEASE, options or AuditOptions()
    )


class MemoryTable:
    """cdc_common.clients.cassandra.RawReader over rows, with tokens that cannot be read.

    bad: the reason by token. bad_after: the token can be read up to so many rows of it.
    """

    def __init__(self, rows: Sequence[PlainRow], bad: dict[int, Unreadable] | None = None, bad_after: int = 0) -> None:
        self.rows = sorted(rows, key=lambda row: (decorated_token(row.partition_key), row.c))
        self.bad = bad or {}
        self.bad_after = bad_after
        self.pages = 0

    def page(self, query: str, values: Sequence[bytes], page_rows: int, following: bytes | None = None) -> RawPage:
        self.pages += 1
        if "token(k) >= ?" not in query:
            return self._unit(values)
        first, last = (int.from_bytes(value, "big", signed=True) for value in values)
        found = [row for row in self.rows if first <= decorated_token(row.partition_key) <= last]
        start = int.from_bytes(following or b"", "big")
        page = found[start : start + page_rows]
        self._check(first, last, found, start, page_rows)
        end = start + len(page)
        return RawPage([*map(raw_row, page)], end.to_bytes(4, "big") if end < len(found) else None)

    def _check(self, first: int, last: int, found: Sequence[PlainRow], start: int, page_rows: int) -> None:
        for token, reason in self.bad.items():
            place = sum(decorated_token(row.partition_key) < token for row in found) + self.bad_after
            if first <= token <= last and start <= place < start + page_rows + 1:
                raise PageUnreadableError(reason)

    def _unit(self, values: Sequence[bytes]) -> RawPage:
        for row in self.rows:
            if [row.partition_key, int_bytes(row.c)][: len(values)] == list(values):
                return RawPage([raw_row(row)], None)
        return RawPage([], None)


def raw_row(row: PlainRow) -> list[bytes | None]:
    """Return the row as AuditedTable's SELECT returns it from Cassandra 5.0."""
    token = decorated_token(row.partition_key).to_bytes(_LONG, "big", signed=True)
    time = row.time.to_bytes(_LONG, "big", signed=True)
    ttl = None if row.ttl is None else int_bytes(row.ttl)
    static: list[bytes | None] = [None] * 3 if row.st is None else [row.st.encode(), time, None]
    a: list[bytes | None] = [None] * 3 if row.a is None else [row.a.encode(), time, ttl]
    parts = b"".join(len(element).to_bytes(4, "big") + element.encode() for element in sorted(row.s))
    elements: list[bytes | None] = [len(row.s).to_bytes(4, "big") + parts, time] if row.s else [None, None]
    return [token, row.partition_key, int_bytes(row.c), *static, *a, None, None, None, *elements]


def stored_row(row: PlainRow) -> Row:
    columns: dict[str, Cell | ComplexColumnData] = {}
    if row.a is not None:
        expires = () if row.ttl is None else (SECOND + row.ttl, row.ttl)
        columns["a"] = Cell(row.time, row.a.encode(), *expires)
    if row.s:
        cells = tuple(Cell(row.time, b"", path=element.encode()) for element in sorted(row.s))
        columns["s"] = ComplexColumnData(LIVE, cells)
    return Row((int_bytes(row.c),), columns, LivenessInfo(row.time))


def static_row(row: PlainRow) -> Row:
    return Row((), {"st": Cell(row.time, (row.st or "").encode())})


def state_units(rows: Collection[PlainRow]) -> list[StateUnit]:
    """The units of a state that has these rows, as they come out of the shuffle."""
    own = digest(canonical(TABLE))
    encode = CATALOG.key_encoders(TABLE.id.bytes, own).clustering
    units = {}
    for row in rows:
        token = decorated_token(row.partition_key)
        place = token, row.partition_key, ROW_UNIT + encode((int_bytes(row.c),))
        units[place] = StateUnit(place, own, write_row(stored_row(row), WRITER.header))
        if row.st is not None:
            place = token, row.partition_key, STATIC_UNIT
            units[place] = StateUnit(place, own, write_row(static_row(row), WRITER.header, is_static=True))
    return [units[place] for place in sorted(units)]


def compare(state: Collection[PlainRow], table: MemoryTable, *, page_rows: int = 3, most: int = 10_000) -> SpanResult:
    plan = make_plan(AuditOptions(page_rows=page_rows, most_candidates=most))
    comparison = SpanComparison(plan, table, Pace(0), clock=lambda: float(SECOND))
    return comparison.compare(WHOLE_RING, state_units(state))


def state_of(rows: Sequence[PlainRow], *, delete: int | None = None) -> MemoryState:
    """A state that has folded the rows and then, of `delete`, the deletion of a Cassandra partition at 5000 µs."""
    state = MemoryState()
    records = [
        raw_record(row.partition_key, "row", stored_row(row), offset=offset, timestamp_ms=SECOND * 1000)
        for offset, row in enumerate(rows)
    ]
    records += [
        raw_record(row.partition_key, "static", static_row(row), offset=50 + offset, timestamp_ms=SECOND * 1000)
        for offset, row in enumerate(row for row in rows if row.st is not None)
    ]
    if delete is not None:
        deletion = DeletionTime(5000, SECOND)
        records.append(
            raw_record(int_bytes(delete), "partition_deletion", deletion, offset=99, timestamp_ms=SECOND * 1000)
        )
    records.append(raw_record(b"", "heartbeat", b"", offset=100, timestamp_ms=SECOND * 1000, clock=SECOND * 1_000_000))
    state.apply(fold_chunk(state, records, CATALOG).writes)
    return state
