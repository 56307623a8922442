"""Watermarks: how far a publisher has published its node's log, as messages of the topic `<prefix>.watermarks`.

One message a period stands for a heartbeat in each raw partition of each table that the publisher has open. It says
only what Kafka has acknowledged. So a raw partition that has been read up to an end that was asked for after a
watermark was read has everything that the watermark tells.

key: the host's id (16 bytes) and the number of the part (2 bytes). Value: JSON, `{"clock_us", "earlier_clocks_us",
"format_version", "host_id", "position", "segment", "tables"}`. `tables`: the digest of the newest schema of each table,
by its id. `earlier_clocks_us`: of tables that lag behind `clock_us`, by their ids. A host with many tables sends
several parts, each with its own tables; each part is complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages import raw
from cdc_common.messages.errors import MessageError, check_version

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)
MOST_TABLES = 5_000  # of one message, which then has about 360 kB
_ID_SIZE = 16


class TableWatermark(NamedTuple):
    """How far a host's log of one table is published."""

    # The digest of the table's newest schema at its publisher, 16 bytes.
    digest: bytes
    # The time of the node's clock, in µs, up to which all raw partitions have the table's part of the log.
    clock: int


class Watermark(NamedTuple):
    """How far a host's log is published."""

    # The host's id, 16 bytes.
    host_id: bytes
    # Kafka has acknowledged all data that was durable at this time of the node's clock, in µs.
    clock: int
    # The id of the segment up to which Kafka has acknowledged the log.
    segment: int
    # The offset in that segment, in bytes.
    position: int
    # The watermarks of tables, by their ids of 16 bytes.
    tables: Mapping[bytes, TableWatermark]


def encode(watermark: Watermark) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a host's messages. There is one also without tables."""
    tables = sorted(watermark.tables.items())
    for number, first in enumerate(range(0, max(1, len(tables)), MOST_TABLES)):
        part = tables[first : first + MOST_TABLES]
        content: dict[str, Any] = {
            "clock_us": watermark.clock,
            "earlier_clocks_us": {
                table_id.hex(): table.clock for table_id, table in part if table.clock != watermark.clock
            },
            "format_version": FORMAT_VERSION,
            "host_id": watermark.host_id.hex(),
            "position": watermark.position,
            "segment": watermark.segment,
            "tables": {table_id.hex(): table.digest.hex() for table_id, table in part},
        }
        yield watermark.host_id + number.to_bytes(2, "big"), json.dumps(content, separators=(",", ":")).encode()


def decode(value: bytes) -> Watermark:
    """MessageError if the message is damaged, or of a format version that this build does not read."""
    try:
        content: Any = json.loads(value)
        version = content["format_version"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise MessageError(f"damaged watermark: {type(error).__name__}") from error
    check_version(version, READABLE_VERSIONS, "watermark")
    try:
        clock = int(content["clock_us"])
        earlier = {_id(table_id): int(at) for table_id, at in content["earlier_clocks_us"].items()}
        return Watermark(
            _id(content["host_id"]),
            clock,
            int(content["segment"]),
            int(content["position"]),
            {
                (table_id := _id(text)): TableWatermark(_id(digest), earlier.get(table_id, clock))
                for text, digest in content["tables"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MessageError(f"damaged watermark: {type(error).__name__}") from error


def heartbeat(watermark: Watermark, table_id: bytes) -> bytes:
    """The watermark as a heartbeat of one of its tables, encoded as a raw message that no registry knows."""
    digest, clock = watermark.tables[table_id]
    segment, position = watermark.segment, watermark.position
    message = raw.RawMessage(
        "heartbeat", b"", 0, table_id, digest, 0, watermark.host_id, segment, "", position, 0, segment, position, clock
    )
    return raw.encode(message, 0)


def _id(text: str) -> bytes:
    found = bytes.fromhex(text)
    if len(found) != _ID_SIZE:
        raise ValueError("an id that has not 16 bytes")
    return found
