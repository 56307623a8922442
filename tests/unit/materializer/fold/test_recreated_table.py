"""A table that is dropped and created again: its rows end once, at no earlier time than what was seen of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from cassandra_storage.formats.types.marshal import NativeType
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE, in_batches, record, timed_writes
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TableWriter, catalog_of_recreated, int_bytes, raw_record
from tests.support.materializer.reorder_checks import REORDER_MS, REORDERING
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, PARTITIONS
from tests.support.materializer.wide_partition import bounded

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange, RowImage
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings

KEY = PARTITIONS[0]


def recreated(number: int) -> TableWriter:
    """The table as it was created for the `number`th time."""
    return TableWriter(replace(FORWARD.table, id=UUID(int=100 + number), altered_at=number))


SECOND, THIRD = recreated(2), recreated(3)
BOTH = catalog_of_recreated(FORWARD.table, SECOND.table)
SETTINGS = pytest.mark.parametrize(
    "fold_settings", [NEVER_PURGE, bounded(1), REORDERING, bounded(1, REORDERING)], ids=["", "cut", "reorder", "both"]
)


def insert(c: int, second: int, text: str, *, ttl: int = 0) -> Write:
    timestamp = BASE_US + second * 1_000_000
    end = BASE_S + second + ttl
    cell = Cell(timestamp, text.encode(), end, ttl) if ttl else Cell(timestamp, text.encode())
    liveness = LivenessInfo(timestamp, ttl, end) if ttl else LivenessInfo(timestamp)
    return Write(KEY, "row", Row((int_bytes(c),), {"a": cell}, liveness))


def sent(writer: TableWriter, write: Write, second: int, ms: int = 0) -> RawRecord:
    made = record(writer, write, BASE_S + second, second)
    return made._replace(timestamp_ms=made.timestamp_ms + ms)


def heartbeat(writer: TableWriter, second: int, ms: int = 0) -> RawRecord:
    at_ms = (BASE_S + second) * 1000 + ms
    return raw_record(b"", "heartbeat", None, timestamp_ms=at_ms, clock=at_ms * 1000, writer=writer)


def run_of(fold_settings: FoldSettings = NEVER_PURGE, *tables: TableWriter) -> FoldRun:
    run = FoldRun(FORWARD, fold_settings)
    run.catalog = catalog_of_recreated(FORWARD.table, *(writer.table for writer in tables or (SECOND,)))
    return run


def summary(changes: list[RowChange]) -> list[tuple[str, RowImage | None, RowImage | None, str]]:
    return [(change.op, change.before, change.after, change.source.cause) for change in changes]


@SETTINGS
def test_the_former_rows_do_not_expire_after_the_new_table_has_begun(fold_settings: FoldSettings) -> None:
    """A row would expire at 26 s: the new table's first message, at 24 s, ends it, and nothing does so again."""
    run = run_of(fold_settings)
    run.chunk(sent(FORWARD, insert(1, 0, "old", ttl=26), 0))
    run.chunk(heartbeat(FORWARD, 10))
    assert summary(run.changes) == [("c", None, {"a": b"old"}, "write")]
    changes = run.chunk(sent(SECOND, insert(2, 24, "new"), 24), heartbeat(SECOND, 40)).changes
    assert summary(changes) == [("d", {"a": b"old"}, None, "schema"), ("c", None, {"a": b"new"}, "write")]


@SETTINGS
def test_what_expires_before_the_new_table_begins_expires(fold_settings: FoldSettings) -> None:
    run = run_of(fold_settings)
    run.chunk(sent(FORWARD, insert(1, 0, "old", ttl=20), 0), heartbeat(FORWARD, 10))
    changes = run.chunk(sent(SECOND, insert(2, 24, "new"), 24), heartbeat(SECOND, 40)).changes
    assert summary(changes) == [("d", {"a": b"old"}, None, "expiry"), ("c", None, {"a": b"new"}, "write")]


def test_what_the_reorder_buffer_still_holds_of_the_former_table_is_folded_before_it_ends() -> None:
    run = run_of(REORDERING)
    run.chunk(sent(FORWARD, insert(1, 0, "old", ttl=REORDER_MS // 1000 + 2), 0))
    buffered = sent(FORWARD, insert(3, 4, "late"), 4)
    changes = run.chunk(buffered, heartbeat(SECOND, 6), heartbeat(SECOND, 60)).changes
    assert sorted(summary(changes), key=repr) == [
        ("c", None, {"a": b"late"}, "write"),
        ("c", None, {"a": b"old"}, "write"),
        ("d", {"a": b"late"}, None, "schema"),
        ("d", {"a": b"old"}, None, "schema"),
    ]


@SETTINGS
def test_two_new_tables_in_one_second(fold_settings: FoldSettings) -> None:
    """A row whose key the second table did not have is stored as the third table's."""
    run = run_of(fold_settings, SECOND, THIRD)
    run.chunk(sent(FORWARD, insert(1, 0, "1"), 0), heartbeat(FORWARD, 10))
    run.chunk(sent(SECOND, insert(2, 20, "2"), 20), sent(THIRD, insert(3, 20, "3"), 20), heartbeat(THIRD, 40))
    assert run.visible(KEY) == {(int_bytes(3),): {"a": b"3"}}
    run.chunk(sent(THIRD, insert(1, 3600, "again"), 3600), heartbeat(THIRD, 4000))
    assert run.visible(KEY) == {(int_bytes(3),): {"a": b"3"}, (int_bytes(1),): {"a": b"again"}}


def test_a_dropped_column_and_a_new_table_in_one_second() -> None:
    """A row that the drop leaves empty and a row that ends with its table have the same tombstone."""
    a, *others = FORWARD.table.regular_columns
    drop = {"a": DroppedColumn(a, BASE_US + 5_000_000)}
    altered = TableWriter(replace(FORWARD.table, regular_columns=tuple(others), dropped_columns=drop, altered_at=1))
    run = FoldRun(FORWARD)
    write = insert(1, 0, "old")
    run.chunk(sent(FORWARD, write._replace(what=write.what._replace(liveness=LivenessInfo(-(2**63)))), 0))
    versions = catalog_of_recreated(FORWARD.table, SECOND.table)
    of_first = {**versions.newest, FORWARD.table.id.bytes: altered.digest}
    schemas = {**versions.schemas, (altered.table.id.bytes, altered.digest): altered.table}
    topics = {**versions.topics, altered.digest: "cdc.shop.orders"}
    run.catalog = replace(versions, schemas=schemas, newest=of_first, topics=topics)
    assert summary(run.chunk(heartbeat(altered, 10)).changes) == [("d", {"a": b"old"}, None, "schema")]
    assert run.chunk(heartbeat(SECOND, 10)).changes == []
    changes = run.chunk(sent(SECOND, insert(1, 20, "new"), 20)).changes
    assert summary(changes) == [("c", None, {"a": b"new"}, "write")]


def test_a_new_table_whose_key_cannot_have_the_former_rows_values() -> None:
    """int and smallint keys have one Avro type, and so one topic."""
    (c,) = FORWARD.table.clustering
    short = recreated(2)
    short = TableWriter(replace(short.table, clustering=(replace(c, type=NativeType("smallint")),)))
    run = FoldRun(FORWARD)
    run.catalog = catalog_of_recreated(FORWARD.table, short.table)
    run.chunk(sent(FORWARD, insert(1, 0, "old"), 0))
    assert summary(run.chunk(heartbeat(short, 10)).changes) == [("d", {"a": b"old"}, None, "schema")]


def by_key(changes: list[RowChange]) -> dict[tuple[bytes, object], list[RowChange]]:
    def key(change: RowChange) -> tuple[bytes, object]:
        return change.partition_key, change.clustering or ()

    return {found: list(of) for found, of in groupby(sorted(changes, key=key), key=key)}


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_batches_change_nothing_of_a_recreated_table(data: st.DataObject) -> None:
    check_recreated(data)


def check_recreated(data: st.DataObject) -> None:
    """Any writes with TTLs and deletions to a table and then to the one that replaced it, in any batches and parts."""
    made = data.draw(timed_writes(FORWARD.table, rising=True))
    swap = data.draw(st.integers(0, len(made)))
    records = [
        record(FORWARD if offset < swap else SECOND, write, second, offset)
        for offset, (second, write) in enumerate(made)
    ]
    fold_settings = data.draw(st.sampled_from([NEVER_PURGE, REORDERING]))
    one_by_one, batched = run_of(fold_settings), run_of(fold_settings)
    if data.draw(st.booleans()):
        batched.fold_settings = bounded(data.draw(st.integers(1, 5)), fold_settings)
    for message in records:
        one_by_one.chunk(message)
    for batch in in_batches(data, records):
        batched.chunk(*batch)
    for run in (one_by_one, batched):
        for _ in range(20):  # of what ends with its table, a small budget leaves some for the next chunk
            run.chunk(heartbeat(SECOND, made[-1][0] - BASE_S + 20))
    assert by_key(batched.changes) == by_key(one_by_one.changes)
