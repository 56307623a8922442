"""Makes docs/example-segment: a few statements in the commit log of a real node, for a first look at one."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cassandra_files.segments import read_segment
from cassandra_storage.commitlog import CommitLogEntry
from local_stack.cassandra import CassandraCluster
from tests.workload.record import OPTIONS, SCHEMA, move_segments, save_schema
from tests.workload.session import WorkloadSession

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parents[2] / "docs" / "example-segment"
KEYSPACE = "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
TABLES = (
    """CREATE TABLE shop.orders (customer int, number int, address text static, item text, amount decimal,
    tags set<text>, PRIMARY KEY (customer, number)) WITH cdc = true""",
    "CREATE TABLE shop.stock (item text PRIMARY KEY, pieces int, changed timestamp) WITH cdc = true",
    "CREATE TABLE shop.visits (page text PRIMARY KEY, count counter) WITH cdc = true",
)
STATEMENTS = (
    """INSERT INTO shop.orders (customer, number, address, item, amount, tags)
    VALUES (1, 100, '1 Main Street', 'chair', 49.90, {'new', 'gift'})""",
    """BEGIN BATCH INSERT INTO shop.orders (customer, number, item, amount) VALUES (1, 101, 'table', 120);
    UPDATE shop.stock SET pieces = 4, changed = '2026-01-01 12:00:00+0000' WHERE item = 'table'; APPLY BATCH""",
    "UPDATE shop.orders USING TTL 86400 SET tags = tags + {'express'} WHERE customer = 1 AND number = 100",
    "UPDATE shop.visits SET count = count + 1 WHERE page = '/chairs'",
    "DELETE amount FROM shop.orders WHERE customer = 1 AND number = 101",
    "DELETE FROM shop.orders WHERE customer = 1 AND number > 100",
    "DELETE FROM shop.stock WHERE item = 'table'",
)


def make() -> None:
    """From a node of 5.0. Its schema was written to another segment; the zeroes behind the last entry are left out."""
    cluster = CassandraCluster("5.0", options=replace(OPTIONS, commitlog_segment_mib=1))
    try:
        _run(cluster, (KEYSPACE, *TABLES), None)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        for path in _run(cluster, STATEMENTS, FOLDER / SCHEMA):
            ends = [event.end_position for event in read_segment(path) if isinstance(event, CommitLogEntry)]
            if ends:
                (FOLDER / path.name).write_bytes(path.read_bytes()[: ends[-1]])
                shutil.copy(path.with_name(path.name.replace(".log", "_cdc.idx")), FOLDER)
    finally:
        cluster.close()


def _run(cluster: CassandraCluster, statements: Sequence[str], schema: Path | None) -> list[Path]:
    """The segments of a node that has taken the statements since it started, in a folder of their own."""
    (node,) = cluster.nodes
    cluster.install()
    node.start()
    with WorkloadSession(node) as session:
        session.execute(statements)
        if schema:
            save_schema(session.session, schema)
    node.stop()
    return move_segments(node, Path(tempfile.mkdtemp(dir=cluster.folder.path)))
