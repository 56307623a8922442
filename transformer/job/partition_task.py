"""The protocol of one source partition: every message is transformed and sent exactly once.

The group's committed offset is the only state. After a crash at any point it is the one before or the one after the
transaction, because of the order of the steps:

1. create the transactional producer, which fences an older attempt; only then read the committed offset;
2. read from there on; then check that the topic is still the one that the offset is of (source_check);
3. for each chunk: transform it in memory, produce its messages, and commit them together with the offset.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdc_common.errors.codes import CdcError
from stream_runtime.fault_points import reach
from stream_runtime.kafka.source_reader import metadata
from transformer.fault_points import TransformPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stream_runtime.kafka.source_reader import Committed
    from stream_runtime.records import Message, SourceRecord, TopicShape
    from transformer.records import Transformed

_IDLE_COMMIT_SECONDS = 10.0  # from one commit to the next of an offset that only markers have moved


class Transactions(Protocol):
    """stream_runtime.kafka.PartitionProducer."""

    def begin(self) -> None: ...
    def send(self, message: Message, /) -> None: ...
    def send_offset(self, offset: int, metadata: str, /) -> None: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...


class TaskSettings(NamedTuple):
    """chunk_bytes, chunk_messages: most of a transaction. refresh_seconds: age of an offset that is committed again."""

    chunk_bytes: int
    chunk_messages: int
    refresh_seconds: float


class Done(NamedTuple):
    """What was committed: the offsets [first, end), in so many messages and chunks, how many were sent, and how many of
    them the native core has made. error: what the message at `end` has stopped with.
    """

    first: int = -1
    end: int = -1
    messages: int = 0
    sent: int = 0
    chunks: int = 0
    seconds: float = 0.0
    error: CdcError | None = None
    native: int = 0


class PartitionTask:
    """What a process keeps open of a partition. After any exception it must be closed, and a new one opened.

    offset: the committed one, or None. is_new: whether no message was sent yet, by any process.
    """

    def __init__(
        self,
        transactions: Transactions,
        shape: TopicShape,
        settings: TaskSettings,
        committed: Committed | None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1 is done."""
        self._transactions = transactions
        self._shape = shape
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

        An error of `transform` is in the result, after all messages before it were committed. CdcError or
        KafkaException of the transaction: it is not known whether it was committed, which the next task sees.
        """
        started = time.monotonic()
        done = Done()
        for chunk in _chunks(records, self._settings):
            messages, error, native = transform(chunk)
            reach(TransformPoint.TRANSFORMED)
            end = chunk[len(messages)].offset if error is not None else chunk[-1].offset + 1
            if messages:
                is_last = error is None and chunk[-1] is records[-1]
                self._commit(messages, max(end, following) if is_last else end)
            done = Done(
                done.first if done.chunks else chunk[0].offset,
                end,
                done.messages + len(messages),
                done.sent + len(messages),
                done.chunks + 1,
                time.monotonic() - started,
                error,
                done.native + native,
            )
            if error is not None:
                break
        return done

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
        self._transactions.abandon()

    def _commit(self, messages: Sequence[Message], offset: int) -> None:
        now = self._wall_clock()
        self._transactions.begin()
        for message in messages:
            self._transactions.send(message)
            reach(TransformPoint.SOME_SENT)
        reach(TransformPoint.ALL_SENT)
        is_new = self.is_new and not messages
        self._transactions.send_offset(offset, metadata(self._shape, now, sent=not is_new))
        reach(TransformPoint.OFFSET_SENT)
        self._transactions.commit()
        self.offset, self.is_new, self._committed_at = offset, is_new, now
        reach(TransformPoint.CHUNK_COMMITTED)


def _chunks(records: Sequence[SourceRecord], settings: TaskSettings) -> Iterator[list[SourceRecord]]:
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
