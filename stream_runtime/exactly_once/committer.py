"""Steps 3 to 6 of the protocol: messages, changelog and position of a chunk become true in one commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stream_runtime.exactly_once.commits import send_all
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.versions import next_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_runtime.exactly_once.position import Position
    from stream_runtime.exactly_once.processor import Result
    from stream_runtime.exactly_once.resources import Resources
    from stream_runtime.records import ChangeRun, Message, SourcePartition


class Committer:
    """Commits positions of one source partition; `committed` is the last one. seconds: how long all commits took."""

    def __init__(self, partition: SourcePartition, resources: Resources) -> None:
        self.committed: Position | None = None
        self.seconds = 0.0
        self._partition = partition
        self._commits = resources.commits
        self._state = resources.state

    def commit_chunk(
        self, before: Position, offset: int, result: Result, messages: Iterable[Message | ChangeRun]
    ) -> Position:
        """Send the messages of a folded chunk and commit the new state together with `offset`: the new position, which
        has the rest of `before`.
        """
        started = time.monotonic()
        after = before._replace(offset=offset, version=next_version(before.version))
        head = Head(after.version, after.offset, result.now_ms, after.partitions)
        changelog = Changelog(head, before.version, before.offset, result.writes)
        send_all(self._commits, messages, FaultPoint.IN_PRODUCE)
        reach(FaultPoint.AFTER_PRODUCE)
        self._state.store_changelog(changelog)
        reach(FaultPoint.AFTER_CHANGELOG)
        self._commit(after)
        self._state.apply(changelog)
        reach(FaultPoint.AFTER_APPLY)
        self.seconds += time.monotonic() - started
        return after

    def commit_position(self, position: Position) -> None:
        """Commit a position whose state is stored already, or that has none yet."""
        started = time.monotonic()
        self._commit(position)
        self.seconds += time.monotonic() - started

    def _commit(self, position: Position) -> None:
        self._commits.commit({self._partition: position.stored()})
        self.committed = position
        reach(FaultPoint.AFTER_COMMIT)
