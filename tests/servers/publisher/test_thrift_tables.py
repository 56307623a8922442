"""A table that Thrift made with a comparator that is not UTF-8, on the last Cassandra that has Thrift."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.files.segments import OpenSegment, list_segments
from cassandra_storage.formats.commitlog.segment import CorruptEntry
from cassandra_storage.formats.errors import UnknownColumnError
from cassandra_storage.formats.rows.mutation import first_table, read_mutation
from cassandra_storage.formats.versions import VERSION_3014
from cdc_common.clients.cassandra import connect
from cdc_common.settings import CassandraSettings
from dev.local_stack.clients import cql
from publisher.tables.node_schema import NodeSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

PORT = 9160  # rpc_port
_STRUCT, _STRING, _INT, _LONG, _LIST = 12, 11, 8, 10, 15  # org.apache.thrift.protocol.TType
ONE = 1  # ConsistencyLevel


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(raw)) + raw


def field(kind: int, number: int, value: bytes) -> bytes:
    return struct.pack(">bh", kind, number) + value


def record(*fields: bytes) -> bytes:
    return b"".join(fields) + b"\0"


class Thrift:
    """The part of Cassandra's Thrift interface that the test needs (TBinaryProtocol, framed)."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_connection((address, PORT), timeout=60)

    def call(self, name: str, *fields: bytes) -> None:
        body = struct.pack(">I", 0x80010001) + text(name) + struct.pack(">i", 0) + record(*fields)
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (length,) = struct.unpack(">i", self._read(4))
        answer = self._read(length)
        kind = answer[3]  # 2 is a reply, 3 an exception
        result = answer[4 + len(text(name)) + 4 :]
        assert kind == 2, answer
        assert result[:1] == b"\0" or result[1:3] == b"\0\0", answer  # nothing, or the field of success

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self._socket.recv(count - len(found))
            assert piece
            found += piece
        return found


@pytest.fixture
def node(own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    return own_cluster(version="3.11").nodes[0]


def mutations_of(node: CassandraNode, table_id: bytes) -> Iterator[bytes]:
    """Yield the table's mutations in the log, which the node still writes."""
    for file in list_segments(node.commitlog):
        for entry in OpenSegment(file.path, 0).events(file.path.stat().st_size):
            if not isinstance(entry, CorruptEntry) and first_table(entry.mutation) == table_id:
                yield entry.mutation


@pytest.mark.parametrize(
    ("comparator", "name", "is_refused"), [("Int32Type", b"\0\0\0\n", True), ("UTF8Type", b"ten", False)]
)
def test_names_that_are_not_text_are_refused_by_name(
    node: CassandraNode, tmp_path: Path, comparator: str, name: bytes, *, is_refused: bool
) -> None:
    """Updates name the column by its bytes, which system_schema has apart from the name that CQL shows."""
    with cql.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        node.nodetool("enablethrift")
        thrift = Thrift(node.address)
        thrift.call("set_keyspace", field(_STRING, 1, text("ks")))
        column = record(field(_STRING, 1, text(name)), field(_STRING, 2, text("UTF8Type")))
        definition = record(
            field(_STRING, 1, text("ks")),
            field(_STRING, 2, text("made")),
            field(_STRING, 5, text(comparator)),
            field(_LIST, 13, struct.pack(">bi", _STRUCT, 1) + column),
            field(_STRING, 26, text("Int32Type")),
        )
        thrift.call("system_add_column_family", field(_STRUCT, 1, definition))
        thrift.call(
            "insert",
            field(_STRING, 1, text(b"\0\0\0\1")),
            field(_STRUCT, 2, record(field(_STRING, 3, text("made")))),
            field(
                _STRUCT,
                3,
                record(
                    field(_STRING, 1, text(name)), field(_STRING, 2, text("x")), field(_LONG, 3, struct.pack(">q", 1))
                ),
            ),
            field(_INT, 4, struct.pack(">i", ONE)),
        )
        client.execute("ALTER TABLE ks.made WITH cdc = true")
        time.sleep(1.5)  # the log syncs once a second
        settings = CassandraSettings(contact_points=[node.address], port=node.port)
        with connect(settings, only=node.address) as own:
            schema = NodeSchema(tmp_path / "schema.json", own.rows, ("f", "f"))
            schema.refresh()
        assert ("ks.made" in schema.refusals()) == is_refused
        assert (schema.current_tables() == []) == is_refused
        [table] = [known for known in schema.tables.values() if known.qualified_name == "ks.made"]
        [mutation] = mutations_of(node, table.id.bytes)
        if is_refused:
            with pytest.raises(UnknownColumnError):
                read_mutation(mutation, VERSION_3014, schema.tables)
        else:
            read_mutation(mutation, VERSION_3014, schema.tables)
