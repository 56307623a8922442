"""Takes segments out of cdc_raw: deletes them, or moves them to another folder atomically."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.durable import sync_folder
from publisher.state_files import make_folder

if TYPE_CHECKING:
    from cassandra_storage.files.segments import SegmentFile
    from publisher.settings import PublisherSettings

_PARTIAL = ".partial"


def move_segment(file: SegmentFile, folder: Path) -> SegmentFile:
    """Move a complete segment durably; returns it at its new place. CdcError SEGMENTS_STUCK.

    The index moves first, then the log; a segment exists where its log is. The old index is removed last. Within a
    filesystem the log is renamed. To another one it is copied to a temporary name, made durable, renamed, and removed
    here. After a crash the segment is here, there, or complete in both; an incomplete copy is an index without a log or
    a `.partial` file, which `remove_partial_copies` removes.
    """
    moved = file._replace(path=folder / file.path.name)
    try:
        if folder.samefile(file.path.parent):  # perhaps by a symbolic link: it would be removed as the old name
            raise move_error(file, folder, "it is in that folder")
        with suppress(FileNotFoundError):  # 3.11 writes none
            _copy(file.index_path, moved.index_path)
        try:
            file.path.rename(moved.path)
            # Of two links of one file, rename keeps both: a node that crashed links a moved segment here again.
            file.path.unlink(missing_ok=True)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(file.path, moved.path)
            sync_folder(folder)
            file.path.unlink()
        sync_folder(folder)
        file.index_path.unlink(missing_ok=True)
    except OSError as error:
        raise move_error(file, folder, error.strerror or str(error)) from error
    return moved


def move_error(file: SegmentFile, folder: Path, reason: str) -> CdcError:
    return CdcError(
        Code.SEGMENTS_STUCK,
        f"The segment {file.path} cannot be moved to {folder}: {reason}.",
        "Free space there, or let the publisher's user write there. The segment stays, and the publisher retries.",
    )


def remove_partial_copies(folder: Path) -> None:
    """Remove the files of interrupted moves."""
    for partial in folder.glob(f"*{_PARTIAL}"):
        partial.unlink(missing_ok=True)


class SegmentDisposal:
    """Removes or moves a segment that is completely published: `publisher.processed_segments`."""

    def __init__(self, processed_segments: str, folder: Path | None) -> None:
        """`folder`: the target if the choice is neither `delete` nor `keep`. CdcError POSITION_FILE if it cannot be
        created.
        """
        self._choice = processed_segments
        self._folder = folder
        if folder is not None:
            make_folder(folder)
            remove_partial_copies(folder)

    def dispose(self, file: SegmentFile) -> bool:
        """Dispose of the segment; return whether it has left its folder. CdcError SEGMENTS_STUCK."""
        if self._folder is not None:
            move_segment(file, self._folder)
        elif self._choice == "delete":
            delete_segment(file)
        return self._choice != "keep"


def open_segment_disposal(settings: PublisherSettings) -> SegmentDisposal:
    """Return the disposal that the settings choose. CdcError POSITION_FILE if the target folder cannot be created."""
    choice = settings.processed_segments
    return SegmentDisposal(choice, None if choice in {"delete", "keep"} else Path(choice))


def delete_segment(file: SegmentFile) -> None:
    """CdcError SEGMENTS_STUCK."""
    try:
        file.delete()
    except OSError as error:
        raise CdcError(
            Code.SEGMENTS_STUCK,
            f"The segment {file.path} cannot be deleted: {error.strerror or error}.",
            "Let the publisher's user delete there. The segment stays in place, and the publisher retries.",
        ) from error


def _copy(source: Path, target: Path) -> None:
    """Durable before it gets its name; readable by this user only."""
    partial = target.with_name(target.name + _PARTIAL)
    with source.open("rb") as reading:
        handle = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(handle, "wb") as writing:  # noqa: PTH123  Path.open takes no descriptor, which carries the mode
            shutil.copyfileobj(reading, writing, 1 << 20)
            writing.flush()
            os.fsync(handle)
    partial.rename(target)
