"""Each message is in one object of one committed signal, whatever fails, whenever."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from stream_runtime.records import SourcePartition
from tests.support.stream_runtime.sqlite_commits import FencedError
from tests.support.warehouse.scene import TOPIC, Shop
from tests.support.warehouse.writer_scene import Writer
from warehouse.fault_points import WriterPoint
from warehouse.targets.objects import OWN, read_object
from warehouse.writing.batch_task import IntentTakenError

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = SourcePartition(TOPIC, 1)
"""The partition of odd keys."""


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def writer(shop: Shop, tmp_path: Path) -> Writer:
    return Writer(shop.topic, tmp_path)


@pytest.fixture(autouse=True)
def _no_fault() -> Iterator[None]:
    yield
    fault_points.armed = None


def rows_of(writer: Writer) -> list[dict[str, Any]]:
    """The rows of all signals, in the order of partitions and offsets. Each object has what its signal says."""
    found: list[dict[str, Any]] = []
    for partition in range(writer.topic.shape.partitions):
        end = None
        for signal in writer.signals(partition):
            assert end is None or signal.start == end, "ranges follow each other"
            assert signal.end > signal.start
            end = signal.end
            made: list[dict[str, Any]] = []
            for stored in signal.objects:
                data = Path(stored.uri.removeprefix("file://")).read_bytes()
                assert len(data) == stored.bytes
                rows = read_object(data, signal.dialect, [*(name for name, _ in OWN), *stored.fields]).to_pylist()
                assert len(rows) == stored.rows
                made += rows
            offsets = [row["_offset"] for row in made]
            assert len(set(offsets)) == len(offsets)
            assert all(signal.start <= offset < signal.end for offset in offsets)
            found += sorted(made, key=lambda row: int(row["_offset"]))
        assert end in {None, writer.topic.ends[partition]}
    return found


def check(shop: Shop, writer: Writer) -> None:
    """All changes are there, once each, with their operations."""
    found = [(row["_partition"], row["_offset"], row["_op"], row["_sequence"], row["id"]) for row in rows_of(writer)]
    assert found == [
        (partition, offset, sent.op, sent.sequence, None if sent.op == "d" else sent.key)
        for partition, messages in enumerate(shop.sent)
        for offset, sent in enumerate(messages)
        if sent is not None
    ]


def fill(shop: Shop, first: int = 0) -> None:
    for number in range(first, first + 12):
        shop.put(number % 5, 10 + number % 2, name=f"Ada {number}", **({"qty": number} if number % 2 else {}))
    shop.delete(first % 5, 11)


def fail_at(writer: Writer, point: WriterPoint, nth: int = 1) -> None:
    fault_points.reached.clear()
    fault_points.armed = Fault(point, nth, "raise")
    try:
        writer.run(4)
    except InjectedFaultError:
        pass
    finally:
        fault_points.armed = None


@pytest.mark.parametrize("point", WriterPoint)
@pytest.mark.parametrize("nth", [1, 3])
def test_a_task_that_fails_at_a_point(shop: Shop, writer: Writer, point: WriterPoint, nth: int) -> None:
    fill(shop)
    if point is WriterPoint.BATCH_INTENT_READ:
        fail_at(writer, WriterPoint.OBJECT_STORED)
    fail_at(writer, point, nth)
    fill(shop, 12)
    writer.run(5)
    check(shop, writer)
    names = [path.name for path in (writer.folder / "objects" / "job" / "_intents").rglob("*") if path.is_file()]
    assert names == [], "intents of finished batches are deleted"


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 4), st.sampled_from([10, 11])),
    st.tuples(st.just("delete"), st.integers(0, 4), st.just(11)),
    st.tuples(st.just("run"), st.integers(1, 9), st.just(0)),
    st.tuples(st.just("fail"), st.sampled_from(WriterPoint), st.integers(1, 3)),
    st.tuples(st.just("race"), st.integers(1, 9), st.integers(1, 9)),
)


@given(steps=st.lists(STEPS, max_size=25))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_any_messages_and_failures(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any, Any]]) -> None:
    shop = Shop()
    writer = Writer(shop.topic, tmp_path_factory.mktemp("writer"))
    for act, value, other in steps:
        match act:
            case "put":
                shop.put(value, other, name="Ada")
            case "delete":
                shop.delete(value, other)
            case "run":
                writer.run(value)
            case "fail":
                fail_at(writer, value, other)
            case _:
                race(writer, value, other)
    writer.run(7)
    check(shop, writer)


def race(writer: Writer, first: int, second: int) -> None:
    """An older task goes on after a newer one has opened the partition. It commits nothing."""
    old = writer.open(FIRST)
    writer.take(old, FIRST, first)
    new = writer.open(FIRST)
    writer.take(new, FIRST, second)
    for task in (old, new):
        with suppress(FencedError, IntentTakenError):
            task.commit_due()
    old.close()
    new.close()


def test_the_second_of_two_tasks_adopts_the_intent(shop: Shop, writer: Writer) -> None:
    fill(shop)
    fault_points.reached.clear()
    old, new = writer.open(FIRST), writer.open(FIRST)
    writer.take(old, FIRST, 3)
    writer.take(new, FIRST, 5)
    fault_points.armed = Fault(WriterPoint.SIGNAL_SENT, 1, "raise")
    with pytest.raises(InjectedFaultError):
        old.commit_due()
    fault_points.armed = None
    with pytest.raises(IntentTakenError):
        new.commit_due()
    new.close()
    writer.run()
    check(shop, writer)
    assert writer.signals(1)[0].end == 3, "the batch is that of the first intent"


def test_a_batch_ends_at_a_new_schema(shop: Shop, writer: Writer) -> None:
    """Alternating schemas share batches, with an object each."""
    writer.settings = writer.settings._replace(seconds=10.0**9, rows=6)
    for schema_id in (10, 10, 11, 10, 11, 10, 11, 10, 11):
        shop.put(1, schema_id, name="Ada")
    writer.run(1)
    found = [(signal.start, signal.end, [one.schema_id for one in signal.objects]) for signal in writer.signals(1)]
    assert found == [(0, 3, [10, 11]), (3, 9, [10, 11])]


def test_compaction_removes_messages_of_an_open_batch(shop: Shop, writer: Writer) -> None:
    for _ in range(3):
        shop.put(1, 10, name="Ada")
    fail_at(writer, WriterPoint.BATCH_INTENT_STORED)
    shop.topic.compact()
    writer.run()
    [signal] = writer.signals(1)
    assert (signal.start, signal.end, signal.rows) == (0, 3, 1)
    for _ in range(2):
        shop.put(1, 10, name="Ada")
    fail_at(writer, WriterPoint.OBJECT_STORED)
    shop.topic.compact()
    writer.run()
    assert [(one.start, one.end, one.rows) for one in writer.signals(1)] == [(0, 3, 1), (3, 5, 2)], "it was stored"


def test_markers_move_the_offset_by_a_signal_without_objects(shop: Shop, writer: Writer) -> None:
    shop.put(1, 10, name="Ada")
    writer.run()
    task = writer.open(FIRST)
    task.take(None, 2)
    assert task.commit_due() is None, "not yet"
    task.close()
    writer.settings = writer.settings._replace(idle_seconds=-1.0)
    task = writer.open(FIRST)
    task.take(None, 2)
    assert task.commit_due() is not None
    task.close()
    assert [(one.start, one.end, len(one.objects)) for one in writer.signals(1)] == [(0, 1, 1), (1, 2, 0)]


def test_an_offset_that_would_expire_is_committed_again(shop: Shop, writer: Writer) -> None:
    shop.put(1, 10, name="Ada")
    writer.run()
    writer.settings = writer.settings._replace(refresh_seconds=-1.0)
    task = writer.open(FIRST)
    assert task.commit_due() is None
    task.close()
    assert len(writer.signals(1)) == 1
    assert writer.open(FIRST).offset == 1


@pytest.mark.parametrize("offset", [0, 1, None], ids=str)
def test_an_offset_that_somebody_has_changed(shop: Shop, writer: Writer, offset: int | None) -> None:
    fill(shop)
    writer.run()
    writer.set_offset(1, offset)
    with pytest.raises(CdcError) as caught:
        writer.open(FIRST)
    assert caught.value.code is Code.WAREHOUSE_BATCH
    assert "last signal ends at" in caught.value.problem


def test_an_intent_that_is_damaged(shop: Shop, writer: Writer) -> None:
    fill(shop)
    fail_at(writer, WriterPoint.BATCH_INTENT_STORED)
    [intent] = [path for path in (writer.folder / "objects" / "job" / "_intents").rglob("*") if path.is_file()]
    intent.write_text("{}")
    with pytest.raises(CdcError, match="is damaged") as caught:
        writer.run()
    assert caught.value.code is Code.WAREHOUSE_BATCH


def test_a_value_that_the_warehouse_cannot_hold(shop: Shop, writer: Writer) -> None:
    """A text of Redshift has 65,535 bytes. The partition stops before it stores anything, or the value becomes null."""
    shop.put(1, 11, name="é" * 32_768, qty=1)
    with pytest.raises(CdcError, match="more than 65,535 bytes") as caught:
        writer.run()
    assert caught.value.code is Code.WAREHOUSE_VALUE
    assert not list((writer.folder / "objects").rglob("*.parquet"))
    writer.nulls_refused = True
    writer.run()
    [row] = rows_of(writer)
    assert (row["name"], row["qty"]) == (None, 1)
