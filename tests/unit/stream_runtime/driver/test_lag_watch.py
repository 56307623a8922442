"""How far raw partitions are behind, and how long Kafka keeps what they have not read."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from cdc_common.errors.codes import CdcError, Code
from materializer.records import RawPartition
from stream_runtime.driver.lag_watch import Lag, LagWatch
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import Retention
from stream_runtime.records import Share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1_800_000_000.0
HOUR = 3600
NEAR, FAR, FRESH, NEW = (RawPartition("cdc.raw.ks.a", number) for number in range(4))
LOST, STOPPED, EMPTY = (RawPartition("cdc.raw.ks.kept", number) for number in range(3))
FOREIGN = RawPartition("cdc.raw.ks.a", 4)


class FakeKafka:
    """Each raw partition has the offsets [100, 200); at 150 its messages are two minutes old."""

    def __init__(self) -> None:
        self.offsets = {NEAR: 110, FAR: 120, FRESH: 160, LOST: 90, STOPPED: 199, EMPTY: 200}
        self.asked: list[set[RawPartition]] = []
        self.error: Exception | None = None
        self.has_ended = threading.Event()

    def positions(self, raw_partitions: Sequence[RawPartition]) -> dict[RawPartition, Position | CdcError | None]:
        if self.error is not None:
            self.has_ended.set()
            raise self.error
        found: dict[RawPartition, Position | CdcError | None] = {
            partition: Position(self.offsets[partition], "v", 1) if partition in self.offsets else None
            for partition in raw_partitions
        }
        found[FOREIGN] = CdcError(Code.STATE_MISMATCH, "It is foreign.", "None.")
        return found

    def bounds(self, raw_partitions: Sequence[RawPartition]) -> dict[RawPartition, tuple[int, int]]:
        return {partition: (0, 0) if partition == NEW else (100, 200) for partition in raw_partitions}

    def offsets_at(self, raw_partitions: Sequence[RawPartition], timestamp_ms: int) -> dict[RawPartition, int]:
        assert timestamp_ms == (NOW - 120) * 1000
        return {partition: -1 if partition == EMPTY else 150 for partition in raw_partitions}

    def retention(self, topic: str) -> Retention:
        return Retention(None if topic.endswith("kept") else 14 * 24 * HOUR * 1000, has_max_bytes=False)

    def timestamps(self, offsets: Mapping[RawPartition, int]) -> dict[RawPartition, int]:
        """Messages are an hour old, except those of FAR, which are old enough to be deleted soon."""
        self.asked.append(set(offsets))
        return {
            partition: int(NOW - (HOUR if partition != FAR else (14 * 24 - 3) * HOUR)) * 1000 for partition in offsets
        }


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> FakeKafka:
    monkeypatch.setattr("stream_runtime.driver.lag_watch.time.time", lambda: NOW)
    return FakeKafka()


def watch_of(kafka: FakeKafka) -> LagWatch:
    asked: Any = kafka
    return LagWatch(lambda _reader: asked, lambda: [Share.of(STOPPED), Share.of(LOST)])


def test_a_round(kafka: FakeKafka) -> None:
    watch = watch_of(kafka)
    watch.measure()
    assert watch.latest == {}
    watch.set_shares([Share.of(partition) for partition in (NEAR, FAR, FRESH, NEW, LOST, STOPPED, EMPTY, FOREIGN)])
    watch.measure()
    assert kafka.asked == [{NEAR, FAR, STOPPED}]  # and of no other is a message fetched
    assert watch.latest[Share.of(NEAR)] == Lag(110, 90, NOW + (14 * 24 - 1) * HOUR, since=NOW - HOUR)
    assert watch.latest[Share.of(FAR)].seconds_left(NOW) == 3 * HOUR
    assert watch.latest[Share.of(FAR)].seconds_left(NOW + 4 * HOUR) == 0
    assert watch.latest[Share.of(FRESH)] == Lag(160, 40)
    assert watch.latest[Share.of(NEW)] == Lag(0, 0)
    assert watch.latest[Share.of(LOST)] == Lag(90, 110, is_lost=True)
    assert watch.latest[Share.of(LOST)].seconds_left(NOW) == 0
    assert watch.latest[Share.of(STOPPED)] == Lag(199, 1, math.inf, since=NOW - HOUR)
    assert watch.latest[Share.of(EMPTY)] == Lag(200, 0)
    assert watch.latest[Share.of(FOREIGN)] == Lag(None, 100)
    assert watch.measured_at == NOW


def test_a_share_of_several_partitions_has_their_lags_together(kafka: FakeKafka) -> None:
    watch = watch_of(kafka)
    share = Share("a join", (NEAR, FAR, FRESH), "a join-0")
    watch.set_shares([share])
    watch.measure()
    lags = dict(zip(share.partitions, (Lag(110, 90), Lag(120, 80), Lag(160, 40)), strict=True))
    found = watch.latest[share]
    assert found.messages == sum(lag.messages for lag in lags.values())
    assert (found.offset, found.seconds_left(NOW)) == (None, 3 * HOUR)


def test_each_reader_has_the_offsets_of_its_own_group(kafka: FakeKafka) -> None:
    readers: list[str] = []
    one, other = (Share(f"{reader}/{NEAR.topic}", (NEAR,), str(NEAR), reader) for reader in ("one", "other"))

    def connect(reader: str) -> Any:  # noqa: ANN401 - in the place of an UnreadKafka
        readers.append(reader)
        return kafka

    watch = LagWatch(connect, list)
    watch.set_shares([one, other])
    watch.measure()
    watch.measure()
    assert readers == ["one", "other"]
    assert watch.latest.keys() == {one, other}


@pytest.mark.parametrize("error", [CdcError(Code.KAFKA_UNREACHABLE, "No.", "Wait."), KeyError("a row's value")])
def test_a_round_that_fails_is_logged_and_the_figures_stay(kafka: FakeKafka, error: Exception) -> None:
    watch = watch_of(kafka)
    watch.set_shares([Share.of(NEAR)])
    watch.measure()
    kafka.error = error
    with structlog.testing.capture_logs() as logged, watch:
        assert kafka.has_ended.wait(10)
        deadline = time.monotonic() + 10
        while not logged and time.monotonic() < deadline:
            threading.Event().wait(0.01)
    assert [entry["event"] for entry in logged][:1] == ["lag not measured"]
    assert "value" not in str(logged)
    assert watch.latest[Share.of(NEAR)].messages == 90
