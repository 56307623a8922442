"""Changes as the messages of their change topic."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.changes import RowChange
from cdc_common.messages.errors import MessageError
from cdc_common.messages.topics import partition_for
from materializer.rows.published import NO_TOPICS
from stream_runtime.records import ChangeRun, Message

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping

    from cdc_common.messages.envelope import EncodedMessage
    from cdc_native.fold.changes import EncodedChange
    from materializer.output.large_messages import LargeMessages
    from materializer.records import Change
    from materializer.rows.published import Published

_logger = structlog.get_logger(__name__)


class Encoder(Protocol):
    """cdc_common.messages.envelope.ChangeEncoder."""

    def leaves_out(self, change: RowChange) -> bool:
        """Whether the change has no message by the table's settings."""
        ...

    def encode(self, change: RowChange, *, without_before: bool = False) -> EncodedMessage | None:
        """Key and value in the Confluent wire format; None if the row's key cannot be represented in Avro."""
        ...


class Target(NamedTuple):
    """The destination of changes under one schema."""

    # The change topic of a state that does not name one yet.
    topic: str
    # Its number of partitions.
    partitions: int
    # Encodes its messages.
    encoder: Encoder
    # The table's id.
    table_id: bytes = b""
    # Kafka's id of the topic.
    topic_id: str = ""


class ChangeWriter:
    """Writes a table's changes as messages, in order. All changes of a Cassandra partition go to one Kafka partition.

    targets: by schema digest.
    """

    def __init__(self, targets: Mapping[bytes, Target], *, tombstones: bool, large: LargeMessages) -> None:
        self._targets = targets
        self._tombstones = tombstones
        self._large = large

    def messages(
        self,
        changes: list[Change],
        published: Mapping[bytes, Published] = NO_TOPICS,
        null_values: Counter[str] | None = None,
    ) -> Iterator[Message | ChangeRun]:
        """A message for each change, and a tombstone after each deletion if the settings say so.

        published: the change topic of each table id, as in ChunkResult. null_values: ChunkResult's, to count into.
        """
        targets = self._targets_of(published)
        made = encode_long(time_ns() // 1_000_000)
        start = 0
        while start < len(changes):
            change = changes[start]
            target = targets[change.schema]
            if isinstance(change, RowChange):
                end = _end_of_row_changes(changes, start)
                yield from self._row_changes(changes[start:end], targets, null_values)
            else:  # its message lacks only the time at which it is made
                end, empty, unreadable = _encoded_run(changes, start, self._large.small_bytes - len(made))
                if end > start:
                    _count(null_values, empty, unreadable)
                    yield ChangeRun(target.topic, target.partitions, changes[start:end], made, self._tombstones)
                else:
                    end = start + 1
                    _count(null_values, change.empty, change.unreadable)
                    yield from self._large_change(change, change.value + made, target)
            start = end

    def _row_changes(
        self, changes: Iterable[RowChange], targets: Mapping[bytes, Target], null_values: Counter[str] | None
    ) -> Iterator[Message]:
        known: dict[tuple[bytes, int], int] = {}
        for change in changes:
            target = targets[change.schema]
            if target.encoder.leaves_out(change):
                continue
            if change.topic is not None:
                target = target._replace(topic=change.topic.name, partitions=change.topic.partitions)
            place = (change.partition_key, target.partitions)
            partition = known.get(place)
            if partition is None:
                partition = known[place] = partition_for(*place)
            encoded = _encode(change, target)
            if encoded is None:
                _log_skipped(change, target)
                continue
            _count(null_values, encoded.empty, encoded.unreadable)
            message = Message(target.topic, partition, encoded.key, encoded.value)
            yield message if self._large.fits(message) else self._replace(message, change, target)
            if self._tombstones and change.op == "d":
                yield Message(target.topic, partition, encoded.key, None)

    def _targets_of(self, published: Mapping[bytes, Published]) -> Mapping[bytes, Target]:
        """The targets, with the topics that the state names."""
        targets = dict(self._targets)
        counts = {target.topic: target.partitions for target in self._targets.values()}
        for digest, target in self._targets.items():
            if target.table_id in published:
                name, partitions = published[target.table_id].topic
                targets[digest] = target._replace(topic=name, partitions=counts.get(name, partitions))
        return targets

    def _large_change(self, change: EncodedChange, value: bytes, target: Target) -> Iterator[Message]:
        message = Message(target.topic, change.partition(target.partitions), change.key, value)
        yield message if self._large.fits(message) else self._replace(message, change.row_change(), target)
        if self._tombstones and change.op == "d":
            yield message._replace(value=None)

    def _replace(self, message: Message, change: RowChange, target: Target) -> Message:
        def shorter() -> bytes:
            encoded = _encode(change, target, without_before=True)
            assert encoded is not None  # its key can be represented
            return encoded.value

        return self._large.replace(message, change, shorter)


def _encoded_run(changes: list[Change], start: int, most: int) -> tuple[int, int, int]:
    from cdc_native.fold.changes import run_of  # noqa: PLC0415 - only the core makes such changes

    return run_of(changes, start, most)


def _end_of_row_changes(changes: list[Change], start: int) -> int:
    return next((at for at in range(start, len(changes)) if not isinstance(changes[at], RowChange)), len(changes))


def _count(null_values: Counter[str] | None, empty: int, unreadable: int) -> None:
    if null_values is not None and (empty or unreadable):
        null_values.update(empty=empty, unreadable=unreadable)


def _log_skipped(change: RowChange, target: Target) -> None:
    _logger.warning(
        "change skipped",
        code=Code.KEY_NOT_REPRESENTABLE.text,
        topic=target.topic,
        file=change.source.file,
        position=change.source.position,
        problem="The row's key has a value that Avro lacks or that would be another row's key: it has no message key.",
        fix="Delete the row, or write it again under a key that consumers can read.",
    )


def _encode(change: RowChange, target: Target, *, without_before: bool = False) -> EncodedMessage | None:
    try:
        return target.encoder.encode(change, without_before=without_before)
    except MessageError as error:
        source = change.source
        raise CdcError(
            Code.RAW_MESSAGE_UNREADABLE,
            f"A change for {target.topic} cannot be written ({source.file}, position {source.position}): "
            f"{error.reason}.",
            "The row holds a value that its column's type does not allow: correct it in Cassandra and report this.",
        ) from error
