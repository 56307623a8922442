"""Raw messages that no publisher has sent: what they write is in the state and not in Cassandra."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.versions import VERSION_50
from cdc_common.messages.raw import RawMessage, encode
from cdc_common.messages.tables import from_json
from cdc_common.messages.topics import partition_for, raw_topic
from cdc_common.settings import KafkaSettings
from materializer.planning.table_schemas import read_table_schemas
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions, Topics, send_all
from stream_runtime.records import Message
from tests.support.materializer.raw_builder import TableWriter, partition_update

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from cassandra_storage.formats.rows.clustering import Clustering
    from dev.local_stack.servers.addresses import Servers

_MOST_SECONDS = 120.0


class Planter:
    """Plants rows of one table, in the name of a publisher: one without heartbeats would hold the watermark back."""

    def __init__(self, servers: Servers, host: UUID, keyspace: str, table: str) -> None:
        self._host = host.bytes
        self._kafka = KafkaSettings(bootstrap_servers=servers.kafka, topic_prefix=servers.topic_prefix)
        self._topic = raw_topic(servers.topic_prefix, keyspace, table)
        deadline = time.monotonic() + _MOST_SECONDS
        while not (schemas := read_table_schemas(self._kafka).for_table((keyspace, table))):
            assert time.monotonic() < deadline, f"no schema of {keyspace}.{table}"
            time.sleep(0.2)
        self._schema = schemas[-1]
        self._writer = TableWriter(from_json(self._schema.json))
        self._partitions = Topics(self._kafka).partition_counts()[self._topic]
        self._count = 0

    def plant(self, partition_key: bytes, clustering: Clustering, cells: Mapping[str, bytes], timestamp: int) -> None:
        """An INSERT of these columns. timestamp: µs."""
        columns = {name: Cell(timestamp, value) for name, value in cells.items()}
        row = Row(clustering, columns, LivenessInfo(timestamp))
        self._count += 1
        message = RawMessage(
            "row",
            partition_update(partition_key, "row", row, self._writer),
            VERSION_50,
            self._schema.table_id,
            self._schema.digest,
            0,
            self._host,
            1,
            "planted",
            self._count,
            0,
        )
        number = partition_for(partition_key, self._partitions)
        send_all(self._kafka, [Message(self._topic, number, partition_key, encode(message, 0))])

    def wait_until_folded(self, group: str) -> None:
        """Wait until the job has folded what is in the raw topic now."""
        raw_partitions = [RawPartition(self._topic, number) for number in range(self._partitions)]
        ends = {raw_partition: end for raw_partition, (_, end) in Topics(self._kafka).bounds(raw_partitions).items()}
        positions = GroupPositions(self._kafka, group, stable=False)
        deadline = time.monotonic() + _MOST_SECONDS
        while True:
            found = positions.read(raw_partitions)
            if all(
                position is not None and position.offset >= ends[raw_partition]
                for raw_partition, position in found.items()
            ):
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
