"""The commit protocol of a share: its messages and the positions after them become true together, or not at all.

Two kinds of stores can do that. Kafka's transaction commits messages and the consumer group's offsets
(stream_runtime.kafka.commits). A store that has transactions of its own, such as a warehouse, keeps the positions
beside the data, and commits both (tests/support/stream_runtime/sqlite_commits.py shows how).
tests/support/stream_runtime/commit_contract.py is the contract of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from stream_runtime.fault_points import Point, reach
from stream_runtime.records import Message
from stream_runtime.source_batch import MessageBatches, MessageGroups

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_runtime.records import ChangeRun, SourcePartition


class NotOwnerError(Exception):
    """Another process has committed since this one did: it owns the share."""


class StoredOffset(NamedTuple):
    """A committed offset of a source partition."""

    # The next offset to process.
    offset: int
    # The text that was committed beside it.
    metadata: str = ""


class Commits(Protocol):
    """The commit protocol of one share.

    A new instance fences every earlier one that has a partition of the share, in any process: those can commit nothing
    more, whatever set of partitions they have. After any exception an instance must be closed, and another one made:
    the positions that it reads show whether the last commit was done.
    """

    def read(self) -> Mapping[SourcePartition, StoredOffset | None]:
        """The committed position of each partition of the share; None if there is none yet.

        It includes the last commit of every instance that this one has fenced.
        """
        ...

    def send(self, message: Message, /) -> None:
        """Make a message part of the next commit."""
        ...

    def commit(self, offsets: Mapping[SourcePartition, StoredOffset], /) -> None:
        """Commit these positions and all messages that were sent since the last commit. Positions of the share's other
        partitions stay. An exception if another instance has fenced this one.
        """
        ...

    def close(self) -> None:
        """Give up uncommitted messages."""
        ...


@runtime_checkable
class TakesBatches(Protocol):
    """A commit protocol that takes a batch of messages as a whole."""

    def send_groups(self, messages: MessageGroups, /) -> None:
        """Make these messages part of the next commit, in their order."""
        ...

    def send_changes(self, run: ChangeRun, /) -> None:
        """Make the messages of these changes part of the next commit, in their order."""
        ...


def send_all(commits: Commits, messages: Iterable[Message | ChangeRun], point: Point) -> None:
    """Send all messages: in batches, where the commit protocol takes them. point: reached after each step."""
    if isinstance(commits, TakesBatches) and isinstance(messages, (MessageGroups, MessageBatches)):
        for groups in messages.batches if isinstance(messages, MessageBatches) else [messages]:
            commits.send_groups(groups)
            reach(point)
        return
    for sent in messages:
        if isinstance(sent, Message):
            commits.send(sent)
        elif isinstance(commits, TakesBatches):
            commits.send_changes(sent)
        else:
            send_all(commits, sent.messages(), point)
        reach(point)
