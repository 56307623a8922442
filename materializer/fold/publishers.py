"""The progress of each publisher, as this raw partition knows it. Only what all of them have passed may be purged."""

from __future__ import annotations

import struct
from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cdc_common.messages.raw import CONTROL_KINDS, IMAGE_KINDS, REPAIR_KINDS
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import PUBLISHER, PUBLISHER_END

if TYPE_CHECKING:
    from collections.abc import Collection

    from materializer.fold.arrivals import AnyArrival
    from materializer.fold.clock import Clock
    from materializer.rows.overlay import Overlay
    from materializer.rows.settings import FoldSettings

_VALUE = struct.Struct(">Bqqqq")
_WITHOUT_WATERMARK = CONTROL_KINDS | IMAGE_KINDS | REPAIR_KINDS


class PublisherWatermark(NamedTuple):
    """The clock of one publisher, as its heartbeats show it."""

    # The arrival (ms) of its last heartbeat or, without one, of its first message.
    heard_ms: int
    # Everything in its node's log up to this time (µs of the node's clock) is folded, by its last heartbeat: a clock
    # that was ahead is set back.
    clock_us: int = 0
    # The same time (µs) from a later heartbeat. The reorder buffer still has writes from before it.
    next_clock_us: int = 0
    # The arrival of that heartbeat, in ms.
    next_ms: int = 0


class PublisherWatermarks:
    """The watermarks of all publishers that have sent something to this raw partition, except forgotten ones."""

    def __init__(self, overlay: Overlay, clock: Clock, settings: FoldSettings) -> None:
        self._overlay = overlay
        self._clock = clock
        self._settings = settings
        stored = {key[1:]: decode_watermark(value) for key, value in overlay.scan(PUBLISHER, PUBLISHER_END)}
        self._stored = stored
        self._watermarks = {host: self._advance(watermark) for host, watermark in stored.items()}

    def observe_arrival(self, arrival: AnyArrival) -> None:
        """Update the watermark of the publisher of a message; a snapshot's and a repair's carry none."""
        _, message, arrival_ms = arrival
        if message.kind in _WITHOUT_WATERMARK:
            return
        watermark = self._watermarks.get(message.host_id)
        if watermark is None:
            watermark = self._watermarks[message.host_id] = PublisherWatermark(arrival_ms)
        if message.kind != "heartbeat":
            return
        watermark = watermark._replace(heard_ms=arrival_ms)
        if arrival_ms <= self._clock.clock_ms:
            watermark = watermark._replace(clock_us=message.clock)
        elif not watermark.next_ms:
            watermark = watermark._replace(next_clock_us=message.clock, next_ms=arrival_ms)
        self._watermarks[message.host_id] = watermark

    def awaited_hosts(self) -> Collection[bytes]:
        """The hosts of all publishers but forgotten ones."""
        return self._awaited().keys()

    def lowest_second(self) -> int:
        """The second up to which the logs of all publishers are folded, at most the clock's."""
        lowest = (watermark.clock_us // 1_000_000 for watermark in self._awaited().values())
        return min([self._clock.second, *lowest])

    def clock_ms(self) -> int:
        """The time (ms) that the clocks of most publishers' nodes have reached, as far as is known here; 0 without one.

        One clock that is ahead of all others is not enough, unless it is the only one.
        """
        clocks = [max(watermark.clock_us, watermark.next_clock_us) for watermark in self._awaited().values()]
        return median_low(clocks) // 1000 if clocks else 0

    def stalled_publishers(self) -> tuple[str, ...]:
        """The ids of the publishers that have sent nothing for too long. Nothing is purged while they do.

        None in the first chunk after the whole raw partition was quiet for so long: all publishers were.
        """
        if self._clock.has_advanced_by(self._settings.stalled_publisher_ms):
            return ()
        since = self._clock.now_ms - self._settings.stalled_publisher_ms
        awaited = self._awaited().items()
        return tuple(str(UUID(bytes=host)) for host, watermark in awaited if watermark.heard_ms < since)

    def must_be_stored(self, purge_waits_until: int | None) -> bool:
        """Is a publisher new, has one passed the second that the next purge waits for, or has its clock gone back?"""
        if self._awaited().keys() - self._stored.keys():
            return True
        if any(_goes_back(before, self._watermarks[host]) for host, before in self._stored.items()):
            return True
        return purge_waits_until is not None and any(
            _passes(before, self._watermarks[host], purge_waits_until * 1_000_000)
            for host, before in self._stored.items()
        )

    def store(self) -> None:
        """Store the changed watermarks, and delete those of forgotten publishers."""
        for host, watermark in self._watermarks.items():
            if host in self._settings.forgotten_publishers:
                if host in self._stored:
                    self._overlay.put(PUBLISHER + host, None)
            elif watermark != self._stored.get(host):
                self._overlay.put(PUBLISHER + host, encode_watermark(watermark))

    def _awaited(self) -> dict[bytes, PublisherWatermark]:
        forgotten = self._settings.forgotten_publishers
        return {host: watermark for host, watermark in self._watermarks.items() if host not in forgotten}

    def _advance(self, watermark: PublisherWatermark) -> PublisherWatermark:
        """Apply the next heartbeat if this chunk folds everything before it."""
        if not watermark.next_ms or watermark.next_ms > self._clock.clock_ms:
            return watermark
        return PublisherWatermark(watermark.heard_ms, watermark.next_clock_us)


def _goes_back(before: PublisherWatermark, after: PublisherWatermark) -> bool:
    return _lowest(after) < _lowest(before)


def _lowest(watermark: PublisherWatermark) -> int:
    """Return the earlier one of the clock that counts now and the clock that counts next (µs)."""
    return min(watermark.clock_us, watermark.next_clock_us) if watermark.next_ms else watermark.clock_us


def _passes(before: PublisherWatermark, after: PublisherWatermark, time_us: int) -> bool:
    if before.clock_us > time_us:
        return False
    return after.clock_us > time_us or before.next_clock_us <= time_us < after.next_clock_us


def encode_watermark(watermark: PublisherWatermark) -> bytes:
    return _VALUE.pack(FORMAT_VERSION, *watermark)


def decode_watermark(value: bytes) -> PublisherWatermark:
    check_version(value)
    return PublisherWatermark(*_VALUE.unpack(value)[1:])
