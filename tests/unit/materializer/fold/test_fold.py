"""The pure fold against a plain model of what Cassandra keeps, in any order, batching and duplication."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, NO_LIVENESS, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.changes import RowChange
from materializer.fold.chunk import fold_chunk
from materializer.rows.catalog import TableCatalog
from tests.support.materializer.altered_table import HEARTBEAT, named
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, TABLE, catalog_of, int_bytes, raw_record
from tests.support.materializer.table_statements import (
    BASE_S,
    PARTITION,
    at,
    cells,
    delete_partition,
    delete_range,
    delete_row,
    insert,
    set_static,
    tombstone,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.changes import RowImage
    from materializer.records import RawRecord


def heartbeat(second: int) -> RawRecord:
    return raw_record(b"", "heartbeat", None, timestamp_ms=second * 1000)


@dataclass
class Folded:
    """A state that chunks were folded into, and what came out."""

    state: MemoryState = field(default_factory=MemoryState)
    catalog: TableCatalog = CATALOG
    changes: list[RowChange] = field(default_factory=list)

    def chunk(self, *records: RawRecord) -> list[RowChange]:
        result = fold_chunk(self.state, records, self.catalog)
        self.state.apply(result.writes)
        self.changes += result.changes
        return result.changes

    def latest(self) -> dict[int | None, RowImage]:
        """The rows as the last messages leave them; the chain is checked on the way."""
        rows: dict[int | None, RowImage] = {}
        numbers: dict[int | None, int] = {}
        for change in self.changes:
            key = None if change.clustering is None else int.from_bytes(change.clustering[0] or b"", "big")
            assert change.before == rows.get(key), "before is not the after of the message before"
            assert change.before != change.after, "a message that changes nothing"
            assert change.row_sequence == numbers.get(key, 0) + 1
            expected = "c" if change.before is None else "d" if change.after is None else "u"
            assert change.op == expected
            numbers[key] = change.row_sequence
            if change.after is None:
                del rows[key]
            else:
                rows[key] = change.after
        return rows


def images(changes: Sequence[RowChange]) -> list[tuple[str, RowImage | None, RowImage | None]]:
    return [(change.op, change.before, change.after) for change in changes]


def test_statements_one_by_one() -> None:
    folded = Folded()
    assert images(folded.chunk(insert(1, 5, a="x", b="y"))) == [("c", None, {"a": b"x", "b": b"y"})]
    assert images(folded.chunk(update(3, 5, a="z"))) == [
        ("u", {"a": b"x", "b": b"y"}, {"a": b"z", "b": b"y"}),
    ]
    assert folded.chunk(update(2, 5, a="late")) == []
    assert images(folded.chunk(update(4, 5, b=None))) == [("u", {"a": b"z", "b": b"y"}, {"a": b"z"})]
    assert images(folded.chunk(delete_row(5, 5))) == [("d", {"a": b"z"}, None)]
    assert images(folded.chunk(update(6, 5, b="back"))) == [("c", None, {"b": b"back"})]
    assert images(folded.chunk(update(7, 5, b=None))) == [("d", {"b": b"back"}, None)]
    folded.latest()


def test_an_empty_clustering_value_is_a_row_of_its_own() -> None:
    """Not the row of 0 nor that of no clustering; output/test_change_messages.py: no messages."""
    folded = Folded()
    empty = Row((b"",), cells(1, {"a": "x"}), LivenessInfo(at(1)))
    changes = folded.chunk(raw_record(PARTITION, "row", empty), insert(2, 0, a="y"))
    changes += folded.chunk(raw_record(PARTITION, "row", empty._replace(columns=cells(3, {"a": None})), offset=3))
    assert [(change.clustering, change.op) for change in changes] == [
        ((b"",), "c"),
        ((int_bytes(0),), "c"),
        ((b"",), "u"),
    ]


def test_an_inserted_row_outlives_its_last_cell_and_an_updated_one_does_not() -> None:
    folded = Folded()
    folded.chunk(insert(1, 1, a="x"), update(2, 2, a="x"))
    assert images(folded.chunk(update(3, 1, a=None))) == [("u", {"a": b"x"}, {})]
    assert images(folded.chunk(update(4, 2, a=None))) == [("d", {"a": b"x"}, None)]


def test_every_event_of_a_chunk_comes_out() -> None:
    records = [insert(1, 1, a="1"), *(update(n, 1, a=str(n)) for n in range(2, 9))]
    folded = Folded()
    assert [change.after for change in folded.chunk(*records)] == [{"a": str(n).encode()} for n in range(1, 9)]


def test_a_chunk_is_folded_in_write_order_whatever_the_order_of_arrival() -> None:
    records = [update(number, 1, a=str(number)) for number in (3, 1, 2)]
    assert [change.after for change in Folded().chunk(*records)] == [{"a": b"1"}, {"a": b"2"}, {"a": b"3"}]


def test_a_deletion_and_newer_cells_in_one_message() -> None:
    folded = Folded()
    folded.chunk(insert(1, 1, a="x", b="y"))
    row = Row((int_bytes(1),), cells(3, {"a": "z"}), NO_LIVENESS, RowDeletion(tombstone(2)))
    assert images(folded.chunk(raw_record(PARTITION, "row", row))) == [
        ("u", {"a": b"x", "b": b"y"}, {"a": b"z"}),
    ]


def paths(image: RowImage, column: str) -> list[bytes]:
    """The paths of a collection's elements."""
    elements = image[column]
    assert isinstance(elements, tuple)
    return [path for path, _ in elements]


def test_a_collection_is_replaced_added_to_and_taken_from() -> None:
    def elements(number: int, *names: str, removed: bool = False) -> tuple[Cell, ...]:
        gone = BASE_S if removed else NO_DELETION_TIME
        return tuple(Cell(at(number), b"", gone, path=name.encode()) for name in names)

    def change(number: int, data: ComplexColumnData) -> RawRecord:
        return raw_record(PARTITION, "row", Row((int_bytes(1),), {"s": data}), offset=number)

    folded = Folded()
    folded.chunk(change(1, ComplexColumnData(tombstone(0), elements(1, "p", "q"))))
    folded.chunk(change(2, ComplexColumnData(LIVE, elements(2, "o"))))
    folded.chunk(change(3, ComplexColumnData(LIVE, elements(3, "p", removed=True))))
    folded.chunk(change(5, ComplexColumnData(tombstone(4), elements(5, "z"))))
    assert [paths(one.after, "s") for one in folded.changes if one.after] == [
        [b"p", b"q"],
        [b"o", b"p", b"q"],
        [b"o", b"q"],
        [b"z"],
    ]


def test_range_and_partition_deletions_fan_out() -> None:
    folded = Folded()
    folded.chunk(*(insert(n, n, a=str(n)) for n in range(1, 6)))
    deleted = folded.chunk(delete_range(10, 2, 4))
    assert [(change.op, change.before) for change in deleted] == [("d", {"a": b"2"}), ("d", {"a": b"3"})]
    assert folded.chunk(insert(9, 3, a="shadowed")) == []
    assert [change.op for change in folded.chunk(insert(11, 3, a="new"))] == ["c"]
    assert [change.op for change in folded.chunk(delete_partition(12))] == ["d"] * 4
    assert folded.latest() == {}


def test_a_static_column_is_in_every_row_and_stands_alone_when_there_is_none() -> None:
    folded = Folded()
    assert images(folded.chunk(set_static(1, "s"))) == [("c", None, {"st": b"s"})]
    first = folded.chunk(insert(2, 1, a="x"))
    assert [(change.clustering is None, change.op) for change in first] == [(True, "d"), (False, "c")]
    folded.chunk(insert(3, 2, a="y"))
    assert images(folded.chunk(set_static(4, "t"))) == [
        ("u", {"a": b"x", "st": b"s"}, {"a": b"x", "st": b"t"}),
        ("u", {"a": b"y", "st": b"s"}, {"a": b"y", "st": b"t"}),
    ]
    folded.chunk(delete_row(5, 1))
    assert [(change.clustering is None, change.op) for change in folded.chunk(delete_row(6, 2))] == [
        (False, "d"),
        (True, "c"),
    ]
    assert folded.latest() == {None: {"st": b"t"}}
    assert images(folded.chunk(delete_partition(7))) == [("d", {"st": b"t"}, None)]


def test_a_mutation_of_a_static_column_and_a_row_is_one_event() -> None:
    """INSERT INTO t (k, c, st, a): SELECT never shows the partition without the row."""
    folded = Folded()
    assert images(folded.chunk(set_static(1, "s"), insert(1, 1, a="x"))) == [("c", None, {"st": b"s", "a": b"x"})]
    assert images(folded.chunk(set_static(2, "t"), update(2, 1, a="y"))) == [
        ("u", {"st": b"s", "a": b"x"}, {"st": b"t", "a": b"y"})
    ]
    # The row that stands for the partition comes for the first time.
    assert [change.row_sequence for change in folded.chunk(delete_row(3, 1))] == [3, 1]
    assert folded.latest() == {None: {"st": b"t"}}


def test_a_deletion_and_newer_rows_in_one_mutation_are_one_event() -> None:
    folded = Folded()
    folded.chunk(insert(1, 1, a="x"), insert(2, 2, a="y"), insert(3, 3, a="z"))
    newer = [
        raw_record(PARTITION, "row", Row((int_bytes(c),), cells(5, {"a": a}), LivenessInfo(at(5))), offset=4)
        for c, a in ((1, "new"), (2, "y"), (4, "fourth"))
    ]
    assert images(folded.chunk(delete_partition(4), *newer)) == [
        ("u", {"a": b"x"}, {"a": b"new"}),
        ("d", {"a": b"z"}, None),
        ("c", None, {"a": b"fourth"}),
    ]
    assert [change.row_sequence for change in folded.chunk(*(update(6, c, a="last") for c in (1, 2, 3, 4)))] == [
        3,
        2,
        3,
        2,
    ]
    assert len(folded.latest()) == 4


def test_writes_of_two_mutations_with_one_timestamp_are_two_events() -> None:
    folded = Folded()
    static = raw_record(PARTITION, "static", Row((), cells(1, {"st": "s"})), offset=7)
    assert [change.op for change in folded.chunk(static, insert(8, 1, a="x"))] == ["c", "d", "c"]


def test_expiry_is_an_event_on_its_second_once() -> None:
    def expiring(number: int, name: str, second: int) -> dict[str, Cell]:
        return {name: Cell(at(number), b"x", BASE_S + second, second)}

    folded = Folded()
    columns = {**expiring(1, "a", 10), **expiring(1, "b", 20)}
    folded.chunk(raw_record(PARTITION, "row", Row((int_bytes(1),), columns), timestamp_ms=BASE_S * 1000))
    assert folded.chunk(heartbeat(BASE_S + 9)) == []
    gone = folded.chunk(heartbeat(BASE_S + 30))
    assert images(gone) == [("u", {"a": b"x", "b": b"x"}, {"b": b"x"}), ("d", {"b": b"x"}, None)]
    assert [(change.source.cause, change.source.ts_us) for change in gone] == [
        ("expiry", (BASE_S + 10) * 1_000_000),
        ("expiry", (BASE_S + 20) * 1_000_000),
    ]
    assert folded.chunk(heartbeat(BASE_S + 40)) == []
    folded.latest()


def test_what_expires_between_two_writes_of_a_batch_comes_out_between_them() -> None:
    def written(number: int, second: int, text: str) -> RawRecord:
        cell = Cell(at(second * 1_000_000 + number), text.encode(), BASE_S + second + 5, 5)
        row = Row((int_bytes(1),), {"a": cell})
        return raw_record(PARTITION, "row", row, offset=number, timestamp_ms=(BASE_S + second) * 1000)

    folded = Folded()
    changes = folded.chunk(
        written(1, 0, "gone"), written(2, 10, "renewed"), written(3, 14, "again"), heartbeat(BASE_S + 30)
    )
    assert images(changes) == [
        ("c", None, {"a": b"gone"}),
        ("d", {"a": b"gone"}, None),
        ("c", None, {"a": b"renewed"}),
        ("u", {"a": b"renewed"}, {"a": b"again"}),
        ("d", {"a": b"again"}, None),
    ]
    assert [change.source.ts_us for change in changes if change.op == "d"] == [
        (BASE_S + 5) * 1_000_000,
        (BASE_S + 19) * 1_000_000,
    ]
    folded.latest()


def test_a_late_write_beats_an_expired_one_or_does_not() -> None:
    folded = Folded()
    short = Row((int_bytes(1),), {"a": Cell(at(5), b"short", BASE_S + 5, 5)})
    folded.chunk(raw_record(PARTITION, "row", short, timestamp_ms=BASE_S * 1000))
    folded.chunk(heartbeat(BASE_S + 6))
    assert folded.chunk(update(4, 1, a="older")) == []
    assert images(folded.chunk(update(6, 1, a="newer"))) == [("c", None, {"a": b"newer"})]
    assert folded.chunk(heartbeat(BASE_S + 60)) == []
    folded.latest()


def test_of_two_ranges_the_newer_one_stands_where_they_overlap() -> None:
    folded = Folded()
    assert folded.chunk(delete_range(10, 2, 6)) == folded.chunk(delete_range(5, 0, 4)) == []
    assert folded.chunk(*(insert(7, c, a="x") for c in (2, 3, 5))) == []
    assert [change.op for change in folded.chunk(*(insert(7, c, a="x") for c in (0, 1, 6)))] == ["c"] * 3
    assert folded.chunk(insert(4, 9, a="x"), insert(4, 0, b="older than the older range"))[0].after == {"a": b"x"}
    assert folded.latest().keys() == {0, 1, 6, 9}


def test_a_static_and_a_row_that_expire_together_give_one_message() -> None:
    folded = Folded()
    static = Row((), {"st": Cell(at(1), b"s", BASE_S + 10, 10)})
    row = Row((int_bytes(1),), {"a": Cell(at(1), b"x", BASE_S + 10, 10), "b": Cell(at(1), b"y")})
    folded.chunk(
        raw_record(PARTITION, "static", static, timestamp_ms=BASE_S * 1000),
        raw_record(PARTITION, "row", row, timestamp_ms=BASE_S * 1000),
    )
    assert images(folded.chunk(heartbeat(BASE_S + 10))) == [
        ("u", {"a": b"x", "b": b"y", "st": b"s"}, {"b": b"y"}),
    ]
    folded.latest()


def test_a_dropped_column_leaves_the_images_and_what_is_newer_than_the_drop_stays() -> None:
    b = TABLE.regular_columns[1]
    others = tuple(column for column in TABLE.regular_columns if column != b)
    dropped = replace(TABLE, regular_columns=others, dropped_columns={"b": DroppedColumn(b, at(2))})
    added_again = replace(dropped, regular_columns=TABLE.regular_columns)

    folded = Folded()
    folded.chunk(insert(1, 1, a="x", b="y"), update(1, 2, b="only"))
    folded.catalog = catalog_of(TABLE, dropped)
    assert images(folded.chunk(named(HEARTBEAT, folded.catalog), update(3, 1, a="z", b="newer"))) == [
        ("u", {"a": b"x", "b": b"y"}, {"a": b"x"}),
        ("d", {"b": b"only"}, None),
        ("u", {"a": b"x"}, {"a": b"z"}),
    ]
    assert folded.chunk(update(2, 3, b="older than the drop")) == []
    folded.catalog = catalog_of(TABLE, dropped, added_again)
    assert images(folded.chunk(named(HEARTBEAT, folded.catalog), update(4, 1, a="w"))) == [
        ("u", {"a": b"z"}, {"a": b"z", "b": b"newer"}),
        ("u", {"a": b"z", "b": b"newer"}, {"a": b"w", "b": b"newer"}),
    ]
    assert folded.latest() == {1: {"a": b"w", "b": b"newer"}}


def test_a_shadowable_deletion_stops_the_partition() -> None:
    """Views of old releases hold such. The tests of cassandra_storage.formats.merge say why it is refused."""
    row = Row((int_bytes(1),), {}, NO_LIVENESS, RowDeletion(tombstone(1), is_shadowable=True))
    with pytest.raises(CdcError, match="shadowable") as caught:
        fold_chunk(MemoryState(), [raw_record(PARTITION, "row", row)], CATALOG)
    assert caught.value.code is Code.NOT_SUPPORTED


numbers = st.integers(1, 40)
rows = st.integers(0, 4)
texts = st.none() | st.sampled_from("xyz")
columns = st.dictionaries(st.sampled_from("ab"), texts, min_size=1)
writes = st.one_of(
    st.tuples(st.just("insert"), rows, columns),
    st.tuples(st.just("update"), rows, columns),
    st.tuples(st.just("delete_row"), rows),
    st.tuples(st.just("delete_range"), rows, st.integers(1, 5)),
    st.tuples(st.just("delete_partition")),
    st.tuples(st.just("set_static"), texts),
)


def to_record(number: int, write: tuple[Any, ...]) -> RawRecord:
    match write:
        case ("insert", c, values):
            return insert(number, c, **values)
        case ("update", c, values):
            return update(number, c, **values)
        case ("delete_row", c):
            return delete_row(number, c)
        case ("delete_range", first, width):
            return delete_range(number, first, first + width)
        case ("set_static", value):
            return set_static(number, value)
        case _:
            return delete_partition(number)


class PlainModel:
    """A partition as the statements leave it when they run one after the other with rising timestamps."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, bytes]] = {}
        self.inserted: set[int] = set()
        self.static: dict[str, bytes] = {}

    def run(self, write: tuple[Any, ...]) -> None:
        match write:
            case ("insert" | "update" as kind, c, values):
                self.write(c, values, inserts=kind == "insert")
            case ("delete_row", c):
                self.delete(c, c + 1)
            case ("delete_range", first, width):
                self.delete(first, first + width)
            case ("set_static", value):
                self.static = {} if value is None else {"st": value.encode()}
            case _:
                self.delete(0, 100)
                self.static = {}

    def write(self, c: int, values: dict[str, str | None], *, inserts: bool) -> None:
        if inserts:
            self.inserted.add(c)
        row = {**self.rows.get(c, {}), **{name: value.encode() for name, value in values.items() if value is not None}}
        row = {name: value for name, value in row.items() if values.get(name, "") is not None}
        if row or c in self.inserted:
            self.rows[c] = row
        else:
            self.rows.pop(c, None)

    def delete(self, first: int, last: int) -> None:
        for c in range(first, last):
            self.rows.pop(c, None)
            self.inserted.discard(c)


def plain_model(script: Sequence[tuple[Any, ...]]) -> dict[int | None, dict[str, bytes]]:
    """Return the rows that `SELECT` shows after the statements; the key None is the row that has only statics."""
    model = PlainModel()
    for write in script:
        model.run(write)
    if model.static and not model.rows:
        return {None: model.static}
    return {c: {**model.static, **row} for c, row in model.rows.items()}


@settings(max_examples=300)
@given(st.lists(writes, min_size=1, max_size=25), st.data())
def test_any_order_batching_and_duplication_ends_in_what_is_there(
    script: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    records = [to_record(number, write) for number, write in enumerate(script, start=1)]
    arrival = data.draw(st.permutations(records + data.draw(st.lists(st.sampled_from(records), max_size=5))))
    folded = Folded()
    while arrival:
        size = data.draw(st.integers(1, len(arrival)))
        folded.chunk(*arrival[:size])
        arrival = arrival[size:]
    assert folded.latest() == plain_model(script)


@settings(max_examples=200)
@given(st.lists(writes, min_size=1, max_size=25))
def test_in_order_each_statement_emits_exactly_what_it_changes(script: list[tuple[Any, ...]]) -> None:
    folded = Folded()
    for number, write in enumerate(script, start=1):
        before, emitted = plain_model(script[: number - 1]), len(folded.changes)
        folded.chunk(to_record(number, write))
        after = plain_model(script[:number])
        changed = [key for key in {*before, *after} if before.get(key) != after.get(key)]
        assert len(folded.changes) - emitted == len(changed)
        assert folded.latest() == after
