"""Find where bytes of a text still are: in records of topics, and in files, also where these encode or
compress them.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from stream_runtime.state.changelog import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Message

_CHANGELOG = ".changelog"
_OFFSETS_ONLY = {".index", ".timeindex"}  # of Kafka: 10 MiB each, mostly holes
_SECONDS = 30.0
_ENDS = {KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""A partition ends with the first; the others come if a topic is deleted while it is read."""


def topics_with(bootstrap: str, text: str) -> set[str]:
    """Topics with a record, committed or not, whose key, value or headers have the text; the brokers' own too."""
    client = {"bootstrap.servers": bootstrap, "group.id": "traces", "enable.auto.commit": False}
    consumer = Consumer({**client, "isolation.level": "read_uncommitted", "enable.partition.eof": True})
    try:
        described = consumer.list_topics(timeout=_SECONDS).topics
        left = {(name, number) for name, topic in described.items() for number in topic.partitions}
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in left])
        found = set()
        while left:
            message = consumer.poll(_SECONDS)
            assert message is not None, left
            topic, partition, error = message.topic() or "", message.partition(), message.error()
            if error is None:
                found |= {topic for part in _parts(message) if text.encode() in part}
            elif error.code() in _ENDS:
                left = {entry for entry in left if entry[0] != topic or partition not in (-1, entry[1])}
            else:
                raise KafkaException(error)
        return found
    finally:
        consumer.close()


def _parts(message: Message) -> Iterator[bytes]:
    headers: Sequence[tuple[str, bytes | None]] = message.headers() or []  # type: ignore[assignment]
    for part in (message.key(), message.value(), *(value for _, value in headers)):
        yield bytes(part or b"")


def files_with(folder: Path, text: str) -> list[Path]:
    """Files below a folder that have the text, as it is, in Base64 or in a changelog."""
    forms = (text.encode(), *_in_base64(text.encode()))
    return [path for path in files_below(folder) if _has(path, forms)]


def files_below(folder: Path) -> list[Path]:
    """Those that are there now; a folder that is none has none."""
    return sorted(Path(where) / name for where, _, names in os.walk(folder) for name in names)


def _has(path: Path, forms: Sequence[bytes]) -> bool:
    if path.suffix in _OFFSETS_ONLY:
        return False
    content = b""
    with suppress(FileNotFoundError):  # deleted since
        content = path.read_bytes() if path.is_file() else b""
    if path.suffix == _CHANGELOG and content:
        writes = decode(content).writes
        content = b"\n".join(part for write in writes.items() for part in write if part is not None)
    return any(form in content for form in forms)


def _in_base64(text: bytes) -> Iterator[bytes]:
    """Wherever it begins in what is encoded: without the characters that its neighbours have a part in."""
    for before in range(3):
        encoded = b64encode(bytes(before) + text)
        yield encoded[(before * 8 + 5) // 6 : len(encoded) // 4 * 4 - 4]
