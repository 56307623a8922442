"""The snapshots that a raw partition has heard of, and how far each of their hosts is (decision 0032)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cdc_common.messages.errors import MessageError
from cdc_common.messages.raw import CONTROL_KINDS
from cdc_common.messages.snapshots import HOST_STATES, HostState, SnapshotStep, decode_step
from materializer.records import Arrival, UnreadableError
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import SNAPSHOT, SNAPSHOT_END

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from materializer.fold.arrivals import AnyArrival, OnUnreadable
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader

_VALUE = struct.Struct(">BQQ")
_HOST = struct.Struct(">16sB")
_KEPT_MS = 30 * 24 * 3600 * 1000  # a finished snapshot, so that a late copy of its begin does not start it again


class SnapshotProgress(NamedTuple):
    """The progress of one snapshot."""

    # The arrival (ms) of its first step.
    begun_ms: int
    # The arrival (ms) of its last step that said something new.
    changed_ms: int
    # How far each host is, by its id.
    hosts: Mapping[bytes, HostState]

    def with_step(self, step: SnapshotStep, host: bytes, arrival_ms: int) -> SnapshotProgress:
        """The progress after a step of one host. A host's state only rises, so copies and any order of steps give the
        same.
        """
        hosts = dict.fromkeys(step.hosts, HOST_STATES[0]) | dict(self.hosts)
        hosts[host] = max(hosts.get(host, HOST_STATES[0]), step.state, key=HOST_STATES.index)
        return self if hosts == self.hosts else SnapshotProgress(self.begun_ms, arrival_ms, hosts)

    def is_running(self, forgotten: Collection[bytes]) -> bool:
        """Whether a host that is not forgotten may still send rows."""
        return any(state == "running" and host not in forgotten for host, state in self.hosts.items())


class Snapshots:
    """The snapshots in one raw partition's state.

    forgotten: the hosts that are not waited for. was_running: whether one was running at any time of this chunk.
    """

    def __init__(self, overlay: Overlay, forgotten: Collection[bytes]) -> None:
        self._overlay = overlay
        self._forgotten = forgotten
        self._known = dict(read_snapshots(overlay))
        self.was_running = self.is_running

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of those for which purging waits."""
        return tuple(
            str(snapshot) for snapshot, progress in self._known.items() if progress.is_running(self._forgotten)
        )

    @property
    def is_running(self) -> bool:
        return bool(self.running)

    def apply_steps(self, arrivals: Iterable[AnyArrival], on_unreadable: OnUnreadable) -> None:
        """Store what the snapshot_begin and snapshot_end messages among these say."""
        for arrival in arrivals:
            if type(arrival) is Arrival and arrival.message.kind in CONTROL_KINDS:
                try:
                    step = decode_step(arrival.message.update)
                except MessageError as error:
                    on_unreadable(arrival.record, UnreadableError(error.reason))
                else:
                    self._apply(step, arrival.message.host_id, arrival.arrival_ms)

    def ended_since(self, ms: int) -> set[bytes]:
        """The hosts that have ended a snapshot which began after a time (ms)."""
        begun = [progress for progress in self._known.values() if progress.begun_ms > ms]
        return {host for progress in begun for host, state in progress.hosts.items() if state == "ended"}

    def forget_all(self) -> None:
        """The table was dropped, and another one has its name."""
        for snapshot in list(self._known):
            self._forget(snapshot)

    def forget_old(self, now_ms: int) -> None:
        """Delete what finished so long ago that no copy of its messages can come any more."""
        for snapshot, progress in list(self._known.items()):
            if progress.changed_ms + _KEPT_MS < now_ms and not progress.is_running(self._forgotten):
                self._forget(snapshot)

    def _apply(self, step: SnapshotStep, host: bytes, arrival_ms: int) -> None:
        before = self._known.get(step.snapshot, SnapshotProgress(arrival_ms, arrival_ms, {}))
        after = before.with_step(step, host, arrival_ms)
        if after is not before:
            self._known[step.snapshot] = after
            self._overlay.put(snapshot_key(step.snapshot), encode_progress(after))
            self.was_running = self.was_running or self.is_running

    def _forget(self, snapshot: UUID) -> None:
        del self._known[snapshot]
        self._overlay.put(snapshot_key(snapshot), None)


def read_snapshots(state: StateReader | Overlay) -> Iterator[tuple[UUID, SnapshotProgress]]:
    """All snapshots in a state, by their ids."""
    for key, value in state.scan(SNAPSHOT, SNAPSHOT_END):
        yield UUID(bytes=key[1:]), decode_progress(value)


def least_far(of: Sequence[SnapshotProgress]) -> SnapshotProgress:
    """One snapshot in several raw partitions: a host is as far as where it is least far."""
    hosts: dict[bytes, HostState] = {}
    for progress in of:
        for host, state in progress.hosts.items():
            hosts[host] = min(hosts.get(host, state), state, key=HOST_STATES.index)
    return SnapshotProgress(
        min(progress.begun_ms for progress in of), max(progress.changed_ms for progress in of), hosts
    )


def snapshot_key(snapshot: UUID) -> bytes:
    return SNAPSHOT + snapshot.bytes


def encode_progress(progress: SnapshotProgress) -> bytes:
    hosts = (_HOST.pack(host, HOST_STATES.index(state)) for host, state in sorted(progress.hosts.items()))
    return _VALUE.pack(FORMAT_VERSION, progress.begun_ms, progress.changed_ms) + b"".join(hosts)


def decode_progress(value: bytes) -> SnapshotProgress:
    check_version(value)
    _, begun_ms, changed_ms = _VALUE.unpack_from(value)
    hosts = {host: HOST_STATES[state] for host, state in _HOST.iter_unpack(value[_VALUE.size :])}
    return SnapshotProgress(begun_ms, changed_ms, hosts)
