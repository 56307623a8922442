"""A table whose raw topic gets more partitions while publishers write, and `state reshard` of it.

The command runs in this process or in one that is killed.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for
from materializer.commands.reshard.reshard import Reshard
from materializer.commands.state_verify import verify_states
from materializer.commands.stored_partitions import read_positions
from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition, RawRecord
from materializer.rows.keys import EXPIRY, INCOMPLETE, PARTITION, PURGE, REORDER
from stream_runtime import fault_points
from stream_runtime.kafka import command_errors
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import RAW_PARTITIONS, PatientPlanner, TableJob, job_settings, run_task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.fault_points import Fault

F = TypeVar("F")
PARTITIONS = 5  # in the end
KEYS, CLUSTERINGS = 24, 3
KEY_PREFIXES = (EXPIRY, PURGE, REORDER, b"q", INCOMPLETE, PARTITION)  # of state that belongs to one key
LATE = range(0, KEYS, 3)  # keys whose publisher sees the new partitions late
HOSTS = (1, 2)
END_SECONDS = 120.0
_servers = multiprocessing.get_context("forkserver")
_servers.set_forkserver_preload([__name__])


class Change(NamedTuple):
    before: str | None
    after: str | None


class Run:
    """A table's writes, each of which is a change. `expected` holds the changes of each row."""

    def __init__(self, job: TableJob, seed: int) -> None:
        self.job = job
        self.topic = job.raw.topic
        self.expected: defaultdict[tuple[int, int], list[Change]] = defaultdict(list)
        self.sent: list[RawRecord] = []
        self._chance = random.Random(seed)
        self._number = 0
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": job.settings.kafka.bootstrap_servers}
        self._producer = Producer(servers)
        self._admin = AdminClient(servers)

    def send(self, count: int, partitions: int, late: int | None = None) -> None:
        """Send `count` writes, placed by the number of partitions that their publisher knows."""
        for _ in range(count):
            key, clustering = self._chance.randrange(KEYS), self._chance.randrange(CLUSTERINGS)
            self.write(key, clustering, partitions if late is None or key not in LATE else late)
        self._producer.flush()
        time.sleep(0.01)  # a publisher that sees the new partitions has had its earlier messages acknowledged

    def write(self, key: int, clustering: int, partitions: int, *, is_deletion: bool | None = None) -> None:
        """Sometimes a deletion, if there is a row."""
        number, row = self.next_number(), self.expected[key, clustering]
        before = row[-1].after if row else None
        if is_deletion is None:
            is_deletion = before is not None and self._chance.random() < 0.2
        if is_deletion:
            after, what = None, Row((int_bytes(clustering),), {}, NO_LIVENESS, RowDeletion(DeletionTime(number, 1)))
        else:
            after = str(number)
            what = Row((int_bytes(clustering),), {"a": Cell(number, after.encode())}, LivenessInfo(number))
        row.append(Change(before, after))
        self.produce(key, number, what, partitions)

    def next_number(self) -> int:
        """The timestamp of a write."""
        self._number += 1
        return self._number

    def produce(self, key: int, number: int, what: Row, partitions: int) -> None:
        record = raw_record(int_bytes(key), "row", what, offset=number, host=HOSTS[key in LATE])
        self.sent.append(record)
        self.replay(record, partitions)

    def replay(self, record: RawRecord, partitions: int) -> None:
        self._producer.produce(self.topic, record.value, record.key, partition_for(record.key, partitions))

    def flush(self) -> None:
        self._producer.flush()

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
        """Fold each partition from its beginning to its end, as the job does. The errors that stopped them."""
        planner, errors = PatientPlanner(self.job.settings, self.job.registry), list[CdcError]()
        if problems := planner.check_positions():
            return list(problems.values())
        plan = planner.plan_batch()
        for partition, records in self.records(partitions).items():
            if (problem := run_task(plan, RawPartition(self.topic, partition), records).error) is not None:
                errors.append(problem)
        return errors

    def records(self, partitions: int) -> dict[int, list[RawRecord]]:
        """All messages of the raw partitions."""
        found: defaultdict[int, list[RawRecord]] = defaultdict(list)
        for message in read_topic(self.job.settings.kafka.bootstrap_servers, self.topic, partitions):
            record = RawRecord(
                message.key() or b"", message.value() or b"", message.offset() or 0, message.timestamp()[1]
            )
            found[message.partition() or 0].append(record)
        return found

    def reshard(self) -> list[str]:
        plan = PatientPlanner(self.job.settings, self.job.registry, must_fit=False).plan_batch()
        said: list[str] = []
        with command_errors("reshard", RAW_FAULTS):
            Reshard(plan, self.topic, said.append).reshard_topic()
        return said

    def reshard_in_child(self, fault: Fault) -> int:
        return in_child(_reshard, self.job, fault)

    def stored(self, partitions: int, folder: Path) -> list[dict[bytes, bytes]]:
        """The stored entries of Cassandra partitions, for each raw partition. The folder must be empty."""
        settings = self.job.settings
        store, group = object_store(settings.materializer), settings.materializer.group_id
        found = []
        raw_partitions = [RawPartition(self.topic, number) for number in range(partitions)]
        for where, position in read_positions(settings, raw_partitions).items():
            assert position is not None
            with closing(open_local_store(folder / str(where))) as state:
                restore(state, CheckpointStore(store, group, where), position.version)
                found.append(
                    {key: value for key, value in state.scan(b"\x01", b"\xff") if key.startswith(KEY_PREFIXES)}
                )
        return found

    def check(self) -> None:
        """Each write was published once and in order, and row_sequence counts up by one."""
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
        verify_states(self.job.settings, ())


def make_run(kafka: KafkaBroker, prefix: str, folder: Path, **settings: object) -> Run:
    bounds = {"chunk_max_messages": 25, "snapshot_every_versions": 3, "changelog_retention_seconds": 0}
    job = TableJob.start(job_settings(kafka.bootstrap_servers, prefix, folder))
    return Run(job.with_settings(**bounds, **settings), seed=7)


def grow(run: Run) -> None:
    """Old messages, read and unread; then those of publishers that see the new partitions, and of one that does not."""
    run.send(80, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    run.send(60, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    run.add_partitions(PARTITIONS)
    run.send(60, PARTITIONS, late=RAW_PARTITIONS)
    run.beat(PARTITIONS)
    run.send(60, PARTITIONS)
    errors = run.materialize(PARTITIONS)
    assert {error.code for error in errors} == {Code.RAW_PARTITIONS_CHANGED}
    assert all("state reshard shop.orders" in error.fix for error in errors)


def continue_and_check(run: Run) -> None:
    """Afterwards all messages are published, the old and the new ones."""
    run.send(50, PARTITIONS)
    run.beat(PARTITIONS)
    assert run.materialize(PARTITIONS) == []
    run.check()
    run.verify()


def in_child(work: Callable[[TableJob, F], None], job: TableJob, fault: F) -> int:
    """Run in another process. Its exit status, or the negative number of the signal that ended it."""
    child = _servers.Process(target=work, args=(job, fault))
    child.start()
    child.join(END_SECONDS)
    assert child.exitcode is not None
    return child.exitcode


def _value(image: dict[str, Any] | None) -> str | None:
    return None if image is None else image["a"]


def _reshard(job: TableJob, fault: Fault) -> None:
    fault_points.armed = fault
    Run(job, seed=0).reshard()
