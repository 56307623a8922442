"""`publisher.on_full = "spool"`: what cdc_raw has no room for waits in another folder, and is read from there.

A segment in the spool is complete. It is read in its turn, by its id like any other, and deleted when it is wholly
acknowledged; nothing else takes it away. What is there is read whether or not more may come.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cassandra_files.segments import remove_orphaned_indexes
from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.cdc_raw import read_index, segments
from publisher.segment_disposal import move, remove_remains, stays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from cassandra_files.segments import SegmentFile
    from cdc_program.settings import PublisherSettings
    from publisher.space import Space

LEAST_FREE_PERCENT = 10
SPOOL_PERCENT = 60  # of the space in which CDC writes are accepted; to be warned at 75 means that this does not keep up
LEAST_SEGMENTS_FREE = 4  # the one in use, the one made ahead, and what comes while some are moved
AT_ONCE = 8  # segments a second: copying must not keep the publisher from its acknowledgements

log = structlog.get_logger(__name__)


class Spool:
    """`folder` is of one node. `problem`: why what should be moved is not, or empty; `moved`: segments, since the
    start; `bytes`: of those in it.
    """

    def __init__(self, folder: Path, max_bytes: int, *, is_on: bool) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.is_on = is_on
        self.problem = ""
        self.moved = 0
        self._sizes: dict[SegmentFile, int] = {}
        if is_on:
            state_files.make_folder(folder)
        if folder.is_dir():
            remove_remains(folder)
            remove_orphaned_indexes(folder)
            self._sizes = {file: file.path.stat().st_size for file in segments(folder)}
        if self._sizes:
            log.warning("segments wait in the spool", code=Code.SPOOLING.text, **self._says())

    @property
    def bytes(self) -> int:
        return sum(self._sizes.values())

    def files(self) -> list[SegmentFile]:
        return sorted(self._sizes)

    def forget(self, file: SegmentFile) -> None:
        """It has been deleted, or moved away."""
        if self._sizes.pop(file, None) is not None and not self._sizes:
            log.info("the spool is empty")

    def relieve(self, waiting: Iterable[SegmentFile], excess: int) -> Iterator[SegmentFile]:
        """Move the oldest of the segments in cdc_raw that are complete until `excess` bytes are gone, a few at a time;
        gives each at its new place.
        """
        if not self.is_on or excess <= 0:
            self._say_problem(None)
            return
        moved = 0
        for file in waiting:
            if excess <= 0 or moved >= AT_ONCE:
                return
            index = read_index(file)
            if index is None or not index.is_completed:
                continue
            try:
                size = file.path.stat().st_size
                self._check(file, size)
                there = move(file, self.folder)
            except CdcError as error:
                self._say_problem(error)
                return
            except OSError as error:
                self._say_problem(stays(file, self.folder, error.strerror or str(error)))
                return
            self._say_problem(None)
            if not self._sizes:
                log.warning("cdc_raw is nearly full, segments go to the spool", code=Code.SPOOLING.text, **self._says())
            self._sizes[there] = size
            self.moved += 1
            moved += 1
            excess -= size
            yield there

    def _check(self, file: SegmentFile, size: int) -> None:
        """CdcError SEGMENTS_STUCK if it must not come here, OSError."""
        if self.bytes + size > self.max_bytes:
            raise stays(file, self.folder, f"the spool holds {self.bytes >> 20} MiB of spool_max_mib already")
        disk = shutil.disk_usage(self.folder)
        if (disk.free - size) * 100 < disk.total * LEAST_FREE_PERCENT:
            raise stays(file, self.folder, f"less than {LEAST_FREE_PERCENT} % of its disk would be free")

    def _say_problem(self, error: CdcError | None) -> None:
        if error is not None and not self.problem:
            log.error(
                "cdc_raw fills, and nothing can be moved", code=error.code.text, problem=error.problem, fix=error.fix
            )
        self.problem = "" if error is None else error.problem

    def _says(self) -> dict[str, object]:
        return {"folder": str(self.folder), "segments": len(self._sizes), "mib": self.bytes >> 20}


def spool_above(space: Space) -> int:
    """The bytes in cdc_raw above which segments go to the spool."""
    return max(min(space.full_at * SPOOL_PERCENT // 100, space.full_at - LEAST_SEGMENTS_FREE * space.segment), 0)


def open_spool(settings: PublisherSettings, host_id: UUID) -> Spool:
    """The node's; CdcError SEGMENTS_STUCK if segments wait in another folder than the one that is set."""
    folder = (settings.spool_directory or settings.state_directory / "spool") / str(host_id)
    remembered = settings.state_directory / "spool.json"
    before = (state_files.read(remembered) or {}).get("folder", str(folder))
    if before != str(folder):
        _check_empty(Path(before), folder)
    is_on = settings.on_full == "spool"
    if is_on or before != str(folder):
        state_files.write(remembered, {"folder": str(folder)})
    return Spool(folder, settings.spool_max_mib << 20, is_on=is_on)


def _check_empty(before: Path, now: Path) -> None:
    if before.is_dir() and segments(before):
        raise CdcError(
            Code.SEGMENTS_STUCK,
            f"Segments wait in the spool {before}, and publisher.spool_directory now means {now}.",
            "Set spool_directory back until they are published, or move them to the new folder, logs and indexes.",
        )
