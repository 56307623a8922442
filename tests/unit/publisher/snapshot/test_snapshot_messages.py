"""The messages that a snapshot is sent in: what they say is what they were made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from cassandra_storage.formats.versions import VERSION_50
from cdc_common.messages.raw import decode, encode
from cdc_common.messages.snapshots import HOST_STATES, SnapshotStep, decode_step
from materializer.records import RawRecord
from publisher.snapshot.rows.messages import RowImages, SnapshotOrigin, make_step
from publisher.tables.published_table import PublishedTable
from tests.support.materializer.fold_checks import NEVER_PURGE, TIMESTAMPS, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TableWriter, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, MIXED, PARTITIONS, WRITERS, Stamp, writes

if TYPE_CHECKING:
    from publisher.mutations.messages import OutgoingMessage

ORIGIN = SnapshotOrigin(UUID(int=0x5A), b"h" * 16, 1_700_000_000_000_000)


def published(writer: TableWriter) -> PublishedTable:
    return PublishedTable(writer.table, writer.table.id.bytes, writer.digest)


@given(data=st.data())
def test_an_image_is_what_it_was_made_of(data: st.DataObject) -> None:
    writer = data.draw(st.sampled_from(WRITERS))
    images = RowImages(published(writer), ORIGIN)
    write = data.draw(writes(writer.table, Stamp(data.draw(TIMESTAMPS), BASE_S)))
    deletion = write.what if write.kind == "partition_deletion" else LIVE
    static = write.what if write.kind == "static" else None
    elements = [write.what] if write.kind in ("row", "range_deletion") else []
    ((message,),) = images.partition(write.partition_key, deletion, static, elements)
    raw = message.message
    assert (raw.kind, raw.segment, raw.position, raw.index) == (f"snapshot_{write.kind}", ORIGIN.started, 0, 0)
    tables = {writer.table.id.bytes: writer.table}
    update, end = read_partition_update(raw.update, 0, raw.messaging_version, tables)
    assert end == len(raw.update)
    found = {
        "partition_deletion": update.deletion,
        "static": update.static_row,
        "row": next(iter(update.rows), None),
        "range_deletion": next(iter(update.range_tombstones), None),
    }
    expected: dict[str, object] = {**dict.fromkeys(found), "partition_deletion": LIVE, write.kind: write.what}
    assert (found, update.partition_key) == (expected, write.partition_key)


@given(data=st.data())
def test_images_fold_as_the_logs_writes_do(data: st.DataObject) -> None:
    log, snapshot = FoldRun(MIXED, NEVER_PURGE), FoldRun(MIXED, NEVER_PURGE)
    images = RowImages(published(MIXED), ORIGIN)
    for number in range(data.draw(st.integers(1, 8))):
        write = data.draw(writes(MIXED.table, Stamp(data.draw(TIMESTAMPS), BASE_S)))
        log.chunk(record(MIXED, write, BASE_S, number))
        deletion = write.what if write.kind == "partition_deletion" else LIVE
        static = write.what if write.kind == "static" else None
        elements = [write.what] if write.kind in ("row", "range_deletion") else []
        for unit in images.partition(write.partition_key, deletion, static, elements):
            snapshot.chunk(*(sent(outgoing) for outgoing in unit))
    assert snapshot.merged() == log.merged()


def sent(outgoing: OutgoingMessage) -> RawRecord:
    return RawRecord(outgoing.partition_key, encode(outgoing.message, 1), 0, BASE_S * 1000)


def row(number: int) -> Row:
    return Row((number.to_bytes(4, "big"), b"a"), {"a": Cell(BASE_US, b"x")})


def test_units() -> None:
    """The first row is in the unit of what precedes it; all other elements are alone."""
    deletion, static = DeletionTime(BASE_US - 5, BASE_S), Row((), {"st": Cell(BASE_US, b"s")})
    bounds = (
        ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(1),)),
        ClusteringBound(Kind.INCL_END_BOUND, (int_bytes(2),)),
    )
    deleted = RangeTombstone(*bounds, deletion)
    images = RowImages(published(MIXED), ORIGIN)

    def kinds(*of: tuple[DeletionTime, Row | None, list[Row | RangeTombstone]]) -> list[list[str]]:
        return [
            [outgoing.message.kind.removeprefix("snapshot_") for outgoing in unit]
            for one in of
            for unit in images.partition(PARTITIONS[0], *one)
        ]

    assert kinds((deletion, static, [row(1), row(2)])) == [["partition_deletion", "static", "row"], ["row"]]
    assert kinds((deletion, static, [])) == [["partition_deletion", "static"]]
    assert kinds((LIVE, None, [row(1)]), (LIVE, Row((), {}), [])) == [["row"]]
    assert kinds((deletion, None, [deleted, row(1)])) == [["partition_deletion"], ["range_deletion"], ["row"]]
    assert images.units == 7
    (unit,) = images.partition(b"k", deletion, static, [])
    assert [(outgoing.message.position, outgoing.message.index) for outgoing in unit] == [(7, 0), (7, 1)]


def test_a_dropped_column_may_have_been_written_after_its_drop() -> None:
    dropped = DroppedColumn(
        next(regular_column for regular_column in MIXED.table.regular_columns if regular_column.name == "a"),
        BASE_US - 1,
    )
    kept = tuple(regular_column for regular_column in MIXED.table.regular_columns if regular_column.name != "a")
    table = replace(MIXED.table, regular_columns=kept, dropped_columns={"a": dropped})
    (unit,) = RowImages(published(TableWriter(table)), ORIGIN).partition(b"k", LIVE, None, [row(1)])
    update, _ = read_partition_update(unit[0].message.update, 0, VERSION_50, {table.id.bytes: table})
    assert update.rows == (row(1),)


def test_a_column_that_the_table_does_not_have() -> None:
    images = RowImages(published(MIXED), ORIGIN)
    with pytest.raises(FormatError, match="has no place in the header"):
        list(images.partition(b"k", LIVE, None, [Row((b"\0" * 4, b"a"), {"nope": Cell(1, b"x")})]))


def test_a_step_is_for_every_raw_partition() -> None:
    hosts = (b"h" * 16, b"i" * 16)
    for state in HOST_STATES:
        message = make_step(published(MIXED), ORIGIN, hosts, state)
        assert message.is_for_all_raw_partitions
        assert message.message.kind == ("snapshot_begin" if state == "running" else "snapshot_end")
        read = decode(encode(message.message, 1))
        assert decode_step(read.update) == SnapshotStep(ORIGIN.snapshot, hosts, state)
