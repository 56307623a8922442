"""The protocol of a share, with commits that are only written down."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.exactly_once.committed import Committed, encode
from stream_runtime.exactly_once.stateless_task import StatelessSettings, StatelessTask, Transformed
from stream_runtime.records import Message, SourcePartition, SourceRecord, TopicShape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOUR = 3600.0
SETTINGS = StatelessSettings(ChunkSettings(1000, 3, math.inf), refresh_seconds=12 * HOUR)
SHAPE = TopicShape(2, "the-id")
PART, OTHER = SourcePartition("source", 0), SourcePartition("source", 1)
BAD = b"bad"


class NotedCommits:
    """stream_runtime.exactly_once.commits.Commits: each commit's messages and offset."""

    def __init__(self, stored: dict[SourcePartition, StoredOffset | None]) -> None:
        self.committed: list[tuple[list[bytes], int]] = []
        self.partitions: list[SourcePartition] = []
        self.metadata: dict[str, Any] = {}
        self.is_closed = False
        self._stored = stored
        self._open: list[bytes] = []

    def read(self) -> dict[SourcePartition, StoredOffset | None]:
        return self._stored

    def send(self, message: Message) -> None:
        self._open.append(message.key)

    def commit(self, offsets: Mapping[SourcePartition, StoredOffset]) -> None:
        [(partition, (offset, metadata))] = offsets.items()
        self.committed.append((self._open, offset))
        self.partitions.append(partition)
        self.metadata = json.loads(metadata)
        self._open = []

    def close(self) -> None:
        self.is_closed = True
        self._open = []


class Scene:
    """A task of two partitions; its tests use the first one where it does not matter."""

    def __init__(self, committed: Committed | None = None) -> None:
        self.now = 1000.0 * HOUR
        stored = None
        if committed is not None:
            stored = StoredOffset(committed.offset, encode(SHAPE, committed.at, sent=committed.sent))
        self.commits = NotedCommits({PART: stored, OTHER: None})
        self.task = StatelessTask(self.commits, SETTINGS, {PART: SHAPE, OTHER: SHAPE}, wall_clock=lambda: self.now)

    def process(self, records: Sequence[SourceRecord], following: int) -> CdcError | None:
        return self.task.process(PART, records, following, transform).error

    def rest(self, following: int | None) -> None:
        self.task.rest(PART, following)


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
    assert scene.commits.committed == [([b"k0", b"k1", b"k3"], 4), ([b"k4"], 6)]
    assert scene.commits.metadata == {
        "format": 1,
        "partitions": 2,
        "topic_id": "the-id",
        "at": int(scene.now),
        "sent": True,
    }


def test_a_chunk_ends_with_its_bytes() -> None:
    scene = Scene()
    done = scene.task.process(PART, records(0, 1, size=1000), 2, transform).report
    assert (done.messages, done.native, done.chunks) == (2, 2, 2)
    assert [offset for _, offset in scene.commits.committed] == [1, 2]


def test_what_is_before_a_bad_message_is_committed_and_nothing_after_it() -> None:
    scene = Scene()
    given = [*records(0, 1), SourceRecord(BAD, None, 5), *records(6)]
    done = scene.task.process(PART, given, 7, transform)
    assert scene.commits.committed == [([b"k0", b"k1"], 5)]
    assert done.error is not None
    assert (done.report.first, done.report.end, done.report.messages) == (0, 5, 2)
    again = scene.task.process(PART, [SourceRecord(BAD, None, 5)], 6, transform)
    assert again.error is not None
    assert (again.report.end, again.report.messages) == (5, 0)
    assert len(scene.commits.committed) == 1


def two_of_the_second(records: Sequence[SourceRecord]) -> Transformed:
    """No message of most records, two of that with offset 1, and an error at offset 4."""
    messages = [Message("target", 0, b"k", b"v") for record in records if record.offset == 1 for _ in range(2)]
    bad = [number for number, record in enumerate(records) if record.offset == 4]
    error = CdcError(Code.TRANSFORM_FAILED, "at 4", "") if bad else None
    return Transformed(messages, error, records=bad[0] if bad else len(records))


def test_a_record_may_become_no_message_or_several() -> None:
    scene = Scene()
    done = scene.task.process(PART, records(0, 1, 2), 3, two_of_the_second)
    assert (done.report.messages, done.report.changes, done.error) == (3, 2, None)
    assert scene.commits.committed == [([b"k", b"k"], 3)]
    done = scene.task.process(PART, records(3, 4), 5, two_of_the_second)
    assert (done.report.end, done.report.messages, done.error is None) == (4, 1, False)


def test_records_without_messages_are_committed_after_a_while() -> None:
    scene = Scene(Committed(0, 1000.0 * HOUR - 5))
    assert scene.task.process(PART, records(0, 2, 3), 4, two_of_the_second).error is None
    assert not scene.commits.committed
    scene.now += 60
    scene.rest(None)
    assert scene.commits.committed == [([], 4)]


def test_markers_at_the_end_are_committed_after_a_while() -> None:
    scene = Scene(Committed(4, 1000.0 * HOUR - 5))
    scene.rest(6)
    scene.rest(None)
    assert not scene.commits.committed
    scene.now += 6
    scene.rest(None)
    scene.now += 60
    scene.rest(None)
    assert scene.commits.committed == [([], 6)]


def test_an_offset_is_refreshed_before_it_expires() -> None:
    scene = Scene(Committed(4, 1000.0 * HOUR - 11.9 * HOUR))
    scene.rest(4)
    assert not scene.commits.committed
    scene.now += 0.2 * HOUR
    scene.rest(None)
    scene.rest(None)
    assert scene.commits.committed == [([], 4)]


def test_an_empty_partition_commits_its_end_once_and_stays_new_until_a_message_is_sent() -> None:
    """Otherwise messages that are deleted before they are read would not be missed, nor a target of another one."""
    scene = Scene()
    scene.rest(None)
    assert not scene.commits.committed
    scene.rest(0)
    scene.now += 60
    scene.rest(0)
    scene.rest(2)  # markers
    assert scene.commits.committed == [([], 0), ([], 2)]
    assert scene.commits.metadata["sent"] is False
    assert scene.task.is_new(PART)
    scene.process(records(2), following=3)
    assert scene.commits.metadata["sent"] is True
    assert not scene.task.is_new(PART)


def test_an_offset_before_which_nothing_was_sent_is_of_a_new_partition() -> None:
    assert Scene(Committed(4, 0.0, sent=False)).task.is_new(PART)
    assert not Scene(Committed(4, 0.0)).task.is_new(PART)


def test_each_partition_of_a_share_has_an_offset_of_its_own() -> None:
    scene = Scene(Committed(4, 1000.0 * HOUR))
    scene.task.process(OTHER, records(0, 1), 2, transform)
    scene.process(records(4), following=5)
    scene.task.rest(OTHER, 7)
    scene.now += 60
    scene.task.rest(OTHER, None)
    assert scene.commits.committed == [([b"k0", b"k1"], 2), ([b"k4"], 5), ([], 7)]
    assert scene.commits.partitions == [OTHER, PART, OTHER]
    assert (scene.task.offset(PART), scene.task.offset(OTHER)) == (5, 7)


def test_an_offset_of_a_topic_of_another_shape_is_refused() -> None:
    """No task is there that could be closed, so the producer is."""
    stored = StoredOffset(4, encode(TopicShape(2, "another-id"), 0.0, sent=True))
    commits = NotedCommits({PART: stored})
    with pytest.raises(CdcError, match="was deleted and recreated"):
        StatelessTask(commits, SETTINGS, {PART: SHAPE})
    assert commits.is_closed
