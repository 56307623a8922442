"""The result of folding a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from materializer.fold.gaps import DeadLetter
from materializer.records import Change
from materializer.rows.published import Published


class ChunkResult(NamedTuple):
    """The result of folding a chunk."""

    # The entries that the chunk writes to the state; None deletes a key. Without writes there are no changes either,
    # and nothing has to be committed.
    writes: dict[bytes, bytes | None]
    # The change events, in order. With encoders in the catalog some of them are EncodedChanges.
    changes: list[Change]
    # The raw partition's new time, in ms.
    now_ms: int
    # The time (ms) up to which the logs of all publishers are folded.
    publishers_ms: int = 0
    # The ids of publishers that have sent nothing for too long.
    stalled_publishers: tuple[str, ...] = ()
    # Messages for the dead-letter topic.
    dead_letters: Sequence[DeadLetter] = ()
    # How many records, from the end, are left for the next chunks. If it is all of them, part of the work before or of
    # the first one is done.
    left: int = 0
    # How many updates the native core has folded.
    native: int = 0
    # The ids of the snapshots for which purging waits.
    running_snapshots: tuple[str, ...] = ()
    # The ids of the hosts whose rows the state may lack since the table was truncated, with the arrival (ms) after
    # which a snapshot must begin to bring them.
    lost_hosts: Mapping[str, int] = {}
    # Where the changes of each table id go, unless a change says it itself.
    published: Mapping[bytes, Published] = {}
    # The change topic to which the last row has moved with this chunk; empty if none has.
    moved_to: str = ""
    # How many fields of `after` are null because their message cannot represent their value, by reason: `empty` or
    # `unreadable`. It is filled as the messages are made; None: they are not counted.
    null_values: Counter[str] | None = None
