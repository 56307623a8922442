"""Tables in AWS Glue, whose stand-in is moto: of Iceberg, and of the layout hive."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from archive.events.ledger import LedgerEvent
from archive.registrar.catalogs import open_tables
from archive.registrar.hive_types import hive_columns, hive_type
from archive.registrar.registrar import Registrar
from archive.settings import ArchiveSettings
from cdc_common.errors.codes import Code
from tests.support.archive.scene import ENVELOPE, NOW_MS, Archive, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        yield


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(Topic(1), tmp_path, layout="hive")
    made.cut(rows=1)
    return made


def registrar_of(archive: Archive, **settings: Any) -> Registrar:  # noqa: ANN401 - settings
    own = ArchiveSettings(**settings)
    return Registrar("lake", open_tables(own, archive.store, "events-topic"), archive.store, "events-topic")


def register(archive: Archive, registrar: Registrar) -> None:
    found = [LedgerEvent(0, offset, event) for offset, event in enumerate(archive.events())]
    registrar.take(found[registrar.next.get(0, 0) :])
    registrar.commit()


def glue() -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    return boto3.client("glue")


def partitions(table: str = "orders") -> dict[tuple[str, ...], dict[str, Any]]:
    found = glue().get_partitions(DatabaseName="cdc_shop", TableName=table)["Partitions"]
    return {tuple(one["Values"]): one["StorageDescriptor"] for one in found}


def test_a_table_and_a_partition_for_each_hour(archive: Archive) -> None:
    for number in range(6):
        archive.topic.send_change(0, number, hours=number % 2)
    archive.run()
    registrar = registrar_of(archive, hive_catalog_type="glue")
    for _ in range(2):  # a second registrar may register them again
        register(archive, registrar)
        assert registrar.errors == {}
        registrar = registrar_of(archive, hive_catalog_type="glue", catalog_name="another")
    table = glue().get_table(DatabaseName="cdc_shop", Name="orders")["Table"]
    assert [key["Name"] for key in table["PartitionKeys"]] == ["event_date", "event_hour"]
    columns = {column["Name"]: column["Type"] for column in table["StorageDescriptor"]["Columns"]}
    assert columns["_event_time"] == "timestamp"
    assert columns["after"] == "struct<id:int,name:string>"
    found = partitions()
    assert found.keys() == {("2026-11-21", "11"), ("2026-11-21", "12")}
    folders = {archive.store.uri(path.rpartition("/")[0]) for path in archive.paths()}
    assert {one["Location"] for one in found.values()} == folders
    assert all(one["Columns"] == table["StorageDescriptor"]["Columns"] for one in found.values())


def test_partitions_get_the_columns_of_a_newer_schema(archive: Archive) -> None:
    """A wider type, a field within a record, and a renamed field, which the files have under both names."""
    archive.topic.send_change(0, 1)
    archive.run()
    registrar = registrar_of(archive, hive_catalog_type="glue")
    register(archive, registrar)
    newer: Any = deepcopy(ENVELOPE)
    [fields] = [field["type"][1]["fields"] for field in newer["fields"] if field["name"] == "before"]
    fields[:] = [
        {"name": "id", "type": "long"},
        {"name": "title", "type": ["null", "string"], "aliases": ["name"]},
        {"name": "note", "type": ["null", "string"]},
    ]
    archive.topic.registry.schemas[8] = newer
    source = {"ts_us": (NOW_MS + 7_200_000) * 1000, "row_sequence": 20}
    after = {"id": 2**40, "title": "t", "note": "n"}
    change = {"op": "c", "before": None, "after": after, "source": source, "ts_ms": NOW_MS}
    archive.topic.send(0, archive.topic.encode(8, change), ms=NOW_MS)
    archive.run()
    register(archive, registrar)
    assert registrar.errors == {}
    found = partitions()
    assert len(found) == 2
    for storage in found.values():
        types = {column["Name"]: column["Type"] for column in storage["Columns"]}
        assert types["after"] == "struct<id:bigint,title:string,name:string,note:string>"


def test_another_schema_version_has_a_table_of_its_own(archive: Archive) -> None:
    archive.topic.send_change(0, 1)
    archive.topic.registry.schemas[9] = {"type": "record", "name": "O", "fields": [{"name": "op", "type": "long"}]}
    archive.topic.send(0, archive.topic.encode(9, {"op": 1}))
    archive.run()
    registrar = registrar_of(archive, hive_catalog_type="glue")
    register(archive, registrar)
    assert registrar.errors == {}
    [storage] = partitions("orders__v2").values()
    assert "/orders/schema_version=2/event_date=" in storage["Location"]
    assert {column["Name"]: column["Type"] for column in storage["Columns"]}["op"] == "bigint"


def test_a_table_of_somebody_else_stops_that_table(archive: Archive) -> None:
    archive.topic.send_change(0, 1)
    archive.run()
    glue().create_database(DatabaseInput={"Name": "cdc_shop"})
    glue().create_table(
        DatabaseName="cdc_shop", TableInput={"Name": "orders", "Parameters": {}, "StorageDescriptor": {}}
    )
    registrar = registrar_of(archive, hive_catalog_type="glue")
    register(archive, registrar)
    assert registrar.errors["cdc_shop.orders"].code is Code.ARCHIVE_TABLE
    glue().delete_table(DatabaseName="cdc_shop", Name="orders")
    registrar.commit()
    assert registrar.errors == {}
    assert len(partitions()) == 1


def test_a_table_that_was_dropped_is_made_again(archive: Archive) -> None:
    archive.topic.send_change(0, 1)
    archive.run()
    register(archive, registrar_of(archive, hive_catalog_type="glue"))
    assert registrar_of(archive, hive_catalog_type="glue").next == {0: 1}
    glue().delete_table(DatabaseName="cdc_shop", Name="orders")
    again = registrar_of(archive, hive_catalog_type="glue")
    assert again.next == {}
    register(archive, again)
    assert len(partitions()) == 1


def test_a_catalog_that_is_added_later_gets_all_events(archive: Archive, tmp_path: Path) -> None:
    archive.topic.send_change(0, 1)
    archive.run()
    catalog = {"catalog_type": "sql", "catalog_uri": f"sqlite:///{tmp_path}/catalog.db"}
    register(archive, registrar_of(archive, **catalog))
    both = registrar_of(archive, hive_catalog_type="glue", **catalog)
    assert both.next == {}
    register(archive, both)
    assert len(partitions()) == 1


def test_tables_of_iceberg_in_glue(tmp_path: Path) -> None:
    archive = Archive(Topic(1), tmp_path)
    archive.cut(rows=1)
    registrar = registrar_of(archive, catalog_type="glue")
    for first in (0, 5):
        for number in range(first, first + 5):
            archive.topic.send_change(0, number)
        archive.run()
        register(archive, registrar)
        assert registrar.errors == {}
    parameters = glue().get_table(DatabaseName="cdc_shop", Name="orders")["Table"]["Parameters"]
    assert parameters["table_type"] == "ICEBERG"
    assert registrar_of(archive, catalog_type="glue").next == {0: 2}


@pytest.mark.parametrize(
    ("iceberg", "hive"),
    [
        ("time", "bigint"),
        ("timestamptz", "timestamp"),
        ("decimal(38, 0)", "decimal(38,0)"),
        ("fixed[16]", "binary"),
        ({"type": "list", "element": "long"}, "array<bigint>"),
        ({"type": "map", "key": "string", "value": {"type": "list", "element": "date"}}, "map<string,array<date>>"),
    ],
)
def test_hive_types(iceberg: Any, hive: str) -> None:  # noqa: ANN401 - JSON
    assert hive_type(iceberg) == hive


def test_names_that_differ_only_in_their_case_are_one_column() -> None:
    """Hive knows small letters only: the first one counts."""
    fields = [{"name": "Id", "type": "int"}, {"name": "id", "type": "string"}]
    assert [tuple(column) for column in hive_columns(fields)] == [("id", "int")]
