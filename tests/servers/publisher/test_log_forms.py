"""A publisher beside a real node whose commit log is compressed, and after a restart encrypted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from cassandra_storage.files.segments import list_segments, read_descriptor_of
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.encryption import KEY_ALIAS, PASSWORD, make_keystore
from tests.support.publisher.publisher_process import PublisherProcess, settings_beside
from tests.support.publisher.sent import at_least, cell, int_value
from tests.support.vectors.make_vectors import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra_storage.formats.commitlog.descriptor import CommitLogDescriptor
    from dev.local_stack.servers.cassandra import CassandraNode
    from tests.support.publisher.sent import Sent

pytestmark = pytest.mark.servers

KEYSPACE = "forms"
ROWS = 3000  # of each form: more than a segment of them
SEGMENT_MIB = 1
OPTIONS = CassandraOptions(commitlog_segment_mib=SEGMENT_MIB, commitlog_compression="LZ4")


@pytest.fixture
def cluster() -> Iterator[CassandraCluster]:
    with CassandraCluster("5.0", options=OPTIONS) as cluster:
        yield cluster


@pytest.mark.exhaustive
def test_a_log_that_is_compressed_and_then_encrypted(
    cluster: CassandraCluster,
    kafka_parts: dict[str, object],
    tmp_path: Path,
    sent: Callable[..., list[Sent]],
) -> None:
    """Every row comes out once, with its value; the publisher runs on while the node restarts."""
    (node,) = cluster.nodes
    keystore = make_keystore(tmp_path / "keystore", cluster.java)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    settings = {
        **kafka_parts,
        "publisher.keystore": keystore,
        "publisher.keystore_password": PASSWORD,
        "publisher.allow_plaintext_downstream": True,
    }
    publisher = PublisherProcess(settings_beside(cluster, state) | settings, tmp_path)
    try:
        publisher.start()
        write(node, "compressed", range(ROWS))
        check(sent(KEYSPACE, "compressed", at_least(ROWS)), range(ROWS))
        assert {(form.compression, form.encryption) for form in forms(node)} == {("LZ4Compressor", None)}
        node.stop()
        cluster.options = replace(OPTIONS, commitlog_compression=None, keystore=keystore)
        node.start()
        write(node, "encrypted", range(ROWS))
        check(sent(KEYSPACE, "encrypted", at_least(ROWS)), range(ROWS))
        assert KEY_ALIAS in {form.encryption.key_alias for form in forms(node) if form.encryption}
        assert publisher.stop() == 0
    finally:
        publisher.kill()


def write(node: CassandraNode, table: str, numbers: range) -> None:
    driver, session = connect(node)
    try:
        session.execute(
            f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE}"
            " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute(f"CREATE TABLE {KEYSPACE}.{table} (id int PRIMARY KEY, v text) WITH cdc = true")
        insert = session.prepare(f"INSERT INTO {KEYSPACE}.{table} (id, v) VALUES (?, ?)")
        execute_concurrent_with_args(session, insert, [(number, value(number)) for number in numbers], 32)
    finally:
        driver.shutdown()


def value(number: int) -> str:
    return f"value of {number} " + "x" * (number % 800)


def check(found: list[Sent], numbers: range) -> None:
    updates = [raw_message.update for raw_message in found if raw_message.update is not None]
    values = Counter((update.partition_key, cell(update.rows[0], "v").value) for update in updates)
    assert values == Counter((int_value(number), value(number).encode()) for number in numbers)


def forms(node: CassandraNode) -> list[CommitLogDescriptor]:
    """The descriptors of the segments that the publisher has not deleted yet."""
    descriptors = [read_descriptor_of(file.path) for file in list_segments(node.cdc_raw)]
    return [descriptor for descriptor in descriptors if descriptor is not None]
