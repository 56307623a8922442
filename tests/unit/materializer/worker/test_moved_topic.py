"""A task that moves all rows to another topic does so once and at one offset, whichever part it dies in."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from materializer.fold.chunk import fold_chunk
from materializer.processing.raw_processor import RawProcessor
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint, InjectedFaultError
from stream_runtime.records import Message, TopicShape
from tests.support.materializer.fold_checks import record
from tests.support.materializer.memory_broker import MemoryBroker
from tests.support.materializer.memory_task import POINTS, open_task
from tests.support.materializer.raw_builder import catalog_of, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.support.materializer.wide_partition import bounded, insert, static

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from stream_runtime.state.reader import StateReader

ROWS, BEFORE, MOST = 12, 14, 4
FIRST, NEXT, LAST = "cdc.shop.t", "pii-cdc.shop.t-v2", "cdc.shop.t-v3"


class MovingProcessor(RawProcessor):
    """The table's own fold, in parts of at most MOST changes, under a plan that names a topic."""

    shape = TopicShape(1, "")

    def __init__(self, topic: str) -> None:
        catalog = catalog_of(FORWARD.table)
        self._catalog = type(catalog)(catalog.schemas, catalog.newest, dict.fromkeys(catalog.topics, topic))

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return fold_chunk(state, records, self._catalog, bounded(MOST))

    def change_messages(self, result: ChunkResult) -> Iterator[Message]:
        [recorded] = {published_table.topic for published_table in result.published.values()}
        for change in result.changes:
            topic = change.topic or recorded
            shown = [change.op, change.row_sequence, change.source.cause, change.source.file]
            key = repr((change.partition_key, change.clustering)).encode()
            images = [repr(sorted(image.items())) if image else None for image in (change.before, change.after)]
            yield Message(topic.name, 0, key, json.dumps([*shown, *images]).encode())


def records() -> list[RawRecord]:
    """Rows of three Cassandra partitions, one of them wide; from BEFORE on they are changed and others come."""
    writes = [static(b"s", BASE_US), *(insert(c) for c in range(ROWS)), insert(1)._replace(partition_key=int_bytes(9))]
    assert len(writes) == BEFORE
    writes += [static(b"t", BASE_US + 1), insert(ROWS), insert(1)._replace(partition_key=int_bytes(5))]
    return [record(FORWARD, write, BASE_S, offset) for offset, write in enumerate(writes)]


def run(broker: MemoryBroker, folder: Path, topic: str, end: int | None = None) -> None:
    """One attempt of a task, over the raw partition up to an offset."""
    task = open_task(broker, folder)
    try:
        task.process(iter(records()[:end]), MovingProcessor(topic))
    finally:
        task.close()


def move(
    folder: Path, patch: pytest.MonkeyPatch, fault: Fault | None = None, then: str = NEXT
) -> tuple[MemoryBroker, bool]:
    """Return the broker in the end, and whether the fault was met; `then`: the topic of the plan after it."""
    broker = MemoryBroker()
    patch.setattr(fault_points, "armed", None)
    run(broker, folder, FIRST, BEFORE)
    patch.setattr(fault_points, "armed", fault)
    patch.setattr(fault_points, "reached", Counter())
    try:
        run(broker, folder, NEXT)
    except InjectedFaultError:
        run(broker, folder, then)
        return broker, True
    return broker, False


def decoded(broker: MemoryBroker) -> list[tuple[str, bytes, list[Any]]]:
    return [(message.topic, message.key, json.loads(message.value or b"null")) for message in broker.messages]


def rows(broker: MemoryBroker) -> dict[str, dict[bytes, str]]:
    """Return the rows of each topic in the end, after a check of each key's chain over all topics."""
    topics: dict[str, dict[bytes, str]] = {FIRST: {}, NEXT: {}, LAST: {}}
    latest: dict[bytes, tuple[int, str | None]] = {}
    for topic, key, (op, sequence, cause, _, before, after) in decoded(broker):
        assert (sequence - 1, before) == latest.get(key, (0, None))
        latest[key] = sequence, after
        assert before == topics[topic].get(key)
        assert op in ("d", "r") if cause == "moved" else op != "r"
        if after is None:
            del topics[topic][key]
        else:
            topics[topic][key] = after
    return topics


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.lower())
def test_a_task_that_dies_in_any_part_moves_everything_once(
    point: FaultPoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = move(tmp_path / "whole", monkeypatch)
    final = rows(expected)
    assert (len(final[FIRST]), len(final[NEXT])) == (0, ROWS + 3)
    nth, met = 0, True
    while met:
        nth += 1
        broker, met = move(tmp_path / str(nth), monkeypatch, Fault(point, nth, "raise"))
        assert broker.messages == expected.messages
        assert broker.position is not None
        assert broker.position.offset == len(records())
    assert nth > (1 if point is FaultPoint.AFTER_FOLD else 5)  # a whole chunk is folded once, at the end


def test_it_moves_at_one_offset_and_each_end_names_the_next_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, _ = move(tmp_path, monkeypatch)
    moved = [message for message in decoded(broker) if message[2][2] == "moved"]
    assert [(topic, op, other) for topic, _, (op, _, _, other, _, _) in moved] == [
        (FIRST, "d", NEXT),
        (NEXT, "r", FIRST),
    ] * (ROWS + 1)
    assert broker.offsets.count(BEFORE) >= 2 * (ROWS + 1) // MOST
    assert broker.offsets == sorted(broker.offsets)
    first = next(at for at, message in enumerate(decoded(broker)) if message[0] == NEXT)
    later = decoded(broker)[first:]
    assert {topic for topic, _, (_, _, cause, _, _, _) in later if cause != "moved"} == {NEXT}


@pytest.mark.parametrize("nth", range(1, 8))
def test_a_plan_of_after_the_crash_does_not_change_a_move_that_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    broker, met = move(tmp_path, monkeypatch, Fault(FaultPoint.AFTER_PART, nth, "raise"), then=LAST)
    assert met
    final = rows(broker)
    assert (len(final[FIRST]), len(final[NEXT]), len(final[LAST])) == (0, 0, ROWS + 3)
    assert sum(topic == NEXT and message[0] == "r" for topic, _, message in decoded(broker)) == ROWS + 1
