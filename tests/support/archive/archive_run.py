"""A topic on a real broker that is archived as Spark's workers do it, for tests and the kill matrix."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from archive.events.ledger import Ledger
from archive.events.verify import LedgerCheck
from archive.files import open_store
from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from archive.job.worker_loop import open_loop
from archive.settings import ArchiveSettings, Settings
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import Code
from cdc_common.messages import wire
from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime import fault_points
from stream_runtime.fault_points import InjectedFaultError
from stream_runtime.worker.task import Assignment
from tests.support.archive.scene import ENVELOPE, NOW_MS, encode_avro
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from archive.events.file_event import FileEvent
    from archive.job.plan import ArchivePlan
    from stream_runtime.worker.loop import WorkerLoop

PARTITIONS = 3
END_SECONDS = 180.0
AT_ONCE = 40


class ArchiveSetup(NamedTuple):
    """It is pickled."""

    bootstrap: str
    registry: str
    prefix: str
    folder: str
    # The archive's location; empty: the lake's folder.
    location: str = ""
    # The folder in which the files of another location are; empty: the lake is in `folder`.
    files: str = ""
    # The number of the topic's partitions.
    partitions: int = PARTITIONS
    # Whether each process has other cuts and other buckets.
    is_varied: bool = False

    @property
    def topic(self) -> str:
        return f"{self.prefix}.shop.orders"

    @property
    def table(self) -> str:
        return f"{self.prefix.replace('-', '_')}_shop.orders"

    @property
    def lake(self) -> Path:
        return Path(self.files or Path(self.folder, "lake"))

    def settings(self, **archive: Any) -> Settings:  # noqa: ANN401 - settings
        own = {
            "group_id": self.prefix,
            "topics": [self.topic],
            "location": self.location or str(self.lake),
            "spool_directory": Path(self.folder, "spool"),
            "events_topic": f"{self.prefix}.files",
            "cut_rows": 60,
            "cut_seconds": 0.5,
            **self._varied(),
            **archive,
        }
        return Settings(
            kafka=KafkaSettings(bootstrap_servers=self.bootstrap, topic_prefix=self.prefix),
            registry=RegistrySettings(url=self.registry),
            archive=ArchiveSettings(**own),
        )

    def _varied(self) -> dict[str, Any]:
        """Settings that depend on how many processes there were (dev.verify.chaos.child)."""
        number = len(list(Path(self.folder).glob("child-*"))) if self.is_varied else 0
        return {"cut_rows": (60, 35, 47)[number % 3], "bucket": ("hour", "day")[number % 2]} if self.is_varied else {}

    def make_topic(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result()

    def send(self, first: int, end: int) -> None:
        """Send changes in one transaction; every tenth is a tombstone."""
        with RegistryClient(RegistrySettings(url=self.registry)) as registry:
            schema_id = registry.register(f"{self.topic}-value", ENVELOPE)
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.prefix}-source"})
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(first, end):
            source = {"ts_us": NOW_MS * 1000 + number % 3 * 3_600_000_000, "row_sequence": number}
            after = {"id": number, "name": f"Ada {number}"}
            change = {"op": "c", "before": None, "after": after, "source": source, "ts_ms": NOW_MS}
            value = None if number % 10 == 9 else wire.header(schema_id) + encode_avro(ENVELOPE, change)
            producer.produce(self.topic, value, b"%d" % number, number % self.partitions, timestamp=NOW_MS)
        producer.commit_transaction()

    def run(self, until: int | None = None, **settings: object) -> None:  # noqa: ARG002 - always to the end
        """Archive all in this process. Raise what a task fails with."""
        job = job_of(self.settings(**settings))
        planner = TopicPlanner(job)
        planner.check_settings()
        loop = open_loop(job)
        try:
            deadline = time.monotonic() + END_SECONDS
            while not self.is_done():
                assert time.monotonic() < deadline, f"it does not come to the end: {planner.errors}"
                run_batch(loop, planner.plan_batch())
        finally:
            loop.close()

    def events(self) -> list[FileEvent]:
        return [read.event for read in Ledger(self.settings().kafka, self.settings().archive.events_topic).read()]

    def check(self, count: int) -> None:
        """All messages, by a plain reader of the topic, are rows, once each; and the ledger fits the files."""
        events = self.events()
        found = LedgerCheck(open_store(self.location or str(self.lake)), read_rows=True).check(events)
        assert found.problems == []
        paths = {str(path.relative_to(self.lake)) for path in self.lake.rglob("*.parquet")}
        assert paths == {file.planned.path for event in events for file in event.files}
        messages = list(read_topic(self.bootstrap, self.topic, self.partitions))
        assert len(messages) == count
        sent = {
            (message.partition(), message.offset(), int(message.key() or b""))
            for message in messages
            if message.value() is not None
        }
        assert set(self.rows()) == sent
        assert len(self.rows()) == len(sent)

    def rows(self) -> list[tuple[int, int, int]]:
        """Partition, offset and number of each row in the folder, by DuckDB."""
        query = "SELECT _kafka_partition, _kafka_offset, after.id FROM read_parquet($1)"
        return duckdb.connect().execute(query, [f"{self.lake}/**/*.parquet"]).fetchall()

    def is_done(self) -> bool:
        """Whether the last event of each partition ends after its last message."""
        ends: dict[int, int] = {}
        for message in read_topic(self.bootstrap, self.topic, self.partitions):
            ends[message.partition() or 0] = (message.offset() or 0) + 1
        done = {one.partition: one.end for event in self.events() for one in event.ranges}
        return all(done.get(partition, 0) >= end for partition, end in ends.items())


def run_batch(loop: WorkerLoop[ArchivePlan], plan: ArchivePlan) -> None:
    """A batch of all shares. Raise the error of one that fails."""
    for result in loop.run_batch(plan, Assignment(plan.shares, AT_ONCE, 0.0)):
        if result.error is None:
            continue
        if result.error.code is Code.UNEXPECTED and "InjectedFaultError" in result.error.problem:
            assert fault_points.armed is not None
            raise InjectedFaultError(fault_points.armed.name)
        raise result.error
