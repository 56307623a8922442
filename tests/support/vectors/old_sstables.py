"""SSTables of versions that the releases here do not write: `python -m tests.support.vectors.old_sstables [RELEASE…]`.

The CQLSSTableWriter of an older release writes them, and the reader of the newest release of that line, which has the
same tables, says what is in them. They lie beside those of sstables.py, in the same form.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.ivy import Ivy
from dev.local_stack.java.jars import install
from dev.local_stack.java.runtime import find_java
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.sstable_run import make_cluster
from tests.support.vectors.sstables import OLD_RELEASES, pack
from tests.support.workload.record import save_schema
from tests.support.workload.recorded import SCHEMA, load_schema
from tests.support.workload.session import WorkloadSession

if TYPE_CHECKING:
    from collections.abc import Sequence

WRITER = Path(__file__).with_name("OldSSTables.java")
NAMES = ("lz4", "plain", "deflate", "snappy")
COLUMNS = (
    "(id int, c int, s text static, v text, n bigint, m map<text, int>, l frozen<list<int>>,"
    " t frozen<tuple<int, text>>, PRIMARY KEY (id, c)) WITH CLUSTERING ORDER BY (c DESC)"
)
# What releases before 3.11.10 need, and later ones have as a newer library.
JACKSON = tuple(f"org.codehaus.jackson:jackson-{name}-asl:1.9.13" for name in ("core", "mapper"))


def write(release: str, line: str, folder: Path) -> None:
    """SSTables by that release, in `folder`/ks/<table>."""
    version = VERSIONS[line]
    own, classes = folder / "jars", folder / "classes"
    own.mkdir()
    classes.mkdir()
    failed = Ivy().retrieve([f"org.apache.cassandra:cassandra-all:{release}", *JACKSON], own, lambda: None)
    assert not failed, failed
    compile_java([WRITER], classes, libraries=[own / f"cassandra-all-{release}.jar"])
    others = [jar for jar in install(version.jars).glob("*.jar") if not jar.name.startswith("cassandra-")]
    command = [str(find_java(version.java).executable), *version.module_options()]
    command += ["-cp", os.pathsep.join(map(str, [classes, *own.glob("*.jar"), *others])), WRITER.stem, str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)


def make(release: str) -> None:
    line = OLD_RELEASES[release]
    cluster = make_cluster(line, print)
    (node,) = cluster.nodes
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(release, line, folder)
            cluster.install(cluster.version)
            node.start()
            with WorkloadSession(node) as session:
                replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
                session.execute([f"CREATE KEYSPACE ks WITH replication = {replication}"])
                session.execute(f"CREATE TABLE ks.{table} {COLUMNS}" for table in NAMES)
                save_schema(session.session, folder / SCHEMA)
            node.stop()
            for table in NAMES:
                (target,) = (node.folder / "data" / "ks").glob(f"{table}-*")
                shutil.copytree(folder / "ks" / table, target, dirs_exist_ok=True)
            pack(release, cluster, load_schema(folder / SCHEMA).tables, folder / SCHEMA)
    finally:
        cluster.close()


def main(releases: Sequence[str]) -> None:
    for release in releases or OLD_RELEASES:
        make(release)


if __name__ == "__main__":
    main(sys.argv[1:])
