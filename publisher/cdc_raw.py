"""The folder `cdc_raw`: which segments are there, and how much of each is durable."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.commitlog import CdcIndex, index_file_name, parse_cdc_index, parse_file_name
from cassandra_storage.errors import FormatError
from cassandra_storage.versions import commit_log_format
from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from pathlib import Path


class SegmentFile(NamedTuple):
    """A segment of commit log format `version`, by its file's name."""

    id: int
    version: int
    path: Path

    @property
    def index_path(self) -> Path:
        return self.path.with_name(index_file_name(self.path.name))

    def read_index(self) -> CdcIndex | None:
        """How much of it is durable; None if there is nothing to read yet (no index, or one just being written)."""
        try:
            if not commit_log_format(self.version).has_cdc_index:
                return CdcIndex(0, is_completed=True)
        except FormatError as error:
            raise unsupported(self.path, error) from error
        try:
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None
        except FormatError as error:
            raise CdcError(
                Code.SEGMENT_CORRUPT,
                f"{self.index_path} is {error.reason}.",
                "Only Cassandra writes there: restore the file, or remove it and its segment.",
            ) from error

    def delete(self) -> None:
        """Remove log and index, the log first: an index alone is rubbish, a log alone looks like one not begun."""
        self.path.unlink(missing_ok=True)
        self.index_path.unlink(missing_ok=True)


def unsupported(path: Path, error: FormatError) -> CdcError:
    """A segment that is sound as far as can be told, but of a kind that is not read."""
    return CdcError(
        Code.SEGMENT_UNSUPPORTED,
        f"The segment {path} cannot be read: {error.reason}.",
        "This build reads plain segments of Cassandra 3.11 to 5.0: leave commitlog_compression and"
        " transparent_data_encryption_options off.",
    )


def segments(folder: Path) -> list[SegmentFile]:
    """The segments in the folder in the order of their ids, which is the order in which they were begun."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  twenty times a second: no Path for each name
    except OSError as error:
        raise CdcError(
            Code.CDC_RAW_MISSING,
            f"The directory {folder} cannot be read: {error.strerror}.",
            "Set publisher.cdc_raw_directory to the node's cdc_raw_directory (cassandra.yaml), and let the publisher's"
            " user read and delete there.",
        ) from error
    found = []
    for name in names:
        if name.endswith(".log"):
            version, segment = parse_file_name(name)
            found.append(SegmentFile(segment, version, folder / name))
    return sorted(found)


def remove_orphaned_indexes(folder: Path) -> None:
    """Remove the indexes that a deletion cut short has left without a log."""
    for index in folder.glob("CommitLog-*_cdc.idx"):
        if not index.with_name(index.name.replace("_cdc.idx", ".log")).exists():
            index.unlink(missing_ok=True)
