"""Reading topics that are other topics now, with brokers that answer as a test says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from materializer.records import RawPartition
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import Read
from stream_runtime.records import SourceRecord, TopicShape
from transformer.faults import STREAM_FAULTS

if TYPE_CHECKING:
    from collections.abc import Collection

BOUND = TopicShape(2, "id")
HERE, THERE, SILENT = RawPartition("here", 0), RawPartition("there", 1), RawPartition("silent", 0)
ALL = dict.fromkeys([HERE, THERE, SILENT], BOUND)
AWAY = CdcError(Code.KAFKA_UNREACHABLE, "It does not answer.", "Start it.")


class Brokers:
    """asked: the topics of each question."""

    def __init__(self, error: CdcError | None = None, **shapes: TopicShape | CdcError) -> None:
        self.asked: list[list[str]] = []
        self._error = error
        self._shapes = shapes

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape | CdcError]:
        self.asked.append(list(topics))
        if self._error is not None:
            raise self._error
        return {topic: self._shapes.get(topic, BOUND) for topic in topics}


def read() -> Read:
    records = [SourceRecord(b"k", b"v", 4)]
    return Read({HERE: records, THERE: records}, {HERE: 5, THERE: 5, SILENT: 7}, {})


def test_topics_that_are_the_same_are_read_with_one_question() -> None:
    brokers = Brokers()
    assert check_sources(read(), ALL, brokers, STREAM_FAULTS) == read()
    assert brokers.asked == [["here", "there"]]


def test_nothing_is_asked_if_nothing_was_read() -> None:
    brokers = Brokers(AWAY)
    nothing = Read({}, {SILENT: 7}, {})
    assert check_sources(nothing, ALL, brokers, STREAM_FAULTS) == Read({}, {SILENT: 7}, {})
    assert not brokers.asked


def test_messages_of_another_topic_are_left_out() -> None:
    """The offset after them is left out too, which would be committed for a partition at rest."""
    for shape, problem in [
        (TopicShape(2, "other"), "was deleted and recreated"),
        (TopicShape(3, "id"), "has 3 partitions now; it had 2"),
    ]:
        found = check_sources(read(), ALL, Brokers(there=shape), STREAM_FAULTS)
        assert found.records == {HERE: read().records[HERE]}
        assert found.following == {HERE: 5, SILENT: 7}
        assert found.errors.keys() == {THERE}
        assert found.errors[THERE].code is Code.TRANSFORM_SOURCE
        assert problem in found.errors[THERE].problem


def test_messages_of_a_topic_that_cannot_be_described_are_read_again() -> None:
    gone = CdcError(Code.KAFKA_UNREACHABLE, "It is not there.", "")
    assert check_sources(read(), ALL, Brokers(there=gone), STREAM_FAULTS).errors == {THERE: gone}
    found = check_sources(read(), ALL, Brokers(AWAY), STREAM_FAULTS)
    assert found == Read({}, {SILENT: 7}, {HERE: AWAY, THERE: AWAY})
