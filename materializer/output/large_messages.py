"""Change messages that are larger than their topic takes: what is done with them is a setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import structlog

from cassandra_storage.murmur3 import token
from cdc_program.errors import CdcError, Code
from materializer.records import Message

if TYPE_CHECKING:
    from cdc_messages.changes import RowChange

Choice: TypeAlias = Literal["stop", "without_before", "dead_letter"]

# Of a record in a batch of its own: 61 bytes of DefaultRecordBatch's header, at most 36 of lengths and deltas.
_OVERHEAD = 100
_MOST_UNCOMPRESSED = 64 << 20  # what the producer's queue surely takes; the dead-letter topic takes as much
_logger = structlog.get_logger(__name__)


class LargeMessages(NamedTuple):
    """choice: materializer.on_large_message. max_bytes: the change topics' max.message.bytes. dead_letter_topic: its
    name; makes it if it is not there.
    """

    choice: Choice
    max_bytes: int
    dead_letter_topic: Callable[[], str]

    def takes(self, message: Message) -> bool:
        """Whether the topic takes the message, compressed as the producer does it."""
        value = message.value or b""
        size = len(message.key) + len(value) + _OVERHEAD
        if size <= self.max_bytes or size > _MOST_UNCOMPRESSED:
            return size <= self.max_bytes
        compressed = len(pa.compress(value, codec="lz4", asbytes=True))
        return len(message.key) + compressed * 1.02 + 1000 <= self.max_bytes

    def replace(self, message: Message, change: RowChange, shorter: Callable[[], bytes]) -> Message:
        """What goes out instead of a message that is too large; `shorter` makes its value without the row before.

        CdcError(MESSAGE_TOO_LARGE) where that is nothing.
        """
        if self.choice == "without_before":
            short = message._replace(value=shorter())
            if self.takes(short):
                return short
        reason = self._reason(message, change)
        if self.choice != "dead_letter" or len(message.value or b"") > _MOST_UNCOMPRESSED:
            raise CdcError(
                Code.MESSAGE_TOO_LARGE,
                reason,
                f"kafka-configs --alter --entity-type topics --entity-name {message.topic} --add-config "
                "max.message.bytes=…, and start again; or choose another materializer.on_large_message.",
            )
        _logger.warning("change put aside", code=Code.MESSAGE_TOO_LARGE.text, problem=reason)
        headers = {"cdc.code": Code.MESSAGE_TOO_LARGE.text, "cdc.reason": reason, "cdc.topic": message.topic}
        encoded = tuple((name, text.encode()) for name, text in headers.items())
        return Message(self.dead_letter_topic(), 0, message.key, message.value, encoded)

    def _reason(self, message: Message, change: RowChange) -> str:
        """Names the row as Cassandra's own logs do, by its partition's token: keys are data."""
        source = change.source
        return (
            f"A change for {message.topic} makes a message of {len(message.key) + len(message.value or b''):,} bytes; "
            f"the topic takes {self.max_bytes:,} (max.message.bytes, compressed). The row's partition has the token "
            f"{token(change.partition_key)}; it was written at {source.ts_us} µs (WRITETIME), which stands in "
            f"{source.file or 'no log'}, position {source.position}."
        )
