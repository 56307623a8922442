"""Which part of each host's log a truncated or dropped table has lost (docs/decisions/0035).

A TRUNCATE runs on every host at another moment and at another place in its log. The first host's message deletes all
rows. From then on a write counts if it is in its host's log after that host's own place; what a host still sends from
before its own message is left out, because it sends what belongs after its place again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.raw import IMAGE_KINDS, TRUNCATION_KINDS
from materializer.records import Arrival
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cdc_messages.raw import RawMessage
    from materializer.fold.native_fold import AnyArrival
    from materializer.fold.snapshots import Snapshots
    from materializer.rows.overlay import Overlay, StateReader

RECORD_MS = 60_000
"""How much later than its time a host's record may be there: Cassandra's truncate_request_timeout."""

# Of a host that the native core may take messages of: (id, segment, position), if they are after that place.
NativeBoundary = tuple[bytes, int, int]


class Boundary(NamedTuple):
    """What a host's log has of the table up to this place is gone, since `at` (ms)."""

    segment: int
    position: int
    at: int


class TruncationState(NamedTuple):
    """What a raw partition knows of the truncations of one table.

    boundaries: by host. at: when the first host did the last one (ms); former_at: the one before that; arrived_ms: the
    arrival of its message. known: the hosts of which something was heard by then or since. waits: those of them whose
    message is still to come. lost: those whose rows since then the state may lack.
    """

    table_id: bytes
    boundaries: Mapping[bytes, Boundary]
    at: int
    former_at: int
    arrived_ms: int
    known: frozenset[bytes]
    waits: frozenset[bytes]
    lost: frozenset[bytes]


class Truncations:
    """The truncations in one raw partition's state; apart_ms: how far apart hosts may execute one TRUNCATE. forgotten:
    the hosts that nobody waits for.
    """

    def __init__(self, overlay: Overlay, apart_ms: int, forgotten: Collection[bytes]) -> None:
        self._overlay = overlay
        self._forgotten = frozenset(forgotten)
        self._apart_ms = apart_ms
        self._state = read_truncations(overlay)

    @property
    def lost(self) -> frozenset[bytes]:
        """The hosts whose rows the state may lack: the table needs a snapshot."""
        return self._state.lost if self._state is not None else frozenset()

    def native_boundaries(self, table_id: bytes, first_ms: int) -> tuple[list[NativeBoundary], bool] | None:
        """Of which hosts the native core may take messages of a table, and whether it may of all others; None: all.

        first_ms: the arrival of the first of the messages.
        """
        state = self._state
        if state is None or state.table_id != table_id:
            return None
        found = [(host, each.segment, each.position) for host, each in state.boundaries.items()]
        may_take_others = not state.waits and not self._is_open(state, first_ms)
        return [each for each in found if each[0] not in state.waits], may_take_others

    def is_gone(self, message: RawMessage) -> bool:
        """Whether the place of a message is in the part of its host's log that is lost."""
        state = self._state
        if state is None or message.table_id != state.table_id:
            return False
        boundary = state.boundaries.get(message.host_id)
        if boundary is None:
            return False
        if message.kind in IMAGE_KINDS:
            return message.truncation_epoch < boundary.at
        return (message.segment, message.position) <= boundary[:2]

    def leaves_out(self, message: RawMessage, arrival_ms: int) -> bool:
        """Whether a write is not merged: it is gone, or its host has not sent its own truncation yet."""
        state = self._state
        if state is None or message.table_id != state.table_id:
            return False
        host = message.host_id
        if host not in state.known | self._forgotten and self._is_open(state, arrival_ms):
            self._put(state._replace(known=state.known | {host}, waits=state.waits | {host}))
            return True
        return host in state.waits or self.is_gone(message)

    def apply(self, message: RawMessage, arrival_ms: int, hosts: Collection[bytes]) -> bool:
        """Take note of a host's truncate or drop; True if all rows must be deleted. hosts: all that are awaited."""
        host, at = message.host_id, message.truncation_epoch
        state = self._state
        if state is None or state.table_id != message.table_id:
            state = TruncationState(message.table_id, {}, 0, 0, 0, frozenset(), frozenset(), frozenset())
        before = state.boundaries.get(host)
        if before is not None and at <= before.at:
            return False
        boundaries = {**state.boundaries, host: Boundary(message.segment, message.position, at)}
        state = state._replace(boundaries=boundaries)
        if host in state.waits or (host not in state.known and self._is_open(state, arrival_ms)):
            if self._is_of(state, at):
                self._put(state._replace(known=state.known | {host}, waits=state.waits - {host}))
                return False
            if at < state.at:  # an older one; that of now is still to come
                self._put(state._replace(known=state.known | {host}, waits=state.waits | {host}))
                return False
        known = state.known | frozenset(hosts) | {host}
        former_at = state.at if self._is_open(state, arrival_ms) else 0
        self._put(
            state._replace(
                at=at,
                former_at=former_at,
                arrived_ms=arrival_ms,
                known=known,
                waits=frozenset(hosts) - {host},
                lost=frozenset(),
            )
        )
        return True

    def follow(self, arrivals: Iterable[AnyArrival]) -> None:
        """No longer wait for hosts that are forgotten, or of which a heartbeat shows that they did not truncate."""
        state = self._state
        if state is None or not state.waits:
            return
        late = {
            arrival.message.host_id
            for arrival in arrivals
            if type(arrival) is Arrival
            and arrival.message.kind == "heartbeat"
            and arrival.message.table_id == state.table_id
            and arrival.message.clock // 1000 > state.at + self._apart_ms + RECORD_MS
        }
        lost = state.waits & late
        waits = state.waits - late - self._forgotten
        if waits != state.waits:
            self._put(state._replace(waits=waits, lost=state.lost | lost))

    def follow_snapshots(self, snapshots: Snapshots) -> None:
        """A host that has sent a snapshot since is not lost any more."""
        state = self._state
        if state is not None and state.lost:
            lost = state.lost - snapshots.ended_since(state.arrived_ms)
            if lost != state.lost:
                self._put(state._replace(lost=lost))

    def forget_all(self) -> None:
        """The table was dropped, and another one has its name."""
        if self._state is not None:
            self._state = None
            self._overlay.put(TRUNCATED, None)

    def _is_open(self, state: TruncationState, now_ms: int) -> bool:
        """Whether a host that is not known yet may have rows from before."""
        return now_ms <= state.arrived_ms + self._apart_ms + RECORD_MS

    def _is_of(self, state: TruncationState, at: int) -> bool:
        """Whether a truncation of a host is its part of the last one, and not of the one before."""
        return abs(at - state.at) <= self._apart_ms and abs(at - state.at) < abs(at - state.former_at)

    def _put(self, state: TruncationState) -> None:
        self._state = state
        self._overlay.put(TRUNCATED, encode_truncations(state))


def is_truncation(arrival: AnyArrival) -> bool:
    return type(arrival) is Arrival and arrival.message.kind in TRUNCATION_KINDS


def read_truncations(state: StateReader | Overlay) -> TruncationState | None:
    value = state.get(TRUNCATED)
    if value is None:
        return None
    check_version(value)
    table_id, boundaries, at, former_at, arrived_ms, *hosts = json.loads(value[1:])
    return TruncationState(
        bytes.fromhex(table_id),
        {bytes.fromhex(host): Boundary(*boundary) for host, boundary in boundaries.items()},
        at,
        former_at,
        arrived_ms,
        *(frozenset(map(bytes.fromhex, some)) for some in hosts),
    )


def encode_truncations(state: TruncationState) -> bytes:
    table_id, boundaries, at, former_at, arrived_ms, *hosts = state
    fields = [
        table_id.hex(),
        {host.hex(): boundary for host, boundary in sorted(boundaries.items())},
        at,
        former_at,
        arrived_ms,
        *(sorted(host.hex() for host in some) for some in hosts),
    ]
    return VERSION_BYTE + json.dumps(fields, separators=(",", ":")).encode()


def merged_truncations(of: Sequence[TruncationState | None]) -> TruncationState | None:
    """What a raw partition knows that has rows of several others.

    If one has a truncation that another one has not, its message is still to come, and deletes all rows once more: then
    the rows of all hosts may be lost.
    """
    known = [each for each in of if each is not None]
    if not known:
        return None
    newest = max(known, key=lambda each: each.at)
    boundaries = {
        host: min(each.boundaries[host] for each in known)
        for host in newest.boundaries
        if all(each is not None and host in each.boundaries for each in of)
    }
    differ = any(each is None or each.boundaries != newest.boundaries for each in of)
    hosts = frozenset().union(*(each.known for each in known))
    return newest._replace(
        boundaries=boundaries,
        arrived_ms=max(each.arrived_ms for each in known),
        known=hosts,
        waits=frozenset().union(*(each.waits for each in known)),
        lost=hosts if differ else frozenset().union(*(each.lost for each in known)),
    )
