"""Changes as the messages of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cdc_messages.errors import MessageError
from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer.task import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_messages.changes import RowChange


class Encoder(Protocol):
    """cdc_messages.envelope.ChangeEncoder."""

    def encode(self, change: RowChange) -> tuple[bytes, bytes]:
        """Key and value in the Confluent wire format."""
        ...


class Emitter:
    """The messages of a table's changes, in order; all of a Cassandra partition go to one Kafka partition."""

    def __init__(self, topic: str, partitions: int, encoder: Encoder, *, tombstones: bool) -> None:
        self._topic = topic
        self._partitions = partitions
        self._encoder = encoder
        self._tombstones = tombstones

    def __call__(self, changes: Iterable[RowChange]) -> Iterator[Message]:
        known: dict[bytes, int] = {}
        for change in changes:
            partition = known.get(change.partition_key)
            if partition is None:
                partition = known[change.partition_key] = partition_for(change.partition_key, self._partitions)
            key, value = self._encode(change)
            yield Message(self._topic, partition, key, value)
            if self._tombstones and change.op == "d":
                yield Message(self._topic, partition, key, None)

    def _encode(self, change: RowChange) -> tuple[bytes, bytes]:
        try:
            return self._encoder.encode(change)
        except MessageError as error:
            source = change.source
            raise CdcError(
                Code.RAW_MESSAGE,
                f"A change for {self._topic} cannot be written ({source.file}, position {source.position}): "
                f"{error.reason}.",
                "The row holds a value that its column's type cannot have: correct it in Cassandra and report this.",
            ) from error
