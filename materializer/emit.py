"""Changes as the messages of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from cdc_messages.errors import MessageError
from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer.task import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_messages.changes import RowChange

_logger = structlog.get_logger(__name__)


class Encoder(Protocol):
    """cdc_messages.envelope.ChangeEncoder."""

    def encode(self, change: RowChange) -> tuple[bytes, bytes] | None:
        """Key and value in the Confluent wire format; None if the row's key has no form in Avro."""
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
            encoded = self._encode(change)
            if encoded is None:
                self._leave_out(change)
                continue
            key, value = encoded
            yield Message(self._topic, partition, key, value)
            if self._tombstones and change.op == "d":
                yield Message(self._topic, partition, key, None)

    def _leave_out(self, change: RowChange) -> None:
        _logger.warning(
            "change left out",
            code=Code.KEY_WITHOUT_FORM.text,
            topic=self._topic,
            file=change.source.file,
            position=change.source.position,
            problem="The row's key has an empty or an unreadable value, which no message can have as its key.",
            fix="Delete the row, or write it under a key that its readers can read.",
        )

    def _encode(self, change: RowChange) -> tuple[bytes, bytes] | None:
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
