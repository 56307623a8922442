"""A publisher whose Kafka does not answer, in one process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest import mock
from uuid import UUID

from cdc_common.clients.cassandra import Node
from cdc_common.settings import KafkaSettings, NodeSettings
from dev.local_stack.process.network import free_ports
from publisher.kafka.sender import Sender
from publisher.kafka.topic_admin import TopicAdmin
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
from publisher.topics.raw_topics import RawTopics, RegistryIds
from publisher.topics.waiting import WaitingTables
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation

if TYPE_CHECKING:
    from pathlib import Path

    from publisher.monitoring.status import Status
    from tests.support.publisher.schema_rows import SchemaRows

HOST = UUID(int=1)
MIB = 1 << 20
FIRST = 1_700_000_000_000
SEGMENTS = 20
CONNECT_SECONDS = 2.5  # cdc_raw is looked at once a second
FAILED_CALLS = 2  # before Kafka answers


class LossWatch:
    """publisher.losses.loss_watch.LossWatch of a node whose settings lose no changes."""

    current_losses = ()
    node = Node(HOST, "test", "cdc", "5.0.0")
    live_settings: ClassVar = {"cdc_total_space": f"{SEGMENTS + 4}MiB", "commitlog_segment_size": "1MiB"}

    def check_again(self) -> None:
        return


class PublisherWithoutKafka:
    """A publisher with real parts except the node, a full cdc_raw, and a Kafka address where nothing listens; `seen` is
    the status each time that Kafka has not answered.
    """

    def __init__(self, folder: Path, tables: SchemaRows | None = None) -> None:
        self._tables = tables
        self.cdc_raw = cdc_raw = folder / "cdc_raw"
        cdc_raw.mkdir()
        for number in range(SEGMENTS + 1):
            segment = SegmentFileBuilder(cdc_raw, FIRST + number, size=MIB)
            segment.append(mutation(number))
            segment.sync(complete=number < SEGMENTS)
        own = PublisherSettings(state_directory=folder, on_full="spool")
        kafka = KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}", connect_timeout_seconds=CONNECT_SECONDS
        )
        sender = Sender(kafka)
        self.spool = open_spool(own, HOST)
        self.positions = Positions(folder / "position.json", HOST)
        node_parts = NodeParts(
            host_id=HOST.bytes,
            schema=NodeSchema(folder / "schema.json", self.run_query, ("cdc_filler", "filler")),
            tails=SegmentTails(cdc_raw, self.positions, spool=self.spool),
            positions=self.positions,
            quarantine=open_quarantine(own),
            spool=self.spool,
            disposal=open_segment_disposal(own),
            loss_watch=cast("Any", LossWatch()),
            snapshots=Supervisor(Settings(publisher=own), Records(folder), mock.MagicMock(), list),
            waiting=WaitingTables(folder / "waiting.json"),
            settle_seconds=30.0,
        )
        self.status = StatusCollector(
            NodeSettings(cdc_raw_directory=cdc_raw), node_parts, sender, Progress(time.monotonic())
        )
        self.seen: list[Status] = []
        self.admin = TopicAdmin(kafka)
        ids = RegistryIds(folder / "registry.json", "http://registry", cast("Any", None))
        kafka_parts = KafkaParts(sender, RawTopics("cdc", "test", cast("Any", self), sender, ids))
        self.publisher = Publisher(own, node_parts, kafka_parts, self.status, beat=lambda: None)

    def run_query(self, query: str) -> list[dict[str, Any]]:
        """The node's answer: it has no tables, unless some are given."""
        if self._tables is not None:
            return self._tables.run_query(query)
        return [{"schema_version": HOST}] if "schema_version" in query else []

    def check_reachable(self) -> None:
        """Check as TopicAdmin does, which really calls Kafka, for the first calls; then return as if Kafka answered."""
        if len(self.seen) < FAILED_CALLS:
            try:
                self.admin.check_reachable()
            finally:
                self.seen.append(self.status.newest())

    def ensure_tables_topic(self, _topic: str) -> None:
        return

    def ensure_watermarks_topic(self, _topic: str) -> None:
        return

    def read_partition_counts(self) -> dict[str, int]:
        return {}

    def find_usable(self, topics: set[str]) -> set[str]:
        return topics

    def read_latest_values(self, _topic: str, _first: int = 0) -> tuple[dict[bytes, bytes], int]:
        return {}, 0
