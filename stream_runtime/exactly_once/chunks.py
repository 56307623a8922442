"""A source partition's messages in chunks. Each chunk becomes one transaction, or several."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class SizedRecord(Protocol):
    """A record whose size counts; stream_runtime.records.Record or SourceRecord."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


R = TypeVar("R", bound=SizedRecord)


class ChunkSettings(NamedTuple):
    """The limits at which a chunk ends."""

    # Bytes of keys and values.
    max_bytes: int
    # The number of messages.
    max_messages: int
    # How long messages are collected, in seconds.
    max_seconds: float


def chunks(
    records: Iterable[R], settings: ChunkSettings, clock: Callable[[], float] = time.monotonic
) -> Iterator[list[R]]:
    """All records, in chunks of at least one. The message that reaches a limit still belongs to the chunk."""
    if isinstance(records, list) and _fit(records, settings):  # nothing has to be waited for
        yield records
        return
    chunk: list[R] = []
    size = 0
    end = clock() + settings.max_seconds
    for record in records:
        chunk.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if size >= settings.max_bytes or len(chunk) >= settings.max_messages or clock() >= end:
            yield chunk
            chunk, size = [], 0
            end = clock() + settings.max_seconds
    if chunk:
        yield chunk


def _fit(records: list[R], settings: ChunkSettings) -> bool:
    """Whether the records are one chunk."""
    if not 0 < len(records) <= settings.max_messages:
        return False
    return sum([len(record.key or b"") + len(record.value or b"") for record in records]) <= settings.max_bytes
