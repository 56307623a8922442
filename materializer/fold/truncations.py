"""Follow which part of each host's log a truncated or dropped table has lost (decision 0035).

A TRUNCATE runs on every host at another moment and at another place in its log. S is truncate_seconds (`apart_ms`): how
far apart hosts may execute one TRUNCATE. Each raw message has the time of its host's last truncation
(`truncation_epoch`); a row image has the one from before its files were taken. The rules:

1. A host either counts or is waited for. What a waited host writes is left out. So is, always, what a host wrote up to
   its own place, and a row image whose files were taken before that.
2. `truncate`, `truncated` or `drop` from a host that counts deletes all rows. Then all known publishers are waited for,
   and the sender too unless its message is `truncated` or `drop`. A host that is first heard within S and a minute
   after that is also waited for. Forgotten publishers never are.
3. A waited host counts again with its `truncated` or `drop`, because all its writes follow. The message is ignored if
   its time is more than S before the last truncation's: another one is still to come. It belongs to a later TRUNCATE if
   its time is more than S after that, or if no host has sent one since rows were deleted and a host counts by rule 4.
   Then all rows go, and all others are waited for, as in rule 2. The last truncation's time is that of the first
   `truncated` or `drop` since rows were deleted.
4. A host whose heartbeats have passed that time by S and a minute did not truncate. It counts again, and it is lost
   (its rows since then may be missing) until it has sent a snapshot that began later, or the table is truncated again.

Why this is right. L(h) is the last truncation of host h. Always, whatever the times, orders and copies of messages:

- No row stays that its host has truncated. A host counts only since its last `truncated`, of a place p, and only its
  writes after p are merged since rows were last deleted. If it truncates again while it counts, rule 2 deletes all.
- No loss is silent. A write of h after L(h) is missing only if rows were deleted after h's last `truncated`, or if that
  message was ignored. In both cases h is waited for. This ends only with another `truncated` and all that follows it,
  or with rule 4, which reports h.

The rows are exactly what the hosts have if (a) all hosts are known by then and execute their last truncation within S,
(b) two `truncated` of one host are more than 2S apart, which its publisher ensures, and (c) a record is there a minute
after its truncation. Take the first message of an L, by host y. If y counts, rule 2 deletes all. If y is waited for and
a host has sent `truncated` since rows were deleted, the last truncation's time t is of a host x with x != y and not
L(x): by (b) it is more than 2S before L(x), so by (a) more than S before L(y), and rule 3 deletes all. If no host has
sent one, then no host counts and the state is empty, or rule 3 deletes all. So after this message the state is empty,
t = L(y), and only y counts. For any other host z, a `truncated` from before L(z) is by (b) and (a) more than S before
t, and ignored. L(z) is within S of t, so z counts from there, and all that it has follows. Nothing deletes rows later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.raw import IMAGE_KINDS, SETTLED_KINDS, TRUNCATION_KINDS
from materializer.records import Arrival
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cdc_common.messages.raw import RawMessage
    from materializer.fold.arrivals import AnyArrival, NativeBoundary
    from materializer.fold.snapshots import Snapshots
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader

RECORD_MS = 60_000
"""How much later than its time a host's record may be there: Cassandra's truncate_request_timeout."""


class Boundary(NamedTuple):
    """The place in a host's log up to which its writes to the table are gone."""

    # The number of the commit log segment.
    segment: int
    # The position in the segment, in bytes.
    position: int
    # When the writes were deleted, in ms since the epoch.
    at: int
    # Whether the host has sent `truncated` or `drop` since then.
    is_settled: bool = True


class TruncationState(NamedTuple):
    """The truncations of one table, as one raw partition knows them.

    boundaries: by host. at: when the last truncation was (ms): of the first host that says what it has or, if none has
    yet (not is_settled), of the one whose message deleted the rows. arrived_ms: the arrival of that message. known: the
    hosts heard from by then or since. waits: those of them that do not count. lost: those whose rows
    since then the state may lack, with the first arrival that counts again.
    """

    # The table's id.
    table_id: bytes
    # The boundary of each host, by its id.
    boundaries: Mapping[bytes, Boundary]
    # When the last truncation was (ms): of the first host that says what it has or, if none has yet (not is_settled),
    # of the one whose message deleted the rows.
    at: int
    # Whether a host has said which truncation it has.
    is_settled: bool
    # The arrival (ms) of the message that deleted the rows.
    arrived_ms: int
    # The hosts that were heard from by then or since.
    known: frozenset[bytes]
    # Those of them whose writes do not count yet.
    waits: frozenset[bytes]
    # The hosts whose rows since then the state may lack, with the first arrival (ms) that counts again.
    lost: Mapping[bytes, int]


class Truncations:
    """The truncations in one raw partition's state; apart_ms: how far apart hosts may execute one TRUNCATE. forgotten:
    the hosts that are not waited for.
    """

    def __init__(self, overlay: Overlay, apart_ms: int, forgotten: Collection[bytes]) -> None:
        self._overlay = overlay
        self._forgotten = frozenset(forgotten)
        self._apart_ms = apart_ms
        self._state = read_truncations(overlay)

    @property
    def lost(self) -> Mapping[bytes, int]:
        """The hosts whose rows the state may lack, and since when (ms): the table needs a snapshot."""
        return self._state.lost if self._state is not None else {}

    def native_boundaries(self, table_id: bytes, first_ms: int) -> tuple[list[NativeBoundary], bool] | None:
        """The hosts whose messages of a table the native core may take, and whether all others are; None: all.

        first_ms: the arrival of the first of the messages.
        """
        state = self._state
        if state is None or state.table_id != table_id:
            return None
        counted = [
            (host, boundary.segment, boundary.position)
            for host, boundary in state.boundaries.items()
            if host not in state.waits
        ]
        return counted, not state.waits and not self._is_open(state, first_ms)

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
        """Whether a write is not merged: it is gone, or comes again because its host is waited for."""
        state = self._state
        if state is None or message.table_id != state.table_id:
            return False
        host = message.host_id
        if host not in state.known | self._forgotten and self._is_open(state, arrival_ms):
            self._put(state._replace(known=state.known | {host}, waits=state.waits | {host}))
            return True
        return host in state.waits or self.is_gone(message)

    def is_waited_for(self, message: RawMessage) -> bool:
        """Whether the writes of the message's host come again."""
        state = self._state
        return state is not None and state.table_id == message.table_id and message.host_id in state.waits

    def apply(self, message: RawMessage, arrival_ms: int, hosts: Collection[bytes]) -> bool:
        """Take note of a host's truncation or drop; True if all rows must be deleted. hosts: all that are awaited."""
        host, at, is_settled = message.host_id, message.truncation_epoch, message.kind in SETTLED_KINDS
        state = self._state
        if state is None or state.table_id != message.table_id:
            state = _nothing_of(message.table_id)
        if _is_copy(state, message):
            return False
        is_waited = host in state.waits or (host not in state.known and self._is_open(state, arrival_ms))
        boundary = Boundary(message.segment, message.position, at, is_settled)
        state = state._replace(boundaries={**state.boundaries, host: boundary}, known=state.known | {host})
        if is_waited and (not is_settled or at < state.at - self._apart_ms):
            self._put(state._replace(waits=state.waits | {host}))  # what it has is still to come
            return False
        if is_waited and not self._is_another(state, host, at):
            at = state.at if state.is_settled else at
            self._put(state._replace(at=at, is_settled=True, waits=state.waits - {host}))
            return False
        known = state.known | frozenset(hosts)
        waits = known - self._forgotten - ({host} if is_settled else set())
        self._put(
            state._replace(at=at, is_settled=is_settled, arrived_ms=arrival_ms, known=known, waits=waits, lost={})
        )
        return True

    def stop_waiting(self, arrivals: Iterable[AnyArrival], last_ms: int) -> None:
        """Stop waiting for hosts that are forgotten, and for hosts whose heartbeat shows that they did not truncate.

        last_ms: the arrival of the chunk's last message. Its writes of those hosts are left out already.
        """
        state = self._state
        if state is None or not state.waits:
            return
        late = {
            arrival.message.host_id
            for arrival in arrivals
            if type(arrival) is Arrival
            and arrival.message.kind == "heartbeat"
            and arrival.message.table_id == state.table_id
            and arrival.message.clock // 1000 > self._truncates_until(state, arrival.message.host_id)
        }
        lost = {**state.lost, **dict.fromkeys(state.waits & late, last_ms)}
        waits = state.waits - late - self._forgotten
        if waits != state.waits:
            self._put(state._replace(waits=waits, lost=lost))

    def clear_lost(self, snapshots: Snapshots) -> None:
        """Clear the marks of lost hosts that have sent a snapshot that began after they counted again."""
        state = self._state
        if state is not None and state.lost:
            lost = {host: since for host, since in state.lost.items() if host not in snapshots.ended_since(since)}
            if lost != state.lost:
                self._put(state._replace(lost=lost))

    def forget_all(self) -> None:
        """The table was dropped, and another one has its name."""
        if self._state is not None:
            self._state = None
            self._overlay.put(TRUNCATED, None)

    def _is_open(self, state: TruncationState, now_ms: int) -> bool:
        """Whether a host that is not known yet may have rows from before."""
        return bool(state.known) and now_ms <= state.arrived_ms + self._apart_ms + RECORD_MS

    def _is_another(self, state: TruncationState, host: bytes, at: int) -> bool:
        """Whether a host that was waited for says what it has after a later truncation than the last one, so that what
        there is of other hosts is from before it.
        """
        if state.is_settled:
            return at > state.at + self._apart_ms
        return bool(state.known - self._forgotten - state.waits - {host})

    def _truncates_until(self, state: TruncationState, host: bytes) -> int:
        """The time by which a host has truncated, if it takes part (ms). A host that has announced it will still send
        `truncated`.
        """
        own = state.boundaries.get(host)
        at = state.at if own is None or own.is_settled else max(state.at, own.at)
        return at + self._apart_ms + RECORD_MS

    def _put(self, state: TruncationState) -> None:
        self._state = state
        self._overlay.put(TRUNCATED, encode_truncations(state))


def is_truncation(arrival: AnyArrival) -> bool:
    return type(arrival) is Arrival and arrival.message.kind in TRUNCATION_KINDS


def _nothing_of(table_id: bytes) -> TruncationState:
    return TruncationState(
        table_id, {}, at=0, is_settled=False, arrived_ms=0, known=frozenset(), waits=frozenset(), lost={}
    )


def _is_copy(state: TruncationState, message: RawMessage) -> bool:
    """Whether a truncation says nothing new. A settled one does if what follows it was left out."""
    host, at = message.host_id, message.truncation_epoch
    before = state.boundaries.get(host)
    if before is None or at > before.at:
        return False
    is_settled = message.kind in SETTLED_KINDS
    return at < before.at or not is_settled or (before.is_settled and host not in state.waits)


def read_truncations(state: StateReader | Overlay) -> TruncationState | None:
    value = state.get(TRUNCATED)
    if value is None:
        return None
    check_version(value)
    table_id, boundaries, at, is_settled, arrived_ms, known, waits, lost = json.loads(value[1:])
    return TruncationState(
        bytes.fromhex(table_id),
        {bytes.fromhex(host): Boundary(*boundary) for host, boundary in boundaries.items()},
        at,
        is_settled,
        arrived_ms,
        frozenset(map(bytes.fromhex, known)),
        frozenset(map(bytes.fromhex, waits)),
        {bytes.fromhex(host): since for host, since in lost.items()},
    )


def encode_truncations(state: TruncationState) -> bytes:
    fields = [
        state.table_id.hex(),
        {host.hex(): boundary for host, boundary in sorted(state.boundaries.items())},
        state.at,
        state.is_settled,
        state.arrived_ms,
        sorted(host.hex() for host in state.known),
        sorted(host.hex() for host in state.waits),
        {host.hex(): since for host, since in sorted(state.lost.items())},
    ]
    return VERSION_BYTE + json.dumps(fields, separators=(",", ":")).encode()


def merged_truncations(of: Sequence[TruncationState | None]) -> TruncationState | None:
    """Return the truncations for a raw partition that has rows of several others, from the states of those.

    If one has a truncation that another one has not, its message is still to come, and deletes all rows once more: then
    the rows of all hosts may be lost.
    """
    known = [state for state in of if state is not None]
    if not known:
        return None
    newest = max(known, key=lambda state: state.at)
    boundaries = {
        host: min(state.boundaries[host] for state in known)
        for host in newest.boundaries
        if all(state is not None and host in state.boundaries for state in of)
    }
    differ = any(state is None or state.boundaries != newest.boundaries for state in of)
    hosts = frozenset().union(*(state.known for state in known))
    arrived_ms = max(state.arrived_ms for state in known)
    lost = {host: max(state.lost.get(host, 0) for state in known) for holder in known for host in holder.lost}
    return newest._replace(
        boundaries=boundaries,
        is_settled=any(state.is_settled for state in known),
        arrived_ms=arrived_ms,
        known=hosts,
        waits=frozenset().union(*(state.waits for state in known)),
        lost=dict.fromkeys(hosts, arrived_ms) | lost if differ else lost,
    )
