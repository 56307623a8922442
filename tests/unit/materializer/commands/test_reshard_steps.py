"""`state reshard` with Kafka in memory: a crash at any step, any number of times, in random runs."""

from __future__ import annotations

import os
import pickle
import random
from collections import defaultdict
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from fastavro import schemaless_reader

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import wire
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import value_schema
from cdc_common.messages.tables import message_key, to_json
from cdc_common.messages.topics import partition_for
from cdc_common.settings import KafkaSettings
from materializer.commands.reshard.reshard import Reshard
from materializer.fault_points import ReshardPoint
from materializer.planning.plan import ChangeTopic, TableSchema, TopicPlan
from materializer.records import RawPartition
from materializer.settings import MaterializerSettings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint, InjectedFaultError
from tests.support.materializer.memory_kafka import MemoryKafka
from tests.support.materializer.raw_builder import TABLE, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from materializer.commands.reshard.tasks import Tasks
    from stream_runtime.fault_points import Point

T = TypeVar("T")
R = TypeVar("R")
SEEDS = range(int(os.environ.get("RESHARD_SEEDS", "3")))
IN_TASKS = (
    FaultPoint.AFTER_COMMIT,
    FaultPoint.IN_WRITE,
    ReshardPoint.AFTER_MARK,
    ReshardPoint.IN_REDISTRIBUTION,
    ReshardPoint.IN_FOLD,
    ReshardPoint.IN_BACKLOG,
)
KEYS = 20
TOPIC = "cdc.raw.shop.orders"
VALUE = value_schema(TABLE, "cdc", EXACT)


class DistantTasks:
    """Runs tasks as Spark does: work, items and results are pickled, tasks run in any order, and one that dies is run
    again. So are some that do not. `deaths`: how many tasks have died.
    """

    is_here = False

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.deaths = 0

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        found = {
            number: self._run(work, items[number]) for number in self._chance.sample(range(len(items)), len(items))
        }
        return (result for _, result in sorted(found.items()))

    def groups(self, items: Sequence[T]) -> list[Sequence[T]]:
        return [items[number::2] for number in range(min(2, len(items)))]

    def _run(self, work: Callable[[T], R], item: T) -> R:
        pickled = pickle.dumps((work, item))
        while True:
            here, there = pickle.loads(pickled)  # noqa: S301 - made here
            try:
                result: R = pickle.loads(pickle.dumps(here(there)))  # noqa: S301
            except InjectedFaultError:
                self.deaths += 1
            else:
                if self._chance.random() < 0.8:  # otherwise its result is lost
                    return result


class Run:
    """A table's writes to a raw topic; each is a change. `expected` holds the changes of each row."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, chance: random.Random) -> None:
        self.chance = chance
        self.patch = patch
        self.partitions = chance.randint(1, 3)
        self.kafka = MemoryKafka(TOPIC, self.partitions)
        self.kafka.install(patch)
        self.expected: defaultdict[tuple[int, int], list[tuple[str | None, str | None]]] = defaultdict(list)
        self._number = 0
        self._settings = MaterializerSettings(
            group_id="g",
            checkpoint_location=str(folder / "checkpoint"),
            state_directory=folder / "state",
            chunk_max_messages=chance.choice([3, 10, 50]),
            snapshot_every_versions=2,
            changelog_retention_versions=1,
            changelog_retention_seconds=0,
        )

    def plan(self) -> BatchPlan:
        key = message_key(TABLE)
        schema = TableSchema(key[:16], key[16:], to_json(TABLE))
        topic = TopicPlan(
            self.partitions, (schema,), (ChangeTopic("cdc.shop.orders", 1, 1, 2),), topic_id="id", forms=EXACT
        )
        return BatchPlan({TOPIC: topic}, KafkaSettings(), self._settings)

    def write(self, count: int, place_by: int) -> None:
        for _ in range(count):
            self._number += 1
            number, row = self._number, (self.chance.randrange(KEYS), self.chance.randrange(2))
            changes = self.expected[row]
            before, clustering = (changes[-1][1] if changes else None), (int_bytes(row[1]),)
            if before is not None and self.chance.random() < 0.2:
                after, what = None, Row(clustering, {}, NO_LIVENESS, RowDeletion(DeletionTime(number, 1)))
            else:
                after = str(number)
                what = Row(clustering, {"a": Cell(number, after.encode())}, LivenessInfo(number))
            changes.append((before, after))
            record = raw_record(int_bytes(row[0]), "row", what, offset=number)
            self.kafka.append(partition_for(record.key, place_by), record.key, record.value)
            if self.chance.random() < 0.1:
                beat = raw_record(b"", "heartbeat", None, clock=number)
                self.kafka.append(self.chance.randrange(place_by), b"", beat.value)

    def materialize(self) -> None:
        """Fold as the job does. CdcError."""
        plan, open_partitions = self.plan(), OpenPartitions()
        try:
            for number, records in enumerate(self.kafka.raw):
                open_partitions.process(plan, RawPartition(TOPIC, number), iter(records))
        finally:
            open_partitions.close_all()

    def grow(self) -> None:
        """Add partitions, which publishers see at different times."""
        before = self.partitions
        self.partitions += self.chance.randint(1, 4)
        self.kafka.add_partitions(self.partitions)
        for _ in range(self.chance.randint(1, 3)):
            self.write(self.chance.randint(0, 15), before)
            self.write(self.chance.randint(1, 15), self.partitions)

    def reshard(self, tasks: Tasks | None = None) -> list[str]:
        said: list[str] = []
        Reshard(self.plan(), TOPIC, said.append, tasks).reshard_topic()
        return said

    def reshard_elsewhere(self, point: Point, nth: int) -> bool:
        """Tasks that leave this process; one of them dies at a point. Whether it was reached."""
        fault_points.reached.clear()
        tasks = DistantTasks(self.chance)
        with self.patch.context() as patched:
            patched.setattr(fault_points, "armed", Fault(point, nth, "raise"))
            self.reshard(tasks)
        return tasks.deaths > 0

    def crash_at(self, point: ReshardPoint, nth: int) -> bool:
        """Whether the point was reached so often. If not, the reshard is complete."""
        fault_points.reached.clear()
        with self.patch.context() as patched:
            patched.setattr(fault_points, "armed", Fault(point, nth, "raise"))
            try:
                self.reshard()
            except InjectedFaultError:
                return True
        return False

    def check(self) -> None:
        found: defaultdict[tuple[int, int], list[tuple[str | None, str | None]]] = defaultdict(list)
        for message in self.kafka.messages:
            if message.value is None:
                continue
            change: Any = schemaless_reader(BytesIO(message.value[wire.HEADER_SIZE :]), VALUE, None)
            before, after = change["before"], change["after"]
            row = found[(after or before)["k"], (after or before)["c"]]
            row.append((before and before["a"], after and after["a"]))
            assert change["source"]["row_sequence"] == len(row)
        assert found == self.expected


@pytest.mark.parametrize("seed", SEEDS)
def test_crashes_lose_and_duplicate_nothing(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write is one change, whatever the crashes: messages are folded in the order of the brokers' time."""
    run = Run(tmp_path, monkeypatch, random.Random(seed))
    run.write(40, run.partitions)
    run.materialize()
    for _ in range(2):
        run.write(run.chance.randint(0, 20), run.partitions)
        run.grow()
        with pytest.raises(CdcError) as caught:
            run.materialize()
        assert caught.value.code is Code.RAW_PARTITIONS_CHANGED
        for _ in range(run.chance.randint(0, 5)):
            run.crash_at(run.chance.choice(list(ReshardPoint)), run.chance.randint(1, 3))
            run.write(run.chance.randint(0, 5), run.partitions)
        run.reshard()
        run.write(20, run.partitions)
        run.materialize()
        run.check()
    assert "are in the right partitions" in run.reshard()[-1]


def test_every_point_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, random.Random(1))
    run.write(40, run.partitions)
    run.materialize()
    run.grow()
    assert [point for point in ReshardPoint if not run.crash_at(point, 1)] == []
    run.materialize()
    run.check()


@pytest.mark.parametrize("point", [*IN_TASKS])
def test_a_task_elsewhere_that_dies_is_run_again(point: Point, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, random.Random(5))
    run.write(40, run.partitions)
    run.materialize()
    for nth in (1, 2):
        run.write(20, run.partitions)
        run.grow()
        assert run.reshard_elsewhere(point, nth)
        run.write(20, run.partitions)
        run.materialize()
        run.check()
    assert not [
        folder
        for folder in (tmp_path / "checkpoint" / "g").iterdir()
        if folder.name.endswith(".parts") and [*folder.iterdir()]
    ]
    assert not [*(tmp_path / "state" / "g").glob("reshard-*")]


def test_more_partitions_during_a_reshard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, random.Random(2))
    run.write(40, run.partitions)
    run.materialize()
    run.grow()
    assert run.crash_at(ReshardPoint.AFTER_SWITCH, 1)
    run.grow()
    assert run.reshard()[-1].endswith("run this again")
    assert run.reshard()[-1].endswith("start the materializer")
    run.materialize()
    run.check()


def test_a_late_publisher_stops_the_job_and_another_run_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch, random.Random(3))
    before = run.partitions
    run.write(40, before)
    run.materialize()
    run.grow()
    run.reshard()
    run.write(30, before)
    with pytest.raises(CdcError, match="belongs to partition") as caught:
        run.materialize()
    assert caught.value.code is Code.RAW_PARTITIONS_CHANGED
    run.reshard()
    run.materialize()
    run.check()


def test_one_of_two_runs_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, random.Random(4))
    run.write(40, run.partitions)
    run.materialize()
    run.grow()

    def overtake(point: object) -> None:
        if point is ReshardPoint.BEFORE_SWITCH:
            monkeypatch.setattr("materializer.commands.reshard.reshard.reach", fault_points.reach)
            run.reshard()

    monkeypatch.setattr("materializer.commands.reshard.reshard.reach", overtake)
    with pytest.raises(CdcError) as caught:
        run.reshard()
    assert caught.value.code is Code.STATE_MISMATCH
    run.materialize()
    run.check()
