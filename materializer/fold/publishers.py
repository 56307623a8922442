"""How far each publisher has got that this raw partition knows: what they have all passed may be purged."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import HOST, HOST_END

if TYPE_CHECKING:
    from cdc_messages.raw import RawMessage
    from materializer.fold.clock import Clock
    from materializer.rows.overlay import Overlay
    from materializer.rows.settings import FoldRules

_VALUE = struct.Struct(">Bqqqq")


class HostClock(NamedTuple):
    """What is known of a publisher.

    clock_us: all that its node's log held at that time, by the node's clock, is folded. next_clock_us, next_ms: the
    same of a heartbeat that came at `next_ms`, before which not everything is folded yet (`hold`). heard_ms: when a
    heartbeat of it last came, or a message for the first time.
    """

    heard_ms: int
    clock_us: int = 0
    next_clock_us: int = 0
    next_ms: int = 0


class Hosts:
    """The publishers that have ever sent something to this raw partition, but for those to be forgotten."""

    def __init__(self, overlay: Overlay, clock: Clock, rules: FoldRules) -> None:
        self._overlay = overlay
        self._clock = clock
        self._rules = rules
        stored = {key[1:]: decode_host(value) for key, value in overlay.scan(HOST, HOST_END)}
        self._stored = stored
        self._known = {host: self._reached(known) for host, known in stored.items()}

    def note(self, message: RawMessage, arrival_ms: int) -> None:
        """A message of a publisher has come."""
        known = self._known.get(message.host_id)
        if known is None:
            known = self._known[message.host_id] = HostClock(arrival_ms)
        if message.kind != "heartbeat":
            return
        known = known._replace(heard_ms=arrival_ms)
        if arrival_ms <= self._clock.clock_ms:
            known = known._replace(clock_us=max(known.clock_us, message.clock))
        elif not known.next_ms:
            known = known._replace(next_clock_us=message.clock, next_ms=arrival_ms)
        self._known[message.host_id] = known

    def purge_time(self) -> int:
        """The second up to which everybody's log is folded: the clock's, or that of the publisher furthest behind."""
        return min([self._clock.second, *(host.clock_us // 1_000_000 for host in self._awaited().values())])

    def silent(self) -> tuple[str, ...]:
        """The ids of those that have not been heard of for too long: they hold purging back."""
        since = self._clock.now_ms - self._rules.stalled_publisher_ms
        return tuple(str(UUID(bytes=host)) for host, known in self._awaited().items() if known.heard_ms < since)

    def must_keep(self, waiting: int | None) -> bool:
        """Does the state need to know now: of a new publisher, or of one that has passed the second until which
        something is `waiting` to be purged?
        """
        if self._awaited().keys() - self._stored.keys():
            return True
        return waiting is not None and any(
            _passes(before, self._known[host], waiting * 1_000_000) for host, before in self._stored.items()
        )

    def keep(self) -> None:
        """Put what is known into the state, but for who is to be forgotten."""
        for host, known in self._known.items():
            if host in self._rules.forgotten_publishers:
                if host in self._stored:
                    self._overlay.put(HOST + host, None)
            elif known != self._stored.get(host):
                self._overlay.put(HOST + host, encode_host(known))

    def _awaited(self) -> dict[bytes, HostClock]:
        return {host: known for host, known in self._known.items() if host not in self._rules.forgotten_publishers}

    def _reached(self, known: HostClock) -> HostClock:
        """With the heartbeat that was waited for, if everything before it is folded with this chunk."""
        if not known.next_ms or known.next_ms > self._clock.clock_ms:
            return known
        return HostClock(known.heard_ms, max(known.clock_us, known.next_clock_us))


def _passes(before: HostClock, after: HostClock, due_us: int) -> bool:
    if before.clock_us > due_us:
        return False
    return after.clock_us > due_us or before.next_clock_us <= due_us < after.next_clock_us


def encode_host(known: HostClock) -> bytes:
    """What the state holds of a publisher."""
    return _VALUE.pack(FORMAT_VERSION, *known)


def decode_host(value: bytes) -> HostClock:
    check_version(value)
    return HostClock(*_VALUE.unpack(value)[1:])
