"""`publisher.on_full = "spool"`: while cdc_raw is nearly full, segments move to another folder and are read from there.

A segment in the spool is complete. It is read in the order of the ids like any other, and deleted only after Kafka has
acknowledged all of it. Segments in the spool are read even if the setting is off now.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.segments import remove_orphaned_indexes
from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.log.cdc_raw import list_cdc_segments, read_index
from publisher.log.segment_disposal import move_error, move_segment, remove_partial_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from cassandra_storage.files.segments import SegmentFile
    from publisher.log.space import Space
    from publisher.settings import PublisherSettings

LEAST_FREE_PERCENT = 10
SPOOL_PERCENT = 60  # of the space in which CDC writes are accepted; below the warning at 75
LEAST_SEGMENTS_FREE = 4  # the active one, the one created ahead, and those that arrive during a move
SEGMENTS_PER_CALL = 8  # a call each second: copying must not delay acknowledgements

log = structlog.get_logger(__name__)


class Spool:
    """`folder` belongs to one node. `problem`: why segments that should move cannot, or empty; `moved`: the number of
    segments moved since the start; `bytes`: the size of the segments in the spool. `remember` is called with the ids of
    its segments when they have changed.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        *,
        is_on: bool,
        remember: Callable[[list[int]], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._remember = remember
        self.max_bytes = max_bytes
        self.is_on = is_on
        self.problem = ""
        self.moved = 0
        self._sizes: dict[SegmentFile, int] = {}
        if is_on:
            state_files.make_folder(folder)
        if folder.is_dir():
            remove_partial_copies(folder)
            remove_orphaned_indexes(folder)
            self._sizes = {file: file.path.stat().st_size for file in list_cdc_segments(folder)}
        if self._sizes:
            log.warning("segments wait in the spool", code=Code.SPOOLING.text, **self._log_fields())

    @property
    def bytes(self) -> int:
        return sum(self._sizes.values())

    def files(self) -> list[SegmentFile]:
        return sorted(self._sizes)

    def forget(self, file: SegmentFile) -> None:
        """The segment has been deleted, or moved away."""
        if self._sizes.pop(file, None) is None:
            return
        self.remember_segments()
        if not self._sizes:
            log.info("the spool is empty")

    def remember_segments(self) -> None:
        """Store which segments wait here, for the next start."""
        self._remember([file.id for file in self.files()])

    def take_oldest(self, files: Iterable[SegmentFile], excess: int) -> Iterator[SegmentFile]:
        """Move the complete ones of these segments out of cdc_raw, in their order, until `excess` bytes are moved, at
        most SEGMENTS_PER_CALL; yields each at its new place.
        """
        if not self.is_on or excess <= 0:
            self._set_problem(None)
            return
        moved = 0
        for file in files:
            if excess <= 0 or moved >= SEGMENTS_PER_CALL:
                return
            index = read_index(file)
            if index is None or not index.is_completed:
                continue
            try:
                size = file.path.stat().st_size
                self._check_room(file, size)
                moved_file = move_segment(file, self.folder)
            except CdcError as error:
                self._set_problem(error)
                return
            except OSError as error:
                self._set_problem(move_error(file, self.folder, error.strerror or str(error)))
                return
            self._set_problem(None)
            if not self._sizes:
                log.warning(
                    "cdc_raw is nearly full: moving segments to the spool",
                    code=Code.SPOOLING.text,
                    **self._log_fields(),
                )
            self._sizes[moved_file] = size
            self.remember_segments()
            self.moved += 1
            moved += 1
            excess -= size
            yield moved_file

    def _check_room(self, file: SegmentFile, size: int) -> None:
        """Raise CdcError SEGMENTS_STUCK if the spool has no room for the segment. OSError."""
        if self.bytes + size > self.max_bytes:
            raise move_error(file, self.folder, f"the spool holds {self.bytes >> 20} MiB of spool_max_mib already")
        disk = shutil.disk_usage(self.folder)
        if (disk.free - size) * 100 < disk.total * LEAST_FREE_PERCENT:
            raise move_error(file, self.folder, f"less than {LEAST_FREE_PERCENT} % of its disk would be free")

    def _set_problem(self, error: CdcError | None) -> None:
        if error is not None and not self.problem:
            log.error(
                "cdc_raw is filling up, and no segment can be moved",
                code=error.code.text,
                problem=error.problem,
                fix=error.fix,
            )
        self.problem = "" if error is None else error.problem

    def _log_fields(self) -> dict[str, object]:
        return {"folder": str(self.folder), "segments": len(self._sizes), "mib": self.bytes >> 20}


def spool_above(space: Space) -> int:
    """The bytes in cdc_raw above which segments move to the spool."""
    return max(min(space.full_at * SPOOL_PERCENT // 100, space.full_at - LEAST_SEGMENTS_FREE * space.segment), 0)


def open_spool(
    settings: PublisherSettings, host_id: UUID, is_elsewhere: Callable[[int], bool] = lambda _: False
) -> Spool:
    """The node's spool; is_elsewhere: whether a segment is published, or in cdc_raw. CdcError SEGMENTS_STUCK if
    segments wait in a folder that was set before, or are nowhere.
    """
    folder = (settings.spool_directory or settings.state_directory / "spool") / str(host_id)
    remembered = settings.state_directory / "spool.json"
    stored = state_files.read(remembered) or {}
    before = stored.get("folder", str(folder))
    if before != str(folder):
        _check_empty(Path(before), folder)
    _check_present(stored.get("segments", ()), (Path(before), folder), remembered, is_elsewhere)

    def remember(segments: list[int]) -> None:
        state_files.write(remembered, {"folder": str(folder), "segments": segments})

    is_on = settings.on_full == "spool"
    spool = Spool(folder, settings.spool_max_mib << 20, is_on=is_on, remember=remember)
    if is_on or before != str(folder):
        spool.remember_segments()
    return spool


def _check_empty(before: Path, now: Path) -> None:
    if before.is_dir() and list_cdc_segments(before):
        raise CdcError(
            Code.SEGMENTS_STUCK,
            f"Segments wait in the spool {before}, but publisher.spool_directory is now {now}.",
            "Set spool_directory back until they are published, or move their logs and indexes to the new folder.",
        )


def _check_present(
    segments: Iterable[int], folders: tuple[Path, Path], remembered: Path, is_elsewhere: Callable[[int], bool]
) -> None:
    """`folders`: that of before, and that of now. Without this, a disk that is not mounted is an empty spool."""
    present = {file.id for folder in folders if folder.is_dir() for file in list_cdc_segments(folder)}
    missing = [segment for segment in segments if segment not in present and not is_elsewhere(segment)]
    if missing:
        raise CdcError(
            Code.SEGMENTS_STUCK,
            f"{len(missing)} segments that wait to be published are not in the spool {folders[0]} any more, such as"
            f" {missing[0]}.",
            f"Mount its disk. If they are lost, remove {remembered}, and repair the tables with cdc = true on this"
            " node.",
        )
