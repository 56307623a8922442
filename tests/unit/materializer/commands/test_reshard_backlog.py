"""`state reshard` folds the backlog after the switch: a repair that lies in it is left out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.topics import partition_for
from cdc_common.settings import KafkaSettings
from materializer.commands.reshard import backlog
from materializer.commands.reshard.survey import RawTopic, Survey
from materializer.fold.repairs import read_repairs
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.position import Position
from stream_runtime.state.versions import NOTHING
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import REPAIR, WRITER, as_image, int_bytes, raw_record, repair_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from materializer.records import RawPartition, RawRecord

COUNT = 4
START_MS = 1_700_000_000_000
KEY = int_bytes(1)


def row(value: bytes, timestamp: int, ms: int) -> RawRecord:
    written = Row((int_bytes(5),), {"a": Cell(timestamp, value)}, LivenessInfo(timestamp))
    return raw_record(KEY, "row", written, offset=ms, timestamp_ms=START_MS + ms)


def of_repair(ms: int, record: RawRecord) -> RawRecord:
    return record._replace(timestamp_ms=START_MS + ms)


def fold_backlog(
    run: FoldRun, partitions: Sequence[Sequence[RawRecord]], monkeypatch: pytest.MonkeyPatch, messages_at_once: int = 2
) -> None:
    """The backlog of the target partition of KEY."""

    def read_raw(_settings: object, source: RawPartition, *_: Any) -> Sequence[RawRecord]:  # noqa: ANN401 - offsets
        return [record._replace(offset=offset) for offset, record in enumerate(partitions[source.partition])]

    monkeypatch.setattr(backlog, "read_raw", read_raw)
    position = Position(0, NOTHING, COUNT, "id", in_progress=(0, 100))
    topic = RawTopic("cdc.raw.shop.orders", "id", dict.fromkeys(range(COUNT), (0, 100)))
    survey = Survey(topic, COUNT, dict.fromkeys(range(COUNT), position), 0)
    target = partition_for(KEY, COUNT)
    found: dict[int, list[RawRecord]] = defaultdict(list)
    for chunk in backlog.read_backlog(KafkaSettings(), survey, ChunkSettings(2**30, messages_at_once, 1), {target}):
        run.chunk(*(stored.record for stored in chunk[target]))
        found[target] += [stored.record for stored in chunk[target]]
    assert found.keys() <= {target}


def test_a_repair_does_not_come_undone_when_the_backlog_is_folded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [
        row(b"too new", 10**17, 1),
        of_repair(2, repair_step(KEY, "running")),
        of_repair(3, as_image(row(b"image", 7, 3), repair=REPAIR)),
        of_repair(4, repair_step(KEY, "ended", flushed_to=100)),
        row(b"later", 8, 200),
    ]
    run = FoldRun(WRITER)
    fold_backlog(run, [messages, [], [], []], monkeypatch)
    once, changes = run.merged(), list(run.changes)
    fold_backlog(run, [messages, [], [], []], monkeypatch)  # after a crash
    assert (run.merged(), run.changes) == (once, changes)
    assert not list(read_repairs(run.state))


def test_an_image_that_a_slow_clock_puts_after_the_end_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher has learnt of the new partitions between both."""
    before = [
        row(b"x", 7, 1),
        of_repair(2, repair_step(KEY, "running")),
        of_repair(10_000, as_image(row(b"x", 7, 1), repair=REPAIR)),
    ]
    after = [of_repair(4, repair_step(KEY, "ended", flushed_to=100))]
    run = FoldRun(WRITER)
    fold_backlog(run, [[], before, after, []], monkeypatch)
    assert run.visible(KEY) == {(int_bytes(5),): {"a": b"x"}}


def test_an_end_after_the_backlog_is_of_no_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"hosts": (1, 2)}
    run = FoldRun(WRITER)
    begun = [row(b"x", 7, 1), of_repair(2, repair_step(KEY, "running", **both))]  # type: ignore[arg-type]
    fold_backlog(run, [begun, [], [], []], monkeypatch)
    for host, state in ((2, "running"), (1, "ended"), (2, "ended")):
        run.chunk(of_repair(3, repair_step(KEY, state, host=host, flushed_to=100, **both)))  # type: ignore[arg-type]
    assert run.visible(KEY) == {(int_bytes(5),): {"a": b"x"}}
    assert [repair.state for repair in read_repairs(run.state)] == ["open"]
