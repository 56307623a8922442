"""Messages that are not of their schema: left out or sent as dead letters, counted, named, each once."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from archive.events.verify import LedgerCheck
from archive.fault_points import ArchivePoint
from archive.records import Refused
from archive.writer import refused
from cdc_common.messages import wire
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.archive.scene import ENVELOPE, TOPIC, Archive, Topic, archive_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_HEADER, DAMAGED, UNKNOWN = b"plain", wire.header(7) + b"\x02", wire.header(9) + b"\x02"
BAD = [NO_HEADER, DAMAGED, UNKNOWN]
POINTS = [
    ArchivePoint.BATCH_SPILLED,
    ArchivePoint.INTENT_STORED,
    ArchivePoint.ALL_FILES_STORED,
    ArchivePoint.DEAD_LETTERS_SENT,
    ArchivePoint.EVENT_SENT,
    ArchivePoint.CUT_COMMITTED,
]


@pytest.fixture(autouse=True)
def _unarmed() -> Iterator[None]:
    fault_points.reached.clear()
    yield
    fault_points.armed = None
    fault_points.reached.clear()


@pytest.fixture
def topic() -> Topic:
    made = Topic(1)
    for number, value in enumerate(BAD):
        made.send_change(0, number)
        made.send(0, value, b"key %d" % number)
    return made


def letters(archive: Archive) -> list[tuple[bytes, bytes]]:
    """Keys and values in all committed dead letters."""
    with sqlite3.connect(archive.database) as database:
        found = database.execute("SELECT value FROM messages WHERE topic = 'dead-letters' ORDER BY id").fetchall()
    letters = [json.loads(value) for (value,) in found]
    assert all(letter["topic"] == TOPIC and letter["code"] == "CDC-110" for letter in letters)
    return [(b64decode(letter["key"]), b64decode(letter["value"])) for letter in letters]


@pytest.mark.parametrize("on_error", ["dead_letter", "skip"])
def test_they_are_counted_and_named(topic: Topic, tmp_path: Path, on_error: str) -> None:
    with capture_logs() as logs:
        archive = archive_of(topic, tmp_path, on_error=on_error)
    assert rows_of(archive, "_kafka_offset, after.id") == [(0, 0), (2, 1), (4, 2)]
    [event] = archive.events()
    assert (event.ranges[0].rows, event.ranges[0].refused) == (3, 3)
    reasons = {one.offset: one.reason for one in event.refused}
    assert reasons.keys() == {1, 3, 5}
    assert reasons[1] == "it has no header with the id of a schema"
    assert reasons[5] == "the registry has no schema 9"
    assert sorted(letters(archive)) == (
        [(b"key %d" % n, value) for n, value in enumerate(BAD)] if on_error == "dead_letter" else []
    )
    assert LedgerCheck(archive.store, read_rows=True).check(archive.events()).problems == []
    [logged] = [log for log in logs if log["event"] == "messages refused"]
    assert logged["count"] == 3


def test_a_range_with_more_messages_than_offsets(topic: Topic, tmp_path: Path) -> None:
    archive = archive_of(topic, tmp_path, on_error="skip")
    [event] = archive.events()
    changed = event._replace(ranges=(event.ranges[0]._replace(refused=4),))
    [problem] = LedgerCheck(archive.store, read_rows=False).check([changed]).problems
    assert "3 rows, 0 tombstones, 4 refused and 0 lost messages in [0, 6)" in problem


def test_an_event_names_the_first_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "_NAMED", 2)
    topic = Topic(1)
    for _ in range(5):
        topic.send(0, NO_HEADER)
    [event] = archive_of(topic, tmp_path, on_error="skip").events()
    reason = "it has no header with the id of a schema"
    assert event.refused == (Refused(0, 0, reason), Refused(0, 1, reason))
    assert event.ranges[0].refused == 5


@pytest.mark.parametrize("point", POINTS)
def test_each_is_one_dead_letter_whatever_fails(topic: Topic, tmp_path: Path, point: ArchivePoint) -> None:
    archive = Archive(topic, tmp_path, on_error="dead_letter")
    archive.cut(rows=2)
    archive.chunk = 2
    fault_points.armed = Fault(point, 2, "raise")
    with pytest.raises(InjectedFaultError):
        archive.run()
    fault_points.armed = None
    archive.run()
    assert letters(archive) == [(b"key %d" % number, value) for number, value in enumerate(BAD)]
    assert LedgerCheck(archive.store, read_rows=True).check(archive.events()).problems == []


def test_a_schema_that_appears_between_two_tries(topic: Topic, tmp_path: Path) -> None:
    """The intent keeps that the registry did not have it. The next cut asks again."""
    archive = Archive(topic, tmp_path, on_error="dead_letter")
    archive.cut(rows=1)
    fault_points.armed = Fault(ArchivePoint.INTENT_STORED, 1, "raise")
    with pytest.raises(InjectedFaultError):
        archive.run()
    fault_points.armed = None
    change = topic.messages[0][0][1]
    assert change is not None
    topic.registry.schemas[9] = ENVELOPE
    topic.messages[0][5] = (b"key 2", wire.header(9) + change[wire.HEADER_SIZE :], 5, topic.messages[0][5][3])
    topic.send(0, wire.header(9) + change[wire.HEADER_SIZE :])
    archive.run()
    first, second = archive.events()
    assert (first.ranges[0].refused, second.ranges[0].refused) == (3, 0)
    assert [offset for (offset,) in rows_of(archive, "_kafka_offset")] == [0, 2, 4, 6]
    assert len(letters(archive)) == 3


def test_a_message_that_stops_the_share_is_named(topic: Topic, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"offset 1 of {TOPIC}-0 cannot become a row: it has no header"):
        archive_of(topic, tmp_path)
