"""Change messages that are larger than their topic allows. materializer.on_large_message says what to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import structlog

from cassandra_storage.formats.primitives.murmur3 import token
from cdc_common.errors.codes import CdcError, Code
from materializer.output.dead_letters import MAX_UNCOMPRESSED, DeadLetterWriter
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_common.messages.changes import RowChange

Choice: TypeAlias = Literal["stop", "without_before", "dead_letter"]

# Of a record alone in its batch: 61 bytes of DefaultRecordBatch's header, at most 36 bytes of lengths and deltas.
_OVERHEAD = 100
_MAX_QUEUED = 128_000_000  # bytes of a message: the producer's queue never has room for a larger one
_logger = structlog.get_logger(__name__)


class LargeMessages(NamedTuple):
    """Decides about change messages that Kafka would refuse."""

    # The setting materializer.on_large_message.
    choice: Choice
    # The smallest max.message.bytes of the change topics.
    max_bytes: int
    # Writes dead letters.
    dead_letters: DeadLetterWriter

    @property
    def small_bytes(self) -> int:
        """The bytes of key and value up to which any message fits."""
        return min(self.max_bytes, _MAX_QUEUED) - _OVERHEAD

    def fits(self, message: Message) -> bool:
        """Whether the topic allows the message, compressed as the producer compresses it."""
        value = message.value or b""
        size = _size(message) + _OVERHEAD
        if size > _MAX_QUEUED:
            return False
        if size <= self.max_bytes or size > MAX_UNCOMPRESSED:
            return size <= self.max_bytes
        compressed = len(pa.compress(value, codec="lz4", asbytes=True))
        return len(message.key) + compressed * 1.02 + 1000 <= self.max_bytes

    def replace(self, message: Message, change: RowChange, shorter: Callable[[], bytes]) -> Message:
        """The message to send instead of one that is too large. `shorter` makes its value without the row before.

        CdcError(MESSAGE_TOO_LARGE) if the settings allow none.
        """
        if self.choice == "without_before":
            short = message._replace(value=shorter())
            if self.fits(short):
                return short
        reason = self._reason(message, change)
        if self.choice != "dead_letter" or len(message.value or b"") > MAX_UNCOMPRESSED:
            raise CdcError(Code.MESSAGE_TOO_LARGE, reason, self._fix(message))
        _logger.warning("change dead-lettered", code=Code.MESSAGE_TOO_LARGE.text, problem=reason)
        headers = {"cdc.code": Code.MESSAGE_TOO_LARGE.text, "cdc.reason": reason, "cdc.topic": message.topic}
        encoded = tuple((name, text.encode()) for name, text in headers.items())
        return Message(self.dead_letters.topic(), 0, message.key, message.value, encoded)

    def _reason(self, message: Message, change: RowChange) -> str:
        """Identifies the row by the token of its Cassandra partition, as Cassandra's own logs do: keys are data."""
        source, size = change.source, _size(message)
        limit = f"the topic allows {self.max_bytes:,} (max.message.bytes, compressed)"
        if size > _MAX_QUEUED:
            limit = f"at most {_MAX_QUEUED:,} can be sent"
        return (
            f"A change for {message.topic} makes a message of {size:,} bytes; {limit}. The row's Cassandra partition "
            f"has the token {token(change.partition_key)}; the row was written at {source.ts_us} µs (WRITETIME): "
            f"{source.file or 'no log'}, position {source.position}."
        )

    def _fix(self, message: Message) -> str:
        if _size(message) > _MAX_QUEUED and self.choice == "without_before":
            return "The row alone is too large: leave its table out (cdc = false), and report this."
        if _size(message) > _MAX_QUEUED:
            return "Set materializer.on_large_message to without_before: a change then has the row once."
        return (
            f"kafka-configs --alter --entity-type topics --entity-name {message.topic} --add-config "
            "max.message.bytes=…: the next try reads it. Or set another materializer.on_large_message."
        )


def _size(message: Message) -> int:
    return len(message.key) + len(message.value or b"")
