"""Commit logs, mutations and split updates against Cassandra 5.0's own classes.

A node takes the vectors' statements and random ones and is stopped; CommitLogReader then reads the same segments.
`CDC_ORACLE_ROUNDS` multiplies the random statements and examples, `CDC_ORACLE_SEED` starts another series.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.commitlog.segment import CommitLogEntry, SegmentReader
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, NO_ROW_DELETION
from cassandra_storage.formats.rows.mutation import split_mutation
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import TableMetadata
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.verify.oracle.commitlog_oracle import CommitLogOracle
from dev.verify.oracle.described import plain
from dev.verify.oracle.judge import Tally, judge_segment, normalised
from tests.support.cassandra_storage.split_parts import is_rewritten
from tests.support.cassandra_storage.update_builder import updates as generated_updates
from tests.support.vectors import make_vectors, workload
from tests.support.vectors.load import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.rows.partition_update import SingleRowUpdate

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

ROUNDS = int(os.environ.get("CDC_ORACLE_ROUNDS", "1"))
SEED = int(os.environ.get("CDC_ORACLE_SEED", "7"))
MESSAGING, NEWER = 12, 13


class Log(NamedTuple):
    """A stopped node's segments, its tables, and its judge."""

    segments: list[Path]
    tables: dict[bytes, TableMetadata]
    oracle: CommitLogOracle


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    with CassandraCluster("5.0", options=make_vectors.OPTIONS) as servers:
        (node,) = servers.nodes
        cluster, session = make_vectors.connect(node)
        make_vectors.make_schema(session)
        make_vectors.run(session, workload.fixed())
        make_vectors.run(session, workload.random_statements(SEED, 1000 * ROUNDS))
        schema = make_vectors.schema_rows(session)
        make_vectors.wait_synced(node, session)
        cluster.shutdown()
        node.stop()
        with CommitLogOracle(node) as oracle:
            yield Log(sorted(node.cdc_raw.glob("*.log")), tables_of(schema), oracle)


def entries(path: Path) -> list[CommitLogEntry]:
    data = path.read_bytes()
    events = list(SegmentReader(path.name).read(data, len(data)))
    found = [event for event in events if isinstance(event, CommitLogEntry)]
    assert len(found) == len(events)
    return found


def test_segments(log: Log) -> None:
    """Every mutation of every segment, at the same position, with the same content."""
    total = Tally()
    for path in log.segments:
        total.add(judge_segment(log.oracle.segment(path), path, log.tables, {}))
    assert total.differences == []
    assert total.mutations > 1000
    assert total.unknown == total.refused == 0


def parts_of(log: Log) -> Iterator[tuple[TableMetadata, SingleRowUpdate]]:
    for path in log.segments:
        for entry in entries(path):
            for table, parts in split_mutation(entry.mutation, MESSAGING, log.tables):
                yield from ((table, part) for part in parts)


def test_split_updates(log: Log) -> None:
    """Each part is an update to Cassandra too: the same content, no byte left over, the same bytes when written
    again; and both of us write its row the same in the newer messaging version.
    """
    count = 0
    for table, part in parts_of(log):
        if table.keyspace != workload.KEYSPACE:
            continue
        tables = {table.id.bytes: table}
        read, _ = read_partition_update(part.update, 0, MESSAGING, tables)
        said = log.oracle.update(MESSAGING, part.update)
        assert said.pop("left") == 0
        again = bytes.fromhex(said.pop("again"))
        assert plain([read]) == normalised({"updates": [said["update"]]})["updates"]
        if not table.dropped_columns:
            assert again == part.update
        newer = bytes.fromhex(log.oracle.update(MESSAGING, part.update, NEWER)["again"])
        assert read_partition_update(newer, 0, NEWER, tables)[0] == read
        if part.kind in ("row", "static") and not table.dropped_columns:
            assert is_rewritten(part, table, MESSAGING)
            assert is_rewritten(part._replace(pieces=(newer,)), table, NEWER)
        count += 1
    assert count > 1000


@given(st.data())
@settings(max_examples=200 * ROUNDS, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
def test_generated_updates(log: Log, data: st.DataObject) -> None:
    """Cassandra reads the updates that our writer makes of any rows, in the version that the state is stored in."""
    names = ("wide", "collections", "broad", "natives")
    tables = [table for table in log.tables.values() if table.keyspace == workload.KEYSPACE and table.name in names]
    # Arbitrary ranges overlap, and Cassandra makes others of them.
    written = data.draw(generated_updates(st.sampled_from(tables), nulls=False, ranges=False))
    said = log.oracle.update(NEWER, written.data)
    assert "error" not in said, said
    assert said.pop("left") == 0
    kept = [_kept(row) for row in written.update.rows]
    static_row = written.update.static_row and _kept(written.update.static_row)
    expected = written.update._replace(
        rows=tuple(row for row in kept if not row.is_empty),
        static_row=static_row if static_row and not static_row.is_empty else None,
    )
    assert normalised({"updates": [said["update"]]})["updates"] == plain([expected])


def _kept(row: Row) -> Row:
    """BTreeRow.Builder leaves out what the row's own deletions shadow; our reader leaves that to merging."""
    columns: dict[str, ColumnData] = {}
    for name, data in row.columns.items():
        if isinstance(data, Cell):
            if not row.deletion.time.deletes(data.timestamp):
                columns[name] = data
            continue
        cells = tuple(
            cell
            for cell in data.cells
            if not row.deletion.time.deletes(cell.timestamp) and cell.timestamp >= data.deletion.marked_for_delete_at
        )
        if cells or not data.deletion.is_live:
            columns[name] = ComplexColumnData(data.deletion, cells)
    liveness = NO_LIVENESS if row.deletion.time.deletes(row.liveness.timestamp) else row.liveness
    is_shadowed = row.deletion.is_shadowable and not liveness.is_empty
    return row._replace(columns=columns, liveness=liveness, deletion=NO_ROW_DELETION if is_shadowed else row.deletion)
