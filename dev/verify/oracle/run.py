"""`make verify WHAT=oracle`: random CQL against real nodes, judged by Cassandra's own reader.

A line a version: what was compared and how much differed. The exit status is 1 if anything did, or too little was
compared.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cassandra_storage.files.keystore import read_keys
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.local_stack.servers.encryption import PASSWORD
from dev.verify.oracle.batches import judge_batches
from dev.verify.oracle.commitlog_oracle import CommitLogOracle
from dev.verify.oracle.damage import DamageJudge
from dev.verify.oracle.judge import Tally, judge_made, judge_segment, summary
from dev.verify.oracle.parts import judge_parts, mutations_of
from dev.verify.oracle.type_values import KEYSPACE
from dev.verify.oracle.versions import Judged, judge_all, make_parser, print_progress
from tests.support.workload.record import OPTIONS, Recording, forms, record
from tests.support.workload.recorded import KEYSTORE, SCHEMA, load_schema
from tests.support.workload.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Report = Callable[[str], None]

MADE = 5000
MADE_TABLES = ("made", "counters")
DAMAGED = 100  # copies of a segment of each form
PARTS = 10  # of every so many mutations the split parts are read and written again
MESSAGING = {"3.11": (11,), "4.0": (12,), "4.1": (12,), "5.0": (12, 13), "5.0-NONE": (12, 13)}


def judge_version(
    version: str, chosen: Sequence[str], mutations: int, seed: int, report: Report, made: int = MADE
) -> Tally:
    """Judge at least `mutations` mutations, spread over the forms, each written by a node and read by both readers;
    then `made` mutations that no statement makes, in each messaging version.
    """
    with tempfile.TemporaryDirectory(prefix="oracle-") as name:
        folder = Path(name)
        cluster = CassandraCluster(version, options=OPTIONS, report=report)
        try:
            recordings = []
            for recording in record(cluster, Workload(version, seed), chosen, -(-mutations // len(chosen)), folder):
                written = f"{len(recording.segments)} segments written, {recording.failed} statements failed"
                report(f"{time.strftime('%H:%M:%S')} {version} {recording.form}: {written}")
                recordings.append(recording)
            return _judge(cluster, folder, recordings, seed, report, made)
        finally:
            cluster.close(keep=sys.exc_info()[0] is not None)


def _judge(
    cluster: CassandraCluster, folder: Path, recordings: list[Recording], seed: int, report: Report, made: int
) -> Tally:
    tables = load_schema(folder / SCHEMA).tables
    keys = read_keys(folder / KEYSTORE, PASSWORD)
    total = Tally()
    with CommitLogOracle(cluster.nodes[0]) as oracle:
        for recording in recordings:
            of_form = Tally()
            for path in recording.segments:
                of_form.add(judge_segment(oracle.segment(path), path, tables, keys))
                of_form.add(judge_batches(path, tables, keys))
            of_form.add(judge_parts(oracle, mutations_of(recording.segments, keys, PARTS), tables))
            rng = random.Random(f"{seed} {recording.form}")
            for path in rng.choices(recording.segments, k=4):
                of_form.add(DamageJudge(oracle, path, tables, keys).judge(rng, DAMAGED // 4))
            report(f"{cluster.version.line} {recording.form}: {summary(of_form)}")
            total.add(of_form)
        for number in MESSAGING[cluster.version.line]:
            tally = judge_made(oracle.made(number, seed, made, KEYSPACE, *MADE_TABLES), number, tables)
            report(f"{cluster.version.line} made in messaging version {number}: {summary(tally)}")
            total.add(tally)
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("dev.verify.oracle.run", __doc__, VERSIONS, "mutations", 100_000)
    parser.add_argument(
        "--forms", help="of commit logs, by commas: none, LZ4, …, encrypted (default: all of the version's)"
    )
    options = parser.parse_args(arguments)

    def judge(version: str) -> Judged:
        chosen = options.forms.split(",") if options.forms else forms(VERSIONS[version])
        tally = judge_version(version, chosen, options.mutations, options.seed, print_progress)
        return Judged(summary(tally), tally.differences, not tally.different and tally.mutations >= options.mutations)

    return judge_all(options.versions, judge)


if __name__ == "__main__":
    sys.exit(main())
