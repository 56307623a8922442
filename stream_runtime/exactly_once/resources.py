"""What a process holds of a source partition to run the protocol on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from stream_runtime.state.checkpointed_state import CheckpointedState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stream_runtime.exactly_once.position import Position
    from stream_runtime.records import Message, SourcePartition


class Transactions(Protocol):
    """stream_runtime.kafka.PartitionProducer."""

    def begin(self) -> None: ...
    def send(self, message: Message) -> None: ...
    def send_position(self, position: Position) -> None: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...


class Positions(Protocol):
    """stream_runtime.kafka.GroupPositions."""

    def read(self, partitions: Collection[SourcePartition], /) -> Mapping[SourcePartition, Position | None]: ...


class Resources(NamedTuple):
    """`transactions` is made first: it fences every other process that could commit."""

    transactions: Transactions
    positions: Positions
    state: CheckpointedState

    def read_position(self, partition: SourcePartition) -> Position | None:
        """The committed position, None if the group has never committed one."""
        return self.positions.read([partition])[partition]

    def close(self) -> None:
        self.transactions.abandon()
        self.state.close()
