"""Makes the segments of tests.support.vectors.segments again."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from dev.local_stack.servers.cassandra import CassandraCluster
from dev.verify.oracle.commitlog_oracle import CommitLogOracle
from tests.support.vectors.segments import FOLDER
from tests.support.workload.record import OPTIONS, forms, record
from tests.support.workload.recorded import KEYSTORE, SCHEMA
from tests.support.workload.workload import Workload

MUTATIONS = 24  # in each form; as many again are the server's own
SEED = 4


def make(version: str) -> None:
    """Make the segments with a node of that version."""
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
