"""Mutations that were written while `cdc` was on are published, also if they are read after it was switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.vint import write_int, write_sized
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.header import SerializationHeader, write_stats
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES, system_table_id
from cassandra_storage.formats.versions import VERSION_40
from publisher.mutations.messages import Origin, split_into_messages
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments
from tests.support.materializer.raw_builder import TableWriter, int_bytes, partition_update
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

ON_AT, OFF_AT = 1_000, 2_000  # µs
LAST = 7  # the newest segment when the switch is first seen


class Log:
    """A table whose cdc is on, and the mutations of its node's log."""

    def __init__(self, folder: Path) -> None:
        self.node = SchemaRows()
        self._file = folder / "schema.json"
        self.table_id = self.node.create("ks", "a", cdc=True)
        self.node.alter("ks", "a", altered_at=ON_AT)
        self.schema = self.restart()
        writer = TableWriter(self.schema.tables[self.table_id])
        self._mutation = write_int(1) + partition_update(int_bytes(7), "row", Row((), {}, LivenessInfo(1)), writer)

    def restart(self) -> NodeSchema:
        self.schema = NodeSchema(
            self._file, self.node.run_query, ("cdc_filler", "filler"), segments=LogSegments(newest=lambda: LAST)
        )
        self.schema.load()
        self.schema.refresh()
        return self.schema

    def switch(self, *, cdc: bool, altered_at: int) -> None:
        self.node.alter("ks", "a", cdc=cdc, altered_at=altered_at)
        self.schema.refresh()

    def read_switch(self, segment: int, position: int, *, cdc: bool, written_at: int) -> None:
        """The mutation that an ALTER writes."""
        self.schema.note_mutation(alter(self.table_id, cdc=cdc, written_at=written_at), VERSION_40, segment, position)

    def is_published(self, segment: int, position: int = 100) -> bool:
        origin = Origin(b"h" * 16, segment, f"CommitLog-7-{segment}.log", VERSION_40, position)
        return bool(split_into_messages(self._mutation, origin, self.schema).messages)


def alter(table_id: bytes, *, cdc: bool, written_at: int) -> bytes:
    table = SCHEMA_TABLES[system_table_id(KEYSPACE, "tables").bytes]
    header = SerializationHeader.of_table(table, messaging_version=VERSION_40)
    cells = {"id": Cell(written_at, table_id), "cdc": Cell(written_at, bytes([cdc]))}
    start = table.id.bytes + write_sized(b"ks") + b"\x10" + write_stats(header.stats)
    row = write_row(Row((b"a",), cells, LivenessInfo(written_at)), header)
    return write_int(1) + start + header.regular_columns.raw + b"\x01" + row + b"\x01"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.mark.parametrize("restarts", [False, True])
def test_segments_that_were_begun_before_the_switch_are_published(log: Log, *, restarts: bool) -> None:
    log.switch(cdc=False, altered_at=OFF_AT)
    if restarts:
        log.restart()
    assert log.is_published(LAST)
    assert not log.is_published(LAST + 1)
    assert log.schema.current_tables() == []
    assert [table.id for table in log.schema.tables_at(LAST, 1)] == [log.table_id]


@pytest.mark.parametrize("is_read_early", [False, True])
def test_the_switch_in_the_log_is_the_end(log: Log, *, is_read_early: bool) -> None:
    if is_read_early:  # the node shows a new schema a moment after it has written it
        log.read_switch(LAST - 1, 50, cdc=False, written_at=OFF_AT)
    log.switch(cdc=False, altered_at=OFF_AT)
    if not is_read_early:
        log.read_switch(LAST - 1, 50, cdc=False, written_at=OFF_AT)
    log.restart()
    assert log.is_published(LAST - 1, 49)
    assert not log.is_published(LAST - 1, 51)
    assert not log.is_published(LAST)


def test_older_switches_in_a_backlog_are_not_the_end(log: Log) -> None:
    """The table was created without cdc, and the switch on is in no segment that reached cdc_raw."""
    log.read_switch(1, 50, cdc=False, written_at=ON_AT - 1)
    log.switch(cdc=False, altered_at=OFF_AT)
    log.read_switch(2, 50, cdc=False, written_at=ON_AT - 1)
    assert log.is_published(3)


def test_a_switch_on_between_two_looks_is_followed(log: Log) -> None:
    log.switch(cdc=False, altered_at=OFF_AT + 2)
    log.read_switch(1, 50, cdc=False, written_at=OFF_AT)
    assert not log.is_published(2)
    log.read_switch(2, 60, cdc=True, written_at=OFF_AT + 1)
    assert log.is_published(2)
    log.read_switch(3, 70, cdc=False, written_at=OFF_AT + 2)
    assert (log.is_published(3, 69), log.is_published(3, 71)) == (True, False)


def test_after_it_is_on_again_all_is_published(log: Log) -> None:
    log.switch(cdc=False, altered_at=OFF_AT)
    log.read_switch(LAST - 1, 50, cdc=False, written_at=OFF_AT)
    log.switch(cdc=True, altered_at=OFF_AT + 1)
    log.read_switch(LAST, 50, cdc=True, written_at=OFF_AT + 1)
    assert log.is_published(LAST + 1)
    assert [bool(table.needs_snapshot_since) for table in log.schema.current_tables()] == [True]


def test_a_schema_mutation_that_cannot_be_read_changes_nothing(log: Log) -> None:
    log.switch(cdc=False, altered_at=OFF_AT)
    damaged = alter(log.table_id, cdc=False, written_at=OFF_AT)[:-3]
    log.schema.note_mutation(damaged, VERSION_40, LAST - 1, 50)
    assert log.is_published(LAST)


def test_a_table_of_another_id_is_not_concerned(log: Log) -> None:
    log.switch(cdc=False, altered_at=OFF_AT)
    other = alter(UUID(int=1).bytes, cdc=False, written_at=OFF_AT)
    log.schema.note_mutation(other, VERSION_40, 1, 50)
    assert log.is_published(LAST)
