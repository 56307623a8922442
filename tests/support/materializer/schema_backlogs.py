"""Writes between changes of a table's schema: folded as they come, and all at once by a job that was behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LIVE, NO_LIVENESS, DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, DroppedColumn
from cassandra_storage.formats.types.marshal import UserType
from cdc_common.messages.raw import decode, encode
from materializer.fold.chunk import fold_chunk
from materializer.records import RawRecord
from materializer.rows.catalog import TableCatalog
from tests.support.materializer.history.raw_partitions import with_topics
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import INT, TABLE, TableWriter, column, int_bytes, raw_record, rows_end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cdc_common.messages.changes import RowChange
    from cdc_common.messages.raw import Kind, TruncationKind
    from materializer.rows.settings import FoldSettings

BASE_S = 1_700_000_000
LAST = 25  # heartbeats at the end, each in a chunk of its own: more than the rows
A, B, _ = TABLE.regular_columns
Z = replace(A, name="z")
FROZEN, FIELDS = (
    column(name, UserType("shop", "types", ("f1",), (INT,), is_multi_cell=is_multi_cell), ColumnKind.REGULAR)
    for name, is_multi_cell in (("f", False), ("u", True))
)
FIRST = replace(TABLE, regular_columns=(A, B, FROZEN, FIELDS), altered_at=BASE_S * 1_000_000)


class Made(NamedTuple):
    """A record, the place of the schema that it was written with, and that of the newest one that it may name.

    after_truncate: whether it only comes if the host says at once what a truncation has left (True), or only if it says
    so later (False).
    """

    record: RawRecord
    schema: int
    named: int
    after_truncate: bool | None = None


class Backlog:
    """Takes steps, each at a later second. `schemas`: from the oldest to the newest."""

    def __init__(self) -> None:
        self.schemas = [FIRST]
        self.made: list[Made] = []
        self._second = BASE_S
        self._truncated: int | None = None  # the place of the truncation that the host has not finished
        self._has_truncated = False

    def catalog(self, count: int) -> TableCatalog:
        """Return the catalog that the driver knows when there have been so many schemas."""
        writers = [TableWriter(table) for table in self.schemas[:count]]
        digests = {writer.digest: writer.table for writer in writers}
        topics = {digest: f"topic-{table.clustering[0].name}" for digest, table in digests.items()}
        schemas = {(table.id.bytes, digest): table for digest, table in digests.items()}
        newest = {table.id.bytes: digest for digest, table in digests.items()}
        return TableCatalog(schemas, newest, topics)

    def records(self, *, publisher_lags: bool) -> list[RawRecord]:
        """As publishers send them; one that lags names the newest schema of the time when it reads the log."""
        return [_named(made.record, self.schemas[made.named]) if publisher_lags else made.record for made in self.made]

    def write(self, p: int, c: int, columns: Sequence[str], ttl: int, *, is_insert: bool) -> None:
        at = self._next()
        table = self.schemas[-1]
        names = [column.name for column in table.regular_columns]
        end = self._second + ttl
        cell = Cell(at, str(self._second % 1000).encode(), end, ttl) if ttl else Cell(at, str(self._second).encode())
        cells = {name: cell for name in columns if name in names}
        if cells or is_insert:
            self._add(p, "row", Row((int_bytes(c),), cells, LivenessInfo(at) if is_insert else NO_LIVENESS))

    def write_fields(self, p: int, name: str, count: int) -> None:
        """Write to a column of the user type: a value of so many fields, or of all that there are; 0 deletes it."""
        at = self._next()
        types = [column.type for column in self.schemas[-1].regular_columns if column.name == name]
        if not types or not isinstance(types[0], UserType):
            return
        values = [int_bytes(field) for field in range(min(count, len(types[0].field_types)))]
        data: Cell | ComplexColumnData
        if types[0].is_multi_cell:
            cells = (Cell(at, value, path=place.to_bytes(2, "big")) for place, value in enumerate(values))
            data = ComplexColumnData(LIVE if count else DeletionTime(at, self._second), tuple(cells))
        elif count:
            data = Cell(at, b"".join(int_bytes(len(value)) + value for value in values))
        else:
            data = Cell(at, b"", self._second)
        self._add(p, "row", Row((int_bytes(0),), {name: data}))

    def extend_type(self) -> None:
        """ALTER TYPE ADD: a field more in each column of the user type."""
        self._next()
        self._alter(
            replace(
                self.schemas[-1],
                regular_columns=tuple(
                    replace(column, type=_extended(column.type)) if isinstance(column.type, UserType) else column
                    for column in self.schemas[-1].regular_columns
                ),
            )
        )

    def rename_field(self) -> None:
        """ALTER TYPE RENAME of the first field, to a name that it never had."""
        self._next()
        name = f"r{len(self.schemas)}"
        self._alter(
            replace(
                self.schemas[-1],
                regular_columns=tuple(
                    replace(column, type=replace(column.type, field_names=(name, *column.type.field_names[1:])))
                    if isinstance(column.type, UserType)
                    else column
                    for column in self.schemas[-1].regular_columns
                ),
            )
        )

    def write_static(self, p: int) -> None:
        at = self._next()
        if self.schemas[-1].static_columns:
            self._add(p, "static", Row((), {"st": Cell(at, str(self._second).encode())}))

    def delete(self, p: int) -> None:
        self._add(p, "partition_deletion", DeletionTime(self._next(), self._second))

    def truncate(self) -> None:
        """Once: writes between two truncations that are close do not come out."""
        if not self._has_truncated:
            self._has_truncated = True
            self._next()
            self._truncated = len(self.made)
            self._end_rows("truncate", self._truncated, after_truncate=None)
            self._end_rows("truncated", self._truncated, after_truncate=True)

    def settle(self) -> None:
        """The host finishes the truncation: it sends again what it wrote since, naming the schema that it has now."""
        if self._truncated is not None:
            self._next()
            since = [made for made in self.made[self._truncated :] if made.after_truncate is None][1:]
            self._end_rows("truncated", self._truncated, after_truncate=False)
            self._truncated = None
            for made in since:
                if decode(made.record.value).kind != "heartbeat":
                    again = made.record._replace(offset=len(self.made), timestamp_ms=self._second * 1000)
                    named = len(self.schemas) - 1
                    again = _named(again, self.schemas[named])
                    self.made.append(Made(again, made.schema, named, after_truncate=False))

    def _end_rows(self, kind: TruncationKind, place: int, *, after_truncate: bool | None) -> None:
        """place: that of the `truncate`, which is the first of the messages."""
        now = self._second * 1000
        at = self.made[place].record.timestamp_ms if place < len(self.made) else now
        record = rows_end(at, position=place, ms=now, kind=kind, writer=TableWriter(self.schemas[-1]))
        newest = len(self.schemas) - 1
        self.made.append(Made(record._replace(offset=len(self.made)), newest, newest, after_truncate))

    def heartbeat(self) -> None:
        self._next()
        self._add(None, "heartbeat", None)

    def drop(self, name: str) -> None:
        table = self.schemas[-1]
        dropped = [column for column in (*table.regular_columns, *table.static_columns) if column.name == name]
        if dropped and dropped != list(table.regular_columns):
            at = self._next()
            drops = {**table.dropped_columns, name: DroppedColumn(dropped[0], at)}
            self._alter(
                replace(
                    table,
                    regular_columns=_without(table.regular_columns, name),
                    static_columns=_without(table.static_columns, name),
                    dropped_columns=drops,
                )
            )

    def add(self, name: str) -> None:
        table = self.schemas[-1]
        if all(column.name != name for column in table.regular_columns):
            self._next()
            column = next(candidate for candidate in (A, B, Z) if candidate.name == name)
            columns = sorted([*table.regular_columns, column], key=lambda column: (column.is_complex, column.name))
            self._alter(replace(table, regular_columns=tuple(columns)))

    def rename_key(self) -> None:
        """To a name that the column never had: the schema does not come back."""
        self._next()
        table = self.schemas[-1]
        renamed = replace(table.clustering[0], name=f"c{len(self.schemas)}")
        self._alter(replace(table, clustering=(renamed,)))

    def recreate(self) -> None:
        """DROP TABLE, and CREATE TABLE with the same columns."""
        self.settle()
        self._next()
        table = self.schemas[-1]
        self._alter(replace(table, id=UUID(int=table.id.int + 1), dropped_columns={}))

    def recreate_early(self, p: int) -> None:
        """As `recreate`, but a heartbeat names the new table before the last write of the former one is there: a
        publisher reads the schema before its log.
        """
        self.settle()
        self._next()
        former = self.schemas[-1]
        table = replace(former, id=UUID(int=former.id.int + 1), dropped_columns={})
        table = replace(table, altered_at=(self._second + 3) * 1_000_000)
        self.schemas.append(table)
        self.heartbeat()
        self.schemas.pop()
        self.write(p, 0, ["a"], 0, is_insert=True)
        self.schemas.append(table)
        self._second += 2

    def end(self) -> None:
        """Heartbeats after everything has expired, until all rows follow the newest schema."""
        self.settle()
        self._second += 100
        for _ in range(LAST):
            self.heartbeat()

    def _alter(self, table: TableMetadata) -> None:
        self.schemas.append(replace(table, altered_at=self._second * 1_000_000))
        self._next()

    def _add(self, p: int | None, kind: Kind, what: object) -> None:
        record = raw_record(
            b"" if p is None else int_bytes(p),
            kind,
            what,
            offset=len(self.made),
            timestamp_ms=self._second * 1000,
            clock=self._second * 1_000_000,
            writer=TableWriter(self.schemas[-1]),
        )
        self.made.append(Made(record, len(self.schemas) - 1, len(self.schemas) - 1))

    def let_publishers_lag(self, seconds: int) -> None:
        """Messages name a schema that came up to so many seconds later."""
        for place, made in enumerate(self.made):
            until = made.record.timestamp_ms * 1000 + seconds * 1_000_000
            same = self.schemas[made.schema].id  # a table that was created again is another one
            known = [
                at for at, version in enumerate(self.schemas) if version.altered_at <= until and version.id == same
            ]
            self.made[place] = made._replace(named=max([made.schema, *known]))

    def _next(self) -> int:
        self._second += 1
        return self._second * 1_000_000


def _without(columns: Sequence[ColumnMetadata], name: str) -> tuple[ColumnMetadata, ...]:
    return tuple(column for column in columns if column.name != name)


def _extended(type_: UserType) -> UserType:
    names = (*type_.field_names, f"f{len(type_.field_names) + 1}")
    return replace(type_, field_names=names, field_types=(*type_.field_types, INT))


def _named(record: RawRecord, table: TableMetadata) -> RawRecord:
    message = decode(record.value)
    return record._replace(value=encode(replace(message, schema_digest=TableWriter(table).digest), 1))


def fold_all(
    records: Sequence[RawRecord], catalogs: Sequence[TableCatalog], cuts: Sequence[int], settings: FoldSettings
) -> dict[object, list[RowChange]]:
    """Fold chunks that end at these places, each with the catalog of its last record; the changes by key."""
    state, start = MemoryState(), 0
    found: dict[object, list[RowChange]] = {}
    for end in (*cuts, len(records)):
        left = list(records[start:end])
        start = end
        while left:
            catalog = catalogs[end - 1]
            result = with_topics(fold_chunk(state, left, catalog, settings), catalog)
            assert result.writes or result.left < len(left), "a chunk that does nothing"
            state.apply(result.writes)
            left = left[len(left) - result.left :]
            for change in result.changes:
                found.setdefault((change.partition_key, change.clustering), []).append(change)
    return found


_COLUMNS = st.lists(st.sampled_from(["a", "b", "z"]), max_size=3)
TRUNCATED_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 1), _COLUMNS, st.just(0)),
        st.tuples(st.just("static"), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.integers(0, 2)),
        st.tuples(st.just("heartbeat")),
        st.tuples(st.just("drop"), st.sampled_from(["a", "b", "z", "st"])),
        st.tuples(st.just("add"), st.sampled_from(["a", "b", "z"])),
        st.tuples(st.just("rename")),
        st.tuples(st.just("fields"), st.integers(0, 2), st.sampled_from(["f", "u"]), st.integers(0, 3)),
        st.tuples(st.just("extend")),
        st.tuples(st.just("rename field")),
        st.tuples(st.just("truncate")),
        st.tuples(st.just("settle")),
    ),
    min_size=4,
    max_size=24,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 1), _COLUMNS, st.sampled_from([0, 0, 3])),
        st.tuples(st.just("update"), st.integers(0, 2), st.integers(0, 1), _COLUMNS, st.sampled_from([0, 0, 3])),
        st.tuples(st.just("static"), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.integers(0, 2)),
        st.tuples(st.just("heartbeat")),
        st.tuples(st.just("drop"), st.sampled_from(["a", "b", "z", "st"])),
        st.tuples(st.just("add"), st.sampled_from(["a", "b", "z"])),
        st.tuples(st.just("rename")),
        st.tuples(st.just("fields"), st.integers(0, 2), st.sampled_from(["f", "u"]), st.integers(0, 3)),
        st.tuples(st.just("extend")),
        st.tuples(st.just("rename field")),
        st.tuples(st.just("recreate")),
        st.tuples(st.just("recreate early"), st.integers(0, 2)),
    ),
    min_size=4,
    max_size=24,
)


def backlog_of(steps: Sequence[tuple[object, ...]]) -> Backlog:
    backlog = Backlog()
    simple: dict[object, Callable[..., None]] = {
        "static": backlog.write_static,
        "fields": backlog.write_fields,
        "extend": backlog.extend_type,
        "rename field": backlog.rename_field,
        "delete": backlog.delete,
        "drop": backlog.drop,
        "add": backlog.add,
        "rename": backlog.rename_key,
        "recreate": backlog.recreate,
        "recreate early": backlog.recreate_early,
        "truncate": backlog.truncate,
        "settle": backlog.settle,
        "heartbeat": backlog.heartbeat,
    }
    for what, *rest in steps:
        if what in simple:
            simple[what](*rest)
        else:
            p, c, columns, ttl = rest
            backlog.write(p, c, columns, ttl, is_insert=what == "write")  # type: ignore[arg-type]
    backlog.end()
    return backlog
