"""Tombstones as a table of erasures, which says of each row whether its key was erased later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import duckdb
from moto import mock_aws
from pyiceberg.catalog.sql import SqlCatalog

from archive.events.ledger import LedgerEvent
from archive.events.verify import LedgerCheck
from archive.registrar.glue_tables import GlueTables
from archive.registrar.iceberg_tables import IcebergTables
from archive.registrar.registrar import Registrar
from tests.support.archive.scene import TOPIC, Archive, Topic

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from archive.registrar.tables import Tables

TABLE = "cdc_shop.orders"
ERASURES = "cdc_shop.orders__erasures"
KEPT = """
    SELECT _kafka_partition, _kafka_offset FROM orders AS o WHERE NOT EXISTS (
        SELECT * FROM erasures AS e WHERE e._kafka_topic = o._kafka_topic AND e._kafka_key = o._kafka_key
            AND e._kafka_partition = o._kafka_partition AND e._kafka_offset > o._kafka_offset)
"""
"""The query of docs/guides/archive.md."""
KEYS = (b"a", b"b", b"c", b"d")


def send_all(topic: Topic) -> None:
    """Changes, records and bytes of each key; some keys are erased, and one of them comes back."""
    topic.registry.schemas[3] = {"type": "record", "name": "Click", "fields": [{"name": "id", "type": "int"}]}
    for number, key in enumerate(KEYS):
        topic.send_change(number % 2, number, key=key, hours=number % 2)
        topic.send(number % 2, topic.encode(3, {"id": number}), key)
        topic.send(number % 2, b"no header", key)
    topic.send(0, None, b"a")
    topic.send(1, None, b"d")
    topic.send(0, None, None)
    topic.send_change(0, 9, key=b"a")


def not_erased(topic: Topic) -> set[tuple[int, int]]:
    """Partition and offset of what a plain fold keeps."""
    erased: dict[tuple[int, bytes | None], int] = {}
    for partition, messages in enumerate(topic.messages):
        erased |= {(partition, key): offset for key, value, offset, _ in messages if value is None}
    return {
        (partition, offset)
        for partition, messages in enumerate(topic.messages)
        for key, value, offset, _ in messages
        if value is not None and offset > erased.get((partition, key), -1)
    }


def archived(folder: Path, layout: str) -> Archive:
    topic = Topic(partitions=2)
    send_all(topic)
    archive = Archive(topic, folder, layout=layout, tombstones="erasures", on_error="bytes")
    archive.chunk = 4  # so that erasures come in another cut than their rows
    archive.cut(rows=1)
    archive.run()
    return archive


def register(archive: Archive, layout: Any, tables: Tables) -> None:  # noqa: ANN401 - a literal
    registrar = Registrar("lake", {layout: tables}, archive.store, "events-topic")
    registrar.take([LedgerEvent(0, offset, event) for offset, event in enumerate(archive.events())])
    registrar.commit()
    assert registrar.errors == {}


def test_tables_of_iceberg(tmp_path: Path) -> None:
    archive = archived(tmp_path, "iceberg")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db")
    register(archive, "iceberg", IcebergTables(catalog, archive.store, "events-topic"))
    orders = catalog.load_table(TABLE).scan().to_arrow()
    erasures = catalog.load_table(ERASURES).scan().to_arrow()
    assert sorted(erasures.column("_kafka_key").to_pylist(), key=str) == [None, b"a", b"d"]
    connection = duckdb.connect()
    connection.register("orders", orders)
    connection.register("erasures", erasures)
    assert_judged(archive, connection)


def test_tables_of_hive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    archive = archived(tmp_path, "hive")
    connection = duckdb.connect()
    with mock_aws():
        register(archive, "hive", GlueTables(archive.store))
        glue = boto3.client("glue")
        for view, table in (("orders", "orders"), ("erasures", "orders__erasures")):
            found = glue.get_partitions(DatabaseName="cdc_shop", TableName=table)["Partitions"]
            folders = [one["StorageDescriptor"]["Location"].removeprefix("file://") for one in found]
            files = ", ".join(f"'{folder}/*.parquet'" for folder in folders)
            connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet([{files}], union_by_name = true)")
    assert_judged(archive, connection)


def assert_judged(archive: Archive, connection: duckdb.DuckDBPyConnection) -> None:
    kept = connection.execute(KEPT).fetchall()
    assert set(kept) == not_erased(archive.topic)
    assert len(kept) == len(set(kept))
    assert LedgerCheck(archive.store, read_rows=True).check(archive.events()).problems == []
    rows = connection.execute("SELECT count(*) FROM orders UNION ALL SELECT count(*) FROM erasures").fetchall()
    assert rows == [(3 * len(KEYS) + 1,), (3,)]
    # Without erasures a change has no key of its message: its columns are in the images.
    plain = Archive(archive.topic, archive.folder / "plain", on_error="bytes")
    plain.cut(rows=1)
    plain.run()
    query = "SELECT count(_kafka_key) FROM read_parquet($1, union_by_name = true) WHERE _op IS NOT NULL"
    paths = [f"{plain.folder}/lake/{path}" for path in plain.paths()]
    assert duckdb.connect().execute(query, [paths]).fetchone() == (0,)


def test_a_killed_cut_is_finished_with_its_erasures(tmp_path: Path) -> None:
    """The intent names the files of erasures: a task with another setting makes them, too."""
    topic = Topic(partitions=1)
    topic.send_change(0, 1, key=b"a")
    topic.send(0, None, b"a")
    archive = Archive(topic, tmp_path, tombstones="erasures")
    archive.cut(rows=1)
    task = archive.open()
    at = dict(task.offsets)
    for partition, first in at.items():
        batch, following = topic.read(partition, first, 1000)
        task.take(partition, batch, following)
    task._intent = task._store_intent()  # and then it is killed
    archive.settings = archive.settings._replace(definition=archive.settings.definition._replace(tombstones="ignore"))
    archive.run()
    assert any("orders__erasures/data/" in path for path in archive.paths())
    [event] = archive.events()
    assert [(one.rows, one.tombstones) for one in event.ranges] == [(2, 0)]
    assert event.name.topic == TOPIC
