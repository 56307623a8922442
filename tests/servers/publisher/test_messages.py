"""Real mutations become raw messages; the filler's and other tables' mutations do not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.cassandra import connect
from cdc_common.settings import CassandraSettings
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails
from publisher.mutations.messages import NO_MESSAGES, DecodedMutation, Origin, split_into_messages
from publisher.tables.node_schema import NodeSchema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster

WRITTEN_AT = 1_600_000_000_000_001


@pytest.fixture
def schema(cassandra: CassandraCluster, tmp_path: Path, fresh_keyspace: str) -> Iterator[NodeSchema]:
    settings = CassandraSettings(contact_points=cassandra.contact_points, port=cassandra.port)
    with connect(settings, only=cassandra.contact_points[0]) as client:
        yield NodeSchema(tmp_path / "schema.json", client.rows, (fresh_keyspace, "filler"))


def decode_log(
    cassandra: CassandraCluster, cql: Session, schema: NodeSchema, folder: Path
) -> Iterator[DecodedMutation]:
    """Decodes all mutations in the log whose tables are known, once what is written now is durable."""
    cdc_raw = cassandra.nodes[0].cdc_raw
    assert cdc_raw is not None
    time.sleep(1.5)
    host_id = cql.execute("SELECT host_id FROM system.local").one().host_id
    for tail in SegmentTails(cdc_raw, Positions.load(folder / "position.json", host_id)).poll()[-2:]:
        for entry in tail.entries():
            origin = Origin(
                host_id.bytes, tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position
            )
            if any(table_id in entry.mutation[:20] for table_id in schema.tables):
                yield split_into_messages(entry.mutation, origin, schema)


@pytest.mark.servers
def test_only_published_tables_give_messages(
    cassandra: CassandraCluster, cql: Session, fresh_keyspace: str, schema: NodeSchema, tmp_path: Path
) -> None:
    for name, options in (("filler", "WITH cdc = true"), ("plain", ""), ("published", "WITH cdc = true")):
        cql.execute(f"CREATE TABLE {fresh_keyspace}.{name} (id int PRIMARY KEY, v blob) {options}")
        cql.execute(f"INSERT INTO {fresh_keyspace}.{name} (id, v) VALUES (7, 0x01) USING TIMESTAMP {WRITTEN_AT}")
    schema.refresh()
    [published] = [
        table for table in schema.current_tables() if table.table.qualified_name == f"{fresh_keyspace}.published"
    ]
    found = list(decode_log(cassandra, cql, schema, tmp_path))
    assert [decoded.filler_written_at for decoded in found if decoded.filler_written_at] == [WRITTEN_AT]
    messages = [message for decoded in found for message in decoded.messages if message.table.id == published.id]
    [message] = messages
    assert message.partition_key == (7).to_bytes(4, "big")
    assert message.message.kind == "row"
    assert message.message.schema_digest == published.digest
    assert message.message.truncation_epoch == 0
    assert NO_MESSAGES in found
