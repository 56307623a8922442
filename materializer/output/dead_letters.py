"""The dead-letter topic of a table: raw messages that could not be read, and which of them have been resolved.

A message has the raw message's own key and value. Its headers (HEADERS) give the reason and the raw message's place. A
message without a value, under the same `cdc.id` (and `cdc.partition`, if it has no key), resolves it: it was read
later, or discarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.topics import dead_letter_topic, table_of
from materializer.records import RawPartition
from stream_runtime.kafka import TopicReader, Topics
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_common.settings import KafkaSettings
    from materializer.fold.gaps import DeadLetter

ID, CODE, REASON = "cdc.id", "cdc.code", "cdc.reason"
TOPIC, PARTITION, OFFSET, TIMESTAMP = "cdc.topic", "cdc.partition", "cdc.offset", "cdc.timestamp_ms"
MAX_UNCOMPRESSED = 64 << 20
"""The size of a message (bytes) that always fits the producer's queue, and so the dead-letter topic."""
_ROOM = 100_000  # bytes, for a message's headers and its record
HEADERS = (ID, CODE, REASON, TOPIC, PARTITION, OFFSET, TIMESTAMP)


class UnresolvedDeadLetter(NamedTuple):
    """A dead letter that is not resolved."""

    # Its id.
    id: str
    # The error's code, such as CDC-052.
    code: str
    # Why the raw message could not be folded.
    reason: str
    # The raw partition that holds the raw message.
    where: RawPartition
    # The raw message's offset.
    offset: int
    # The broker's time of the raw message, in ms.
    timestamp_ms: int
    # The raw message's key.
    key: bytes
    # The raw message's value.
    value: bytes


class DeadLetterWriter:
    """Writes dead letters as messages. The dead-letter topic is created when it is first needed."""

    def __init__(self, settings: KafkaSettings, raw_topic: str) -> None:
        self._settings = settings
        self._topic = dead_letter_topic(settings.topic_prefix, *table_of(raw_topic))
        self._is_created = False

    def messages(self, raw_partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        """The messages that dead-letter these raw messages of the raw partition, or resolve them."""
        for letter in letters:
            yield Message(self.topic(), 0, letter.key, letter.value, _headers(raw_partition, letter))

    def topic(self) -> str:
        """The name of the topic, which exists then."""
        if not self._is_created:
            Topics(self._settings).make_kept_topic(self._topic, MAX_UNCOMPRESSED + _ROOM)
            self._is_created = True
        return self._topic


def unresolved_dead_letters(settings: KafkaSettings, raw_topic: str) -> list[UnresolvedDeadLetter]:
    """The unresolved dead letters of a table, oldest first."""
    found: dict[tuple[bytes, bytes, bytes], UnresolvedDeadLetter] = {}
    topic = dead_letter_topic(settings.topic_prefix, *table_of(raw_topic))
    for message in TopicReader(settings, topic).read_messages():
        headers = {name: value or b"" for name, value in message.headers}
        if not set(HEADERS) <= set(headers):
            continue  # a change that was too large, or another program's message
        key = message.key or b""
        # Several raw partitions may have copies of a message without a key, each with a gap of its own.
        identity = key, headers[ID], b"" if key else headers[PARTITION]
        if message.value is None:
            found.pop(identity, None)
        else:
            found[identity] = _decode(headers, key, message.value)
    return list(found.values())


def _headers(raw_partition: RawPartition, letter: DeadLetter) -> tuple[tuple[str, bytes], ...]:
    values = (
        letter.id.hex(),
        letter.code,
        letter.reason,
        raw_partition.topic,
        str(raw_partition.partition),
        str(letter.offset),
        str(letter.timestamp_ms),
    )
    return tuple((name, value.encode()) for name, value in zip(HEADERS, values, strict=True))


def _decode(headers: dict[str, bytes], key: bytes, value: bytes) -> UnresolvedDeadLetter:
    text = {name: headers[name].decode() for name in HEADERS}
    where = RawPartition(text[TOPIC], int(text[PARTITION]))
    return UnresolvedDeadLetter(
        text[ID], text[CODE], text[REASON], where, int(text[OFFSET]), int(text[TIMESTAMP]), key, value
    )
