"""Cassandra and Kafka for a process beside the running publisher: a command, or the worker that reads a snapshot."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.cassandra import CassandraClient, Node, connect, read_node
from publisher.kafka.sender import Sender
from publisher.tables.node_schema import NodeSchema
from publisher.tables.selection import selection_from
from publisher.topics.open_topics import make_raw_topics
from publisher.topics.raw_topics import RawTopics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from publisher.settings import Settings


class OwnConnection(NamedTuple):
    # The connection to the node.
    client: CassandraClient
    # The node's facts.
    node: Node
    # The schema as the node shows it.
    schema: NodeSchema
    # The raw topics of the published tables.
    raw_topics: RawTopics
    # Sends raw messages.
    sender: Sender


def schema_file(settings: Settings) -> Path:
    """Return the schema file of the publisher."""
    return settings.publisher.state_directory / "schema.json"


@contextmanager
def connect_beside_publisher(settings: Settings) -> Iterator[OwnConnection]:
    """Works on a copy of the schema file: a running publisher writes the original."""
    own = settings.publisher
    with (
        connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client,
        tempfile.TemporaryDirectory(prefix="cassandra-publisher-") as scratch,
    ):
        file = Path(scratch) / "schema.json"
        if schema_file(settings).exists():
            shutil.copy(schema_file(settings), file)
        schema = NodeSchema(file, client.rows, (settings.filler.keyspace, settings.filler.table), selection_from(own))
        schema.load()
        schema.refresh()
        sender, node = Sender(settings.kafka), read_node(client)
        raw_topics = make_raw_topics(settings, node.cluster, sender)
        raw_topics.open_tables_topic()
        yield OwnConnection(client, node, schema, raw_topics, sender)
