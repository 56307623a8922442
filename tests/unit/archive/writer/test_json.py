"""JSON texts become columns, each text one row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.writer.json_rows import JsonTable, NotJsonError
from cdc_common.errors.codes import CdcError, Code
from cdc_native.avro.messages import Messages
from tests.support.archive.scene import TOPIC, MemoryRegistry, Topic, archive_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": ["null", {"type": "int", "logicalType": "time-millis"}]},
        {"name": "occurred_at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}}, {"name": "note", "type": "string"},
        ]}}},
    ],
}  # fmt: skip
ORDER = (
    '{"id": 7, "price": "1.50", "day": "2026-11-26", "at": "10:11:12", "occurred_at": "2026-11-21T12:00:00+01:00",\n'
    ' "lines": [{"day": "2026-01-02", "note": "a\\u00e9\\n"}]}'
)
SIMPLE = pa.schema([("a", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])


def json_topic(schema: Any = SCHEMA) -> Topic:  # noqa: ANN401 - JSON
    return Topic(1, MemoryRegistry({7: schema}, {f"{TOPIC}-value": 7}))


def test_texts_become_columns(tmp_path: Path) -> None:
    topic = json_topic()
    topic.send(0, ORDER.encode())
    topic.send(0, b'{"id": 8}')
    topic.send(0, None)
    archive = archive_of(topic, tmp_path, format="json", subject=f"{TOPIC}-value")
    columns = 'id, price::text, day::text, "at"::text, lines[1].day::text, lines[1].note, _schema_id, _kafka_key'
    assert rows_of(archive, columns) == [
        (7, "1.50", "2026-11-26", "10:11:12", "2026-01-02", "aé\n", 7, b"k"),
        (8, None, None, None, None, None, 7, b"k"),
    ]
    [event] = archive.events()
    assert [(file.planned.form, file.rows) for file in event.files] == [("json", 2)]
    assert event.ranges[0].tombstones == 1
    assert rows_of(archive, "_event_time::text")[0][0].startswith("2026-11-21")


def test_a_text_that_is_not_of_its_schema(tmp_path: Path) -> None:
    topic = json_topic()
    for text in (ORDER, '{"id": 1, "new": 2}', "no json", '{"id": 1}'):
        topic.send(0, text.encode())
    with pytest.raises(CdcError, match=r"offset 1 of .* it is no JSON object of its schema") as raised:
        archive_of(topic, tmp_path / "stop", format="json", subject=f"{TOPIC}-value")
    assert raised.value.code is Code.ARCHIVE_MESSAGE
    archive = archive_of(topic, tmp_path / "bytes", format="json", subject=f"{TOPIC}-value", on_error="bytes")
    assert rows_of(archive, "id, _kafka_value") == [
        (7, None),
        (None, b'{"id": 1, "new": 2}'),
        (None, b"no json"),
        (1, None),
    ]


def test_a_subject_without_a_schema(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.send(0, b"{}")
    with pytest.raises(CdcError, match="the registry has no schema under orders") as raised:
        archive_of(topic, tmp_path, format="json", subject="orders")
    assert "Register an Avro schema" in raised.value.fix


def test_a_schema_with_maps_is_kept_as_bytes(tmp_path: Path) -> None:
    topic = json_topic(
        {"type": "record", "name": "M", "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}]}
    )
    topic.send(0, b'{"m": {"x": 1}}')
    archive = archive_of(topic, tmp_path, format="json", subject=f"{TOPIC}-value")
    assert rows_of(archive, "_kafka_value") == [(b'{"m": {"x": 1}}',)]


def test_a_topic_of_bytes(tmp_path: Path) -> None:
    topic = Topic(1)
    topic.send(0, b"\x00\x00\x00\x00\x07?")
    topic.send(0, None)
    topic.send(0, b"")
    archive = archive_of(topic, tmp_path, format="bytes")
    assert rows_of(archive, "_kafka_offset, _kafka_value, _schema_id") == [
        (0, b"\x00\x00\x00\x00\x07?", None),
        (2, b"", None),
    ]


_OBJECTS = st.fixed_dictionaries({"a": st.integers(-99, 99), "s": st.text(), "l": st.lists(st.integers(0, 9))})
_PARTS = [
    b'{"a":1}\n{"a":2}',
    b'{"l":[1',
    b",2]}",
    b'1}\n{"v":{"a":1}',
    b'{"s":"',
    b'"}',
    b"null",
    b"",
    b'{"s":"\xff"}',
]
_TEXTS = st.lists(
    st.one_of(
        _OBJECTS.map(lambda found: json.dumps(found).encode()),
        st.text(alphabet='{}[]",:as1 \n').map(str.encode),
        st.binary(max_size=5),
        st.sampled_from(_PARTS),
    ),
    min_size=1,
    max_size=6,
)


@given(_TEXTS)
def test_a_row_never_depends_on_its_neighbours(texts: list[bytes]) -> None:
    """Texts together are accepted only if each one is accepted alone, and give the same rows."""
    table = JsonTable(SIMPLE)
    alone = []
    for text in texts:
        try:
            alone += table.rows(Messages.of([text])).to_pylist()
        except NotJsonError:
            alone.append(None)
    try:
        together = table.rows(Messages.of(texts)).to_pylist()
    except NotJsonError:
        assert None in alone
    else:
        assert together == alone
    for text, row in zip(texts, alone, strict=True):
        if row is not None:
            found = json.loads(text)
            assert row == {"a": found.get("a"), "s": found.get("s"), "l": found.get("l")}
