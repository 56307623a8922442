"""Reads the ledger: all committed file events, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from archive.events.file_event import FileEvent
from archive.faults import event_unreadable
from stream_runtime.kafka import Topics, read_offsets
from stream_runtime.records import SourcePartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cdc_common.settings import KafkaSettings


class LedgerEvent(NamedTuple):
    """A file event, and where it is."""

    # The partition of the topic of file events.
    partition: int
    # The offset in that partition.
    offset: int
    # The file event.
    event: FileEvent


class Ledger:
    """The topic of the file events. CdcError KAFKA_UNREACHABLE, KAFKA_REFUSED, or for a message that is no event."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._topics = Topics(settings)

    def topic_id(self) -> str:
        """The id of the topic: another one if it was deleted and created again."""
        return self._topics.shapes([self._topic])[self._topic].topic_id

    def read(self, first: Mapping[int, int] | None = None) -> Iterator[LedgerEvent]:
        """All events that are committed now. first: the offset from which each partition is read, 0 by default."""
        shape = self._topics.shapes([self._topic])[self._topic]
        for number in range(shape.partitions):
            where = SourcePartition(self._topic, number)
            for offset, value in read_offsets(self._settings, where, (first or {}).get(number, 0)):
                yield LedgerEvent(number, offset, _decode(where, offset, value))


def _decode(where: SourcePartition, offset: int, value: bytes | None) -> FileEvent:
    try:
        return FileEvent.decode(value or b"")
    except (ValueError, KeyError, TypeError) as error:
        raise event_unreadable(where, offset) from error
