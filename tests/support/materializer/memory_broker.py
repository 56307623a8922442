"""The transactions of one raw partition, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from stream_runtime.exactly_once.position import Position
    from stream_runtime.records import Message

PARTITION = RawPartition("raw", 0)


class MemoryBroker:
    """`messages`: what is committed; `position`: what is committed with it; `offsets`: of all positions so far."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.position: Position | None = None
        self.offsets: list[int] = []
        self._open: list[Message] = []
        self._sent: Position | None = None

    def begin(self) -> None:
        self._open, self._sent = [], None

    def send(self, message: Message) -> None:
        self._open.append(message)

    def send_position(self, position: Position) -> None:
        self._sent = position

    def commit(self) -> None:
        assert self._sent is not None
        self.messages += self._open
        self.position = self._sent
        self.offsets.append(self._sent.offset)

    def abandon(self) -> None:
        self._open, self._sent = [], None

    def read(self, _partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
        return {PARTITION: self.position}
