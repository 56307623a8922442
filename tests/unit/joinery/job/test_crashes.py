"""A task that joins fails at each fault point, with its state in RocksDB: the same messages come out.

The internal topic has transactions, so its offsets have gaps. Transactions have room for a few joined rows only.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cdc_common.errors.codes import CdcError, Code
from joinery.internal.codec import encode
from joinery.job.join_processor import JoinProcessor
from joinery.planning.joined_schema import value_schema
from joinery.records import Stage
from joinery.routing.route import route
from joinery.routing.rows import RowCutter
from stream_runtime import fault_points
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import TaskSettings
from stream_runtime.fault_points import Fault, InjectedFaultError
from stream_runtime.records import Record, TopicShape
from tests.support.joinery import tables
from tests.support.joinery.changelogs import mark_of
from tests.support.joinery.scene import random_rows
from tests.support.joinery.tables import envelope, plan_of
from tests.support.materializer.memory_broker import PARTITION, MemoryBroker
from tests.support.materializer.memory_task import POINTS, open_task

if TYPE_CHECKING:
    from pathlib import Path

    from joinery.joining.records import Routed
    from stream_runtime.fault_points import FaultPoint
    from stream_runtime.records import Message

SHAPE = TopicShape(1, "id")
LEFT = {"o": {"namespace": "shop", "source": "orders"}, "u": {"namespace": "shop", "source": "users", "optional": True}}
STAGE = Stage(plan_of(input=LEFT), {}, "internal", SHAPE, "joined", 1, 2)
VALUE = value_schema(STAGE.plan)
SETTINGS = TaskSettings(ChunkSettings(1 << 20, 7, 60.0), has_gaps=True)


class Sent(NamedTuple):
    """A message without the time at which it was made."""

    key: bytes
    value: bytes | None


def internal_topic(count: int) -> list[Record]:
    """The messages of random changes. Every other offset is a marker's."""
    cutters = [
        RowCutter(STAGE.plan, number, tables.value_schema(table, tables.TABLES[table][0]))
        for number, table in enumerate(("orders", "users"))
    ]
    rows: dict[tuple[str, int], dict[str, object]] = {}
    made: list[Routed] = []
    for number, (table, columns, is_delete) in enumerate(random_rows(Random(7), count)):
        before, after = rows.pop((table, columns["id"]), None), None if is_delete else columns
        if after is not None:
            rows[table, columns["id"]] = after
        if before is None and after is None:
            continue
        of = 0 if table == "orders" else 1
        value = tables.encode(tables.value_schema(table, tables.TABLES[table][0]), envelope(before, after, number))
        made += route(cutters[of].change(value, 0, number))
    for of in (0, 1):  # joined rows are sent in the middle
        made.insert(len(made) * (1 + of) // 4, mark_of(of, 0, partitions=1))
    return [Record(*encode(routed), 1 + 2 * at, 0) for at, routed in enumerate(made)]


def run(folder: Path, records: list[Record], fault: Fault | None, monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """Join all records, with a new task after the failure."""
    fault_points.reached.clear()
    monkeypatch.setattr(fault_points, "armed", fault)
    broker, processor = MemoryBroker(), JoinProcessor(STAGE, PARTITION, most_bytes=60)
    while True:
        task = open_task(broker, folder, SETTINGS)
        try:
            task.process(records, processor)
        except InjectedFaultError:
            continue
        finally:
            task.close()
        return list(map(_without_time, broker.messages))


def _without_time(message: Message) -> Sent:
    assert (message.topic, message.partition) == ("joined", 0)
    if message.value is None:
        return Sent(message.key, None)
    value = tables.decode(VALUE, message.value[5:])
    return Sent(message.key, tables.encode(VALUE, {**value, "ts_ms": None}))


@pytest.mark.parametrize("nth", [1, 9])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_failure_changes_nothing(
    point: FaultPoint, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = internal_topic(60)
    expected = run(tmp_path / "whole", records, None, monkeypatch)
    assert len(expected) > len(records) / 3
    assert run(tmp_path / "failing", records, Fault(point, nth, "raise"), monkeypatch) == expected
    assert fault_points.reached[point] >= nth


def test_a_message_that_is_no_message_of_a_join_stops_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = internal_topic(20)
    bad = Record(b"key", b"\x02", records[-1].offset + 1, 0)
    expected = run(tmp_path / "whole", records, None, monkeypatch)
    broker, processor = MemoryBroker(), JoinProcessor(STAGE, PARTITION, most_bytes=1 << 20)
    task = open_task(broker, tmp_path / "bad", SETTINGS)
    with pytest.raises(CdcError) as caught:
        task.process([*records, bad], processor)
    task.close()
    assert caught.value.code is Code.JOIN_MESSAGE
    assert f"at offset {bad.offset} of raw-0: it is not a message of the internal topic" in caught.value.problem
    assert list(map(_without_time, broker.messages)) == expected
