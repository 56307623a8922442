"""Sending merged partitions: what is recorded as sent is acknowledged, and from each such place the rest follows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.files.table_sstables import TableSSTables
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import WHOLE_RING
from cdc_common.messages import tables
from cdc_common.messages.raw import decode
from cdc_common.program.pace import Pace
from publisher.snapshot.rows import merged_table, sending
from publisher.snapshot.rows.merged_table import MergedTable
from publisher.snapshot.rows.messages import RowImages, SnapshotOrigin
from publisher.snapshot.rows.sending import PartitionSender, Progress
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import RawTopic
from tests.support.vectors import indexed_sstables

if TYPE_CHECKING:
    from cassandra_storage.formats.sstable.merge import MergePosition
    from cdc_native.formats.batches import Batch
    from publisher.inflight import PendingMessages
    from publisher.mutations.messages import OutgoingMessage
    from tests.support.vectors.indexed_sstables import IndexedVectors

NOW = 2_000_000_000
ORIGIN = SnapshotOrigin(UUID(int=7), b"h" * 16, 1)
BATCH = 7


class SlowKafka:
    """Acknowledges messages in order, a few at each poll. `sent`: (token, key, update) of each message."""

    def __init__(self, each_poll: int = 5) -> None:
        self.sent: list[tuple[int, bytes, bytes]] = []
        self.acknowledged = 0
        self._each_poll = each_poll
        self._waiting: list[PendingMessages] = []

    def send(self, unit: list[OutgoingMessage], pending: PendingMessages) -> int:
        pending.outstanding += len(unit)
        for outgoing in unit:
            self.sent.append((decorated_token(outgoing.partition_key), outgoing.partition_key, outgoing.message.update))
            self._waiting.append(pending)
        return sum(len(outgoing.message.update) for outgoing in unit)

    def send_batch(self, batch: Batch, pending: PendingMessages) -> None:
        pending.outstanding += len(batch)
        for index in range(len(batch)):
            _, key, value = batch.message(index)
            self.sent.append((decorated_token(key), key, decode(value).update))
            self._waiting.append(pending)

    def poll(self) -> None:
        for pending in self._waiting[: self._each_poll]:
            pending.acknowledge()
        self.acknowledged += len(self._waiting[: self._each_poll])
        del self._waiting[: self._each_poll]

    wait = poll


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


@pytest.fixture(autouse=True, params=["python", "core"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small batches, by the Python code or by the core."""
    monkeypatch.setattr(sending, "BATCH_UNITS", BATCH)
    monkeypatch.setattr(merged_table, "BATCH_BYTES", 3000)
    monkeypatch.setenv("CDC_NATIVE", "1" if request.param == "core" else "0")
    return str(request.param)


def run(vectors: IndexedVectors, kafka: SlowKafka, after: MergePosition | None = None) -> list[tuple[Progress, int]]:
    """The progress as reported each time, and how many messages were acknowledged then."""
    reported: list[tuple[Progress, int]] = []

    def report(progress: Progress) -> None:
        copy = Progress(progress.place, progress.rows, progress.bytes, progress.partitions)
        reported.append((copy, kafka.acknowledged))

    table = PublishedTable(vectors.table, vectors.table.id.bytes, tables.digest(tables.canonical(vectors.table)))
    sstables = TableSSTables(vectors.table, vectors.files())
    images = RowImages(table, ORIGIN)
    sender = PartitionSender(images, kafka, Pace(0, lambda: None), report, after)
    merged = MergedTable(sstables, sstables.purger(NOW), WHOLE_RING)
    merged.send(sender, images, RawTopic(table, "topic", 1, 1), ORIGIN)
    reported.append((sender.progress, kafka.acknowledged))
    return reported


def test_from_each_recorded_place_the_rest_follows(vectors: IndexedVectors, way: str) -> None:
    kafka = SlowKafka()
    reported = run(vectors, kafka)
    whole = kafka.sent
    assert kafka.acknowledged == len(whole)
    last = reported[-1][0]
    assert last.rows == len(whole)
    updates = sum(len(update) for _, _, update in whole)
    assert last.bytes == updates if way == "python" else last.bytes > updates  # there of whole messages
    assert last.partitions == len({key for _, key, _ in whole})
    inside = [progress for progress, _ in reported if progress.place is not None and progress.place.clustering]
    between = [progress for progress, _ in reported if progress.place is not None and not progress.place.clustering]
    assert inside
    assert between
    for progress in (*inside[:: max(1, len(inside) // 12)], *between[:: max(1, len(between) // 12)]):
        again = SlowKafka(1000)
        run(vectors, again, progress.place)
        assert again.sent == whole[progress.rows :]


def test_a_place_is_recorded_once_all_before_it_is_acknowledged(vectors: IndexedVectors) -> None:
    reported = run(vectors, SlowKafka(3))
    assert all(progress.rows <= acknowledged for progress, acknowledged in reported)
    assert any(acknowledged - progress.rows < BATCH for progress, acknowledged in reported[:-1] if progress.rows)
    assert all(before.rows <= after.rows for (before, _), (after, _) in pairwise(reported))


def test_a_pace_is_held_and_orders_are_heard_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, heard = [100.0], []
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    pace = Pace(1000.0, lambda: heard.append(clock[0]))
    for _ in range(20):
        pace.wait(500)
    assert clock[0] - 100.0 == pytest.approx(10.0)
    assert len(heard) >= 40
    clock[0] += 60.0  # nothing is saved up but a second
    for _ in range(4):
        pace.wait(500)
    assert clock[0] - 170.0 == pytest.approx(1.0)


def test_a_busy_node_gets_a_share_of_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shares = [100.0], [1.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    pace = Pace(1000.0, lambda: None, lambda: shares[0])
    pace.wait(1000)
    assert clock[0] == pytest.approx(101.0)
    assert pace.at_once(1 << 18) == 100
    shares[0] = 0.25
    pace.wait(1000)
    assert clock[0] == pytest.approx(105.0)
    assert pace.at_once(1 << 18) == 25
    shares[0] = 1.0
    pace.wait(1000)
    assert clock[0] == pytest.approx(106.0)


def test_a_slow_pace_makes_small_batches() -> None:
    assert [Pace(rate, lambda: None).at_once(1 << 18) for rate in (0, 1, 1000, 1 << 20, 1 << 30)] == [
        1 << 18, 1, 100, 104_858, 1 << 18
    ]  # fmt: skip
