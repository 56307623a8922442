"""The dead-letter topic of a table: what is put aside, and what has been settled since.

A message has the raw message's own key and value; its headers tell why it is there and where it was (HEADERS). One
without a value, under the same `cdc.id`, says that it is settled: it has been read after all, or was discarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.topics import dead_letter_topic, table_of
from materializer.kafka import TopicReader, Topics
from materializer.records import Message, RawPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_program.settings import KafkaSettings
    from materializer.fold.gaps import DeadLetter

ID, CODE, REASON = "cdc.id", "cdc.code", "cdc.reason"
TOPIC, PARTITION, OFFSET, TIMESTAMP = "cdc.topic", "cdc.partition", "cdc.offset", "cdc.timestamp_ms"
HEADERS = (ID, CODE, REASON, TOPIC, PARTITION, OFFSET, TIMESTAMP)


class StandingLetter(NamedTuple):
    """A dead letter that is not settled. `where` is the raw partition that it was in."""

    id: str
    code: str
    reason: str
    where: RawPartition
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes


class Burial:
    """Makes the messages of dead letters, and their topic when it is first needed."""

    def __init__(self, settings: KafkaSettings, raw_topic: str) -> None:
        self._settings = settings
        self._topic = dead_letter_topic(settings.topic_prefix, *table_of(raw_topic))
        self._is_made = False

    def __call__(self, partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        for letter in letters:
            yield Message(self.topic(), 0, letter.key, letter.value, _headers(partition, letter))

    def topic(self) -> str:
        """Its name, when it is there."""
        if not self._is_made:
            Topics(self._settings).make_dead_letter_topic(self._topic)
            self._is_made = True
        return self._topic


def standing(settings: KafkaSettings, raw_topic: str) -> list[StandingLetter]:
    """The dead letters of a table that are not settled, in the order in which they were put aside."""
    found: dict[tuple[bytes, bytes], StandingLetter] = {}
    topic = dead_letter_topic(settings.topic_prefix, *table_of(raw_topic))
    for message in TopicReader(settings, topic).read_messages():
        headers = {name: value or b"" for name, value in message.headers}
        if not set(HEADERS) <= set(headers):
            continue  # a change, or another program's
        mark = message.key or b"", headers[ID]
        if message.value is None:
            found.pop(mark, None)
        else:
            found[mark] = _letter(headers, mark[0], message.value)
    return list(found.values())


def _headers(partition: RawPartition, letter: DeadLetter) -> tuple[tuple[str, bytes], ...]:
    values = (
        letter.id.hex(),
        letter.code,
        letter.reason,
        partition.topic,
        str(partition.partition),
        str(letter.offset),
        str(letter.timestamp_ms),
    )
    return tuple((name, value.encode()) for name, value in zip(HEADERS, values, strict=True))


def _letter(headers: dict[str, bytes], key: bytes, value: bytes) -> StandingLetter:
    text = {name: headers[name].decode() for name in HEADERS}
    where = RawPartition(text[TOPIC], int(text[PARTITION]))
    return StandingLetter(
        text[ID], text[CODE], text[REASON], where, int(text[OFFSET]), int(text[TIMESTAMP]), key, value
    )
