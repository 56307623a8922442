"""Rows in bytes: as a session writes and SELECTs them, and as a change topic has them by the schema in the registry."""

from __future__ import annotations

import io
import json
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from cassandra.cluster import Cluster
from cassandra.query import BoundStatement, dict_factory
from confluent_kafka import Consumer, TopicPartition
from fastavro import schemaless_reader

from cdc_common.clients.cassandra import RawValuesHandler
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cassandra.cluster import Session

    from dev.local_stack.servers.addresses import Servers

MOST_SECONDS = 120.0
Record = dict[str, Any]


class RawRows:
    """Statements whose values are bound, and come back, in their serialized form."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def insert(self, table: str, values: Mapping[str, bytes]) -> None:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        bound = BoundStatement(self.session.prepare(f"INSERT INTO {table} ({names}) VALUES ({marks})"))
        bound.values = list(values.values())
        self.session.execute(bound)

    def select(self, table: str) -> list[dict[str, bytes | None]]:
        usual = self.session.client_protocol_handler
        self.session.client_protocol_handler = RawValuesHandler
        try:
            return list(self.session.execute(f"SELECT * FROM {table}"))
        finally:
            self.session.client_protocol_handler = usual


@contextmanager
def raw_rows(servers: Servers) -> Iterator[RawRows]:
    cluster = Cluster(
        list(servers.cassandra_hosts),
        port=servers.cassandra_port,
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
    )
    session = cluster.connect()
    session.row_factory = dict_factory
    session.default_timeout = 60
    try:
        yield RawRows(session)
    finally:
        cluster.shutdown()


class ExactMessages:
    """The values of a change topic's messages, by a reader that leaves logical types out: numbers as they are."""

    def __init__(self, servers: Servers, topic: str) -> None:
        self._registry = servers.registry
        self._topic = topic
        self._schemas: dict[int, Any] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers.kafka,
                "group.id": "tests",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )

    def read(self, is_enough: Callable[[list[Record]], bool]) -> list[Record]:
        """Read from the beginning until it is enough, without tombstones."""
        deadline = time.monotonic() + MOST_SECONDS
        while (about := self._consumer.list_topics(timeout=10).topics.get(self._topic)) is None:
            assert time.monotonic() < deadline, f"no topic {self._topic}"
            time.sleep(0.2)
        self._consumer.assign([TopicPartition(self._topic, partition, 0) for partition in about.partitions])
        found: list[Record] = []
        while not is_enough(found):
            assert time.monotonic() < deadline, f"{len(found)} messages have come"
            for message in self._consumer.consume(500, 0.2):
                assert message.error() is None
                if (value := message.value()) is not None:
                    found.append(self._decode(value))
        return found

    def close(self) -> None:
        self._consumer.close()

    def _decode(self, data: bytes) -> Record:
        (schema_id,) = struct.unpack_from(">xI", data)
        stream = io.BytesIO(data[5:])
        record = schemaless_reader(stream, self._schema(schema_id), None)
        assert isinstance(record, dict)
        assert stream.tell() == len(data) - 5
        return record

    def _schema(self, schema_id: int) -> Any:  # noqa: ANN401 - any JSON
        if schema_id not in self._schemas:
            with urlopen(f"{self._registry}/schemas/ids/{schema_id}") as answer:  # noqa: S310 - our own http address
                self._schemas[schema_id] = without_logical_types(json.loads(json.load(answer)["schema"]))
        return self._schemas[schema_id]

    def cql_names(self) -> dict[str, str]:
        """{CQL name: field} of the columns, by the newest schema that was read."""
        envelope = self._schemas[max(self._schemas)]
        row = next(field for field in envelope["fields"] if field["name"] == "before")["type"][1]
        return {field.get("cqlName", field["name"]): field["name"] for field in row["fields"]}
