"""The publishers' watermarks, as a worker has read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID
from zlib import crc32

import structlog

from cdc_common.messages import watermarks
from cdc_common.messages.errors import MessageError
from cdc_common.messages.watermarks import Watermark

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from materializer.records import RawRecord

_logger = structlog.get_logger(__name__)


class Heartbeat(NamedTuple):
    """A watermark as a heartbeat of one of its tables."""

    # The CRC-32 of the host's id.
    host: int
    # The watermark.
    watermark: Watermark
    # The table's id.
    table_id: bytes
    # The watermark's offset in the topic of watermarks.
    at: int
    # The broker's time of the watermark, in ms.
    timestamp_ms: int

    @property
    def value(self) -> bytes:
        """As a raw message."""
        return watermarks.heartbeat(self.watermark, self.table_id)


class _Read(NamedTuple):
    watermark: Watermark
    offset: int
    timestamp_ms: int


class Watermarks:
    """The newest watermark of each host, or of each part of it. forgotten: the ids of hosts that say nothing more."""

    def __init__(self, forgotten: Collection[bytes]) -> None:
        self._forgotten = frozenset(forgotten)
        self._newest: dict[bytes, _Read] = {}
        self._unreadable: set[str] = set()

    def take(self, records: Iterable[RawRecord]) -> bool:
        """Take note of messages of the topic; whether one of them counts."""
        has_new = False
        for record in records:
            try:
                watermark = watermarks.decode(record.value)
            except MessageError as error:
                if error.reason not in self._unreadable:
                    self._unreadable.add(error.reason)
                    _logger.warning("watermark not read", offset=record.offset, reason=error.reason)
                continue
            if watermark.host_id not in self._forgotten:
                self._newest[record.key] = _Read(watermark, record.offset, record.timestamp_ms)
                has_new = True
        return has_new

    def stalled(self, ms: float) -> tuple[str, ...]:
        """The ids of the hosts whose newest watermark is so much older than that of another host."""
        newest: dict[bytes, int] = {}
        for read in self._newest.values():
            host = read.watermark.host_id
            newest[host] = max(read.timestamp_ms, newest.get(host, 0))
        last_ms = max(newest.values(), default=0)
        return tuple(str(UUID(bytes=host)) for host, at in sorted(newest.items()) if last_ms - at > ms)

    def of_tables(self, table_ids: Collection[bytes]) -> list[Heartbeat]:
        """A heartbeat of each host and each of these tables that it publishes, in the order of their arrival."""
        found: dict[tuple[bytes, bytes], _Read] = {}
        for read in sorted(self._newest.values(), key=lambda found_read: found_read.offset):
            for table_id in table_ids:
                if table_id in read.watermark.tables:
                    found[read.watermark.host_id, table_id] = read
        return [
            Heartbeat(crc32(host), read.watermark, table_id, read.offset, read.timestamp_ms)
            for (host, table_id), read in sorted(found.items(), key=lambda item: item[1].offset)
        ]
