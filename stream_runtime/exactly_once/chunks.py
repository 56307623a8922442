"""A source partition's messages in chunks. Each chunk becomes one transaction, or several."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_runtime.records import Record


class ChunkSettings(NamedTuple):
    """A chunk ends when it has this many bytes of keys and values, or messages, or was collected for this long."""

    max_bytes: int
    max_messages: int
    max_seconds: float


def chunks(
    records: Iterable[Record], settings: ChunkSettings, clock: Callable[[], float] = time.monotonic
) -> Iterator[list[Record]]:
    """All records, in chunks of at least one. The message that reaches a limit still belongs to the chunk."""
    if isinstance(records, list) and _fit(records, settings):  # nothing has to be waited for
        yield records
        return
    chunk: list[Record] = []
    size = 0
    end = clock() + settings.max_seconds
    for record in records:
        chunk.append(record)
        size += len(record.key) + len(record.value)
        if size >= settings.max_bytes or len(chunk) >= settings.max_messages or clock() >= end:
            yield chunk
            chunk, size = [], 0
            end = clock() + settings.max_seconds
    if chunk:
        yield chunk


def _fit(records: list[Record], settings: ChunkSettings) -> bool:
    """Whether the records are one chunk."""
    if not 0 < len(records) <= settings.max_messages:
        return False
    return sum([len(record.key) + len(record.value) for record in records]) <= settings.max_bytes
