"""Records what a workload leaves in the commit logs of a real node: its segments in every form, and its schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.commitlog.descriptor import index_file_name
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.encryption import make_keystore
from publisher.tables.node_schema import NodeSchema
from tests.support.workload.recorded import KEYSTORE, SCHEMA
from tests.support.workload.session import WorkloadSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from dev.local_stack.servers.cassandra_versions import CassandraVersion
    from tests.support.workload.workload import Workload

    Report = Callable[[str], None]

PLAIN, ENCRYPTED = "none", "encrypted"
CONDITIONAL = 30  # lightweight transactions in each form
_PATIENCE = ("read_request", "write_request", "counter_write_request", "cas_contention", "request")
OPTIONS = CassandraOptions(
    heap_mib=900,
    commitlog_sync_period_ms=200,
    yaml={
        "enable_materialized_views": True,
        **{f"{name}_timeout_in_ms": 60_000 for name in _PATIENCE},
        "batch_size_warn_threshold_in_kb": 50_000,
        "batch_size_fail_threshold_in_kb": 50_000,
    },
    # A TTL that reaches beyond 2038 is capped where 2038 is the end of time.
    jvm_options=["-Dcassandra.expiration_date_overflow_policy=CAP_NOWARN"],
)


class Recording(NamedTuple):
    """Segments of one form: `none`, a compressor, or `encrypted`. `failed`: statements that the server failed at."""

    form: str
    segments: list[Path]
    failed: int


def forms(version: CassandraVersion) -> list[str]:
    return [PLAIN, *version.compressors, ENCRYPTED]


def record(
    cluster: CassandraCluster, workload: Workload, forms: Sequence[str], mutations: int, folder: Path
) -> Iterator[Recording]:
    """Start the cluster's one node again for each form, let it take at least `mutations` mutations, and move its
    segments to `folder`/form. The node is stopped whenever a recording is given out; the schema between them changes.
    `folder` contains the keystore and, after the last form, what the publisher remembers of the schema.
    """
    cluster.install(cluster.version)
    keystore = make_keystore(folder / KEYSTORE, cluster.java)
    options = cluster.options
    for number, form in enumerate(forms):
        (node,) = cluster.nodes
        compression = None if form in (PLAIN, ENCRYPTED) else form
        cluster.options = replace(
            options, commitlog_compression=compression, keystore=keystore if form == ENCRYPTED else None
        )
        node.start()
        with WorkloadSession(node) as session:
            if number:
                session.use()
            session.execute(workload.evolve() if number else workload.create())
            failed = session.run(workload.units(mutations))
            session.execute(workload.conditional(CONDITIONAL))
            if number == len(forms) - 1:
                save_schema(session.session, folder / SCHEMA)
        node.stop()
        yield Recording(form, move_segments(node, folder / form), failed)


def save_schema(session: Session, file: Path) -> NodeSchema:
    """The schema of the node, in the file as the publisher keeps it."""
    schema = NodeSchema(file, lambda query: list(session.execute(query)), ("", ""))
    schema.refresh()
    return schema


def move_segments(node: CassandraNode, folder: Path) -> list[Path]:
    """Those in cdc_raw, with their index files, and (3.11 moves them there later) those in the commit log."""
    folder.mkdir(exist_ok=True)
    for source in (node.cdc_raw, node.folder / "commitlog"):
        for path in sorted(source.iterdir()):
            if (folder / path.name).exists():
                path.unlink()
            else:
                path.rename(folder / path.name)
    for path in folder.glob("*_cdc.idx"):
        assert any(index_file_name(log.name) == path.name for log in folder.glob("*.log"))
    return sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
