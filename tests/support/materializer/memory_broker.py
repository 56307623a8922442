"""The commits of one raw partition, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.fault_points import FaultPoint, reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import Message

PARTITION = RawPartition("raw", 0)


class MemoryBroker:
    """stream_runtime.exactly_once.commits.Commits, which fences no producer."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """The committed messages."""
        self.position: Position | None = None
        """The committed position."""
        self.offsets: list[int] = []
        """The offsets of all committed positions."""
        self._open: list[Message] = []

    def read(self) -> Mapping[RawPartition, StoredOffset | None]:
        self._open = []
        return {PARTITION: None if self.position is None else self.position.stored()}

    def send(self, message: Message) -> None:
        self._open.append(message)

    def commit(self, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        reach(FaultPoint.AFTER_SEND_OFFSETS)
        stored = offsets[PARTITION]
        self.position = decode(stored.offset, stored.metadata, PARTITION, RAW_FAULTS)
        self.messages += self._open
        self.offsets.append(stored.offset)
        self._open = []

    def close(self) -> None:
        self._open = []
