"""`make verify WHAT=oracle-sstable`: the SSTables of random CQL on real nodes, judged by Cassandra's own reader.

A line a version: what was compared and how much differed. The exit status is 1 if anything did, or too little was
compared. Tables are compressed by each of the version's compressors in turn, and some not at all.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cassandra_storage.files.sstables import find_sstables
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.verify.oracle.sstable_oracle import SSTableOracle, SSTableTally, judge_sstable
from dev.verify.oracle.versions import Judged, judge_all, make_parser, print_progress
from tests.support.workload.record import OPTIONS, save_schema
from tests.support.workload.recorded import SCHEMA, load_schema
from tests.support.workload.session import WorkloadSession
from tests.support.workload.tables import quoted
from tests.support.workload.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.schema.tables import TableMetadata

    Report = Callable[[str], None]

FLUSHES = 3  # in each round; the first two are compacted with each other
UNITS = 12_000  # between flushes, at most
FRESH = 0.5  # of the keys are new, so that there are many partitions
_OLD = (
    "'class': 'LZ4Compressor', 'chunk_length_in_kb': 4",
    "'class': 'SnappyCompressor'",
    "'enabled': false",
    "'class': 'DeflateCompressor', 'chunk_length_in_kb': 64",
)
_NEW = (  # from 4.0 on
    "'class': 'ZstdCompressor'",
    "'class': 'NoopCompressor'",
    "'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 4",
)
FORMS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "3.11": ("3.11", {}),
    "4.0": ("4.0", {}),
    "4.1": ("4.1", {"uuid_sstable_identifiers_enabled": True}),
    "5.0": ("5.0", {}),
    "5.0-oa": ("5.0-NONE", {}),
    "5.0-bti": ("5.0-NONE", {"sstable": {"selected_format": "bti"}}),
}
"""The forms by name: the line of VERSIONS, and what is laid over cassandra.yaml."""


def compressions(name: str) -> tuple[str, ...]:
    return _OLD if name == "3.11" else (*_OLD, *_NEW)


def judge_version(name: str, partitions: int, seed: int, report: Report) -> SSTableTally:
    """Judge at least `partitions` partitions of SSTables of one of FORMS."""
    cluster = make_cluster(name, report)
    line = FORMS[name][0]
    workload = Workload(line, seed, has_negative_partition_deletions=line != "5.0-NONE", fresh=FRESH)
    total = SSTableTally()
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        try:
            rounds = 0
            while total.partitions < partitions:
                missing = partitions - total.partitions
                tables = write_sstables(cluster, workload, rounds, min(UNITS, missing), Path(folder))
                rounds += 1
                tally = SSTableTally()
                with SSTableOracle(cluster.nodes[0]) as oracle:
                    for file, table in chosen_sstables(cluster.nodes[0].folder / "data", tables):
                        tally.add(judge_sstable(oracle.sstable(file), file, table))
                report(f"{time.strftime('%H:%M:%S')} {name}, round {rounds}: {tally}")
                total.add(tally)
        finally:
            cluster.close(keep=sys.exc_info()[0] is not None)
    return total


def make_cluster(name: str, report: Report) -> CassandraCluster:
    """One node that writes SSTables of one of FORMS."""
    line, yaml = FORMS[name]
    return CassandraCluster(line, options=replace(OPTIONS, yaml={**OPTIONS.yaml, **yaml}), report=report)


def write_sstables(
    cluster: CassandraCluster, workload: Workload, rounds: int, units: int, folder: Path, *, compacts: bool = True
) -> Mapping[bytes, TableMetadata]:
    """Let the cluster's one node write SSTables, and stop it. What it had before is truncated. The tables, by id.
    `compacts`: whether the first two of each table are compacted with each other.
    """
    (node,) = cluster.nodes
    cluster.install(cluster.version)
    node.start()
    with WorkloadSession(node) as session:
        if not rounds:
            session.execute(workload.create())
            forms = compressions(_name_of(cluster.version.line))
            for number, name in enumerate(workload.tables):
                form = forms[number % len(forms)]
                session.execute([f"ALTER TABLE {quoted(name)} WITH compression = {{{form}}}"])
        else:
            session.use()
            session.execute(f"TRUNCATE {quoted(name)}" for name in workload.tables)
        for flush in range(FLUSHES):
            session.run(workload.units(units))
            node.nodetool("flush")
            if flush == 1:
                if compacts:
                    node.nodetool("compact")
                session.execute(workload.evolve())  # what was written before has columns that are dropped now
        schema = save_schema(session.session, folder / SCHEMA)
    node.stop()
    assert schema is not None
    return load_schema(folder / SCHEMA).tables


def _name_of(line: str) -> str:
    return line.partition("-")[0]


def chosen_sstables(data: Path, tables: Mapping[bytes, TableMetadata]) -> Iterator[tuple[SSTableFile, TableMetadata]]:
    """The SSTables of the tables that are known, those of the system keyspaces too."""
    by_id = {table.id: table for table in tables.values()}
    for file in find_sstables(data):
        table_id = file.table_name[2]
        if table_id in by_id:
            yield file, by_id[table_id]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("dev.verify.oracle.sstable_run", __doc__, FORMS, "partitions", 100_000)
    options = parser.parse_args(arguments)

    def judge(name: str) -> Judged:
        tally = judge_version(name, options.partitions, options.seed, print_progress)
        is_good = not tally.different and tally.partitions >= options.partitions
        return Judged(str(tally), tally.differences, is_good)

    return judge_all(options.versions, judge)


if __name__ == "__main__":
    sys.exit(main())
