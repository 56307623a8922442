"""The schemas of the tables topic: their order, and messages that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from cassandra_storage.formats.schema.tables import ColumnKind
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.tables import from_json, mark_to_json, message_key, request_key, request_to_json, to_json
from materializer.planning.table_schemas import TableSchemas
from tests.support.materializer.raw_builder import INT, TABLE, column
from tests.support.materializer.table_job import message

NEWER = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", INT, ColumnKind.REGULAR)))


def test_the_newest_schema_is_the_last_that_appeared_first() -> None:
    schemas = TableSchemas("cdc")
    schemas.add([message(TABLE), message(NEWER), message(TABLE)])
    digests = [schema.digest for schema in schemas.for_table(("shop", "orders"))]
    assert digests == [message_key(TABLE)[16:], message_key(NEWER)[16:]]
    assert schemas.for_table(("shop", "other")) == ()


def test_the_order_is_that_of_the_statements_wherever_compaction_has_left_them() -> None:
    schemas = TableSchemas("cdc")
    schemas.add([message(replace(NEWER, altered_at=2)), message(replace(TABLE, altered_at=1))])
    assert [schema.digest for schema in schemas.for_table(("shop", "orders"))] == [
        message_key(one)[16:] for one in (TABLE, NEWER)
    ]
    schemas.add([message(replace(TABLE, altered_at=3))])  # renamed, and back
    assert schemas.for_table(("shop", "orders"))[-1].digest == message_key(TABLE)[16:]


def test_a_publisher_that_is_behind_makes_no_earlier_form_of_a_schema_the_present_one() -> None:
    """`gc_grace_seconds` and the time of the last statement are not in the digest."""
    now = replace(TABLE, altered_at=3, gc_grace_seconds=1000)  # renamed, and back; then ALTER … WITH gc_grace_seconds
    behind = replace(TABLE, altered_at=1, gc_grace_seconds=10)
    schemas = TableSchemas("cdc")
    schemas.add([message(behind), message(replace(NEWER, altered_at=2)), message(now), message(behind)])
    newest = schemas.for_table(("shop", "orders"))[-1]
    assert newest.digest == message_key(TABLE)[16:]
    assert from_json(newest.json).gc_grace_seconds == 1000


def test_a_table_that_needs_a_snapshot_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = TableSchemas("cdc")
    mark = (TABLE.id.bytes, mark_to_json(1_700_000_000_000_000))
    schemas.add([message(TABLE), mark, mark])
    log = capsys.readouterr().out
    assert (log.count(Code.NEEDS_SNAPSHOT.text), log.count("shop.orders"), log.count("2023-11-14")) == (1, 1, 1)
    assert len(schemas.for_table(("shop", "orders"))) == 1
    schemas.add([(TABLE.id.bytes, mark_to_json(0))] * 2)
    log = capsys.readouterr().out
    assert (log.count("needs no snapshot any more"), log.count("shop.orders"), Code.NEEDS_SNAPSHOT.text in log) == (
        1,
        1,
        False,
    )
    with pytest.raises(CdcError):
        schemas.add([(TABLE.id.bytes, b"{}")])


def test_a_cleared_mark_without_a_former_one_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    TableSchemas("cdc").add([message(TABLE), (TABLE.id.bytes, mark_to_json(0))])
    assert "snapshot" not in capsys.readouterr().out


def test_a_mark_that_is_cleared_further_on_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads the topic from its start sees past needs."""
    TableSchemas("cdc").add([message(TABLE), (TABLE.id.bytes, mark_to_json(1)), (TABLE.id.bytes, mark_to_json(0))])
    assert "snapshot" not in capsys.readouterr().out


def test_requests_for_snapshots_are_no_schemas() -> None:
    schemas = TableSchemas("cdc")
    key = request_key(TABLE.id.bytes)
    schemas.add([(key, request_to_json(5)), message(TABLE)])
    assert schemas.requests == {TABLE.id.bytes: 5}
    schemas.add([(key, request_to_json(0))])
    assert schemas.requests == {TABLE.id.bytes: 0}
    with pytest.raises(CdcError, match=key.hex()):
        schemas.add([(key, b"{}")])


@pytest.mark.parametrize(("key", "value"), [(b"short", to_json(TABLE)), (message_key(TABLE), b"{}"), (bytes(32), b"")])
def test_a_message_that_is_not_a_schema_is_an_error(key: bytes, value: bytes) -> None:
    with pytest.raises(CdcError) as raised:
        TableSchemas("cdc").add([(key, value)])
    assert raised.value.code is Code.RAW_MESSAGE_UNREADABLE


def test_a_table_that_two_clusters_have_published_is_refused_and_no_other_one() -> None:
    schemas = TableSchemas("cdc")
    schemas.add([message(TABLE, "one"), message(NEWER, "one"), message(replace(TABLE, name="other"), "two")])
    assert len(schemas.for_table(("shop", "orders"))) == 2
    schemas.add([message(replace(TABLE, id=uuid4()), "two")])
    with pytest.raises(CdcError, match="one and two publish to the raw topic of shop") as raised:
        schemas.for_table(("shop", "orders"))
    assert raised.value.code is Code.TOPIC_PREFIX_TAKEN
    assert "kafka.topic_prefix" in raised.value.fix
    assert len(schemas.for_table(("shop", "other"))) == 1
