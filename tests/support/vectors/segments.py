"""Small segments of real servers of every version, in every form, and what Cassandra's own reader said of them.

segments/<version>/<form>/: the files of cdc_raw as they lay there, the logs by gzip, and for each log the lines of
CommitLogOracle.segment; beside the forms the schema, as the publisher keeps it, and the keystore, whose password is
dev.local_stack.servers.encryption.PASSWORD.
"""

from __future__ import annotations

import gzip
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.keystore import read_keys
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.encryption import PASSWORD
from tests.support.workload.recorded import KEYSTORE, SCHEMA, load_schema

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

FOLDER = project_root() / "tests" / "vectors" / "segments"


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
