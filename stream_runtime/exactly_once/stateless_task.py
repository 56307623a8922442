"""The protocol of one source partition without a state: every message is transformed and sent exactly once.

The committed offset is the only state. After a crash at any point it is the one before or the one after the commit,
because of the order of the steps:

1. open the commit protocol, which fences an older attempt; only then read the committed offset;
2. read from there on; then check that the topic is still the one that the offset is of (kafka.source_check);
3. for each chunk: transform it in memory, and commit what came out together with the offset.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_runtime.exactly_once.commits import Commits
    from stream_runtime.exactly_once.committed import Committed
    from stream_runtime.records import SourceRecord

_IDLE_COMMIT_SECONDS = 10.0  # from one commit to the next of an offset that only markers have moved


class StatelessSettings(NamedTuple):
    """Settings of a task."""

    chunk_bytes: int
    """Bytes of keys and values that a commit has at most."""
    chunk_messages: int
    """Messages that a commit has at most."""
    refresh_seconds: float
    """The age of an offset that is committed again, so that it does not expire."""


class Transformed(NamedTuple):
    """The messages of the records before the one that cannot be transformed now."""

    messages: Sequence[Message]
    error: CdcError | None = None
    """Why that record cannot be transformed."""
    native: int = 0
    """How many of the messages the native core has made."""


class Done(NamedTuple):
    """What was committed."""

    report: Report = NOTHING_DONE
    error: CdcError | None = None
    """What the message at the report's end has stopped with."""


class StatelessTask:
    """What a process keeps open of a partition. After any exception it must be closed, and a new one opened.

    offset: the committed one, or None. is_new: whether no message was sent yet, by any process.
    """

    def __init__(
        self,
        commits: Commits,
        settings: StatelessSettings,
        committed: Committed | None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1 is done."""
        self._commits = commits
        self._settings = settings
        self._wall_clock = wall_clock
        self._following: int | None = None
        self.offset = None if committed is None else committed.offset
        self.is_new = committed is None or not committed.sent
        self._committed_at = 0.0 if committed is None else committed.at

    def process(
        self,
        records: Sequence[SourceRecord],
        following: int,
        transform: Callable[[Sequence[SourceRecord]], Transformed],
    ) -> Done:
        """Step 3. The records are those from the offset on, and `following` is the offset after them.

        An error of `transform` is in the result, after all messages before it were committed. If a commit raises, it is
        not known whether it was done, which the next task sees.
        """
        started = time.monotonic()
        report = NOTHING_DONE
        for chunk in _chunks(records, self._settings):
            messages, error, native = transform(chunk)
            reach(StatelessPoint.TRANSFORMED)
            end = chunk[len(messages)].offset if error is not None else chunk[-1].offset + 1
            if messages:
                is_last = error is None and chunk[-1] is records[-1]
                self._commit(messages, max(end, following) if is_last else end)
            report = report._replace(
                first=report.first if report.chunks else chunk[0].offset,
                end=end,
                messages=report.messages + len(messages),
                changes=report.changes + len(messages),
                chunks=report.chunks + 1,
                native=report.native + native,
                seconds=time.monotonic() - started,
            )
            if error is not None:
                return Done(report, error)
        return Done(report)

    def rest(self, following: int | None) -> None:
        """There is nothing to transform. Commits the offset at the partition's end if there is none yet or markers have
        moved it, and an offset that would expire. following: if there is news of it.

        Without an offset, the next task could not tell that messages were deleted before they were read.
        """
        if following is not None:
            self._following = following
        end = -1 if self._following is None else self._following
        age = self._wall_clock() - self._committed_at
        if end > (-1 if self.offset is None else self.offset) and age > _IDLE_COMMIT_SECONDS:
            self._commit([], end)
        elif self.offset is not None and age > self._settings.refresh_seconds:
            self._commit([], self.offset)

    def close(self) -> None:
        self._commits.close()

    def _commit(self, messages: Sequence[Message], offset: int) -> None:
        now = self._wall_clock()
        is_new = self.is_new and not messages
        self._commits.commit(messages, offset, now, sent=not is_new)
        self.offset, self.is_new, self._committed_at = offset, is_new, now
        reach(StatelessPoint.CHUNK_COMMITTED)


def _chunks(records: Sequence[SourceRecord], settings: StatelessSettings) -> Iterator[list[SourceRecord]]:
    chunk: list[SourceRecord] = []
    size = 0
    for record in records:
        chunk.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if len(chunk) >= settings.chunk_messages or size >= settings.chunk_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
