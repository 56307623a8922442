"""SSTables of real nodes with all their components, for what is read through an index.

`python -m tests.support.vectors.indexed_sstables [FORM…]` makes `tests/vectors/indexed/<form>.tar.xz`: two SSTables of
the table `ks.indexed` (id int, c int, v text), of narrow partitions and some wide enough for an index of their rows.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.sstables import find_sstables
from cassandra_storage.files.table_sstables import table_files
from cassandra_storage.formats.schema.cql_schema import parse_schema
from cassandra_storage.formats.schema.tables import TableMetadata
from cassandra_storage.formats.sstable.file_name import parse_table_folder
from dev.verify.oracle.sstable_run import make_cluster
from tests.support.vectors.load import FOLDER
from tests.support.workload.session import WorkloadSession

if TYPE_CHECKING:
    from cassandra_storage.files.sstables import SSTableFile

INDEXED = FOLDER / "indexed"
FORMS = ("3.11", "5.0-oa", "5.0-bti")
PARTITIONS, WIDE, ROWS = 1500, 7, 300  # each WIDEth hundredth of them has so many rows
_VALUE = "v" * 250
_TABLE = "CREATE TABLE ks.indexed (id int, c int, v text, PRIMARY KEY (id, c))"


class IndexedVectors(NamedTuple):
    data: Path
    table: TableMetadata

    def files(self) -> list[SSTableFile]:
        return table_files([self.data], self.table)


@cache
def _unpacked() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="indexed-")


@cache
def load(form: str) -> IndexedVectors:
    """Unpacked for as long as the process lives. The folder is read only: copy what you change."""
    folder = Path(_unpacked().name) / form
    with tarfile.open(INDEXED / f"{form}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    (table_folder,) = (folder / "ks").iterdir()
    named = parse_table_folder(table_folder.name)
    assert named is not None
    (table,) = parse_schema(f"{_TABLE} WITH ID = {named[1]};")
    return IndexedVectors(folder, table)


def entry_starts(index: bytes) -> list[int]:
    """Return where the entries of an Index.db begin, by the layout alone."""
    found, at = [], 0

    def vint() -> int:
        nonlocal at
        more = 8 - (index[at] ^ 0xFF).bit_length()
        value = int.from_bytes(index[at : at + more + 1], "big") & ((1 << (7 * more + 7)) - 1)
        at += more + 1
        return value

    while at < len(index):
        found.append(at)
        at += 2 + int.from_bytes(index[at : at + 2], "big")
        vint()
        size = vint()
        at += size
    assert at == len(index)
    return found


def make(form: str) -> None:
    cluster = make_cluster(form, print)
    try:
        (node,) = cluster.nodes
        cluster.install(cluster.version)
        node.start()
        with WorkloadSession(node) as session:
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            session.execute([f"CREATE KEYSPACE ks WITH replication = {replication}", _TABLE])
            insert = session.session.prepare("INSERT INTO ks.indexed (id, c, v) VALUES (?, ?, ?)")
            for step in (2, 3):
                for id_ in range(0, PARTITIONS, step):
                    for c in range(ROWS if id_ % 100 == WIDE * step else 1):
                        session.session.execute(insert, (id_, c, _VALUE if c else str(step)))
                node.nodetool("flush")
        node.stop()
        pack(form, node.folder / "data")
    finally:
        cluster.close()


def pack(form: str, data: Path) -> None:
    INDEXED.mkdir(exist_ok=True)
    with tarfile.open(INDEXED / f"{form}.tar.xz", "w:xz", preset=9) as archive:
        for file in find_sstables(data / "ks"):
            for path in sorted(file.folder.glob(f"{file.descriptor.base}-*")):
                content = path.read_bytes()
                member = tarfile.TarInfo(f"{path.relative_to(data)}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    for name in sys.argv[1:] or FORMS:
        make(name)
