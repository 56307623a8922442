"""Tables of a real catalog (SQLite), read by PyIceberg and by DuckDB.

tests/servers/archive/test_rest_catalog.py has the same tests with a REST catalog.
"""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo, Reference

from archive.events.ledger import LedgerEvent
from archive.registrar.iceberg_tables import IcebergTables
from archive.registrar.lake_table import OFFSETS, LakeTable, LedgerOffsets
from archive.registrar.registrar import Registrar
from archive.registrar.start import Start
from archive.writer.columns import BASE_COLUMNS
from cdc_common.errors.codes import Code
from tests.support.archive.scene import ENVELOPE, Archive, Topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog

TABLE = "cdc_shop.orders"
TOPIC_ID = "events-topic"


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    topic = Topic(partitions=2)
    made = Archive(topic, tmp_path)
    made.cut(rows=20)
    made.chunk = 10
    return made


def registrar_of(catalog: Catalog, archive: Archive, topic_id: str) -> Registrar:
    return Registrar("lake", {"iceberg": IcebergTables(catalog, archive.store, topic_id)}, archive.store, topic_id)


def fill(archive: Archive, first: int, end: int) -> None:
    for number in range(first, end):
        archive.topic.send_change(number % 2, number, hours=number % 2)
    archive.run()


def events(archive: Archive, first: int = 0) -> list[LedgerEvent]:
    return [LedgerEvent(0, offset, event) for offset, event in enumerate(archive.events())][first:]


def read_numbers(catalog: Catalog, table: str = TABLE) -> list[int]:
    """The rows by PyIceberg, which agree with DuckDB's of the same files."""
    loaded = catalog.load_table(table)
    rows = sorted(row["_row_sequence"] for row in loaded.scan().to_arrow().to_pylist())
    paths = [task.file.file_path.removeprefix("file://") for task in loaded.scan().plan_files()]
    found = duckdb.connect().execute("SELECT _row_sequence FROM read_parquet($1)", [paths]).fetchall()
    assert sorted(number for (number,) in found) == rows
    return rows


def test_a_table_has_each_event_once(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 60)
    registrar_of(catalog, archive, TOPIC_ID).take([])
    for _ in range(2):  # a second registrar reads all events again
        registrar = registrar_of(catalog, archive, TOPIC_ID)
        registrar.take(events(archive))
        registrar.commit()
        assert registrar.errors == {}
        assert read_numbers(catalog) == list(range(60))
    fill(archive, 60, 100)
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    assert read_numbers(catalog) == list(range(100))
    table = catalog.load_table(TABLE)
    assert table.properties[OFFSETS] == '{"topic_id":"events-topic","offsets":{"0":5}}'
    hours = {task.file.partition[0] for task in table.scan().plan_files()}
    assert len(hours) == 2


def test_a_start_begins_where_all_tables_are(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 60)
    first = registrar_of(catalog, archive, TOPIC_ID)
    assert first.next == {}
    first.take(events(archive))
    first.commit()
    assert registrar_of(catalog, archive, TOPIC_ID).next == {0: 3}
    assert registrar_of(catalog, archive, "another topic").next == {}
    catalog.drop_table(TABLE)
    again = registrar_of(catalog, archive, TOPIC_ID)
    assert again.next == {}
    again.take(events(archive))
    again.commit()
    assert read_numbers(catalog) == list(range(60))
    assert registrar_of(catalog, archive, TOPIC_ID).next == {0: 3}


def test_a_start_waits_for_the_table_that_fails(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 20)
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    table = catalog.load_table(TABLE)
    with table.transaction() as transaction:
        transaction.remove_properties(OFFSETS)
    fill(archive, 20, 60)
    registrar.take(events(archive, 1))
    registrar.commit()
    assert registrar.errors.keys() == {TABLE}
    assert Start.decode(archive.store.read("_archive/registrar/lake.json") or b"").offsets == {0: 1}
    assert registrar_of(catalog, archive, TOPIC_ID).next == {}  # that table has lost its position


def test_a_damaged_start_is_none(catalog: Catalog, archive: Archive) -> None:
    for data in (b"", b"[]", b'{"format": 2}', b'{"format": 1, "topic_id": "events-topic"}'):
        archive.store.put("_archive/registrar/lake.json", data)
        assert registrar_of(catalog, archive, TOPIC_ID).next == {}


def test_a_stale_committer_is_refused(catalog: Catalog, archive: Archive) -> None:
    """It loaded the table before another one committed, and its client does not try again."""
    fill(archive, 0, 40)
    table = LakeTable(catalog, TABLE, archive.store.uri("cdc_shop/orders"), "hour")
    stale = table.load()
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    paths = [archive.store.uri(file.planned.path) for file in archive.events()[0].files]
    columns = archive.open()._parts.plans.layout(7).plan
    assert columns.version == 1
    with pytest.raises(CommitFailedException):
        table.commit(stale, _newest(archive), paths, LedgerOffsets(TOPIC_ID, {0: 1}))
    assert read_numbers(catalog) == list(range(40))


def _newest(archive: Archive) -> Any:  # noqa: ANN401
    from archive.writer.schema_plans import columns_folder, newest_columns  # noqa: PLC0415

    return newest_columns(archive.store, columns_folder(TABLE), 1)[1]


def test_a_table_gets_the_columns_of_a_newer_schema(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 20)
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    newer = {**ENVELOPE, "fields": [*ENVELOPE["fields"], {"name": "note", "type": ["null", "string"]}]}
    archive.topic.registry.schemas[8] = newer
    for number in range(20, 40):
        source = {"ts_us": 1_795_258_800_000_000, "row_sequence": number}
        change = {
            "op": "c",
            "before": None,
            "after": {"id": 1, "name": None},
            "source": source,
            "ts_ms": 0,
            "note": "n",
        }
        archive.topic.send(number % 2, archive.topic.encode(8, change))
    archive.run()
    registrar.take(events(archive, 1))
    registrar.commit()
    assert registrar.errors == {}
    assert read_numbers(catalog) == list(range(40))
    notes = catalog.load_table(TABLE).scan().to_arrow().column("note").to_pylist()
    assert sorted(map(str, notes)) == ["None"] * 20 + ["n"] * 20


def test_an_incompatible_schema_gets_another_table(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 20)
    archive.topic.registry.schemas[9] = {
        "type": "record",
        "name": "Other",
        "fields": [{"name": "op", "type": "long"}],  # was a string
    }
    for number in range(20):
        archive.topic.send(number % 2, archive.topic.encode(9, {"op": number}))
    archive.run()
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    assert registrar.errors == {}
    assert read_numbers(catalog) == list(range(20))
    others = catalog.load_table(f"{TABLE}__v2").scan().to_arrow().column("op").to_pylist()
    assert sorted(others) == list(range(20))


def test_a_foreign_column_stops_that_table_alone(catalog: Catalog, archive: Archive) -> None:
    fill(archive, 0, 20)
    table = LakeTable(catalog, TABLE, archive.store.uri("cdc_shop/orders"), "hour").load()
    with table.update_schema() as update:
        from pyiceberg.types import LongType  # noqa: PLC0415

        update.add_column("mine", LongType())
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    assert registrar.errors[TABLE].code is Code.ARCHIVE_TABLE
    assert "mine" in registrar.errors[TABLE].problem
    catalog.drop_table(TABLE)
    registrar.commit()
    assert registrar.errors == {}
    assert read_numbers(catalog) == list(range(20))


def test_the_columns_of_every_table_are_the_first(catalog: Catalog, archive: Archive) -> None:
    table = LakeTable(catalog, TABLE, archive.store.uri("cdc_shop/orders"), "day").load()
    assert [(field.field_id, field.name) for field in table.schema().fields] == [
        (field["id"], field["name"]) for field in BASE_COLUMNS.fields
    ]


def test_a_renamed_field_is_one_column(catalog: Catalog, archive: Archive) -> None:
    """The files of both schemas are read under the new name."""
    fill(archive, 0, 20)
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    registrar.take(events(archive))
    registrar.commit()
    newer: Any = deepcopy(ENVELOPE)
    [fields] = [field["type"][1]["fields"] for field in newer["fields"] if field["name"] == "before"]
    fields[1] |= {"name": "title", "aliases": ["name"]}
    archive.topic.registry.schemas[8] = newer
    source = {"ts_us": 1_795_258_800_000_000, "row_sequence": 20}
    change = {"op": "c", "before": None, "after": {"id": 20, "title": "new"}, "source": source, "ts_ms": 0}
    archive.topic.send(0, archive.topic.encode(8, change))
    archive.topic.send_change(0, 21)  # of a producer that does not know it yet
    archive.run()
    archive.cut(rows=1)
    archive.run()
    registrar.take(events(archive, 1))
    registrar.commit()
    assert registrar.errors == {}
    rows = catalog.load_table(TABLE).scan().to_arrow().to_pylist()
    assert {row["_row_sequence"]: row["after"]["title"] for row in rows} == {
        **dict.fromkeys([*range(20), 21], "Ada"),
        20: "new",
    }
    assert {tuple(row["after"]) for row in rows} == {("id", "title")}


WIDER = [("int", "long"), ("float", "double"), (("decimal", 5), ("decimal", 12))]


@pytest.mark.parametrize(("before", "after"), WIDER, ids=["int", "float", "decimal"])
def test_a_column_that_becomes_wider(catalog: Catalog, archive: Archive, before: Any, after: Any) -> None:  # noqa: ANN401
    """Also within a record, and the files of the narrower type may come later."""
    values: dict[Any, Any] = {"int": 7, "long": 2**40, "float": 1.5, "double": 1e300}
    values |= {("decimal", 5): Decimal("123.45"), ("decimal", 12): Decimal("1234567890.12")}
    for schema_id, kind in ((20, before), (21, after)):
        typed = (
            {"type": "bytes", "logicalType": "decimal", "precision": kind[1], "scale": 2}
            if isinstance(kind, tuple)
            else kind
        )
        inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": typed}]}
        fields = [{"name": "x", "type": typed}, {"name": "inner", "type": inner}]
        archive.topic.registry.schemas[schema_id] = {"type": "record", "name": "Row", "fields": fields}
    registrar = registrar_of(catalog, archive, TOPIC_ID)
    archive.cut(rows=1)
    for schema_id, kind in ((20, before), (21, after), (20, before)):
        archive.topic.send(0, archive.topic.encode(schema_id, {"x": values[kind], "inner": {"x": values[kind]}}))
        archive.run()
        registrar.take(events(archive))
        registrar.commit()
        assert registrar.errors == {}
    rows = catalog.load_table(TABLE).scan().to_arrow().to_pylist()
    wanted = [values[before], values[after], values[before]]
    assert [row["x"] for row in sorted(rows, key=lambda row: row["_kafka_offset"])] == wanted
    assert [row["inner"]["x"] for row in sorted(rows, key=lambda row: row["_kafka_offset"])] == wanted
    found = catalog.load_table(TABLE).scan(row_filter=EqualTo(term=Reference("x"), value=values[after])).to_arrow()
    assert found.column("x").to_pylist() == [values[after]]
