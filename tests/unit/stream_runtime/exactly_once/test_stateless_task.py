"""The protocol of one partition, with transactions that are only written down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.exactly_once.commits import KafkaCommits
from stream_runtime.exactly_once.committed import Committed
from stream_runtime.exactly_once.stateless_task import StatelessSettings, StatelessTask, Transformed
from stream_runtime.records import Message, SourceRecord, TopicShape

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUR = 3600.0
SETTINGS = StatelessSettings(chunk_bytes=1000, chunk_messages=3, refresh_seconds=12 * HOUR)
BAD = b"bad"


class Transactions:
    """committed: the messages and the offset of each transaction."""

    def __init__(self) -> None:
        self.committed: list[tuple[list[bytes], int]] = []
        self.metadata: dict[str, Any] = {}
        self._open: list[bytes] = []
        self._offset = -1

    def begin(self) -> None:
        self._open = []

    def send(self, message: Message) -> None:
        self._open.append(message.key)

    def send_offset(self, offset: int, metadata: str) -> None:
        self._offset = offset
        self.metadata = json.loads(metadata)

    def commit(self) -> None:
        self.committed.append((self._open, self._offset))

    def abandon(self) -> None:
        self._open = []


class Scene:
    def __init__(self, committed: Committed | None = None) -> None:
        self.now = 1000.0 * HOUR
        self.transactions = Transactions()
        shape = TopicShape(2, "the-id")
        self.task = StatelessTask(KafkaCommits(self.transactions, shape), SETTINGS, committed, lambda: self.now)

    def process(self, records: Sequence[SourceRecord], following: int) -> CdcError | None:
        return self.task.process(records, following, transform).error


def transform(records: Sequence[SourceRecord]) -> Transformed:
    messages: list[Message] = []
    for record in records:
        assert record.key is not None
        if record.key == BAD:
            return Transformed(messages, CdcError(Code.TRANSFORM_FAILED, f"at {record.offset}", ""))
        messages.append(Message("target", 0, record.key, record.value))
    return Transformed(messages, native=len(messages))


def records(*offsets: int, size: int = 1) -> list[SourceRecord]:
    return [SourceRecord(b"k%d" % offset, b"v" * size, offset) for offset in offsets]


def test_a_chunk_is_a_transaction_and_the_last_one_goes_to_the_end() -> None:
    scene = Scene()
    assert scene.process(records(0, 1, 3, 4), following=6) is None
    assert scene.transactions.committed == [([b"k0", b"k1", b"k3"], 4), ([b"k4"], 6)]
    assert scene.transactions.metadata == {
        "format": 1,
        "partitions": 2,
        "topic_id": "the-id",
        "at": int(scene.now),
        "sent": True,
    }


def test_a_chunk_ends_with_its_bytes() -> None:
    scene = Scene()
    done = scene.task.process(records(0, 1, size=1000), 2, transform).report
    assert (done.messages, done.native, done.chunks) == (2, 2, 2)
    assert [offset for _, offset in scene.transactions.committed] == [1, 2]


def test_what_is_before_a_bad_message_is_committed_and_nothing_after_it() -> None:
    scene = Scene()
    given = [*records(0, 1), SourceRecord(BAD, None, 5), *records(6)]
    done = scene.task.process(given, 7, transform)
    assert scene.transactions.committed == [([b"k0", b"k1"], 5)]
    assert done.error is not None
    assert (done.report.first, done.report.end, done.report.messages) == (0, 5, 2)
    again = scene.task.process([SourceRecord(BAD, None, 5)], 6, transform)
    assert again.error is not None
    assert (again.report.end, again.report.messages) == (5, 0)
    assert len(scene.transactions.committed) == 1


def test_markers_at_the_end_are_committed_after_a_while() -> None:
    scene = Scene(Committed(4, 1000.0 * HOUR - 5))
    scene.task.rest(6)
    scene.task.rest(None)
    assert not scene.transactions.committed
    scene.now += 6
    scene.task.rest(None)
    scene.now += 60
    scene.task.rest(None)
    assert scene.transactions.committed == [([], 6)]


def test_an_offset_is_refreshed_before_it_expires() -> None:
    scene = Scene(Committed(4, 1000.0 * HOUR - 11.9 * HOUR))
    scene.task.rest(4)
    assert not scene.transactions.committed
    scene.now += 0.2 * HOUR
    scene.task.rest(None)
    scene.task.rest(None)
    assert scene.transactions.committed == [([], 4)]


def test_an_empty_partition_commits_its_end_once_and_stays_new_until_a_message_is_sent() -> None:
    """Otherwise messages that are deleted before they are read would not be missed, nor a target of another one."""
    scene = Scene()
    scene.task.rest(None)
    assert not scene.transactions.committed
    scene.task.rest(0)
    scene.now += 60
    scene.task.rest(0)
    scene.task.rest(2)  # markers
    assert scene.transactions.committed == [([], 0), ([], 2)]
    assert scene.transactions.metadata["sent"] is False
    assert scene.task.is_new
    scene.process(records(2), following=3)
    assert scene.transactions.metadata["sent"] is True
    assert not scene.task.is_new


def test_an_offset_before_which_nothing_was_sent_is_of_a_new_partition() -> None:
    assert Scene(Committed(4, 0.0, sent=False)).task.is_new
    assert not Scene(Committed(4, 0.0)).task.is_new
