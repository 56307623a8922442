"""All rows move to another topic: what each topic gets, and what is under way when the plan names another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.deletion import DeletionTime
from cdc_messages.topics import Topic
from materializer.fold.chunk import fold_chunk
from materializer.rows.keys import TOPICS
from materializer.rows.published import Published, read_published
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import NEVER_PURGE, record
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import catalog_of, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.support.materializer.wide_partition import KEY, insert, static

if TYPE_CHECKING:
    from cdc_messages.changes import RowChange
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
        self.settings: FoldSettings = NEVER_PURGE._replace(max_changes=most)
        self._offset = 0

    def fold(self, *writes: Write, second: int = BASE_S, parts: int = 1000) -> list[Told]:
        """The (topic, op, cause, row_sequence) of what comes out, in at most so many chunks."""
        records = [record(FORWARD, each, second, self._offset + at) for at, each in enumerate(writes)]
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
        catalog = replace(catalog, topics=dict.fromkeys(catalog.topics, self.topic), partitions={NEXT: 7})
        result = fold_chunk(self.state, records, catalog, self.settings)
        self.state.apply(result.writes)
        self._left = result.left
        return [told(each, result.published[TABLE_ID].topic) for each in result.changes]


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
    keys = [int_bytes(each) for each in range(10, 16)]
    run.fold(*(insert(1, ttl=5)._replace(partition_key=key) for key in keys), insert(7), insert(8))
    begun = run.fold(insert(9), second=BASE_S + 9, parts=1)
    assert 0 < len(begun) < len(keys)
    run.topic = NEXT
    changes = begun + run.fold(insert(9), second=BASE_S + 9)
    expired = [each for each in changes if each[2] == "expiry"]
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
