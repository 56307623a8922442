"""SSTables of real nodes, with what Cassandra's own reader said of them.

`python -m tests.support.vectors.sstables [FORM…]` makes `tests/vectors/sstables/<form>.tar.xz`: the keyspace `ks` (and
of some forms system_schema) as it lay in the node's data directory, without the components that readers do not need;
`schema.json`, as the publisher keeps it; `expected.json`, by the path of Data.db the lines of verify's SSTableOracle.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from cassandra_storage.files.sstables import find_sstables
from cassandra_storage.formats.schema.tables import TableMetadata
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, CRC, DATA, DIGEST, STATISTICS, TOC
from cdc_common.messages.tables import from_json
from dev.verify.oracle.sstable_oracle import SSTableOracle
from dev.verify.oracle.sstable_run import FORMS, chosen_sstables, make_cluster, write_sstables
from dev.verify.oracle.type_values import KEYSPACE
from tests.support.vectors.load import FOLDER
from tests.support.workload.recorded import SCHEMA, load_schema
from tests.support.workload.workload import Workload

if TYPE_CHECKING:
    from cassandra_storage.files.sstables import SSTableFile
    from dev.local_stack.servers.cassandra import CassandraCluster

SSTABLES = FOLDER / "sstables"
COMPONENTS = (DATA, STATISTICS, COMPRESSION_INFO, CRC, DIGEST, TOC)
WITH_SYSTEM_SCHEMA = ("3.11", "5.0-bti")
SEED, _UNITS = 11, 70


class SSTableVectors(NamedTuple):
    """`data`: the data directory. `expected`: by the path of Data.db in it."""

    form: str
    data: Path
    tables: dict[UUID, TableMetadata]
    expected: dict[str, list[str]]

    def files(self) -> list[tuple[SSTableFile, TableMetadata, list[str]]]:
        """The SSTables of the keyspace `ks`, each with its table and what Cassandra read."""
        found = []
        for file in find_sstables(self.data / KEYSPACE):
            table_id = file.table_name[2]
            assert table_id is not None
            lines = self.expected.get(str(file.data_path.relative_to(self.data)))
            if lines is not None:
                found.append((file, self.tables[table_id], lines))
        return found


# Releases that wrote versions of their own (ma, mb, mc, md, na), and the line that reads them: see old_sstables.py.
OLD_RELEASES = {"3.0.0": "3.11", "3.0.7": "3.11", "3.0.17": "3.11", "3.0.22": "3.11", "4.0-rc1": "4.0"}
VERSION_OF = {"3.0.0": "ma", "3.0.7": "mb", "3.0.17": "mc", "3.0.22": "md", "4.0-rc1": "na"}
FORMS_MADE = tuple(FORMS)


def line_of(form: str) -> str:
    """The key of the form's version in local_stack's VERSIONS."""
    return FORMS[form][0]


@cache
def _unpacked() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sstables-")


@cache
def load(form: str) -> SSTableVectors:
    """Unpacked for as long as the process lives. The folder is read only: copy what you change."""
    folder = Path(_unpacked().name) / form
    with tarfile.open(SSTABLES / f"{form}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    expected: dict[str, list[str]] = json.loads((folder / "expected.json").read_text())
    tables = {table.id: table for table in load_schema(folder / SCHEMA).tables.values()}
    return SSTableVectors(form, folder / "data", tables, expected)


def make(form: str) -> None:
    cluster = make_cluster(form, print)
    line = FORMS[form][0]
    workload = Workload(line, SEED, has_negative_partition_deletions=line != "5.0-NONE")
    try:
        with tempfile.TemporaryDirectory() as name:
            tables = write_sstables(cluster, workload, 0, _UNITS, Path(name))
            pack(form, cluster, tables, Path(name, SCHEMA))
    finally:
        cluster.close()


def pack(form: str, cluster: CassandraCluster, tables: Any, schema: Path) -> None:  # noqa: ANN401 - by id
    data = cluster.nodes[0].folder / "data"
    expected = {}
    with SSTableOracle(cluster.nodes[0]) as oracle:
        for file, table in chosen_sstables(data, tables):
            if table.keyspace == KEYSPACE:
                expected[str(file.data_path.relative_to(data))] = list(oracle.sstable(file))
    kept = json.loads(schema.read_text())
    kept["tables"] = [entry for entry in kept["tables"] if from_json(entry["table"].encode()).keyspace == KEYSPACE]
    SSTABLES.mkdir(exist_ok=True)
    with tarfile.open(SSTABLES / f"{form}.tar.xz", "w:xz", preset=9) as archive:
        for keyspace in (KEYSPACE, *(["system_schema"] if form in WITH_SYSTEM_SCHEMA else [])):
            for file in find_sstables(data / keyspace):
                for component in COMPONENTS:
                    if file.path(component).exists():
                        name = f"data/{file.path(component).relative_to(data)}"
                        _add(archive, name, file.path(component).read_bytes())
        _add(archive, SCHEMA, json.dumps(kept).encode())
        _add(archive, "expected.json", json.dumps(expected).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    for name in sys.argv[1:] or FORMS:
        make(name)
