"""Segments on their way out of cdc_raw: moved to another folder, whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code
from publisher.state_files import make_folder, sync_folder

if TYPE_CHECKING:
    from cassandra_files.segments import SegmentFile
    from cdc_program.settings import PublisherSettings

_PARTIAL = ".partial"


def move(file: SegmentFile, folder: Path) -> SegmentFile:
    """Move a complete segment, durably: the index first, then the log, whose appearance is what counts, and only then
    is the old index removed. On one filesystem the log is renamed; to another it is copied beside its new name, made
    durable, renamed, and removed here. A crash leaves it here or there, or a whole copy in both; what is half is an
    index without a log or a `.partial` file, which `remove_remains` knows. CdcError SEGMENTS_STUCK.
    """
    moved = file._replace(path=folder / file.path.name)
    try:
        with suppress(FileNotFoundError):  # 3.11 writes none
            _copy(file.index_path, moved.index_path)
        try:
            file.path.rename(moved.path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(file.path, moved.path)
            sync_folder(folder)
            file.path.unlink()
        sync_folder(folder)
        file.index_path.unlink(missing_ok=True)
    except OSError as error:
        raise stays(file, folder, error.strerror or str(error)) from error
    return moved


def stays(file: SegmentFile, folder: Path, reason: str) -> CdcError:
    return CdcError(
        Code.SEGMENTS_STUCK,
        f"The segment {file.path} cannot be moved to {folder}: {reason}.",
        "Make room there, or let the publisher's user write there; it stays where it is, and is tried again.",
    )


def remove_remains(folder: Path) -> None:
    """Remove what moves that were cut short have left here."""
    for partial in folder.glob(f"*{_PARTIAL}"):
        partial.unlink(missing_ok=True)


class Disposal:
    """What becomes of a segment that is wholly published: `publisher.processed_segments`."""

    def __init__(self, processed_segments: str, folder: Path | None) -> None:
        """`folder`: where they go, of neither `delete` nor `keep`; CdcError POSITION_FILE where it cannot be made."""
        self._choice = processed_segments
        self._folder = folder
        if folder is not None:
            make_folder(folder)
            remove_remains(folder)

    def dispose(self, file: SegmentFile) -> bool:
        """True if it is gone from where it was; CdcError SEGMENTS_STUCK."""
        if self._folder is not None:
            move(file, self._folder)
        elif self._choice == "delete":
            _delete(file)
        return self._choice != "keep"


def open_disposal(settings: PublisherSettings) -> Disposal:
    """CdcError POSITION_FILE where the folder that is asked for cannot be made."""
    choice = settings.processed_segments
    return Disposal(choice, None if choice in {"delete", "keep"} else Path(choice))


def _delete(file: SegmentFile) -> None:
    try:
        file.delete()
    except OSError as error:
        raise CdcError(
            Code.SEGMENTS_STUCK,
            f"The segment {file.path} cannot be deleted: {error.strerror or error}.",
            "Let the publisher's user delete there; it stays where it is, and is tried again.",
        ) from error


def _copy(source: Path, target: Path) -> None:
    """Durable before it has its name; for our own user only."""
    partial = target.with_name(target.name + _PARTIAL)
    with source.open("rb") as reading:
        handle = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(handle, "wb") as writing:  # noqa: PTH123  Path.open takes no descriptor, which carries the mode
            shutil.copyfileobj(reading, writing, 1 << 20)
            writing.flush()
            os.fsync(handle)
    partial.rename(target)
