"""The object store of the checkpoint location: a local folder, or a URI of a file system that pyarrow supports (s3://…).

Paths are relative to the location and use `/`. A file exists completely or not at all, and is durable once `write` has
returned. A refusal is CdcError(CHECKPOINT_LOCATION), and so is a listing or a read without an answer in time; for
writes the caller sets the deadline. A missing file is not an error.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar
from urllib.parse import urlsplit

import structlog
from pyarrow import fs

from cdc_program.errors import CdcError, Code
from materializer.fault_points import FaultPoint, reach
from materializer.store.deadline import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_logger = structlog.get_logger(__name__)
ANSWER_SECONDS = 90.0  # with the default settings
_TEMPORARY = ".part"
_TESTED = ("local", "s3")
_BLOCK = 1024 * 1024

T = TypeVar("T")


class ObjectEntry(NamedTuple):
    """A file in a folder: its size in bytes, and its modification time in seconds by the location's own clock."""

    name: str
    size: int
    written: float


@dataclass(slots=True)
class Traffic:
    """Bytes that this process has read from the location and written to it."""

    read: int = 0
    written: int = 0


class ObjectStore:
    """The checkpoint location. A request without an answer for `answer_seconds` fails."""

    def __init__(self, location: str, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.traffic = Traffic()
        self._answer_seconds = answer_seconds
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
        """At start: CdcError unless it can be listed; a warning for a kind of file system that was never tested."""
        if self._files.type_name not in _TESTED:
            _logger.warning("untested file system", kind=self._files.type_name, location=self._shown)
        self.entries("")

    def full_path(self, path: str) -> str:
        """The path with the location, for messages."""
        return f"{self._shown}/{path}"

    def list(self, folder: str) -> Sequence[str]:
        """The names of the files directly in a folder; none if the folder does not exist."""
        return [entry.name for entry in self.entries(folder) if not entry.name.endswith(_TEMPORARY)]

    def entries(self, folder: str) -> Sequence[ObjectEntry]:
        """The files directly in a folder, incomplete ones included."""
        return [
            ObjectEntry(info.base_name, info.size, (info.mtime_ns or 0) / 1e9)
            for info in self._infos(folder)
            if info.type is fs.FileType.File  # not one that has just been deleted
        ]

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders directly in a folder."""
        return sorted(info.base_name for info in self._infos(folder) if info.type is fs.FileType.Directory)

    def read(self, path: str) -> bytes | None:
        """The file's bytes, None if it is missing."""
        target = BytesIO()
        return target.getvalue() if self._copy_to(target, path) else None

    def download(self, path: str, target: Path) -> bool:
        """Copy the file to `target`: whether it existed."""
        with target.open("wb") as file:
            if self._copy_to(file, path):
                return True
        target.unlink()
        return False

    def write(self, path: str, data: bytes) -> None:
        """All bytes at once: when an exception closes a pyarrow stream, the file is stored with what it has so far."""
        with self._errors("write", path):
            if self._local is not None:
                _write_durably(self._local / path, data)
            else:
                with self._files.open_output_stream(self._prepared(path)) as stream:
                    stream.write(data)
                    reach(FaultPoint.IN_WRITE)
        self.traffic.written += len(data)

    def copy(self, source: str, target: str) -> bool:
        """Give `source` the second name `target`: whether it existed. The bytes do not pass through this process."""
        with self._errors("copy", source):
            if self._local is not None:
                return _link_durably(self._local / source, self._local / target)
            if self._files.get_file_info(f"{self._root}/{source}").type is not fs.FileType.File:
                return False
            try:
                self._files.copy_file(f"{self._root}/{source}", self._prepared(target))
            except OSError:  # S3 gives the same error for a file that was just deleted as for all others
                if self._files.get_file_info(f"{self._root}/{source}").type is fs.FileType.File:
                    raise
                return False
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """A file that does not exist any more counts as deleted."""
        for path in paths:
            with self._errors("delete", path), suppress(FileNotFoundError):
                self._files.delete_file(f"{self._root}/{path}")

    def _infos(self, folder: str) -> Sequence[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        with self._errors("list", folder):
            return self._answer(lambda: self._files.get_file_info(selector), f"listing {self.full_path(folder)}")

    def _copy_to(self, target: BinaryIO, path: str) -> bool:
        """Whether the file existed. Each block has its own deadline: a large file may take as long as it needs.

        A hanging call that continues later writes nothing to this machine, where the next attempt uses the same names.
        """
        doing = f"reading {self.full_path(path)}"
        with self._errors("read", path):
            try:
                source = self._answer(lambda: self._files.open_input_stream(f"{self._root}/{path}"), doing)
            except FileNotFoundError:
                return False
            while block := self._answer(lambda: source.read(_BLOCK), doing):
                target.write(block)
                self.traffic.read += len(block)
            source.close()
        return True

    def _answer(self, call: Callable[[], T], doing: str) -> T:
        return within(self._answer_seconds, call, doing)

    def _prepared(self, path: str) -> str:
        full = f"{self._root}/{path}"
        if self._files.type_name != "s3":  # S3 has no folders
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
                "Make the location reachable and writable for all workers, with free space.",
            ) from error


def _from_uri(location: str) -> tuple[fs.FileSystem, str]:
    fix = "Give a folder that all workers reach, or a URI such as s3://bucket/folder."
    if "@" in urlsplit(location).netloc:
        raise CdcError(
            Code.CONFIG_INVALID,
            "materializer.checkpoint_location holds credentials, which logs and errors would show.",
            "Remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of the driver and the "
            "executors.",
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
        temporary.unlink(missing_ok=True)  # leave nothing behind on a full disk
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
    except OSError:  # not every mounted file system supports links
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
