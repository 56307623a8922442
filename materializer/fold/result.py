"""What a chunk comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdc_messages.changes import RowChange
from materializer.fold.gaps import DeadLetter


class ChunkResult(NamedTuple):
    """What a chunk makes of the state (None deletes a key), what it emits, in order, the partition's new time, the ids
    of publishers unheard of, and the raw messages that are put aside. Without writes there is nothing to emit either:
    the chunk is as good as not there.

    left: how many of the records at the end are for further chunks. If that is all of them, some work that is due
    before the first one, or with it, is done.
    """

    writes: dict[bytes, bytes | None]
    changes: list[RowChange]
    now_ms: int
    stalled_publishers: tuple[str, ...] = ()
    letters: Sequence[DeadLetter] = ()
    left: int = 0
