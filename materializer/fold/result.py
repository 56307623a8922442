"""The result of folding a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from materializer.fold.gaps import DeadLetter
from materializer.records import Change
from materializer.rows.published import Published


class ChunkResult(NamedTuple):
    """writes: what the chunk writes to the state (None deletes a key); without writes there are no changes either, and
    nothing has to be committed. changes: the change events, in order; with encoders in the catalog some of them are
    EncodedChanges. now_ms: the raw partition's new time. publishers_ms: as PublisherWatermarks.clock_ms.
    stalled_publishers: the ids of publishers that have sent nothing for too long. running_snapshots: the ids of the
    snapshots for which purging waits. lost_hosts: the ids of the hosts whose rows the state may lack since
    the table was truncated, with the arrival (ms) after which a snapshot must begin to bring them. dead_letters:
    messages for the dead-letter topic. native: how many updates the native core has folded. published: where the
    changes of each table id go, unless a change says it itself. moved_to: the change topic to which the last row has
    moved with this chunk.

    left: how many records, from the end, are left for the next chunks. If it is all of them, part of the work before or
    of the first one is done.
    """

    writes: dict[bytes, bytes | None]
    changes: list[Change]
    now_ms: int
    publishers_ms: int = 0
    stalled_publishers: tuple[str, ...] = ()
    dead_letters: Sequence[DeadLetter] = ()
    left: int = 0
    native: int = 0
    running_snapshots: tuple[str, ...] = ()
    lost_hosts: Mapping[str, int] = {}
    published: Mapping[bytes, Published] = {}
    moved_to: str = ""
