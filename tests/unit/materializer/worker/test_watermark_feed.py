"""Watermarks become heartbeats of raw partitions: never before a message that they speak of, and only where they have
work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import raw, watermarks
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.watermarks import TableWatermark, Watermark
from materializer.planning.plan import TableSchema, TopicPlan
from materializer.records import RawPartition, RawRecord
from materializer.worker import watermark_feed
from materializer.worker.backlog import RawBacklog
from materializer.worker.watermark_feed import WatermarkFeed
from stream_runtime.exactly_once.report import Report, StateReport
from stream_runtime.kafka.raw_reader import Read
from stream_runtime.records import Rest, WatermarkRecord
from tests.support.materializer.mutants import Mutant, seed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

WAIT = 60.0
TOPIC = "cdc.raw.ks.t"
PARTITIONS = [RawPartition(TOPIC, number) for number in range(3)]
A, B, C = PARTITIONS
TABLE = bytes(15) + b"t"
PLANS = {TOPIC: TopicPlan(3, (TableSchema(TABLE, bytes(16), b"{}"),), (None,), forms=EXACT)}
KNOWN = frozenset(crc32(bytes([host]) * 16) for host in range(4))
RESTING = Rest(None, None, KNOWN, 0)
MUTANTS = [
    Mutant(
        "the end is asked for before the watermark is read",
        WatermarkFeed.feed,
        "self._ends.ends(wanted)",
        "self._ends.earlier_ends(wanted)",
    ),
    Mutant("a heartbeat does not wait for the end", WatermarkFeed._give, ">= end", ">= 0"),
]


class FakeKafka:
    """Reader and admin client: raw partitions with their ends, and how far they were read."""

    def __init__(self) -> None:
        self.end = dict.fromkeys(PARTITIONS, 0)
        self.read = dict.fromkeys(PARTITIONS, 0)
        self.asked: list[set[RawPartition]] = []
        self.whole: list[RawPartition] = []
        self.known = dict.fromkeys(PARTITIONS, 0)
        self.trouble: CdcError | None = None

    def add_whole(self, partition: RawPartition) -> None:
        self.whole.append(partition)

    def remove(self, partitions: Iterable[RawPartition]) -> None:
        for partition in partitions:
            self.whole.remove(partition)

    def next_offset(self, partition: RawPartition) -> int:
        return self.read[partition]

    def ends(self, partitions: Collection[RawPartition]) -> dict[RawPartition, int]:
        self.asked.append(set(partitions))
        if self.trouble is not None:
            raise self.trouble
        return {partition: self.end[partition] for partition in partitions}

    def earlier_ends(self, partitions: Collection[RawPartition]) -> dict[RawPartition, int]:
        """A mutant's: the ends of the last time when they were asked for."""
        earlier, self.known = self.known, dict(self.end)
        return {partition: earlier[partition] for partition in partitions}


class Scene:
    """A worker's backlog and feed. rest: of each raw partition."""

    def __init__(self, rest: Rest | None = RESTING, *, is_new: bool = False) -> None:
        self.kafka = FakeKafka()
        self.backlog = RawBacklog(WAIT, 1000)
        for partition in PARTITIONS:
            self.backlog.add(partition, 0.0, rest, is_new=is_new)
        self.feed = WatermarkFeed(self.backlog, self.kafka, self.kafka, [bytes([9]) * 16])
        self.feed.open("cdc.watermarks")
        self.sent = 0

    def watermark(self, clock: int = 1, host: int = 0, ms: int = 1000) -> None:
        """The worker reads a watermark."""
        said = Watermark(bytes([host]) * 16, clock, 0, 0, {TABLE: TableWatermark(bytes(16), clock)})
        [(key, value)] = watermarks.encode(said)
        place = self.kafka.whole[0]
        self.feed.take(Read({place: [RawRecord(key, value, self.sent, ms)]}, set(), {}))
        self.sent += 1

    def write(self, partition: RawPartition) -> None:
        """A message comes into a raw partition."""
        self.kafka.end[partition] += 1

    def poll(self, partition: RawPartition) -> None:
        """The worker reads one message of a raw partition."""
        offset = self.kafka.read[partition]
        if offset < self.kafka.end[partition]:
            self.kafka.read[partition] += 1
            self.backlog.append(partition, [RawRecord(b"k", b"v", offset, 1)])

    def clocks(self, partition: RawPartition) -> list[int]:
        """The clocks of the heartbeats that wait in a raw partition's backlog."""
        records = self.backlog.first_records(partition, 1000)
        return [raw.decode(record.value).clock for record in records if type(record) is WatermarkRecord]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(watermark_feed, "_PAUSE_SECONDS", 0.0)
        patch.setattr(watermark_feed, "_REST_FACTOR", 0.0)
        yield


def test_a_raw_partition_at_rest_gets_no_heartbeat_and_its_end_is_not_asked_for() -> None:
    scene = Scene()
    scene.watermark()
    scene.feed.feed(PLANS)
    assert (scene.kafka.asked, scene.clocks(A)) == ([], [])


def test_one_of_which_nothing_is_known_gets_it_once() -> None:
    scene = Scene(rest=None)
    scene.watermark(clock=5)
    for _ in range(3):
        scene.feed.feed(PLANS)
    assert scene.kafka.asked == [{A, B, C}]
    assert [scene.clocks(partition) for partition in PARTITIONS] == [[5]] * 3
    assert scene.backlog.ready_idle(0.0) == PARTITIONS


def test_one_that_has_never_had_a_message_sleeps_until_it_has_one() -> None:
    scene = Scene(rest=None, is_new=True)
    scene.watermark()
    scene.feed.feed(PLANS)
    assert scene.kafka.asked == []
    scene.write(A)
    scene.poll(A)
    scene.backlog.mark_folded(
        A, scene.backlog.first_records(A, 1), Report(0, 1, 1, 1, 1, 0.0, state=StateReport(versions=1, busy=True)), 0.0
    )
    scene.feed.look_again()
    scene.feed.feed(PLANS)
    assert (scene.kafka.asked, scene.clocks(A)) == ([{A}], [1])


@pytest.mark.parametrize(
    ("rest", "is_fed"),
    [
        (RESTING._replace(due_ms=1000), True),
        (RESTING._replace(due_ms=1001), False),
        (RESTING._replace(hosts=frozenset()), True),
    ],
)
def test_one_is_fed_when_it_is_due_or_a_host_is_new_to_it(rest: Rest, *, is_fed: bool) -> None:
    scene = Scene(rest)
    scene.watermark(ms=1000)
    scene.feed.feed(PLANS)
    assert bool(scene.clocks(A)) == is_fed


def test_what_may_be_purged_waits_for_its_turn() -> None:
    scene = Scene(RESTING._replace(purge_ms=1000))
    scene.watermark(ms=1000)
    heartbeats = scene.feed._watermarks.of_tables([TABLE])
    assert not scene.backlog.new_heartbeats(A, heartbeats, WAIT / 2)
    assert scene.backlog.new_heartbeats(A, heartbeats, WAIT)


def test_a_heartbeat_waits_for_the_messages_before_the_end() -> None:
    scene = Scene(rest=None)
    scene.write(A)
    scene.write(A)
    scene.watermark()
    scene.poll(A)
    scene.feed.feed(PLANS)
    assert (scene.clocks(A), scene.clocks(B)) == ([], [1])
    scene.poll(A)
    scene.feed.feed(PLANS)
    assert [record.offset for record in scene.backlog.first_records(A, 10)] == [0, 1, 2]
    assert scene.clocks(A) == [1]


def test_the_newest_watermark_of_each_host_counts_and_forgotten_hosts_do_not() -> None:
    scene = Scene(rest=None)
    for host, clock in ((1, 10), (2, 20), (1, 30), (9, 40)):
        scene.watermark(clock, host)
    scene.feed.feed(PLANS)
    assert scene.clocks(A) == [20, 30]


def test_a_failure_to_ask_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermark_feed, "_RETRY_SECONDS", 0.0)
    scene = Scene(rest=None)
    scene.watermark()
    scene.kafka.trouble = CdcError(Code.KAFKA_UNREACHABLE, "away", "wait")
    scene.feed.feed(PLANS)
    assert scene.clocks(A) == []
    scene.kafka.trouble = None
    scene.feed.feed(PLANS)
    assert scene.clocks(A) == [1]


def test_a_topic_that_cannot_be_read_is_opened_again() -> None:
    scene = Scene()
    place = scene.kafka.whole[0]
    scene.feed.take(Read({}, set(), {place: CdcError(Code.KAFKA_REFUSED, "no", "grant")}))
    assert scene.kafka.whole == []
    scene.feed.open("cdc.watermarks")
    lost = Read({}, {place}, {})
    scene.feed.take(lost)
    assert (scene.kafka.whole, lost.lost) == ([], set())


def test_an_unreadable_watermark_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(rest=None)
    place = scene.kafka.whole[0]
    scene.feed.take(Read({place: [RawRecord(b"k", b"{}", 0, 1)] * 2}, set(), {}))
    scene.watermark()
    scene.feed.feed(PLANS)
    assert scene.clocks(A) == [1]
    assert capsys.readouterr().out.count("watermark not read") == 1


class Step(NamedTuple):
    """publish: a host sends a message to the partition; say: it sends a watermark; hear: the worker reads the next
    watermark; poll: the worker reads a message of the partition; feed.
    """

    act: str
    partition: int


STEPS = st.lists(
    st.builds(Step, st.sampled_from(["publish", "say", "hear", "poll", "feed", "feed"]), st.integers(0, 2)), max_size=40
)


def never_too_early(steps: list[Step]) -> None:
    """The clock of a watermark is the number of messages that were acknowledged before it. Whatever comes in whichever
    order: a heartbeat lies after all of them in the backlog of each raw partition.
    """
    scene = Scene(rest=None)
    acknowledged: list[tuple[RawPartition, int]] = []
    said: list[int] = []
    for act, number in [*steps, *[Step("feed", 0)] * 2]:
        partition = PARTITIONS[number]
        if act == "publish":
            acknowledged.append((partition, scene.kafka.end[partition]))
            scene.write(partition)
        elif act == "say":
            said.append(len(acknowledged))
        elif act == "hear" and said:
            scene.watermark(clock=said.pop(0))
        elif act == "poll":
            scene.poll(partition)
        elif act == "feed":
            scene.feed.feed(PLANS)
    for partition in PARTITIONS:
        read = set()
        for record in scene.backlog.first_records(partition, 1000):
            if type(record) is not WatermarkRecord:
                read.add((partition, record.offset))
                continue
            before = acknowledged[: raw.decode(record.value).clock]
            assert {place for place in before if place[0] == partition} <= read


@given(STEPS)
def test_no_heartbeat_passes_a_message_that_its_watermark_speaks_of(steps: list[Step]) -> None:
    never_too_early(steps)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_heartbeat_that_comes_too_early_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Step(act, 0) for act in ("publish", "say", "hear", "feed")]
    never_too_early(steps)
    seed(mutant, monkeypatch)
    with pytest.raises(AssertionError):
        never_too_early(steps)
