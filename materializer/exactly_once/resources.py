"""What a process holds of a raw partition to run the protocol on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from materializer.store.checkpointed_state import CheckpointedState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from materializer.exactly_once.position import Position
    from materializer.records import Message, RawPartition


class Transactions(Protocol):
    """materializer.kafka.PartitionProducer."""

    def begin(self) -> None: ...
    def send(self, message: Message) -> None: ...
    def send_position(self, position: Position) -> None: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...


class Positions(Protocol):
    """materializer.kafka.GroupPositions."""

    def read(self, partitions: Collection[RawPartition], /) -> Mapping[RawPartition, Position | None]: ...


class Resources(NamedTuple):
    """`transactions` is made first: it fences every other process that could commit."""

    transactions: Transactions
    positions: Positions
    state: CheckpointedState

    def read_position(self, raw_partition: RawPartition) -> Position | None:
        """The committed position, None if the group has never committed one."""
        return self.positions.read([raw_partition])[raw_partition]

    def close(self) -> None:
        self.transactions.abandon()
        self.state.close()
