"""Files of the checkpoint location: a local folder, or a URI of a file system that pyarrow knows (s3://…).

Paths are relative to the location, with `/`. A file is there whole or not at all, and durable once `write` has
returned. What the location refuses is CdcError(CHECKPOINT_LOCATION); a missing file is an answer.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import structlog
from pyarrow import fs

from cdc_program.errors import CdcError, Code
from materializer.fault_points import FaultPoint, reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_logger = structlog.get_logger(__name__)
_TEMPORARY = ".part"
_TESTED = ("local", "s3")


class FileEntry(NamedTuple):
    """A file in a folder: its size in bytes, and the time of its writing in seconds by the location's own clock."""

    name: str
    size: int
    written: float


@dataclass(slots=True)
class Traffic:
    """Bytes that this process has read from the location and written to it."""

    read: int = 0
    written: int = 0


class FileStore:
    """The checkpoint location."""

    def __init__(self, location: str) -> None:
        self.traffic = Traffic()
        self._shown = location.partition("?")[0].rstrip("/")
        self._local: Path | None = None
        if "://" in location:
            self._files, root = _from_uri(location)
            if self._files.type_name == "local":
                self._local = Path(root)
        else:
            self._files, root = fs.LocalFileSystem(), location
            self._local = Path(location)
        self._root = root.rstrip("/")

    def check(self) -> None:
        """At start: CdcError unless it can be listed; a warning where nobody has tried its kind of file system."""
        if self._files.type_name not in _TESTED:
            _logger.warning("untested file system", kind=self._files.type_name, location=self._shown)
        self.entries("")

    def full_path(self, path: str) -> str:
        """The path as a message names it."""
        return f"{self._shown}/{path}"

    def list(self, folder: str) -> Sequence[str]:
        """The names of the files directly in a folder; none where there is no folder."""
        return [entry.name for entry in self.entries(folder) if not entry.name.endswith(_TEMPORARY)]

    def entries(self, folder: str) -> Sequence[FileEntry]:
        """The files directly in a folder, with those that an attempt has not written to their ends."""
        with self._errors("list", folder):
            infos = self._files.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return [
            FileEntry(info.base_name, info.size, (info.mtime_ns or 0) / 1e9)
            for info in infos
            if info.type is fs.FileType.File  # not one that has gone meanwhile
        ]

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders directly in a folder."""
        with self._errors("list", folder):
            infos = self._files.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return sorted(info.base_name for info in infos if info.type is fs.FileType.Directory)

    def read(self, path: str) -> bytes | None:
        """The file's bytes, None where it is missing."""
        with self._errors("read", path):
            try:
                with self._files.open_input_stream(f"{self._root}/{path}") as stream:
                    data: bytes = stream.read()
            except FileNotFoundError:
                return None
        self.traffic.read += len(data)
        return data

    def download(self, path: str, target: Path) -> bool:
        """Whether the file was there to be copied to `target`."""
        with self._errors("read", path):
            try:
                source = self._files.open_input_stream(f"{self._root}/{path}")
            except FileNotFoundError:
                return False
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1024 * 1024)
        self.traffic.read += target.stat().st_size
        return True

    def write(self, path: str, data: bytes) -> None:
        """All bytes at once: a stream of pyarrow's that an exception closes is completed, half of it too."""
        with self._errors("write", path):
            if self._local is not None:
                _write_durably(self._local / path, data)
            else:
                with self._files.open_output_stream(self._prepared(path)) as stream:
                    stream.write(data)
                    reach(FaultPoint.IN_WRITE)
        self.traffic.written += len(data)

    def copy(self, source: str, target: str) -> bool:
        """Whether `source` was there to be given the second name `target`; its bytes do not come through here."""
        with self._errors("copy", source):
            if self._local is not None:
                return _link_durably(self._local / source, self._local / target)
            if self._files.get_file_info(f"{self._root}/{source}").type is not fs.FileType.File:
                return False
            try:
                self._files.copy_file(f"{self._root}/{source}", self._prepared(target))
            except OSError:  # S3 gives the same error for a file that has just gone as for all others
                if self._files.get_file_info(f"{self._root}/{source}").type is fs.FileType.File:
                    raise
                return False
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """What is not there any more counts as deleted."""
        for path in paths:
            with self._errors("delete", path), suppress(FileNotFoundError):
                self._files.delete_file(f"{self._root}/{path}")

    def _prepared(self, path: str) -> str:
        full = f"{self._root}/{path}"
        if self._files.type_name != "s3":  # which has no folders
            self._files.create_dir(full.rpartition("/")[0], recursive=True)
        return full

    @contextmanager
    def _errors(self, doing: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CdcError(
                Code.CHECKPOINT_LOCATION,
                f"The checkpoint location refuses to {doing} {self.full_path(path)}: {error}.",
                "Make the location reachable and writable for all workers, with room left in it.",
            ) from error


def _from_uri(location: str) -> tuple[fs.FileSystem, str]:
    fix = "Give a folder that all workers reach, or a URI such as s3://bucket/folder."
    if "@" in urlsplit(location).netloc:
        raise CdcError(
            Code.CONFIG_INVALID,
            "materializer.checkpoint_location holds credentials, which logs and errors would show.",
            "Leave them away, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of the driver "
            "and the executors.",
        )
    if location.startswith("s3://") and "allow_delayed_open" not in location:  # small files in one request, not three
        location += ("&" if "?" in location else "?") + "allow_delayed_open=true"
    try:
        files, root = fs.FileSystem.from_uri(location)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        problem = f"materializer.checkpoint_location {location} cannot be used: {error}."
        raise CdcError(Code.CONFIG_INVALID, problem, fix) from error
    return files, root


def _write_durably(target: Path, data: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    _make_folder(target.parent)
    temporary = target.with_name(f"{target.name}.{os.getpid()}{_TEMPORARY}")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)  # a full disk is not to stay full of this
        raise
    reach(FaultPoint.IN_WRITE)
    temporary.rename(target)
    _sync_folder(target.parent)


def _link_durably(source: Path, target: Path) -> bool:
    _make_folder(target.parent)
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        return False
    except OSError:  # not every mounted file system has links
        _write_durably(target, source.read_bytes())
    _sync_folder(target.parent)
    return True


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
