"""A publisher in this process: real in all but the node's answers, Kafka and the registry, which do as a test says."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from cassandra_storage.formats.primitives.vint import write_int
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cdc_common.messages import raw
from cdc_common.settings import NodeSettings
from publisher.kafka.sender import Refusal
from publisher.log.position import Positions
from publisher.log.segment_disposal import open_segment_disposal
from publisher.log.spool import open_spool
from publisher.log.tail import SegmentTails
from publisher.loop import Publisher
from publisher.monitoring.status_collector import StatusCollector
from publisher.mutations.quarantine import open_quarantine
from publisher.parts import KafkaParts, NodeParts
from publisher.progress import Progress
from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.state.records import Records
from publisher.snapshot.supervisor import Supervisor
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments
from publisher.topics.raw_topics import RawTopics, RegistryIds
from publisher.topics.waiting import WaitingTables
from tests.support.materializer.raw_builder import TableWriter, int_bytes, partition_update
from tests.support.publisher.publisher_without_kafka import HOST, LossWatch
from tests.support.publisher.segment_files import SegmentFileBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_common.errors.codes import CdcError
    from cdc_native.formats.batches import Batch
    from publisher.inflight import PendingMessages
    from tests.support.publisher.schema_rows import SchemaRows

FIRST = 1_700_000_000_000
MIB = 1 << 20
SECONDS = 60.0


class FakeKafka:
    """publisher.kafka.sender.Sender and topic_admin.TopicAdmin. `refused`: the error of each topic's messages;
    `unusable`: of its creation and check; `altered`: what the check of the open topics finds; `delivered`: the value of
    each message by topic; `created`, `ensured`: raw topics that were made, and asked for one by one.
    `fatal` and `unreachable` concern all topics.
    """

    def __init__(self) -> None:
        self.topics: dict[str, int] = {}
        self.created: list[str] = []
        self.ensured: list[str] = []
        self.refused: dict[str, CdcError] = {}
        self.unusable: dict[str, CdcError] = {}
        self.altered: dict[str, Any] = {}
        self.fatal: CdcError | None = None
        self.unreachable: CdcError | None = None
        self.is_schema_too_large = False
        self.delivered: dict[str, list[bytes]] = {}
        self.acknowledged, self.latency_seconds = 0, 0.0
        self.last_sent: dict[tuple[str, int], float] = {}
        self._queue: list[tuple[str, bytes, PendingMessages | None]] = []
        self._refusals: list[Refusal] = []

    def __len__(self) -> int:
        return len(self._queue)

    # Sender

    def send(self, topic: str, _key: bytes, value: bytes, pending: PendingMessages | None) -> bool:
        self._queue.append((topic, value, pending))
        return True

    def send_to_raw_partition(
        self, topic: str, _raw_partition: int, value: bytes, pending: PendingMessages | None = None
    ) -> bool:
        return self.send(topic, b"", value, pending)

    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: PendingMessages) -> int:
        for index in range(first, len(batch)):
            table, key, value = batch.message(index)
            self.send(topics[table], key, value, pending)
        return len(batch)

    def poll(self, _seconds: float) -> None:
        """Half of what is in the queue is answered."""
        if self.fatal is not None:
            raise self.fatal
        count = (len(self._queue) + 1) // 2
        answered, self._queue = self._queue[:count], self._queue[count:]
        for topic, value, pending in answered:
            error = self.refused.get(topic)
            if error is not None:
                is_too_large = self.is_schema_too_large and topic.endswith(".tables")
                self._refusals.append(Refusal(pending, 1, topic, error, is_too_large))
                continue
            self.delivered.setdefault(topic, []).append(value)
            self.acknowledged += 1
            if pending is not None:
                pending.acknowledge()

    def flush(self, _seconds: float) -> None:
        while self._queue:
            self.poll(0)

    def take_refusals(self, topic: str = "") -> list[Refusal]:
        found = [refusal for refusal in self._refusals if topic in {"", refusal.topic}]
        self._refusals = [refusal for refusal in self._refusals if refusal not in found]
        return found

    def refresh_metadata(self, topic: str) -> None: ...

    # TopicAdmin

    def check_reachable(self) -> None:
        if self.unreachable is not None:
            raise self.unreachable

    def ensure_tables_topic(self, topic: str) -> None:
        self._check(topic)

    ensure_watermarks_topic = ensure_tables_topic

    def ensure_raw_topic(self, topic: str) -> tuple[int, bool]:
        self.ensured.append(topic)
        self._check(topic)
        is_new = topic not in self.topics
        if is_new:
            self.created.append(topic)
        return self.topics.setdefault(topic, 2), is_new

    def check_raw_topics(self, topics: set[str]) -> dict[str, Any]:
        return {name: error for name, error in self.altered.items() if name in topics}

    def find_usable(self, topics: set[str]) -> set[str]:
        return {name for name in topics if name not in self.altered and name not in self.unusable}

    def read_partition_counts(self) -> dict[str, int]:
        return dict(self.topics)

    def read_latest_values(self, _topic: str, _first: int = 0) -> tuple[dict[bytes, bytes], int]:
        return {}, 0

    def _check(self, topic: str) -> None:
        if topic in self.unusable:
            raise self.unusable[topic]

    def places(self, topic: str) -> list[tuple[int, int]]:
        """The places in the log of the rows that were delivered, in order, each once."""
        messages = map(raw.decode, self.delivered.get(topic, ()))
        return list(dict.fromkeys((message.segment, message.position) for message in messages if message.kind == "row"))


class FakeRegistry:
    """A registry: `refused`, by subject."""

    def __init__(self) -> None:
        self.refused: dict[str, CdcError] = {}
        self.pause = 0.0

    @contextmanager
    def connect(self) -> Iterator[FakeRegistry]:
        yield self

    def register(self, subject: str, _schema: object) -> int:
        time.sleep(self.pause)
        if subject in self.refused:
            raise self.refused[subject]
        return 1

    def check_reachable(self) -> None: ...


class PublisherBesideFakes:
    """`write` appends a row of a table to the log; `run` lets the publisher work until something is so."""

    def __init__(self, folder: Path, rows: SchemaRows, kafka: FakeKafka, **settings: object) -> None:
        self.folder, self.rows, self.kafka, self.registry = folder, rows, kafka, FakeRegistry()
        self.cdc_raw = folder / "cdc_raw"
        self.cdc_raw.mkdir(exist_ok=True)
        self.settings = PublisherSettings.model_validate({"state_directory": folder, **settings})
        self.written: dict[str, list[tuple[int, int]]] = {}
        self._segments: list[SegmentFileBuilder] = []
        self.next_segment()
        self.restart()

    def restart(self) -> None:
        """A new publisher on the files of the one before, which may have been killed."""
        own, folder = self.settings, self.folder
        self.positions = Positions.load(folder / "position.json", HOST)
        spool = open_spool(own, HOST)
        newest = self._segments[-1].segment
        self.schema = NodeSchema(
            folder / "schema.json",
            self.rows.run_query,
            ("cdc_filler", "filler"),
            segments=LogSegments(oldest=lambda: FIRST, newest=lambda: newest),
        )
        self.schema.load()
        self.waiting = WaitingTables.load(folder / "waiting.json", self.positions)
        self.node = NodeParts(
            host_id=HOST.bytes,
            schema=self.schema,
            tails=SegmentTails(self.cdc_raw, self.positions, spool=spool),
            positions=self.positions,
            quarantine=open_quarantine(own),
            spool=spool,
            disposal=open_segment_disposal(own),
            loss_watch=cast("Any", LossWatch()),
            snapshots=Supervisor(Settings(publisher=own), Records(folder), mock.MagicMock(), list),
            waiting=self.waiting,
            settle_seconds=0.2,
            durable_seconds=0.1,
        )
        kafka = cast("Any", self.kafka)
        self.status = StatusCollector(
            NodeSettings(cdc_raw_directory=self.cdc_raw), self.node, kafka, Progress(time.monotonic())
        )
        ids = RegistryIds(folder / "registry.json", "http://registry", cast("Any", self.registry.connect))
        self.publisher = Publisher(
            own, self.node, KafkaParts(kafka, RawTopics("cdc", "test", kafka, kafka, ids)), self.status, lambda: None
        )

    def next_segment(self) -> None:
        """The node begins another segment."""
        if self._segments:
            self._segments[-1].sync(complete=True)
            self._segments[-1].let_go()
        self._segments.append(SegmentFileBuilder(self.cdc_raw, FIRST + len(self._segments), size=MIB))
        self._segments[-1].sync()

    def write(self, name: str, *keys: int, keyspace: str = "ks", rows: SchemaRows | None = None) -> None:
        """Rows of the table with these keys, in one segment, durable at once. `rows`: the schema that the node does not
        show yet.
        """
        known = rows or self.rows
        columns = [row for row in known.columns if (row["keyspace_name"], row["table_name"]) == (keyspace, name)]
        [table] = tables_from_rows([known.tables[keyspace, name]], columns, known.types, []).values()
        for key in keys:
            update = partition_update(int_bytes(key), "row", Row((), {}, LivenessInfo(key)), TableWriter(table))
            segment = self._segments[-1]
            end = segment.append(write_int(1) + update)
            self.written.setdefault(f"cdc.raw.{keyspace}.{name}", []).append((segment.segment, end))
        self._segments[-1].sync()

    def open(self) -> None:
        self.publisher.open()

    def round(self) -> None:
        """One round of the publisher's loop; what is due at times is due now."""
        publisher = self.publisher
        publisher.publish_new()
        publisher._housekeeping.serve(0)
        publisher._do(publisher._tables.wait_for_schema())
        publisher._do(publisher._row_ends.send_due())
        publisher._do(publisher._missing.give_up_late())
        publisher._do(publisher._tables.retry_waiting())
        publisher._do(publisher._catch_up.advance())

    def run(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not until():
            assert time.monotonic() < deadline, self.waiting.shown()
            self.round()
            time.sleep(0.005)

    def is_sent(self, name: str, keyspace: str = "ks") -> bool:
        """All that was written to the table is delivered."""
        topic = f"cdc.raw.{keyspace}.{name}"
        return set(self.kafka.places(topic)) >= set(self.written.get(topic, ()))

    def segments(self) -> list[int]:
        """The numbers of the segments in cdc_raw."""
        return sorted(int(file.stem.rpartition("-")[2]) - FIRST for file in self.cdc_raw.glob("*.log"))

    def waits(self) -> dict[str, str]:
        """The code of each table that waits."""
        return {table.name: table.code for table in self.waiting.shown()}

    def retry(self) -> None:
        """Every pause is over."""
        for table_id, table in self.waiting.tables.items():
            if table.ready is None:
                self.waiting.retry_now(table_id)
