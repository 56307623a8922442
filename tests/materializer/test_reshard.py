"""A raw topic gets more partitions while publishers write: `state reshard` on a real broker, crashed at each step."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from cassandra_storage.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.rows import Cell, Row
from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer import fault_points
from materializer.fault_points import Fault, InjectedFaultError, ReshardPoint
from materializer.kafka import command_errors
from materializer.position import RawPartition
from materializer.reshard import Reshard
from materializer.row_updates import RawRecord
from materializer.state_commands import deal_out, verify_all
from materializer.state_report import positions_of
from tests.materializer.protocol_run import read_topic
from tests.materializer.raw_builder import int_bytes, raw_record
from tests.materializer.table_job import RAW_PARTITIONS, PatientPlanner, TableJob, job_settings, run_task

if TYPE_CHECKING:
    from pathlib import Path

    from local_stack.interfaces import KafkaServer

pytestmark = pytest.mark.servers
KEYS, CLUSTERINGS = 24, 3
LATE = range(0, KEYS, 3)  # keys whose publisher sees the new partitions late
HOSTS = (1, 2)
CRASHES = [
    (ReshardPoint.AFTER_CATCH_UP, 1),
    (ReshardPoint.AFTER_MARK, 1),
    (ReshardPoint.AFTER_MARK, 2),
    (ReshardPoint.IN_DEAL, 2),
    (ReshardPoint.BEFORE_SWITCH, 1),
    (ReshardPoint.IN_COMMIT, 1),
    (ReshardPoint.AFTER_SWITCH, 1),
    (ReshardPoint.IN_FOLD, 3),
    (ReshardPoint.IN_BACKLOG, 2),
    (ReshardPoint.IN_COMMIT, 1),
    (ReshardPoint.AFTER_FINISH, 1),
]


class Change(NamedTuple):
    before: str | None
    after: str | None


class Run:
    """A table's writes, of which each is a change; `expected` are those of each row."""

    def __init__(self, job: TableJob, seed: int) -> None:
        self.job = job
        self.topic = job.raw.topic
        self.expected: defaultdict[tuple[int, int], list[Change]] = defaultdict(list)
        self._chance = random.Random(seed)
        self._number = 0
        servers = {"bootstrap.servers": job.settings.kafka.bootstrap_servers}
        self._producer = Producer(servers)
        self._admin = AdminClient(servers)

    def send(self, count: int, partitions: int, late: int | None = None) -> None:
        """So many writes, placed by the number of partitions that their publisher knows."""
        for _ in range(count):
            key, clustering = self._chance.randrange(KEYS), self._chance.randrange(CLUSTERINGS)
            self.write(key, clustering, partitions if late is None or key not in LATE else late)
        self._producer.flush()
        time.sleep(0.01)  # a publisher that sees the new partitions has had its earlier messages acknowledged

    def write(self, key: int, clustering: int, partitions: int) -> None:
        self._number += 1
        number, row = self._number, self.expected[key, clustering]
        before = row[-1].after if row else None
        if before is not None and self._chance.random() < 0.2:
            after, what = None, Row((int_bytes(clustering),), {}, NO_LIVENESS, RowDeletion(DeletionTime(number, 1)))
        else:
            after = str(number)
            what = Row((int_bytes(clustering),), {"a": Cell(number, after.encode())}, LivenessInfo(number))
        row.append(Change(before, after))
        record = raw_record(int_bytes(key), "row", what, offset=number, host=HOSTS[key in LATE])
        place = partition_for(record.key, partitions)
        self._producer.produce(self.topic, record.value, record.key, place)

    def beat(self, partitions: int) -> None:
        for partition in range(partitions):
            for host in HOSTS:
                beat = raw_record(b"", "heartbeat", None, host=host, clock=self._number)
                self._producer.produce(self.topic, beat.value, None, partition)
        self._producer.flush()

    def add_partitions(self, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(self.topic, partitions)])[self.topic].result()
        while len(self._admin.list_topics(self.topic).topics[self.topic].partitions) != partitions:
            time.sleep(0.05)
        self._producer.list_topics(self.topic)

    def materialize(self, partitions: int) -> list[CdcError]:
        """Each partition from its beginning to its end, as the job does; what stopped them."""
        found: defaultdict[int, list[RawRecord]] = defaultdict(list)
        for each in read_topic(self.job.settings.kafka.bootstrap_servers, self.topic, partitions):
            record = RawRecord(each.key() or b"", each.value() or b"", each.offset() or 0, each.timestamp()[1])
            found[each.partition() or 0].append(record)
        planner, errors = PatientPlanner(self.job.settings, self.job.registry), []
        try:
            planner.check_positions()
        except CdcError as error:
            return [error]
        plan = planner.plan()
        for partition, records in found.items():
            if (error := run_task(plan, RawPartition(self.topic, partition), records).error) is not None:
                errors.append(error)
        return errors

    def reshard(self) -> list[str]:
        plan = PatientPlanner(self.job.settings, self.job.registry).plan()
        said: list[str] = []
        with command_errors("reshard"):
            Reshard(plan, self.topic, said.append).run()
        return said

    def check(self) -> None:
        """Each write came out once and in order, and its number is one more than that of the one before."""
        found: defaultdict[tuple[int, int], list[Change]] = defaultdict(list)
        for change in self.job.changes():
            if change is None:
                continue
            shown = change["after"] or change["before"]
            row = found[shown["k"], shown["c"]]
            row.append(Change(_value(change["before"]), _value(change["after"])))
            assert change["source"]["row_sequence"] == len(row)
        assert found == self.expected

    def verify(self) -> None:
        verify_all(self.job.settings, ())


def _value(image: dict[str, Any] | None) -> str | None:
    return None if image is None else image["a"]


@pytest.fixture
def run(kafka: KafkaServer, topic_prefix: str, tmp_path: Path) -> Run:
    settings = job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path)
    bounds = {"chunk_max_rows": 25, "snapshot_every_versions": 3, "changelogs_kept_seconds": 0}
    return Run(TableJob.start(settings).with_settings(**bounds), seed=7)


def grow(run: Run, partitions: int) -> None:
    """Messages of before, read and unread; then of publishers that see the new partitions, and of one that does not."""
    run.send(80, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    run.send(60, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    run.add_partitions(partitions)
    run.send(60, partitions, late=RAW_PARTITIONS)
    run.beat(partitions)
    run.send(60, partitions)
    errors = run.materialize(partitions)
    assert {error.code for error in errors} == {Code.PARTITIONS_CHANGED}
    assert all("state reshard shop.orders" in error.fix for error in errors)


def crash(run: Run, point: ReshardPoint, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_points.reached.clear()
    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "armed", Fault(point, nth, "raise"))
        with pytest.raises(InjectedFaultError):
            run.reshard()


def go_on(run: Run, partitions: int) -> None:
    """After it all messages come out, those that were there and those that are new."""
    run.send(50, partitions)
    run.beat(partitions)
    assert run.materialize(partitions) == []
    run.check()
    run.verify()


def test_each_message_comes_out_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    grow(run, 5)
    settings, partitions = run.job.settings, [RawPartition(run.topic, number) for number in range(5)]
    before = positions_of(settings, partitions)
    deal_out(settings, "shop.orders", dry_run=True)
    assert positions_of(settings, partitions) == before
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("the state is of 2 partitions, the topic has 5")
    assert "messages lie where 2 partitions would not put them" in said[1]
    assert len(said) == 2 + 5
    assert run.reshard()[-1].endswith("start the materializer")
    for position in positions_of(settings, partitions).values():
        assert position is not None
        assert (position.partitions, position.reshards, position.backlog) == (5, 1, None)
    go_on(run, 5)
    assert "are where they belong" in run.reshard()[-1]


def test_a_crash_at_any_step_is_made_good_by_another_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(run, 5)
    for point, nth in CRASHES:
        crash(run, point, nth, monkeypatch)
        if point not in {ReshardPoint.AFTER_CATCH_UP, ReshardPoint.AFTER_FINISH}:
            assert {error.code for error in run.materialize(5)} == {Code.PARTITIONS_CHANGED}
    assert "are where they belong" in run.reshard()[-1]
    go_on(run, 5)


@pytest.mark.exhaustive
def test_two_runs_do_not_go_on_beside_each_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(run, 5)

    def overtake(point: object) -> None:
        if point is ReshardPoint.BEFORE_SWITCH:
            monkeypatch.undo()
            run.reshard()

    monkeypatch.setattr("materializer.reshard.reach", overtake)
    with pytest.raises(CdcError) as caught:
        run.reshard()
    assert caught.value.code is Code.STATE_MISMATCH
    go_on(run, 5)
