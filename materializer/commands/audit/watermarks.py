"""How far the nodes' logs are folded, which a second look needs to know.

The state of a quiet raw partition says it only every ten minutes. Its committed offset moves within a minute, and the
heartbeats before that offset say the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_messages.raw import decode, is_heartbeat
from materializer.fold.publishers import decode_watermark
from materializer.kafka import Topics, driver_errors, read_raw
from materializer.rows.keys import PUBLISHER, PUBLISHER_END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_program.settings import MaterializerSettings, Settings
    from materializer.fold.publishers import PublisherWatermark
    from materializer.records import RawPartition, RawRecord
    from materializer.rows.overlay import StateReader
    from materializer.store.rocksdb import LocalStore


def read_watermark_us(settings: Settings, raw_partition: RawPartition, state: LocalStore, committed: int) -> int:
    """Everything in the nodes' logs up to this time (µs) is folded, as far as is known; 0 without publishers.

    committed: the offset of the group, read before the state was restored. All messages before it are folded.
    """
    stored = _stored(state, settings.materializer)
    with driver_errors(f"read the heartbeats of {raw_partition}"):
        first, _ = Topics(settings.kafka).bounds([raw_partition])[raw_partition]
        start = max(first, 0 if state.head is None else state.head.offset)
        records = read_raw(settings.kafka, raw_partition, start, committed)
        return watermark_us(stored, records, int(settings.materializer.reorder_seconds * 1000))


def stored_watermark_us(state: StateReader, settings: MaterializerSettings) -> int:
    """As `read_watermark_us`, as far as the state says it."""
    return watermark_us(_stored(state, settings), (), 0)


def watermark_us(stored: dict[bytes, PublisherWatermark], records: Iterable[RawRecord], reorder_ms: int) -> int:
    """The lowest watermark of the publishers. records: raw messages that were folded after the state was stored, and
    have changed nothing.
    """
    now_ms, heartbeats = 0, []
    for record in records:
        now_ms = max(now_ms, record.timestamp_ms)
        if is_heartbeat(record.value):
            message = decode(record.value)
            heartbeats.append((now_ms, message.host_id, message.clock))
    clocks = {host: known.clock_us for host, known in stored.items()}
    for host, known in stored.items():
        if known.next_ms and known.next_ms <= now_ms - reorder_ms:
            clocks[host] = known.next_clock_us
    for arrival_ms, host, clock_us in heartbeats:
        if host in clocks and arrival_ms <= now_ms - reorder_ms:  # later: the reorder buffer may have earlier writes
            clocks[host] = clock_us
    return min(clocks.values(), default=0)


def _stored(state: StateReader, settings: MaterializerSettings) -> dict[bytes, PublisherWatermark]:
    forgotten = {host.bytes for host in settings.forgotten_publishers}
    known = {key[1:]: decode_watermark(value) for key, value in state.scan(PUBLISHER, PUBLISHER_END)}
    return {host: each for host, each in known.items() if host not in forgotten}
