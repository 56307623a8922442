"""Which drops of tables a publisher notices, and when it sends their ends; the node and its log are fakes."""

from __future__ import annotations

from contextlib import suppress
from time import time_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pytest

from cassandra_storage.formats.primitives.vint import write_int, write_sized
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, RowDeletion
from cassandra_storage.formats.rows.header import SerializationHeader, write_deletion_time, write_stats
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES, system_table_id
from cassandra_storage.formats.versions import VERSION_40
from publisher.mutations.messages import Origin
from publisher.sending.row_end_sender import RowEndSender
from publisher.tables.row_ends import LAST_POSITION
from tests.support.publisher.finish import finish
from tests.support.publisher.row_ends_node import (
    NEWEST,
    Entry,
    Node,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


# DROP


def drop_mutation(table: str | None, dropped_at: int, cells: Mapping[str, Cell] = MappingProxyType({})) -> bytes:
    """Return the mutation that DROP TABLE, or with None DROP KEYSPACE, writes to system_schema.tables; `dropped_at` in
    µs. With cells: that of ALTER TABLE.
    """
    schema = SCHEMA_TABLES[system_table_id(KEYSPACE, "tables").bytes]
    header = SerializationHeader.of_table(schema, messaging_version=VERSION_40)
    deletion = DeletionTime(dropped_at, dropped_at // 1_000_000)
    flags, body = b"\x14", b"\x00" + write_deletion_time(deletion, header) + b"\x00"
    if table is not None:
        row = write_row(Row((table.encode(),), cells, NO_LIVENESS, RowDeletion(deletion)), header)
        flags, body = b"\x10", header.regular_columns.raw + b"\x01" + row
    start = schema.id.bytes + write_sized(b"ks") + flags + write_stats(header.stats)
    return write_int(1) + start + body + b"\x01"


@pytest.mark.parametrize("table", ["a", None])
@pytest.mark.parametrize("is_seen_in_schema_first", [False, True])
def test_a_drop_in_the_log_is_the_end(node: Node, table: str | None, *, is_seen_in_schema_first: bool) -> None:
    dropped_at = time_ns() // 1000
    if is_seen_in_schema_first:
        node.rows.drop("ks", "a")
        node.schema.refresh()
        assert node.schema.row_ends.pending[node.table_id].position == (NEWEST, LAST_POSITION)
    node.schema.note_mutation(drop_mutation(table, dropped_at), VERSION_40, 6, 100)
    assert node.schema.row_ends.pending[node.table_id].position == (6, 100)
    assert node.schema.row_ends.first_needed_segment is None  # nothing of it is sent again
    if not is_seen_in_schema_first:
        node.rows.drop("ks", "a")
        node.schema.refresh()
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    assert node.kinds() == [("drop", 6, 100)]
    node.acknowledge()
    node.restart()
    node.schema.note_mutation(drop_mutation(table, dropped_at), VERSION_40, 6, 100)  # read again after a crash
    assert not node.schema.row_ends.pending


def test_a_drop_that_the_log_does_not_show_ends_with_the_newest_segment(node: Node) -> None:
    node.rows.drop("ks", "a")
    node.schema.refresh()
    node.ends.note_read(NEWEST, 100)
    finish(node.ends.send_due())
    assert not node.sent
    node.ends.note_read(NEWEST + 1, 0)
    finish(node.ends.send_due())
    assert node.kinds() == [("drop", NEWEST, LAST_POSITION)]


def test_a_drop_waits_for_other_publishers_but_not_for_its_own_next_table(node: Node) -> None:
    node.ends = RowEndSender(cast("Any", node), cast("Any", node), 60)
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 100)
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    assert not node.sent
    node.read_message(6, 200)  # CREATE TABLE … WITH ID
    assert node.kinds() == [("drop", 6, 100)]


def test_a_clock_that_is_set_back_does_not_hold_a_drop_up(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.ends = RowEndSender(cast("Any", node), cast("Any", node), 60)
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 100)
    node.ends.note_read(6, 100)
    monkeypatch.setattr("publisher.sending.row_end_sender.time_ns", lambda: time_ns() - 3600 * 10**9)
    finish(node.ends.send_due())
    assert node.kinds() == [("drop", 6, 100)]


def test_an_alter_that_writes_the_tables_row_again_is_no_drop(node: Node) -> None:
    """Its mutation deletes the row that was there before."""
    now = time_ns() // 1000
    node.schema.note_mutation(drop_mutation("a", now, {"id": Cell(now + 1, node.table_id)}), VERSION_40, 6, 100)
    assert not node.schema.row_ends.pending


def test_an_old_drop_in_a_backlog_is_of_a_former_table(node: Node) -> None:
    node.rows.alter("ks", "a", altered_at=2_000)
    node.schema.refresh()
    node.schema.note_mutation(drop_mutation("a", 1_999), VERSION_40, 6, 100)
    assert not node.schema.row_ends.pending


def test_tables_that_were_dropped_before_this_build_are_no_events(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    text = file.read_text()
    file.write_text(text.replace('"row_ends"', '"another"'))
    node.rows.drop("ks", "a")
    node.restart()
    assert not node.schema.row_ends.pending
    with suppress(KeyError):
        finish(node.ends.send_due())
    assert not node.sent


# TRUNCATE, then DROP


def truncate_behind_two_writes(node: Node) -> None:
    """The table's truncation is announced, and the log has two writes after it that are read."""
    node.log = {6: [Entry(node.mutation(key), 50 * key) for key in range(1, 5)]}
    node.read = {6: 200}
    node.ends.note_read(6, 200)
    node.truncate(6, 100)
    finish(node.ends.send_due())


def test_what_was_written_between_a_truncation_and_a_drop_is_sent_at_once(node: Node) -> None:
    truncate_behind_two_writes(node)
    assert node.kinds() == [("truncate", 6, 100)]
    node.rows.drop("ks", "a")
    node.schema.refresh()
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 210)
    node.restart()
    node.ends.note_read(6, 210)
    finish(node.ends.send_due())
    sent = [("truncate", 6, 100), ("truncated", 6, 100), ("row", 6, 150), ("row", 6, 200)]
    assert node.kinds() == sent
    finish(node.ends.send_due())
    assert node.kinds() == sent  # the drop waits until Kafka has it
    node.acknowledge()
    finish(node.ends.send_due())
    assert node.kinds() == [*sent, ("drop", 6, 210)]
    node.acknowledge()
    assert not node.schema.row_ends.pending


def test_it_is_sent_before_a_message_of_the_next_table(node: Node) -> None:
    truncate_behind_two_writes(node)
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 210)
    finish(node.ends.send_before([], Origin(node.host_id, 6, "", VERSION_40, 220)))
    assert node.kinds()[1:] == [("truncated", 6, 100), ("row", 6, 150), ("row", 6, 200)]


def test_a_publisher_that_is_behind_sends_a_truncation_and_what_follows_it_once(node: Node) -> None:
    node.truncate(6, 100)
    node.rows.drop("ks", "a")
    node.schema.refresh()
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 210)
    finish(node.ends.send_due())
    assert not node.sent
    node.read_message(6, 150)
    assert node.kinds() == [("truncated", 6, 100)]


def test_a_table_with_the_same_id_follows_the_drop(node: Node) -> None:
    node.ends = RowEndSender(cast("Any", node), cast("Any", node), 60)
    node.truncate(6, 100)
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    node.schema.note_mutation(drop_mutation("a", time_ns() // 1000), VERSION_40, 6, 210)
    node.read_message(6, 250)  # CREATE TABLE … WITH ID
    assert node.kinds() == [("truncate", 6, 100), ("truncated", 6, 100), ("drop", 6, 210)]
