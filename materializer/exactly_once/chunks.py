"""A raw partition's messages in chunks, each of which becomes one transaction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from materializer.records import RawRecord


class ChunkBounds(NamedTuple):
    """A chunk ends when it has as many bytes of keys and values, or messages, or was collected for as long."""

    max_bytes: int
    max_rows: int
    max_seconds: float


def chunks(
    records: Iterable[RawRecord], bounds: ChunkBounds, clock: Callable[[], float] = time.monotonic
) -> Iterator[list[RawRecord]]:
    """The records, none left out, in chunks of at least one; the message that reaches a bound still belongs to it."""
    chunk: list[RawRecord] = []
    size = 0
    end = clock() + bounds.max_seconds
    for record in records:
        chunk.append(record)
        size += len(record.key) + len(record.value)
        if size >= bounds.max_bytes or len(chunk) >= bounds.max_rows or clock() >= end:
            yield chunk
            chunk, size = [], 0
            end = clock() + bounds.max_seconds
    if chunk:
        yield chunk
