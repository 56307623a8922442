"""Messages become rows of their schema, or rows of bytes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from tests.support.archive.scene import NOW_MS, TOPIC, Archive, Topic, archive_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "nanos", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "string"]}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
        ]}}},
    ],
}  # fmt: skip
TREE = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}


def test_an_envelope(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.send_change(0, 5)
    archive = archive_of(topic, tmp_path)
    columns = (
        "_kafka_topic, _kafka_offset, epoch_ms(_kafka_timestamp), epoch_us(_event_time), _op, _row_sequence, _ts_us"
    )
    [row] = rows_of(archive, f"{columns}, after.name, before, _schema_id")
    us = NOW_MS * 1000 + 5
    assert row == (TOPIC, 0, NOW_MS + 5, us, "c", 5, us, "Ada", None, 7)
    [path] = archive.paths()
    assert "event_date=2026-11-21/event_hour=11/" in path


def test_each_column_has_its_number(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.send_change(0, 5)
    archive = archive_of(topic, tmp_path)
    [path] = archive.paths()
    schema = pq.ParquetFile(archive.folder / "lake" / path).schema_arrow
    stored = json.loads((archive.folder / "lake/_archive/columns/cdc_shop.orders/1-000001.json").read_text())
    numbers = {field["name"]: field["id"] for field in stored["fields"]}
    assert {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema} == {
        field.name: numbers[field.name] for field in schema
    }
    assert numbers["_kafka_topic"] == 1


def test_a_record_with_all_that_is_converted(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.registry.schemas[3] = ORDER
    value: dict[str, Any] = {
        "id": 1,
        "at": NOW_MS + 1,
        "time": 5,
        "nanos": 123456789,
        "tags": {"a": None, "b": "x"},
        "lines": [],
    }
    value["lines"] = [{"price": Decimal("12.00")}]
    topic.send(0, topic.encode(3, value), b"key")
    archive = archive_of(topic, tmp_path, event_time=("at",))
    columns = (
        'id, epoch_us("at"), "time"::varchar, nanos, tags, lines[1].price::varchar, _kafka_key, epoch_us(_event_time)'
    )
    [row] = rows_of(archive, columns)
    at = (NOW_MS + 1) * 1000
    assert row == (1, at, "00:00:00.005", 123456789, {"a": None, "b": "x"}, "12.00", b"key", at)


def test_a_timestamp_that_no_microseconds_hold_is_kept_as_bytes(tmp_path: Path) -> None:
    """It alone: what a row becomes does not depend on its neighbours."""
    topic = Topic(1)
    topic.registry.schemas[3] = ORDER
    value: dict[str, Any] = {"id": 1, "at": None, "time": 5, "nanos": 0, "tags": {}, "lines": []}
    messages = [topic.encode(3, {**value, "id": number, "at": 2**62 if number == 3 else 0}) for number in range(6)]
    for message in messages:
        topic.send(0, message)
    archive = archive_of(topic, tmp_path, on_error="bytes")
    assert rows_of(archive, "id, _kafka_value") == [
        (None, messages[3]) if number == 3 else (number, None) for number in range(6)
    ]


def test_what_is_no_message_of_its_schema_stops_the_share(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.send_change(0, 1)
    topic.send(0, topic.encode(7, {**_change(), "ts_ms": 1}) + b"more")
    with pytest.raises(CdcError, match=r"offset 1 of cdc\.shop\.orders-0") as raised:
        archive_of(topic, tmp_path)
    assert raised.value.code is Code.ARCHIVE_MESSAGE


def _change() -> dict[str, Any]:
    source = {"ts_us": 1, "row_sequence": 1}
    return {"op": "c", "before": None, "after": None, "source": source, "ts_ms": 0}


def test_a_schema_that_contains_itself_is_kept_as_bytes(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.registry.schemas[4] = TREE
    topic.send(0, topic.encode(4, {"left": {"left": None}}), b"key")
    archive = archive_of(topic, tmp_path)
    assert rows_of(archive, "_kafka_key, _kafka_value, _schema_id") == [(b"key", topic.messages[0][0][1], 4)]
    assert archive.paths()[0].endswith("-s4-bytes.parquet")


@pytest.mark.parametrize(("kept", "rows"), [("ignore", 1), ("keep", 2)])
def test_tombstones(tmp_path: Path, kept: str, rows: int) -> None:
    topic = Topic(1)
    topic.send_change(0, 1)
    topic.send(0, None, b"gone")
    archive = archive_of(topic, tmp_path, tombstones=kept)
    assert len(rows_of(archive)) == rows
    [event] = archive.events()
    [part] = event.ranges
    assert (part.end, part.rows, part.tombstones) == (2, rows, 2 - rows)


_VALUE = st.one_of(st.none(), st.binary(max_size=12), st.integers(0, 99))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(_VALUE, min_size=1, max_size=25))
def test_every_message_is_one_row(tmp_path_factory: pytest.TempPathFactory, values: list[bytes | int | None]) -> None:
    """Changes, tombstones and anything else, in any order: in the order of their offsets, each once."""
    topic = Topic(1)
    values = [*values, 0, None]  # so that all columns are there
    for value in values:
        if isinstance(value, int):
            topic.send_change(0, value)
        else:
            topic.send(0, value)
    archive = archive_of(topic, tmp_path_factory.mktemp("lake"), tombstones="keep", on_error="bytes")
    found = rows_of(archive, "_kafka_offset, _kafka_value, _row_sequence")
    is_foreign = [isinstance(value, bytes) for value in values]
    assert [offset for offset, _, _ in found] == list(range(len(values)))
    for (_, kept, number), value, foreign in zip(found, values, is_foreign, strict=True):
        assert kept == (value if foreign else None)
        assert number == (value if isinstance(value, int) else None)


def test_a_new_schema_version_is_counted_once(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.registry.schemas[9] = {"type": "record", "name": "Other", "fields": [{"name": "op", "type": "long"}]}
    archive = Archive(topic, tmp_path)
    archive.cut(rows=1)
    counts = []
    for number in range(2):
        topic.send_change(0, number)
        topic.send(0, topic.encode(9, {"op": number}))
        task = archive.open()
        at = dict(task.offsets)
        for partition, first in at.items():
            batch, following = topic.read(partition, first, 1000)
            task.take(partition, batch, following)
        report = task.commit_due()
        assert report is not None
        counts.append(report.new_versions)
        task.close()
    assert counts == [1, 0]
    assert [file.planned.version for file in archive.events()[1].files] == [1, 2]
