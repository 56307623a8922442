"""Small segments of real servers of every version, in every form, and what Cassandra's own reader said of them.

segments/<version>/<form>/: the files of cdc_raw as they lay there, the logs by gzip, and for each log the lines of
CommitLogOracle.segment; beside the forms the schema, as the publisher keeps it, and the keystore, whose password is
local_stack.servers.encryption.PASSWORD.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_files.keystore import read_keys
from local_stack.process.paths import project_root
from local_stack.servers.cassandra import CassandraCluster
from local_stack.servers.encryption import PASSWORD
from tests.support.workload.record import KEYSTORE, OPTIONS, SCHEMA, forms, load_schema, record
from tests.support.workload.workload import Workload
from verify.oracle.commitlog_oracle import CommitLogOracle

if TYPE_CHECKING:
    from cassandra_storage.schema import TableMetadata

FOLDER = project_root() / "tests" / "vectors" / "segments"
MUTATIONS = 24  # in each form; as many again are the server's own
SEED = 4


class SegmentVector(NamedTuple):
    """`log`: the file's bytes; `said`: Cassandra's lines about it."""

    version: str
    form: str
    name: str
    log: bytes
    said: list[str]

    def unpack(self, folder: Path) -> Path:
        path = folder / self.name
        path.write_bytes(self.log)
        return path


def vectors() -> list[SegmentVector]:
    found = []
    for path in sorted(FOLDER.glob("*/*/*.log.gz")):
        name = path.name.removesuffix(".gz")
        said = gzip.decompress(path.with_name(f"{name}.said.gz").read_bytes()).decode().splitlines()
        form = path.parent
        found.append(SegmentVector(form.parent.name, form.name, name, gzip.decompress(path.read_bytes()), said))
    return found


@cache
def tables(version: str) -> dict[bytes, TableMetadata]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / SCHEMA
        file.write_bytes(gzip.decompress((FOLDER / version / f"{SCHEMA}.gz").read_bytes()))
        return load_schema(file).tables


@cache
def keys(version: str) -> dict[str, bytes]:
    return read_keys(FOLDER / version / KEYSTORE, PASSWORD)


def make(version: str) -> None:
    """Anew, from a node of that version."""
    target = FOLDER / version
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="vectors-") as name:
        folder = Path(name)
        cluster = CassandraCluster(version, options=replace(OPTIONS, commitlog_segment_mib=1))
        try:
            chosen = forms(cluster.version)
            recordings = list(record(cluster, Workload(version, SEED), chosen, MUTATIONS, folder))
            with CommitLogOracle(cluster.nodes[0]) as oracle:
                for form, segments, _ in recordings:
                    for path in segments:
                        _save(path, target / form, list(oracle.segment(path)))
        finally:
            cluster.close()
        _compress(folder / SCHEMA, target / f"{SCHEMA}.gz")
        shutil.copy(folder / KEYSTORE, target)


def _save(path: Path, folder: Path, said: list[str]) -> None:
    """Segments that were never used are left out."""
    if len(said) == 1:
        return
    folder.mkdir(parents=True, exist_ok=True)
    _compress(path, folder / f"{path.name}.gz")
    (folder / f"{path.name}.said.gz").write_bytes(gzip.compress("\n".join(said).encode(), mtime=0))
    index = path.with_name(path.name.replace(".log", "_cdc.idx"))
    if index.exists():
        shutil.copy(index, folder)


def _compress(source: Path, target: Path) -> None:
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))
