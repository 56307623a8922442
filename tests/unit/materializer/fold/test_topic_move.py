"""All rows move to another topic: what each topic gets, and what is under way when the plan names another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import DeletionTime
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import Topic
from materializer.fold.chunk import fold_chunk
from materializer.rows.keys import RESEND, TOPIC_IDS, TOPICS
from materializer.rows.published import Published, read_published
from materializer.rows.topic_ids import read_topic_ids, resend_writes
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import NEVER_PURGE, record
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import catalog_of, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.support.materializer.wide_partition import KEY, insert, static

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings

FIRST, NEXT = "cdc.shop.orders", "pii-cdc.shop.orders-v2"
TABLE_ID = FORWARD.table.id.bytes
Told = tuple[str, str, str, int]


class Run:
    """A state under a plan that names `topic`."""

    def __init__(self, most: int = NEVER_PURGE.max_changes) -> None:
        self.state = MemoryState()
        self.topic = FIRST
        self.ids: dict[str, str] = {}
        self.settings: FoldSettings = NEVER_PURGE._replace(max_changes=most)
        self._offset = 0

    def fold(self, *writes: Write, second: int = BASE_S, parts: int = 1000) -> list[Told]:
        """The (topic, op, cause, row_sequence) of what comes out, in at most so many chunks."""
        records = [record(FORWARD, write, second, self._offset + at) for at, write in enumerate(writes)]
        changes: list[Told] = []
        while records and parts:
            parts -= 1
            changes += self._chunk(records)
            records = records[len(records) - self._left :]
        self._offset += len(writes) - len(records)
        return changes

    def published(self) -> Published:
        return read_published(self.state)[TABLE_ID]

    def _chunk(self, records: list[RawRecord]) -> list[Told]:
        catalog = catalog_of(FORWARD.table)
        catalog = replace(
            catalog, topics=dict.fromkeys(catalog.topics, self.topic), partitions={NEXT: 7}, topic_ids=self.ids
        )
        result = fold_chunk(self.state, records, catalog, self.settings)
        self.state.apply(result.writes)
        self._left = result.left
        return [told(change, result.published[TABLE_ID].topic) for change in result.changes]


def told(change: RowChange, recorded: Topic) -> Told:
    return (change.topic or recorded).name, change.op, change.source.cause, change.row_sequence


def test_every_row_ends_and_begins_with_the_next_numbers() -> None:
    run = Run()
    run.fold(insert(1), static(b"s", BASE_US + 1), static(b"alone", BASE_US)._replace(partition_key=int_bytes(9)))
    run.topic = NEXT
    assert run.fold(insert(2), second=BASE_S + 5) == [
        (FIRST, "d", "moved", 3),
        (NEXT, "r", "moved", 4),
        (FIRST, "d", "moved", 2),
        (NEXT, "r", "moved", 3),
        (NEXT, "c", "write", 1),
    ]
    assert run.published() == Published(Topic(NEXT, 7), 3)


def test_a_topic_that_the_table_comes_back_to() -> None:
    run = Run()
    run.fold(insert(1))
    for number, topic in enumerate((NEXT, FIRST)):
        run.topic = topic
        former = FIRST if topic == NEXT else NEXT
        moved = [(former, "d", "moved", 2 + 2 * number), (topic, "r", "moved", 3 + 2 * number)]
        assert run.fold(insert(1)) == moved


def test_an_empty_state_is_where_the_first_plan_says() -> None:
    run = Run()
    run.topic = NEXT
    assert run.fold(insert(1)) == [(NEXT, "c", "write", 1)]
    assert run.published() == Published(Topic(NEXT, 7))


def test_a_row_that_shows_nothing_stays_ended() -> None:
    run = Run()
    run.fold(insert(1), Write(KEY, "partition_deletion", DeletionTime(BASE_US + 1, BASE_S)))
    run.topic = NEXT
    assert run.fold(insert(1)) == []
    assert run.published().topic.name == NEXT


def test_a_deletion_that_is_under_way_ends_in_its_topic() -> None:
    run = Run(most=2)
    run.fold(*(insert(c) for c in range(6)))
    deletion = Write(KEY, "partition_deletion", DeletionTime(BASE_US + 1, BASE_S))
    begun = run.fold(deletion, parts=1)
    assert 0 < len(begun) < 6
    run.topic = NEXT
    assert {topic for topic, *_ in begun + run.fold(deletion)} == {FIRST}
    assert run.fold(insert(1)) == []
    assert run.published().topic.name == NEXT


def test_a_second_in_which_rows_expire_ends_in_its_topic() -> None:
    """Rows of several Cassandra partitions expire in one second, whose work is cut; others stay."""
    run = Run(most=2)
    keys = [int_bytes(number) for number in range(10, 16)]
    run.fold(*(insert(1, ttl=5)._replace(partition_key=key) for key in keys), insert(7), insert(8))
    begun = run.fold(insert(9), second=BASE_S + 9, parts=1)
    assert 0 < len(begun) < len(keys)
    run.topic = NEXT
    changes = begun + run.fold(insert(9), second=BASE_S + 9)
    expired = [change for change in changes if change[2] == "expiry"]
    assert expired == [(FIRST, "d", "expiry", 2)] * len(keys)
    assert changes[len(keys) :] == [
        *[(FIRST, "d", "moved", 2), (NEXT, "r", "moved", 3)] * 2,
        (NEXT, "c", "write", 1),
    ]


def test_what_is_recorded_once_is_not_written_again() -> None:
    run = Run()
    run.fold(insert(1))
    before = run.state.data[TOPICS]
    run.state.data[TOPICS] = before
    run.fold(insert(2))
    assert run.state.data[TOPICS] is before


def test_nothing_is_folded_into_a_topic_that_was_created_again() -> None:
    run = Run()
    run.ids = {FIRST: "one"}
    run.fold(insert(1))
    assert read_topic_ids(run.state) == {FIRST: "one"}
    before = dict(run.state.data)
    run.ids = {FIRST: "two"}
    with pytest.raises(CdcError, match="deleted and created again") as raised:
        run.fold(insert(2))
    assert raised.value.code is Code.CHANGE_TOPIC_RECREATED
    assert run.state.data == before
    run.ids = {}  # not known now
    assert run.fold(insert(2)) == [(FIRST, "c", "write", 1)]


def test_a_state_without_ids_takes_those_of_its_topics() -> None:
    """Of an earlier version."""
    run = Run()
    run.fold(insert(1))
    assert TOPIC_IDS not in run.state.data
    run.ids = {FIRST: "one", "other": "two"}
    run.fold(insert(2))
    assert read_topic_ids(run.state) == {FIRST: "one"}


@pytest.mark.parametrize("most", [1, 2, NEVER_PURGE.max_changes])
def test_all_rows_are_sent_again_once(most: int) -> None:
    run = Run(most)
    run.ids = {FIRST: "one"}
    alone = static(b"alone", BASE_US)._replace(partition_key=int_bytes(9))
    run.fold(insert(1), insert(2), insert(3), alone)
    run.state.apply(resend_writes({FIRST: "two"}))
    run.ids = {FIRST: "two"}
    sent = run.fold(insert(4))
    assert sent == [*[(FIRST, "r", "resent", 2)] * 4, (FIRST, "c", "write", 1)]
    assert RESEND not in run.state.data
    assert run.fold(insert(5)) == [(FIRST, "c", "write", 1)]
    assert run.published() == Published(Topic(FIRST, 1), 4)


def test_a_state_without_rows_has_nothing_to_send_again() -> None:
    run = Run()
    run.state.apply(resend_writes({FIRST: "two"}))
    run.ids = {FIRST: "two"}
    assert run.fold(insert(1)) == [(FIRST, "c", "write", 1)]
    assert run.fold(insert(2)) == [(FIRST, "c", "write", 1)]


def test_rows_that_are_to_be_sent_again_move_if_the_plan_says_so() -> None:
    run = Run()
    run.fold(insert(1))
    run.state.apply(resend_writes({FIRST: "two"}))
    run.topic = NEXT
    assert run.fold(insert(1)) == [(FIRST, "d", "moved", 2), (NEXT, "r", "moved", 3)]
    assert RESEND not in run.state.data


def test_what_is_under_way_ends_before_rows_are_sent_again() -> None:
    run = Run(most=2)
    run.fold(*(insert(c) for c in range(6)))
    deletion = Write(KEY, "partition_deletion", DeletionTime(BASE_US + 1, BASE_S))
    begun = run.fold(deletion, parts=1)
    assert 0 < len(begun) < 6
    run.state.apply(resend_writes({FIRST: "two"}))
    assert {op for _, op, *_ in begun + run.fold(deletion)} == {"d"}
    assert run.fold(insert(7)) == []
