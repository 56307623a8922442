"""Batches of messages in the native core's buffers: they look like sequences, and are worked on as a whole.

A job takes a message out only where it needs one as a Python object.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, overload

from stream_runtime.records import Message, SourceRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_native.avro.messages import Messages  # noqa: TC004 - the core may be missing
    from cdc_native.kafka.source_batch import SourceBatch as NativeBatch


class SourceBatch(Sequence[SourceRecord]):
    """The messages of a source partition that were read at once, by rising offsets."""

    def __init__(self, batch: NativeBatch) -> None:
        self._batch = batch

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> SourceBatch:
        """A batch of messages that are Python objects."""
        from cdc_native.kafka.source_batch import SourceBatch as NativeBatch  # noqa: PLC0415 - the core may be missing

        return cls(NativeBatch.of("", 0, [(record.key, record.value, record.offset, -1) for record in records]))

    def pairs(self) -> tuple[list[tuple[int | None, int | None, Messages, Messages]], dict[int | None, int]]:
        """Groups by the ids of the key's and the value's schema, and the last value's of each key's. AvroError."""
        return self._batch.pairs()

    @property
    def keys(self) -> Messages:
        return self._batch.keys

    @property
    def values(self) -> Messages:
        return self._batch.values

    @property
    def offsets(self) -> bytes:
        """The offsets, as a buffer of int64."""
        return self._batch.offsets

    @property
    def timestamps(self) -> bytes:
        """Kafka's timestamps (ms), as a buffer of int64; -1 without one."""
        return self._batch.timestamps

    @property
    def size(self) -> int:
        """The bytes of all keys and values."""
        return self._batch.size

    def __len__(self) -> int:
        return len(self._batch)

    @overload
    def __getitem__(self, number: int) -> SourceRecord: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SourceRecord]: ...
    def __getitem__(self, number: int | slice) -> SourceRecord | Sequence[SourceRecord]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        at = number + len(self) if number < 0 else number
        return SourceRecord(self.keys[at], self.values[at], self._batch.offset(at))

    def before(self, offset: int) -> SourceBatch:
        """The messages before an offset."""
        end = bisect_left(range(len(self)), offset, key=self._batch.offset)
        return self if end == len(self) else SourceBatch(self._batch.part(0, end))

    def parts(self, most_bytes: int, most_messages: int) -> Iterator[SourceBatch]:
        """The batch in parts. The message that reaches a limit still belongs to its part."""
        first = 0
        while first < len(self):
            end = self._batch.fitting(first, most_messages, most_bytes)
            yield self if end - first == len(self) else SourceBatch(self._batch.part(first, end))
            first = end


class MessageGroup(NamedTuple):
    """Messages to one topic."""

    # The topic's name.
    topic: str
    # Their keys, at the places that the messages have in their SourceBatch.
    keys: Messages
    # Their values, at the same places.
    values: Messages


class MessageBatches(Sequence[Message]):
    """Messages to several partitions. Those to one partition are in order."""

    def __init__(self, batches: Sequence[MessageGroups]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @overload
    def __getitem__(self, number: int) -> Message: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Message]: ...
    def __getitem__(self, number: int | slice) -> Message | Sequence[Message]:
        return list(self)[number]

    def __iter__(self) -> Iterator[Message]:
        return chain.from_iterable(self.batches)


class MessageGroups(Sequence[Message]):
    """Messages to a partition of several topics, in the order of the SourceBatch that they are made of."""

    def __init__(self, partition: int, groups: Sequence[MessageGroup]) -> None:
        self.partition = partition
        self.groups = groups

    def __len__(self) -> int:
        return sum(len(group.values) for group in self.groups)

    @overload
    def __getitem__(self, number: int) -> Message: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Message]: ...
    def __getitem__(self, number: int | slice) -> Message | Sequence[Message]:
        return self.list()[number]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.list())

    def list(self) -> list[Message]:
        """The messages as Python objects."""
        found = [
            (values.index(at), Message(topic, self.partition, keys[at], values[at]))  # type: ignore[arg-type] # Kafka's keys may be null
            for topic, keys, values in self.groups
            for at in range(len(values))
        ]
        return [message for _, message in sorted(found, key=lambda placed: placed[0])]
