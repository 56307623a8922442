"""Commit protocols: how what came out of messages and the position after them become true together.

Kafka's transaction is one of them. A store that has transactions holds the position itself, and is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stream_runtime.exactly_once.committed import encode
from stream_runtime.fault_points import StatelessPoint, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.records import Message, TopicShape


class Commits(Protocol):
    """The commit protocol of one source partition. Opening it fences every earlier attempt."""

    def commit(self, messages: Sequence[Message], offset: int, now: float, *, sent: bool) -> None:
        """Make the messages and the offset after them true together. If this raises, it is not known whether it was
        done: a new instance and the position that it reads show it.

        now: when it is committed (s since 1970). sent: whether a message was sent by now, by any process.
        """
        ...

    def close(self) -> None:
        """Give up what is not committed."""
        ...


class Transactions(Protocol):
    """stream_runtime.kafka.PartitionProducer."""

    def begin(self) -> None: ...
    def send(self, message: Message, /) -> None: ...
    def send_offset(self, offset: int, metadata: str, /) -> None: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...


class KafkaCommits:
    """Commits by Kafka's transactions: messages and the group's offset."""

    def __init__(self, transactions: Transactions, shape: TopicShape) -> None:
        """shape: of the source topic, which the offset is bound to."""
        self._transactions = transactions
        self._shape = shape

    def commit(self, messages: Sequence[Message], offset: int, now: float, *, sent: bool) -> None:
        self._transactions.begin()
        for message in messages:
            self._transactions.send(message)
            reach(StatelessPoint.SOME_SENT)
        reach(StatelessPoint.ALL_SENT)
        self._transactions.send_offset(offset, encode(self._shape, now, sent=sent))
        reach(StatelessPoint.OFFSET_SENT)
        self._transactions.commit()

    def close(self) -> None:
        self._transactions.abandon()
