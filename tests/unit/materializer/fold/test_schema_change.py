"""A changed schema changes the rows that are there: the pure fold, with a sweep of a few rows at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP, DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.changes import change_op
from cdc_common.messages.tables import canonical, digest
from materializer.fold import schema_change
from materializer.fold.chunk import fold_chunk
from materializer.rows.catalog import TableCatalog
from materializer.rows.keys import PARTITION
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS, FoldSettings
from tests.support.materializer.altered_table import (
    BASE_MS,
    BASE_US,
    HEARTBEAT,
    A,
    B,
    heartbeats_named,
    named,
    of_table,
    record,
    row,
    static,
    without_b,
)
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, TABLE, TableWriter, catalog_of, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowChange, RowImage
    from materializer.records import RawRecord

ANEW = replace(TABLE, id=UUID(int=8), altered_at=BASE_US)

Key = tuple[bytes, bytes | None]


def with_b_again(dropped: int) -> TableMetadata:
    return replace(without_b(dropped), regular_columns=TABLE.regular_columns)


def catalog_of_both(
    *tables: TableMetadata, topics: tuple[str, ...] = ("cdc.shop.orders", "cdc.shop.orders")
) -> TableCatalog:
    """Tables that came one after the other under one name."""
    digests = [digest(canonical(table)) for table in tables]
    ids = [table.id.bytes for table in tables]
    return TableCatalog(
        dict(zip(zip(ids, digests, strict=True), tables, strict=True)),
        dict(zip(ids, digests, strict=True)),
        dict(zip(digests, topics, strict=True)),
    )


class Run:
    """A state, and the changes that came out; each chunk checks the chain of every key."""

    def __init__(self, catalog: TableCatalog = CATALOG, fold_settings: FoldSettings = DEFAULT_FOLD_SETTINGS) -> None:
        self.state = MemoryState()
        self.fold_settings = fold_settings
        self.catalog = catalog
        self.latest: dict[Key, RowChange] = {}

    def chunk(self, *records: RawRecord) -> list[RowChange]:
        changes: list[RowChange] = []
        records = (*heartbeats_named(records, self.catalog),)
        while records:
            result = fold_chunk(self.state, records, self.catalog, self.fold_settings)
            self.state.apply(result.writes)
            changes += result.changes
            records = records[len(records) - result.left :]
        for change in changes:
            self._check(change)
        return changes

    def sweep(self) -> list[RowChange]:
        """Heartbeats until nothing more comes of a changed schema."""
        changes: list[RowChange] = []
        while b'"],["' in self.state.data[b"mshown"]:
            changes += self.chunk(HEARTBEAT)
        return changes

    def images(self) -> dict[Key, RowImage]:
        return {key: change.after for key, change in self.latest.items() if change.after is not None}

    def _check(self, change: RowChange) -> None:
        key = (change.partition_key, change.clustering[0] if change.clustering else None)
        before = self.latest.get(key)
        names = {column.name for column in self._table(change).columns}
        former = None if before is None or before.after is None else before.after
        shown = None if former is None else {name: image for name, image in former.items() if name in names}
        assert change.before == shown or (former is not None and change.before == former)
        assert change.row_sequence == (0 if before is None else before.row_sequence) + 1
        assert change.op == change_op(change.before, change.after, is_snapshot=change.source.cause == "moved")
        assert {*(change.before or {}), *(change.after or {})} <= names
        self.latest[key] = change

    def _table(self, change: RowChange) -> TableMetadata:
        return next(table for (_, schema), table in self.catalog.schemas.items() if schema == change.schema)


def summary(changes: list[RowChange]) -> list[tuple[str, int, RowImage | None, RowImage | None]]:
    return [(change.op, int.from_bytes(change.partition_key, "big"), change.before, change.after) for change in changes]


@pytest.fixture
def slow_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_change, "SWEPT_ROWS", 1)


def test_a_drop_is_a_deletion_in_every_row_under_the_schema_that_has_the_column() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a", b="b"), row(2, 2, 1, a="a"), row(3, 3, 1, is_insert=False, b="b"))
    run.catalog = catalog_of(TABLE, without_b(5))
    changes = run.chunk(HEARTBEAT)
    assert summary(changes) == [("u", 1, {"a": b"a", "b": b"b"}, {"a": b"a"}), ("d", 3, {"b": b"b"}, None)]
    assert {change.schema for change in changes} == {digest(canonical(TABLE))}
    assert {change.source.cause for change in changes} == {"schema"}
    assert run.chunk(HEARTBEAT) == []


def test_a_column_added_again_shows_what_is_newer_than_its_drop() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a", b="old"), row(9, 2, 1, is_insert=False, b="new"), row(9, 3, 1, b="new"))
    run.catalog = catalog_of(TABLE, without_b(5))
    assert [op for op, *_ in summary(run.chunk(HEARTBEAT))] == ["u", "d", "u"]
    run.catalog = catalog_of(TABLE, without_b(5), with_b_again(5))
    assert summary(run.chunk(HEARTBEAT)) == [("c", 2, None, {"b": b"new"}), ("u", 3, {}, {"b": b"new"})]


def test_dropped_and_added_between_two_batches() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a", b="old"), row(9, 2, 1, b="new"))
    run.catalog = catalog_of(TABLE, without_b(5), with_b_again(5))
    assert summary(run.chunk(HEARTBEAT)) == [
        ("u", 1, {"a": b"a", "b": b"old"}, {"a": b"a"}),
        ("u", 2, {"b": b"new"}, {}),
        ("u", 2, {}, {"b": b"new"}),
    ]


def test_a_column_dropped_again_unseen_leaves_the_timers_of_others() -> None:
    """No schema between the two drops was read. What the second one ends is hidden, and would have expired first."""
    run = Run(catalog_of(TABLE, without_b(5)))
    second = BASE_MS // 1000
    cells = {"a": Cell(BASE_US, b"a", second + 20, 20), "b": Cell(BASE_US + 9, b"b", second + 10, 10)}
    run.chunk(record(1, "row", Row((int_bytes(1),), cells, LivenessInfo(BASE_US))))
    run.catalog = catalog_of(TABLE, without_b(5), without_b(50))
    run.chunk(HEARTBEAT, row(60, 1, 1))
    at = [HEARTBEAT._replace(timestamp_ms=BASE_MS + seconds * 1000) for seconds in (15, 25)]
    assert run.chunk(at[0]) == []
    assert summary(run.chunk(at[1])) == [("u", 1, {"a": b"a"}, {})]


def test_an_added_column_has_no_row_looked_at() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a"))
    newer = replace(TABLE, regular_columns=(*TABLE.regular_columns, replace(B, name="z")))
    run.catalog = catalog_of(TABLE, newer)
    result = fold_chunk(run.state, [named(HEARTBEAT, run.catalog)], run.catalog)
    assert result.changes == []
    assert b"mshown" in result.writes
    assert not any(key.startswith(PARTITION) for key in result.writes)


def test_what_compact_storage_hides_is_shown_once_it_is_dropped() -> None:
    value = replace(A, name="value", type=NativeType("empty"))
    bare = replace(TABLE, static_columns=(), regular_columns=(value,), flags=frozenset({"dense"}))
    run = Run(catalog_of(bare))
    write = Row((int_bytes(1),), {"value": Cell(BASE_US, b"")}, LivenessInfo(BASE_US))
    run.chunk(raw_record(int_bytes(1), "row", write, timestamp_ms=BASE_MS, writer=TableWriter(bare)))
    run.catalog = catalog_of(bare, replace(bare, flags=frozenset({"compound"})))
    heartbeat = named(raw_record(b"", "heartbeat", None, timestamp_ms=BASE_MS, writer=TableWriter(bare)), run.catalog)
    assert summary(fold_chunk(run.state, [heartbeat], run.catalog).changes) == [("u", 1, {}, {"value": b""})]


@pytest.mark.usefixtures("slow_sweep")
def test_a_sweep_goes_on_from_chunk_to_chunk_and_writes_do_not_wait() -> None:
    run = Run()
    run.chunk(*(row(1, p, 1, a="a", b="b") for p in range(5)))
    run.catalog = catalog_of(TABLE, without_b(5))
    assert summary(run.chunk(HEARTBEAT, row(6, 4, 1, a="A"))) == [
        ("u", 4, {"a": b"a", "b": b"b"}, {"a": b"a"}),
        ("u", 4, {"a": b"a"}, {"a": b"A"}),
        ("u", 0, {"a": b"a", "b": b"b"}, {"a": b"a"}),
    ]
    run.catalog = catalog_of(TABLE, without_b(5), with_b_again(5))
    changes = summary(run.sweep())
    assert [change for change in changes if change[1] == 4] == []
    assert sorted(p for _, p, *_ in changes) == [1, 2, 3]
    assert b"e" not in {key[:1] for key in run.state.data}


def test_a_recreated_table_ends_all_keys_and_counts_on() -> None:
    run = Run()
    run.chunk(static(1, 1, "st"), row(2, 1, 1, a="a"), row(3, 2, 1, a="a"), static(4, 3, "alone"))
    run.catalog = catalog_of_both(TABLE, ANEW)
    changes = run.chunk(row(5, 2, 1, a="last"), of_table(row(7, 1, 1, a="new"), ANEW), row(6, 1, 1, a="too late"))
    assert [(op, p, after) for op, p, _, after in summary(changes)] == [
        ("u", 2, {"a": b"last"}),
        ("d", 1, None),
        ("c", 1, {"a": b"new"}),
        ("d", 2, None),
        ("d", 3, None),
    ]
    assert run.images() == {(int_bytes(1), int_bytes(1)): {"a": b"new"}}
    assert run.chunk(row(9, 2, 1, a="of the former table")) == []
    assert summary(run.chunk(of_table(row(9, 2, 1, a="b"), ANEW))) == [("c", 2, None, {"a": b"b"})]


def test_deletions_of_the_former_table_are_forgotten() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a"), record(1, "partition_deletion", DeletionTime(BASE_US + 100, BASE_US // 10**6)))
    run.catalog = catalog_of_both(TABLE, ANEW)
    assert summary(run.chunk(of_table(row(9, 1, 1, a="b"), ANEW))) == [("c", 1, None, {"a": b"b"})]


LEAST = NO_TIMESTAMP + 1 - BASE_US  # the least timestamp that CQL takes


def test_a_recreated_table_takes_writes_of_the_least_timestamp() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, a="a"), static(2, 2, "st"))
    run.catalog = catalog_of_both(TABLE, ANEW)
    run.chunk(of_table(HEARTBEAT, ANEW))
    writes = (row(LEAST, 1, 1, a="least"), static(LEAST, 2, "least"))
    assert summary(run.chunk(*(of_table(write, ANEW) for write in writes))) == [
        ("c", 1, None, {"a": b"least"}),
        ("c", 2, None, {"st": b"least"}),
    ]


def test_a_row_that_a_drop_emptied_takes_a_write_of_the_least_timestamp() -> None:
    run = Run()
    run.chunk(row(1, 1, 1, is_insert=False, b="b"))
    run.catalog = catalog_of(TABLE, without_b(5))
    run.chunk(HEARTBEAT)
    assert summary(run.chunk(row(LEAST, 1, 1, a="least"))) == [("c", 1, None, {"a": b"least"})]


def test_another_topic_gets_all_rows_and_the_former_one_their_ends() -> None:
    run = Run()
    run.chunk(static(1, 1, "st"), row(2, 1, 1, a="a"), static(3, 2, "alone"))
    renamed = replace(TABLE, clustering=(replace(TABLE.clustering[0], name="k2"),))
    old, new = (digest(canonical(table)) for table in (TABLE, renamed))
    run.catalog = replace(catalog_of(TABLE, renamed), topics={old: "cdc.shop.orders", new: "t-v2"})
    changes = [(change.op, change.schema, change.before, change.after) for change in run.chunk(HEARTBEAT)]
    image, alone = {"a": b"a", "st": b"st"}, {"st": b"alone"}
    assert changes == [
        ("d", old, image, None),
        ("r", new, None, image),
        ("d", old, alone, None),
        ("r", new, None, alone),
    ]


def test_a_table_that_is_not_known_is_waited_for() -> None:
    with pytest.raises(CdcError) as raised:
        fold_chunk(MemoryState(), [of_table(row(1, 1, 1, a="a"), ANEW)], CATALOG)
    assert raised.value.code is Code.SCHEMA_UNKNOWN


writes = st.one_of(
    st.builds(
        lambda number, p, c, is_insert, columns: row(number, p, c, is_insert=is_insert, **columns),
        st.integers(1, 30),
        st.integers(0, 3),
        st.integers(0, 1),
        st.booleans(),
        st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"), min_size=1),
    ),
    st.builds(static, st.integers(1, 30), st.integers(0, 3), st.sampled_from("xyz")),
)
chunks = st.lists(st.lists(writes, min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(chunks, chunks, chunks, st.integers(1, 30), st.integers(1, 5) | st.just(10**6))
def test_rows_end_as_if_the_schema_had_been_so_from_the_beginning(
    first: list[list[RawRecord]], second: list[list[RawRecord]], third: list[list[RawRecord]], dropped: int, most: int
) -> None:
    """Whatever a sweep of one row at a time meets: writes between, another change before it is done, and a partition
    that is more than one chunk takes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        tables = [TABLE, without_b(dropped), with_b_again(dropped)]
        run = Run(fold_settings=FoldSettings(max_changes=most))
        for count, part in enumerate((first, second, third), start=1):
            run.catalog = catalog_of(*tables[:count])
            for chunk in part:
                run.chunk(*chunk)
        run.sweep()
        at_once = Run(run.catalog)
        at_once.chunk(*flat(first, second, third))
        assert run.images() == at_once.images()


def flat(*parts: list[list[RawRecord]]) -> Iterator[RawRecord]:
    return (message for part in parts for chunk in part for message in chunk)
