"""Makes the vectors in this folder from real Cassandras: `python -m tests.support.vectors.make_vectors 5.0 3.11 …`, or
`select`, which is 5.0's.

segments/<version>: see make_segments.py.
select: 5.0/<segment>.log.gz and its _cdc.idx as they lay in cdc_raw; expected.json: the rows of system_schema, and what
SELECT said of every table, values as hex of their serialized form.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra.cluster import Cluster, Session
from cassandra.query import dict_factory

from cdc_common.clients.cassandra import RawValuesHandler
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from tests.support.vectors import make_segments, workload
from tests.support.vectors.load import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode

SEGMENT_BYTES = 1 << 20
OPTIONS = CassandraOptions(
    commitlog_segment_mib=1, commitlog_sync_period_ms=200, yaml={"materialized_views_enabled": True}
)
SCHEMA = {
    "tables": "keyspace_name, table_name, id, flags, gc_grace_seconds, cdc",
    "columns": "keyspace_name, table_name, column_name, type, kind, position, clustering_order",
    "types": "keyspace_name, type_name, field_names, field_types",
    "dropped_columns": "keyspace_name, table_name, column_name, type, kind, dropped_time",
    "views": "keyspace_name, view_name, id, gc_grace_seconds, cdc",
}


def connect(node: CassandraNode) -> tuple[Cluster, Session]:
    cluster = Cluster([node.address], port=node.port, schema_metadata_enabled=False, token_metadata_enabled=False)
    session = cluster.connect()
    session.row_factory = dict_factory
    session.default_timeout = 60
    return cluster, session


def run(session: Session, statements: Iterable[str]) -> None:
    for statement in statements:
        session.execute(statement)


def make_schema(session: Session) -> None:
    create_keyspace, *rest = workload.schema()
    session.execute(create_keyspace)
    session.set_keyspace(workload.KEYSPACE)
    run(session, rest)


def schema_rows(session: Session) -> dict[str, list[dict[str, Any]]]:
    """The rows of system_schema as JSON can hold them: of every keyspace, for system tables are in the log too.

    The driver cannot decode the time of the system tables' dropped columns: Long.MAX_VALUE.
    """
    found = {}
    for table, columns in SCHEMA.items():
        where = f"WHERE keyspace_name = '{workload.KEYSPACE}'" if table == "dropped_columns" else ""
        rows = session.execute(f"SELECT {columns} FROM system_schema.{table} {where}")
        found[table] = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401  whatever the driver gives
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | int):
        return value
    return sorted(value) if not isinstance(value, list) else value


def select(session: Session, schema: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """{table: {"columns": names, "rows": hex values}}: every column, WRITETIME and TTL of those that have them."""
    session.row_factory = lambda names, rows: [(names, rows)]
    session.client_protocol_handler = RawValuesHandler
    found = {}
    tables = [row["table_name"] for row in _own(schema["tables"])]
    for name in tables + [row["view_name"] for row in _own(schema["views"])]:
        selected = []
        for column in _own(schema["columns"]):
            if column["table_name"] == name:
                selected += _selected(column)
        ((columns, rows),) = session.execute(f'SELECT {", ".join(selected)} FROM "{name}"')
        found[name] = {
            "columns": list(columns),
            "rows": [[None if value is None else value.hex() for value in row] for row in rows],
        }
    return found


def _own(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["keyspace_name"] == workload.KEYSPACE]


def _selected(column: dict[str, Any]) -> list[str]:
    """The column, and its WRITETIME and TTL where all of it has one."""
    name = column["column_name"]
    is_simple = column["type"].partition("<")[0] not in ("list", "set", "map", "counter", "address", "person")
    if column["kind"] not in ("static", "regular") or not is_simple:
        return [f'"{name}"']
    return [f'"{name}"', f'WRITETIME("{name}") AS "{name} written"', f'TTL("{name}") AS "{name} ttl"']


def wait_synced(node: CassandraNode, session: Session) -> None:
    """Wait until all that was written so far is in cdc_raw: three more syncs with CDC writes."""
    for _ in range(3):
        before = {path: path.read_bytes() for path in node.cdc_raw.glob("*_cdc.idx")}
        session.execute("INSERT INTO viewed (id, v) VALUES (0, 0)")
        deadline = time.monotonic() + 30
        while {path: path.read_bytes() for path in node.cdc_raw.glob("*_cdc.idx")} == before:
            if time.monotonic() > deadline:
                raise TimeoutError("the commit log was not synced")
            time.sleep(0.05)
    time.sleep(1)


def save(node: CassandraNode, folder: Path) -> None:
    for path in sorted(node.cdc_raw.iterdir()):
        if path.suffix == ".log":
            (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        else:
            shutil.copy(path, folder)


def make_select(version: str = "5.0") -> None:
    """Return the rows that SELECT shows after the same statements."""
    folder = FOLDER / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with CassandraCluster(version, options=OPTIONS) as servers:
        node = servers.nodes[0]
        cluster, session = connect(node)
        make_schema(session)
        run(session, workload.fixed())
        run(session, workload.filling(SEGMENT_BYTES))  # so that one segment is finished
        run(session, workload.random_statements(seed=1, count=300))
        time.sleep(3)  # TTLs of 1 s run out
        wait_synced(node, session)
        schema = schema_rows(session)
        expected = {"now": int(time.time()), "select": select(session, schema), "schema": schema}
        save(node, folder)
        cluster.shutdown()
    text = json.dumps(expected, ensure_ascii=False, separators=(",", ":"))
    (folder / "expected.json").write_text(text.replace("},{", "},\n{").replace("],[", "],\n[") + "\n")


def main(names: Sequence[str]) -> None:
    for name in names:
        {"select": make_select}.get(name, partial(make_segments.make, name))()


if __name__ == "__main__":
    main(sys.argv[1:])
