"""What a task reports to the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stream_runtime.records import Rest
from stream_runtime.state.unused import DiskUse


class Report(NamedTuple):
    """What a task did: it folded the offsets [first, end), in so many messages, chunks and seconds.

    `stalled_publishers`: ids of publishers that have sent nothing for too long. `dead_letters`: how many messages
    were dead-lettered. `native`: how many messages the native core has folded. `read`, `written`: bytes from and to
    the checkpoint location. `versions`: how many versions of the state were stored. `rest`: as Processor.rest.
    `busy`: whether more than times was stored. `left`: how many of the last messages given are not folded yet,
    since the time was over. `state_bytes`: what its local state takes. `disk`: what all states of the worker's
    machine take, if they were measured since the last report. `running_snapshots`, `lost_hosts`: as ChunkResult's
    of the last chunk. `ops`: how many changes of each operation. `commit_seconds`: how long of `seconds` steps 3 to
    6 took, without the fold. `restores`: how many states the worker brought to another version since the last
    report. `renewed`: how often the brokers had forgotten the idle producer, so that a new one was made.
    """

    first: int
    end: int
    messages: int
    changes: int
    chunks: int
    seconds: float
    stalled_publishers: Sequence[str] = ()
    dead_letters: int = 0
    read: int = 0
    written: int = 0
    versions: int = 0
    rest: Rest | None = None
    busy: bool = False
    native: int = 0
    left: int = 0
    state_bytes: int = 0
    disk: DiskUse | None = None
    running_snapshots: Sequence[str] = ()
    lost_hosts: Mapping[str, int] = {}
    ops: Mapping[str, int] = {}
    commit_seconds: float = 0.0
    restores: int = 0
    renewed: int = 0

    def and_then(self, later: Report) -> Report:
        """Both, one after the other."""
        return later._replace(
            first=self.first if self.chunks else later.first,
            end=later.end if later.chunks else self.end,
            running_snapshots=later.running_snapshots if later.chunks else self.running_snapshots,
            lost_hosts=later.lost_hosts if later.chunks else self.lost_hosts,
            messages=self.messages + later.messages,
            changes=self.changes + later.changes,
            chunks=self.chunks + later.chunks,
            seconds=self.seconds + later.seconds,
            dead_letters=self.dead_letters + later.dead_letters,
            read=self.read + later.read,
            written=self.written + later.written,
            versions=self.versions + later.versions,
            native=self.native + later.native,
            disk=later.disk or self.disk,
            ops=Counter(self.ops) + Counter(later.ops),
            commit_seconds=self.commit_seconds + later.commit_seconds,
            restores=self.restores + later.restores,
            renewed=self.renewed + later.renewed,
        )


NOTHING_DONE = Report(-1, -1, 0, 0, 0, 0.0)
