"""The protocol of a share without a state: every message is transformed and sent exactly once.

The committed offsets of its source partitions are the only state. After a crash at any point they are those before or
those after the commit, because of the order of the steps:

1. open the commit protocol, which fences an older attempt; only then read the committed offsets;
2. read from there on; then check that each topic is still the one that the offset is of (kafka.source_check);
3. for each chunk of a partition: transform it in memory, and commit its messages together with the offset.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.chunks import ChunkSettings, chunks
from stream_runtime.exactly_once.commits import StoredOffset, send_all
from stream_runtime.exactly_once.committed import Committed, decode, encode
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.records import Message
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stream_runtime.exactly_once.commits import Commits
    from stream_runtime.records import SourcePartition, SourceRecord, TopicShape

_IDLE_COMMIT_SECONDS = 10.0  # from one commit to the next of an offset that only markers have moved


class StatelessSettings(NamedTuple):
    """Settings of a task."""

    # How much is processed at a time.
    # How many messages a commit has at most.
    chunk: ChunkSettings
    # A position that has not changed for so long is committed again, in seconds.
    # The age of an offset that is committed again, so that it does not expire.
    refresh_seconds: float


class Transformed(NamedTuple):
    """The messages of the records before the one that cannot be transformed now."""

    # The messages to send.
    messages: Sequence[Message]
    # Why that record cannot be transformed.
    error: CdcError | None = None
    # How many of the messages the native core has made.
    native: int = 0
    # How many records they are made of; None if each is made of one.
    records: int | None = None


class Done(NamedTuple):
    """The outcome of processing messages."""

    # The report of what was processed.
    report: Report = NOTHING_DONE
    # Why the message at the report's end cannot be processed.
    error: CdcError | None = None


class StatelessTask:
    """The open task of a share in a process. After any exception it must be closed, and a new one opened."""

    def __init__(
        self,
        commits: Commits,
        settings: StatelessSettings,
        shapes: Mapping[SourcePartition, TopicShape],
        faults: Faults = NEUTRAL_FAULTS,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1: `commits` has fenced older attempts. It is closed if there is no task. shapes: those of the topics of
        the share's partitions, to which their offsets are bound. CdcError if an offset is of a topic of another shape.
        """
        self._commits = commits
        self._settings = settings
        self._shapes = shapes
        self._wall_clock = wall_clock
        self._following: dict[SourcePartition, int] = {}
        try:
            self._committed = self._read_offsets(faults)
        except BaseException:
            commits.close()
            raise

    def offset(self, partition: SourcePartition) -> int | None:
        """The committed offset."""
        committed = self._committed.get(partition)
        return None if committed is None else committed.offset

    def position(self, partition: SourcePartition) -> int:
        """The offset up to which messages are transformed, also if that is not committed."""
        return max(self.offset(partition) or 0, self._following.get(partition, 0))

    def send(self, partition: SourcePartition, messages: Sequence[Message]) -> None:
        """Commit messages that are made of no message, together with the partition's position."""
        self._commit(partition, messages, self.position(partition))

    def is_new(self, partition: SourcePartition) -> bool:
        """Whether no message of the partition was sent yet, by any process."""
        committed = self._committed.get(partition)
        return committed is None or not committed.sent

    def process(
        self,
        partition: SourcePartition,
        records: Sequence[SourceRecord],
        following: int,
        transform: Callable[[Sequence[SourceRecord]], Transformed],
    ) -> Done:
        """Step 3. The records are those of the partition from its offset on, and `following` is the offset after them.

        An error of `transform` is in the result, after all messages before it were committed. If a commit raises, it is
        not known whether it was done, which the next task sees.
        """
        started = time.monotonic()
        report = NOTHING_DONE
        for chunk in _chunks(records, self._settings.chunk):
            messages, error, native, made_of = transform(chunk)
            count = len(messages) if made_of is None else made_of
            reach(StatelessPoint.TRANSFORMED)
            end = chunk[count].offset if error is not None else chunk[-1].offset + 1
            if messages:
                is_last = error is None and end > records[-1].offset
                self._commit(partition, messages, max(end, following) if is_last else end)
            else:
                self._following[partition] = end  # `rest` commits it
            report = report._replace(
                first=report.first if report.chunks else chunk[0].offset,
                end=end,
                messages=report.messages + count,
                changes=report.changes + len(messages),
                chunks=report.chunks + 1,
                native=report.native + native,
                seconds=time.monotonic() - started,
            )
            if error is not None:
                return Done(report, error)
        return Done(report)

    def rest(self, partition: SourcePartition, following: int | None) -> None:
        """There is nothing to transform. Commits the offset at the partition's end if there is none yet or markers have
        moved it, and an offset that would expire. following: if there is news of it.

        Without an offset, the next task could not tell that messages were deleted before they were read.
        """
        if following is not None:
            self._following[partition] = following
        end = self._following.get(partition, -1)
        committed = self._committed.get(partition)
        age = self._wall_clock() - (0.0 if committed is None else committed.at)
        if end > (-1 if committed is None else committed.offset) and age > _IDLE_COMMIT_SECONDS:
            self._commit(partition, [], end)
        elif committed is not None and age > self._settings.refresh_seconds:
            self._commit(partition, [], committed.offset)

    def close(self) -> None:
        self._commits.close()

    def _read_offsets(self, faults: Faults) -> dict[SourcePartition, Committed]:
        reach(StatelessPoint.TASK_FENCED)
        found = {
            partition: decode(stored.offset, stored.metadata, partition, self._shapes[partition], faults)
            for partition, stored in self._commits.read().items()
            if stored is not None
        }
        reach(StatelessPoint.OFFSET_READ)
        return found

    def _commit(self, partition: SourcePartition, messages: Sequence[Message], offset: int) -> None:
        now, sent = self._wall_clock(), bool(messages) or not self.is_new(partition)
        send_all(self._commits, messages, StatelessPoint.SOME_SENT)
        reach(StatelessPoint.ALL_SENT)
        metadata = encode(self._shapes[partition], now, sent=sent)
        self._commits.commit({partition: StoredOffset(offset, metadata)})
        self._committed[partition] = Committed(offset, now, sent)
        reach(StatelessPoint.CHUNK_COMMITTED)


def _chunks(records: Sequence[SourceRecord], settings: ChunkSettings) -> Iterator[Sequence[SourceRecord]]:
    if isinstance(records, SourceBatch):
        return records.parts(settings.max_bytes, settings.max_messages)
    return chunks(records, settings)
