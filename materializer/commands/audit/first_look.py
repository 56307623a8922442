"""The first look: the states' rows, sorted by token, beside what SELECT shows. Each function is a task in Spark.

A state is in the order of its partition keys, SELECT in that of their tokens: the rows of all states are shuffled by
spans of tokens, and sorted by token, partition key and unit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import Span
from cassandra_storage.formats.primitives.vint import read_unsigned_vint
from cassandra_storage.formats.rows.clustering import Clustering
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.unfiltered import read_row
from cdc_common.clients.cassandra import connect_raw
from cdc_common.program.pace import Pace
from materializer.commands.audit.compare import Seen, differences, seen
from materializer.commands.audit.plan import ANSWER_SECONDS
from materializer.commands.audit.select import SelectedUnits, Unread
from materializer.commands.audit.shown import ABSENT, STATIC_UNIT
from materializer.commands.audit.spans import SpanIndex
from materializer.commands.audit.states import open_committed, scan_units, schema_digests
from materializer.rows.row_columns import with_dropped_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from materializer.commands.audit.plan import AuditPlan, SlicePlan
    from materializer.commands.audit.select import PageReader
    from materializer.commands.audit.shown import AuditedTable, SelectedUnit, Side
    from materializer.records import RawPartition
    from stream_runtime.state.reader import StateReader

# The number of a unit's span, its token, partition key and unit.
Key: TypeAlias = tuple[int, int, bytes, bytes]
# The digest of its schema, and its row in Cassandra's form. None with a key that stands for a span, which may be empty.
Stored: TypeAlias = tuple[bytes, bytes] | None


class Candidate(NamedTuple):
    """A unit that differs at a look."""

    # The serialized key of its Cassandra partition.
    partition_key: bytes
    # The values of its clustering columns; None for the static columns.
    clustering: Clustering | None
    # When SELECT had read it (this machine's clock, µs).
    seen_us: int
    # How each differing column looked.
    columns: Mapping[str, Seen]
    # How often it was looked at.
    looks: int = 1


class SpanResult(NamedTuple):
    """The result of the first look at a span."""

    # The tokens that were compared.
    span: Span
    # The number of rows that SELECT returned.
    rows: int
    # The number of units on both sides.
    units: int
    # The units that differ.
    candidates: tuple[Candidate, ...]
    # Tokens that could not be read.
    unread: tuple[Unread, ...]


class StateUnit(NamedTuple):
    """A unit of the state on its way to the comparison."""

    # The token, the partition key and the unit, which sort it.
    place: tuple[int, bytes, bytes]
    # The digest of its schema.
    digest: bytes
    # The row as Cassandra serializes it.
    row: bytes


def scan_state(plan: SlicePlan, raw_partition: RawPartition) -> Iterator[tuple[Key, Stored]]:
    """The units of a committed state whose tokens are in the slice; the first state also gives the spans themselves."""
    if raw_partition.partition == 0:
        yield from (((number, span.first, b"", b""), None) for number, span in enumerate(plan.spans))
    with open_committed(plan.audit.settings, raw_partition) as state:
        if state is not None:
            yield from scan_rows(plan, state)


def scan_rows(plan: SlicePlan, state: StateReader) -> Iterator[tuple[Key, Stored]]:
    """The units of a state whose tokens are in the slice, in the order of the state."""
    index, table, digests = SpanIndex(plan.spans), plan.audit.table(), schema_digests(state)
    for partition_key, units in groupby(scan_units(state), key=lambda unit: unit.partition_key):
        token = decorated_token(partition_key)
        number = index.find(token)
        if number is None:
            continue
        for unit in units:
            key = table.stored_unit_key(unit.clustering_key, is_static=unit.is_static)
            if key is not None:
                _, position = read_unsigned_vint(unit.value, 1)
                schema, position = read_unsigned_vint(unit.value, position)
                yield (number, token, partition_key, key), (digests[schema], unit.value[position:])


def compare_spans(plan: SlicePlan, entries: Iterable[tuple[Key, Stored]]) -> Iterator[SpanResult]:
    """Compare the sorted units of some spans with SELECT."""
    options = plan.audit.options
    pace = Pace(options.rows_per_second / plan.parallel)
    cassandra = plan.audit.settings.cassandra
    with connect_raw(cassandra, options.consistency, ANSWER_SECONDS) as reader:
        for number, units in groupby(entries, key=lambda entry: entry[0][0]):
            yield SpanComparison(plan.audit, reader, pace).compare(plan.spans[number], state_units(units))


def state_units(entries: Iterable[tuple[Key, Stored]]) -> Iterator[StateUnit]:
    """The units of one span."""
    for (_, token, partition_key, unit), stored in entries:
        if stored is not None:
            yield StateUnit((token, partition_key, unit), *stored)


class SpanComparison:
    """Compares one span. clock: s since the epoch."""

    def __init__(self, plan: AuditPlan, reader: PageReader, pace: Pace, clock: Callable[[], float] = time.time) -> None:
        self._table = plan.table()
        self._decoder = RowDecoder(plan, self._table)
        self._selected = SelectedUnits(self._table, reader, plan.options.page_rows, pace)
        self._most = plan.options.most_candidates
        self._clock = clock
        self._candidates: list[Candidate] = []
        self._unread: list[Unread] = []
        self._units = 0

    def compare(self, span: Span, state: Iterable[StateUnit]) -> SpanResult:
        """`state`: the state's units of the span, in order."""
        units = _Ahead(state)
        for found in self._selected.read(span, self._clock):
            if isinstance(found, Unread):
                self._compare_all(units.until_token(found.span.first))
                for _ in units.until_token(found.span.last + 1):
                    pass
                self._unread.append(found)
                continue
            place = found.token, found.partition_key, found.unit
            self._compare_all(units.until(place))
            self._compare(units.take(place), found)
            if len(self._candidates) >= self._most:
                self._unread.append(Unread(Span(found.token, span.last), "too many rows differ", begun=True))
                break
        else:
            self._compare_all(units.rest())
        return SpanResult(span, self._selected.rows, self._units, tuple(self._candidates), tuple(self._unread))

    def _compare_all(self, units: Iterable[StateUnit]) -> None:
        """Compare units that SELECT does not show."""
        for unit in units:
            self._compare(unit, None)

    def _compare(self, stored: StateUnit | None, found: SelectedUnit | None) -> None:
        now = self._clock()
        state = selected = ABSENT
        partition_key, clustering = b"", None
        if stored is not None:
            partition_key = stored.place[1]
            state, clustering = self._decoder.side(stored, int(now))
        if found is not None:
            partition_key, selected, clustering = found.partition_key, found.side, found.clustering
        if not (state.is_there or selected.is_there):
            return
        self._units += 1
        pairs = differences(state, selected)
        if pairs and len(self._candidates) < self._most:
            self._candidates.append(Candidate(partition_key, clustering, int(now * 1e6), seen(pairs)))


class RowDecoder:
    """Decodes the rows of states, each by its own schema."""

    def __init__(self, plan: AuditPlan, table: AuditedTable) -> None:
        self._catalog = plan.catalog()
        self._table_id = plan.table_id
        self._table = table
        self._headers: dict[bytes, SerializationHeader] = {}

    def side(self, unit: StateUnit, second: int) -> tuple[Side, Clustering | None]:
        """Return the values that the unit shows at `second`, and its clustering (None for the static columns)."""
        is_static = unit.place[2] == STATIC_UNIT
        row, _ = read_row(unit.row, 0, self._header(unit.digest), is_static=self._table.is_stored_static(unit.place[2]))
        clustering = None if is_static else self._table.clustering_of(row)
        return self._table.state_side(row, second, is_static=is_static), clustering

    def _header(self, digest: bytes) -> SerializationHeader:
        header = self._headers.get(digest)
        if header is None:
            table = with_dropped_columns(self._catalog.schema(self._table_id, digest))
            header = self._headers[digest] = SerializationHeader.of_table(table)
        return header


class _Ahead:
    """The state's units, with a look at the next one."""

    def __init__(self, units: Iterable[StateUnit]) -> None:
        self._left = iter(units)
        self._next = next(self._left, None)

    def until(self, place: tuple[int, bytes, bytes]) -> Iterator[StateUnit]:
        """Yield the units before a place."""
        while self._next is not None and self._next.place < place:
            yield self._pop()

    def until_token(self, token: int) -> Iterator[StateUnit]:
        return self.until((token, b"", b""))

    def take(self, place: tuple[int, bytes, bytes]) -> StateUnit | None:
        return self._pop() if self._next is not None and self._next.place == place else None

    def rest(self) -> Iterator[StateUnit]:
        while self._next is not None:
            yield self._pop()

    def _pop(self) -> StateUnit:
        found = self._next
        assert found is not None
        self._next = next(self._left, None)
        return found
