"""Which truncations of tables a publisher notices, and when it sends them; the node and its log are fakes."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.tables.selection import Selection
from tests.support.publisher.finish import finish
from tests.support.publisher.row_ends_node import (
    AT,
    DURABLE_SECONDS,
    HOST,
    OLDEST,
    SETTLE_SECONDS,
    Entry,
    Node,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_an_end_is_sent_before_the_first_message_after_it(node: Node) -> None:
    node.truncate(6, 100)
    finish(node.ends.send_due())
    node.read_message(6, 100)
    assert not node.sent  # what ends at replayAfter is truncated
    node.read_message(6, 101)
    node.read_message(6, 150)
    assert node.kinds() == [("truncate", 6, 100)]
    [message] = [outgoing.message for outgoing in node.sent]
    assert (message.truncation_epoch, message.host_id, node.sent[0].is_for_all_raw_partitions) == (AT, HOST, True)


def test_an_end_that_nothing_follows_is_sent_when_all_before_it_is_read(node: Node) -> None:
    node.truncate(6, 100)
    node.ends.note_read(6, 99)
    finish(node.ends.send_due())
    assert not node.sent
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    assert node.kinds() == [("truncate", 6, 100)]


def test_the_end_of_a_quiet_node_is_sent_when_all_that_was_durable_is_read(node: Node) -> None:
    """Its segment may never reach cdc_raw. 3.11 shows it when it is full and flushed, and not before."""
    node.truncate(6, 100)
    noticed_at = node.schema.row_ends.pending[node.table_id].noticed_at
    node.positions.clock = noticed_at + int((DURABLE_SECONDS + 1) * 1e6)
    node.durable_seconds = None
    finish(node.ends.send_due())
    assert not node.sent
    node.durable_seconds = DURABLE_SECONDS
    finish(node.ends.send_due())
    assert node.kinds() == [("truncate", 6, 100)]


def test_what_was_read_after_an_end_is_sent_again_when_no_other_one_follows(node: Node) -> None:
    node.log = {
        5: [Entry(node.mutation(0), 10)],
        6: [Entry(node.mutation(key), 50 * key) for key in range(1, 5)],
        7: [Entry(node.mutation(key), key) for key in range(5, 9)],
    }
    node.read = {5: 10, 6: 200, 7: 6}
    node.ends.note_read(7, 6)
    node.truncate(6, 100)
    finish(node.ends.send_due())
    assert node.kinds() == [("truncate", 6, 100)]
    assert not node.schema.row_ends.unannounced  # the native splitter need not leave the table any more
    assert node.schema.row_ends.first_needed_segment == 6
    node.settle()
    rest = [("row", 6, 150), ("row", 6, 200), ("row", 7, 5), ("row", 7, 6)]
    assert node.kinds() == [("truncate", 6, 100), ("truncated", 6, 100), *rest]
    assert node.schema.row_ends.first_needed_segment == 6  # until all of it is acknowledged
    node.acknowledge()
    assert node.schema.row_ends.first_needed_segment is None
    assert not node.schema.published[node.table_id].needs_snapshot_since


def test_an_end_that_is_noticed_while_a_newer_schema_is_read_comes_late_too(node: Node) -> None:
    """It is noticed between two mutations of one segment: the decoder reads the schema when it meets an
    unknown column.
    """
    node.log = {6: [Entry(node.mutation(key), 50 * key) for key in range(1, 5)]}
    node.read = {6: 150}
    node.read_message(6, 150)
    node.truncate(6, 100)
    node.read_message(6, 200)
    assert node.kinds() == [("truncate", 6, 100)]
    node.read = {6: 200}
    node.settle()
    assert node.kinds()[1:] == [("truncated", 6, 100), ("row", 6, 150), ("row", 6, 200)]


def test_what_can_no_longer_be_sent_again_needs_a_snapshot(node: Node) -> None:
    node.is_lost = True
    node.ends.note_read(7, 6)
    node.truncate(6, 100)
    node.settle()
    assert node.schema.published[node.table_id].needs_snapshot_since


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_an_end_is_sent_once_more_unless_it_was_acknowledged(node: Node, *, is_acknowledged: bool) -> None:
    node.truncate(6, 100)
    node.ends.note_read(6, 100)
    node.settle()
    if is_acknowledged:
        node.acknowledge()
    node.sent.clear()
    node.positions.published_up_to = CommitLogPosition(6, 100)
    node.restart()
    finish(node.ends.send_due())
    assert node.kinds() == ([] if is_acknowledged else [("truncate", 6, 100)])
    if not is_acknowledged:
        node.settle()
        assert node.kinds()[1:] == [("truncated", 6, 100)]
    assert node.schema.published[node.table_id].truncated_at == (AT if is_acknowledged else 0)


def test_an_end_of_a_table_that_is_excluded_waits_and_holds_nothing_up(node: Node) -> None:
    node.truncate(6, 100)
    node.restart(Selection(exclude=("ks.a",)))
    node.ends.note_read(7, 1)
    finish(node.ends.send_due())
    assert not node.sent
    assert node.schema.row_ends.first_needed_segment is None
    assert not node.schema.row_ends.unannounced  # the native splitter steps over its mutations
    node.restart()
    node.ends.note_read(7, 1)
    node.settle()
    assert node.kinds() == [("truncated", 6, 100)]


def test_a_truncation_of_a_table_that_is_excluded_is_sent_once_it_is_included_again(node: Node) -> None:
    """A snapshot does not remove the rows from before it."""
    node.restart(Selection(exclude=("ks.a",)))
    node.truncate(6, 100)
    assert not node.schema.row_ends.pending
    assert node.schema.row_ends.first_needed_segment is None
    node.restart(Selection(exclude=("ks.a",)))
    node.is_lost = True  # what followed was not published, and is gone
    node.restart()
    node.ends.note_read(7, 1)
    node.settle()
    assert node.kinds() == [("truncated", 6, 100)]
    assert node.schema.published[node.table_id].needs_snapshot_since


def test_a_file_of_an_earlier_build_says_which_tables_were_published(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(file.read_text().replace('"were_published"', '"another"'))
    node.restart(Selection(exclude=("ks.a",)))
    node.truncate(6, 100)
    node.restart()
    assert node.table_id in node.schema.row_ends.pending


def test_a_truncation_while_cdc_is_off_is_sent(node: Node) -> None:
    node.rows.alter("ks", "a", cdc=False)
    node.schema.refresh()
    node.restart()
    node.truncate(6, 100)
    node.ends.note_read(7, 1)
    node.settle()
    assert node.kinds() == [("truncated", 6, 100)]


def test_a_truncation_from_before_a_table_is_first_published_is_no_event(node: Node) -> None:
    """No raw partition has rows of it, and this record may be the last one that comes."""
    other = node.rows.create("ks", "b", cdc=True)
    node.restart(Selection(exclude=("ks.b",)))
    node.rows.truncate(other, 6, 100, AT)
    node.schema.refresh()
    node.restart()
    assert not node.schema.row_ends.pending


def test_a_table_that_is_excluded_is_still_known(node: Node) -> None:
    """A snapshot of it has to end."""
    published = node.schema.find_known(node.table_id)
    node.restart(Selection(exclude=("ks.a",)))
    assert node.table_id not in node.schema.published
    assert node.schema.find_known(node.table_id) == published
    assert node.schema.find_known(bytes(16)) is None


def test_messages_say_when_their_table_was_truncated(node: Node) -> None:
    edition = node.schema.edition
    node.truncate(6, 100)
    assert node.schema.edition > edition  # the native splitter must leave the table
    node.ends.note_read(6, 100)
    node.settle()
    node.acknowledge()
    assert node.schema.published[node.table_id].truncated_at == AT


def test_truncations_from_before_the_log_are_no_events(node: Node, tmp_path: Path) -> None:
    """A publisher that starts for the first time."""
    node.rows.truncate(node.table_id, OLDEST - 1, 5, AT)
    (tmp_path / "schema.json").unlink()
    node.restart()
    assert not node.schema.row_ends.pending
    node.truncate(OLDEST - 1, 9, AT + 1)  # one of now, whatever the folder shows
    assert node.schema.row_ends.pending


def test_a_first_start_sends_the_truncations_that_the_log_has_writes_before(node: Node, tmp_path: Path) -> None:
    node.rows.truncate(node.table_id, OLDEST, 5, AT)
    (tmp_path / "schema.json").unlink()
    node.restart()
    assert node.schema.row_ends.pending[node.table_id].position == (OLDEST, 5)


def test_truncations_of_other_tables_are_no_events(node: Node) -> None:
    other = node.rows.create("ks", "b", cdc=False)
    node.rows.truncate(other, 6, 100, AT)
    node.schema.refresh()
    assert not node.schema.row_ends.pending


def test_a_record_of_another_form_is_an_error(node: Node) -> None:
    node.rows.truncate(node.table_id, 6, 100, AT)
    [table_id] = node.rows.truncated
    node.rows.truncated[table_id] += b"x"
    with pytest.raises(CdcError, match="has 21 bytes, not 20") as caught:
        node.schema.refresh()
    assert caught.value.code is Code.CASSANDRA_QUERY


def test_a_second_truncation_replaces_one_that_is_not_sent(node: Node) -> None:
    node.truncate(6, 100)
    node.truncate(7, 5, AT + 1)
    node.ends.note_read(7, 5)
    finish(node.ends.send_due())
    assert [kind for kind in node.kinds() if kind[0] == "truncate"] == [("truncate", 7, 5)]


def test_a_truncation_that_another_one_follows_is_only_announced(node: Node) -> None:
    """The materializer could not know which TRUNCATE one of them belongs to (decision 0035)."""
    node.log = {6: [Entry(node.mutation(key), 50 * key) for key in range(1, 5)]}
    node.read = {6: 200}
    node.ends.note_read(6, 200)
    for position, at in ((50, AT), (100, AT + 1)):
        node.truncate(6, position, at)
        finish(node.ends.send_due())
    first_noticed_at = node.schema.row_ends.pending[node.table_id].noticed_at
    assert node.kinds() == [("truncate", 6, 50), ("truncate", 6, 100)]
    node.settle()
    assert node.schema.row_ends.records_read_at >= first_noticed_at + SETTLE_SECONDS * 1e6
    assert node.kinds()[2:] == [("truncated", 6, 100), ("row", 6, 150), ("row", 6, 200)]
    node.acknowledge()
    assert not node.schema.row_ends.pending


def test_a_clock_that_is_set_back_does_not_hold_a_truncation_up(node: Node) -> None:
    node.truncate(6, 100)
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    noticed_at = node.schema.row_ends.pending[node.table_id].noticed_at
    node.schema.row_ends.records_read_at = noticed_at - 3600 * 10**6
    finish(node.ends.send_due())
    assert node.kinds() == [("truncate", 6, 100), ("truncated", 6, 100)]


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_truncation_after_the_clock_was_set_back_is_later_than_the_one_before(node: Node, *, is_sent: bool) -> None:
    """Cassandra's times of internal writes never go back, so that its record shows it; its own time may go back."""
    node.truncate(6, 100)
    node.ends.note_read(6, 100)
    if is_sent:
        node.settle()
        node.acknowledge()
    node.truncate(6, 200, AT - 3_600_000)
    node.ends.note_read(6, 300)
    end = node.schema.row_ends.pending[node.table_id]
    assert (end.position, end.at) == ((6, 200), AT + 1)
    assert node.schema.row_ends.recorded_at(node.table_id) == AT + 1  # a row image from before it is less
    node.positions.published_up_to = CommitLogPosition(6, 300)
    node.restart()
    assert node.schema.row_ends.pending[node.table_id] == end
    node.settle()
    node.acknowledge()
    assert node.kinds()[-1] == ("truncated", 6, 200)
    node.sent.clear()
    node.restart()
    finish(node.ends.send_due())
    assert not node.sent
    assert not node.schema.row_ends.pending


def test_a_file_of_the_version_before_has_no_places(node: Node) -> None:
    """It has the times: the same record is no other truncation, and from then on its place is known."""
    node.truncate(6, 100)
    node.ends.note_read(6, 100)
    node.settle()
    node.acknowledge()
    stored = state_files.read(node.file)
    assert stored is not None
    del stored["row_ends"]["truncated_places"], stored["were_published"]
    state_files.write(node.file, stored)
    node.sent.clear()
    node.restart()
    finish(node.ends.send_due())
    assert not node.sent
    assert not node.schema.row_ends.pending
    node.truncate(6, 200, AT - 1)
    assert node.schema.row_ends.pending[node.table_id].position == (6, 200)


def test_a_time_that_is_ahead_of_the_clock_lets_no_heartbeat_pass_the_end(node: Node) -> None:
    node.truncate(6, 100, time_ns() // 1_000_000 + 3_600_000)
    noticed_at = node.schema.row_ends.pending[node.table_id].noticed_at
    assert node.schema.row_ends.clock_before(node.table_id, noticed_at + 10) == noticed_at


def test_a_truncation_that_was_noticed_long_ago_is_settled_when_its_place_is_reached(node: Node) -> None:
    """3.11 shows the log when the segment is full and flushed."""
    node.durable_seconds = None
    node.truncate(6, 100)
    node.settle()
    assert not node.sent
    node.ends.note_read(6, 100)
    finish(node.ends.send_due())
    assert node.kinds() == [("truncated", 6, 100)]
