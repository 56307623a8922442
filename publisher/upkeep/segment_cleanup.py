"""Removes segments from cdc_raw: finished ones are disposed of, unread ones move to the spool while cdc_raw fills."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from publisher.log.cdc_raw import list_cdc_segments
from publisher.log.segment_disposal import delete_segment
from publisher.log.space import WARN_PERCENTS
from publisher.log.spool import spool_above

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from cassandra_storage.files.segments import SegmentFile
    from publisher.log.space import Space
    from publisher.parts import NodeParts
    from publisher.progress import Progress


RELEASE_PERCENT = WARN_PERCENTS[-1]

log = structlog.get_logger(__name__)


class SegmentCleanup:
    """Works on cdc_raw and the spool."""

    def __init__(self, cdc_raw: Path, node: NodeParts, progress: Progress, waiting_max_percent: int) -> None:
        self._cdc_raw = cdc_raw
        self._waiting_max_percent = waiting_max_percent
        self._node = node
        self._progress = progress
        self._is_requested = True
        self._is_short = False

    def request(self) -> None:
        """A segment is finished: the next call of dispose_of_finished looks for it."""
        self._is_requested = True

    def dispose_of_finished(self, now: float) -> None:
        """Call this only after the position is durable. A segment that cannot be moved now is retried, as is a segment
        that may have to be read again. That one goes, too, before the node refuses writes: the table needs a snapshot
        then (SegmentTails.has_lost). A segment that is held for a waiting table stays.
        """
        if not self._is_requested:
            return
        files = [*list_cdc_segments(self._cdc_raw), *self._node.spool.files()]
        first_needed = self._node.schema.row_ends.first_needed_segment
        waited_for = self._node.waiting.segments()
        try:
            for file in files:
                is_held = first_needed is not None and file.id >= first_needed
                if (is_held and not self._is_short) or file.id in waited_for:
                    continue
                if self._node.positions.is_finished(file.id) and self._node.disposal.dispose(file):
                    self._node.spool.forget(file)
        except CdcError as error:
            self._progress.report_problem(now, error)
            return
        self._is_requested = first_needed is not None or bool(waited_for)
        self._node.positions.forget_missing({file.id for file in files})

    def relieve_cdc_raw(self, space: Space) -> None:
        """A node that crashed before it flushed a segment links it here again: the spool has the complete copy.
        Finished segments that may have to be read again take room, too. Without a spool they go when cdc_raw is nearly
        full.
        """
        spooled = {file.id for file in self._node.spool.files()}
        found = list_cdc_segments(self._cdc_raw)
        for file in found:
            if file.id in spooled:
                self._delete_copy(file)
        waited_for = self._node.waiting.segments()
        needed = [file for file in found if file.id not in spooled and self._is_needed(file, waited_for)]
        for moved in self._node.spool.take_oldest(needed, space.used - spool_above(space)):
            self._node.tails.relocate(moved)
        self._note_shortage(space)
        self._let_go(space)

    def _let_go(self, space: Space) -> None:
        """Let segments go that are kept only for waiting tables: those above the bound that the settings choose, and
        all of them before the node refuses writes.
        """
        waiting, spool = self._node.waiting, self._node.spool
        if not waiting.segments():
            return
        room = space.full_at + (spool.max_bytes if spool.is_on else 0)
        is_short = space.percent >= RELEASE_PERCENT and (not spool.is_on or bool(spool.problem))
        limit = 0 if is_short else room * self._waiting_max_percent // 100
        sizes = self._finished_sizes()
        while sum(sizes.get(segment, 0) for segment in waiting.segments()) > limit:
            self._node.schema.require_snapshots(waiting.let_go_oldest(sizes))
            self._is_requested = True

    def _finished_sizes(self) -> dict[int, int]:
        """The bytes of each segment in cdc_raw and the spool that could be disposed of."""
        sizes = {}
        for file in [*list_cdc_segments(self._cdc_raw), *self._node.spool.files()]:
            if self._node.positions.is_finished(file.id):
                with suppress(FileNotFoundError):
                    sizes[file.id] = file.path.stat().st_size
        return sizes

    def _delete_copy(self, file: SegmentFile) -> None:
        try:
            delete_segment(file)
        except CdcError as error:
            self._progress.report_problem(monotonic(), error)

    def _note_shortage(self, space: Space) -> None:
        spool = self._node.spool
        was_short, self._is_short = self._is_short, False
        if self._node.schema.row_ends.first_needed_segment is None or space.percent < RELEASE_PERCENT:
            return
        self._is_short = not spool.is_on or bool(spool.problem)
        if self._is_short and not was_short:
            log.warning(
                "cdc_raw is nearly full: segments that a TRUNCATE has held are removed",
                code=Code.CDC_RAW_FILLING.text,
                percent=round(space.percent),
                fix="Take a snapshot of the tables that are marked as needing one, and set publisher.on_full = spool.",
            )

    def _is_needed(self, file: SegmentFile, waited_for: AbstractSet[int]) -> bool:
        first_needed = self._node.schema.row_ends.first_needed_segment
        is_held = first_needed is not None and file.id >= first_needed
        return is_held or file.id in waited_for or not self._node.positions.is_finished(file.id)
