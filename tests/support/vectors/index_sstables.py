"""Cassandra 5.0's files of secondary indexes, and of a snapshot whose schema.cql lacks its user types.

`python -m tests.support.vectors.index_sstables` makes `tests/vectors/index-sstables.tar.xz`: the keyspaces `ix` (tables
with indexes of each kind) and `s` (tables with user types, flushed, with a snapshot `x`), and the SSTables of
system_schema.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CassandraCluster
from tests.support.vectors.load import FOLDER

ARCHIVE = FOLDER / "index-sstables.tar.xz"
SNAPSHOT = "x"
_KEYSPACE = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
STATEMENTS = (
    _KEYSPACE.format("ix"),
    _KEYSPACE.format("s"),
    "CREATE TABLE ix.t (pk int, ck int, v text, m map<text, int>, PRIMARY KEY (pk, ck))",
    "CREATE INDEX by_ck ON ix.t (ck)",
    "CREATE INDEX by_v ON ix.t (v)",
    "CREATE INDEX by_m ON ix.t (entries(m))",
    "CREATE CUSTOM INDEX attached ON ix.t (v) USING 'StorageAttachedIndex'",
    "CREATE TABLE ix.pair (a int, b int, ck int, st int static, PRIMARY KEY ((a, b), ck))",
    "CREATE INDEX by_a ON ix.pair (a)",
    "CREATE INDEX by_st ON ix.pair (st)",
    "INSERT INTO ix.t (pk, ck, v, m) VALUES (1, 2, 'x', {'k': 3})",
    "INSERT INTO ix.pair (a, b, ck, st) VALUES (4, 5, 6, 7)",
    "CREATE TYPE s.addr (street text, zip int)",
    "CREATE TYPE s.place (name text, at frozen<addr>)",
    "CREATE TABLE s.p (k int PRIMARY KEY, a list<frozen<addr>>)",
    "CREATE TABLE s.deep (k frozen<tuple<int, addr>> PRIMARY KEY, p map<int, frozen<place>>, never set<frozen<addr>>)",
    "INSERT INTO s.p (k, a) VALUES (1, [{street: 'Elm 1', zip: 5}])",
    "INSERT INTO s.deep (k, p) VALUES ((1, {street: 'Oak 2', zip: 6}), {7: {name: 'home', at: {street: 'Fir 3'}}})",
)


@cache
def _unpacked() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="index-sstables-")


@cache
def load() -> Path:
    """The node's data directory, unpacked for as long as the process lives. Copy what you change."""
    folder = Path(_unpacked().name) / "data"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def make() -> None:
    cluster = CassandraCluster("5.0")
    try:
        cluster.start()
        with cql.connect(cluster.contact_points, cluster.port) as client:
            for statement in STATEMENTS:
                client.execute(statement)
        node = cluster.nodes[0]
        node.nodetool("flush")
        node.nodetool("snapshot", "-t", SNAPSHOT, "s")
        pack(node.folder / "data")
    finally:
        cluster.close()


def pack(data: Path) -> None:
    """The files of the tables and of their indexes; of system_schema only the tables that are read."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in sorted(data.rglob("*")):
            place = path.relative_to(data)
            if path.is_file() and place.parts[0] in ("ix", "s", "system_schema"):
                content = path.read_bytes()
                member = tarfile.TarInfo(f"{place}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    make()
