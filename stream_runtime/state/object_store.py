"""The object store of the checkpoint location: a local folder, or a URI of a file system that pyarrow supports (s3://…).

Paths are relative to the location and use `/`. A file exists completely or not at all, and is durable once `write` has
returned. A refusal is CdcError(CHECKPOINT_LOCATION), and so is a call without an answer in time. Such a call may still
be carried out later, after others. A missing file is not an error.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

import structlog
from pyarrow import fs

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.durable import sync_folder
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.state.deadline import within
from stream_runtime.state.download import RANGE_BYTES, ReadLimit, download_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stream_runtime.state.download import Download, RemoteFile

_logger = structlog.get_logger(__name__)
ANSWER_SECONDS = 90.0  # with the default settings
READS = 16  # as the default setting
_LOCAL_READS = 4  # at most, from a folder: more get in each other's way
_LOOKS = 3  # at a folder that is created or deleted at the same time
_UPLOAD_RATE = 1024 * 1024  # bytes a second, below which an upload is given up
_TEMPORARY = ".part"
_TESTED = ("local", "s3")
# What S3 and its client say without credentials, or with wrong ones.
_NO_LOGIN = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|SIGNATURE|credential|HTTP status 40[13]", re.IGNORECASE
)

T = TypeVar("T")


class ObjectEntry(NamedTuple):
    """A file in a folder."""

    # Its name.
    name: str
    # Its size, in bytes.
    size: int
    # Its modification time, in seconds by the location's own clock.
    written: float


class MissingFileError(Exception):
    """A file that was listed, or named by another one, is missing: damage, or a clean-up by another attempt at the
    partition.
    """


class Traffic:
    """Bytes that this process has read from the location and written to it, and states restored, by several threads."""

    def __init__(self) -> None:
        self.read = self.written = self.restores = 0
        self._lock = threading.Lock()

    def count(self, read: int = 0, written: int = 0, restores: int = 0) -> None:
        with self._lock:
            self.read += read
            self.written += written
            self.restores += restores


class ObjectStore:
    """The checkpoint location. A request without an answer for `answer_seconds` fails.

    reads: how many ranges of 4 MiB are downloaded at once, by all threads of this process; of a folder at most four.
    """

    def __init__(self, location: str, answer_seconds: float = ANSWER_SECONDS, reads: int = READS) -> None:
        self.traffic = Traffic()
        self._answer_seconds = answer_seconds
        self._shown = location.partition("?")[0].rstrip("/")
        self._local: Path | None = None
        if "://" in location:
            self._files, root = within(answer_seconds, lambda: _from_uri(location), f"connecting to {self._shown}")
            if self._files.type_name == "local":
                self._local = Path(root)
        else:
            self._files, root = fs.LocalFileSystem(), location
            self._local = Path(location)
        self._root = root.rstrip("/")
        self._reads = ReadLimit(reads if self._local is None else min(reads, _LOCAL_READS))

    def check(self) -> None:
        """Check the store at start: CdcError unless it can be listed. Log a warning for an untested kind of file
        system.
        """
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
        """The file's bytes, None if it is missing. Each block has its own deadline: a large file may come slowly."""
        doing = f"reading {self.full_path(path)}"
        blocks = []
        with self.errors("read", path):
            try:
                source = self._answer(lambda: self._open(path), doing)
            except FileNotFoundError:
                return None
            while block := self._answer(lambda: source.read(RANGE_BYTES), doing):
                blocks.append(block)
                self.traffic.count(read=len(block))
        return b"".join(blocks)

    def download(self, files: Sequence[Download]) -> Iterator[Download]:
        """Copy the files to this machine: each as soon as it is complete. MissingFileError if one does not exist.

        Each range has its own deadline.
        """
        try:
            for size, file in download_all(self, files, self._reads, self._answer_seconds):
                self.traffic.count(read=size)
                if file is not None:
                    yield file
        except OSError as error:  # of this machine
            raise CdcError(
                Code.CHECKPOINT_LOCATION,
                f"A state cannot be restored: {error}.",
                "Make the worker's state_directory writable, with free space.",
            ) from error

    def open(self, path: str) -> RemoteFile:
        """Open a file for downloads, which set the deadlines. MissingFileError if it does not exist."""
        with self.errors("read", path):
            try:
                return _RangeFile(self, path, self._open(path))
            except FileNotFoundError as error:
                raise MissingFileError(path) from error

    def write(self, path: str, data: bytes) -> None:
        """All bytes at once: when an exception closes a pyarrow stream, the file is stored with what it has so far."""
        self._write(path, data, self._answer_seconds)

    def upload(self, path: str, source: Path) -> None:
        """Copy a file of this machine to the location. For each MiB it may take a second longer."""
        data = source.read_bytes()
        self._write(path, data, self._answer_seconds + len(data) / _UPLOAD_RATE)

    def copy(self, source: str, target: str) -> bool:
        """Give `source` the second name `target`: whether it existed. The bytes do not pass through this process."""
        with self.errors("copy", source):
            return self._answer(lambda: self._copy(source, target), f"copying {self.full_path(source)}")

    def delete(self, paths: Iterable[str]) -> None:
        """A file that does not exist any more counts as deleted."""
        for path in paths:
            with self.errors("delete", path), suppress(FileNotFoundError):
                full = f"{self._root}/{path}"
                self._answer(partial(self._files.delete_file, full), f"deleting {self.full_path(path)}")

    @contextmanager
    def errors(self, doing: str, path: str) -> Iterator[None]:
        """A refusal becomes CdcError(CHECKPOINT_LOCATION)."""
        try:
            yield
        except OSError as error:
            raise CdcError(
                Code.CHECKPOINT_LOCATION,
                f"The checkpoint location refuses to {doing} {self.full_path(path)}: {error}.",
                _fix_of(self._shown, str(error)),
            ) from error

    def _infos(self, folder: str) -> Sequence[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        with self.errors("list", folder):
            return self._answer(lambda: self._look(selector), f"listing {self.full_path(folder)}")

    def _look(self, selector: fs.FileSelector) -> Sequence[fs.FileInfo]:
        """Arrow lists a folder and, if there is none, looks whether that is true. If the folder comes or goes between
        the two, it raises FileNotFoundError all the same.
        """
        for _ in range(_LOOKS - 1):
            with suppress(FileNotFoundError):
                return self._look_once(selector)
        return self._look_once(selector)

    def _look_once(self, selector: fs.FileSelector) -> Sequence[fs.FileInfo]:
        found: Sequence[fs.FileInfo] = self._files.get_file_info(selector)
        return found

    def _open(self, path: str) -> fs.NativeFile:
        return self._files.open_input_file(f"{self._root}/{path}")

    def _write(self, path: str, data: bytes, seconds: float) -> None:
        with self.errors("write", path):
            within(seconds, lambda: self.write_all(path, data), f"writing {self.full_path(path)}")
        self.traffic.count(written=len(data))

    def write_all(self, path: str, data: bytes) -> None:
        """Write a file as `write` does, without a deadline. This call may hang."""
        if self._local is not None:
            _write_durably(self._local / path, data)
            return
        with self._files.open_output_stream(self._prepared(path)) as stream:
            stream.write(data)
            reach(FaultPoint.IN_WRITE)

    def _copy(self, source: str, target: str) -> bool:
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

    def _answer(self, call: Callable[[], T], doing: str) -> T:
        return within(self._answer_seconds, call, doing)

    def _prepared(self, path: str) -> str:
        full = f"{self._root}/{path}"
        if self._files.type_name != "s3":  # S3 has no folders
            self._files.create_dir(full.rpartition("/")[0], recursive=True)
        return full


class _RangeFile:
    """A file whose reads name it in their errors."""

    def __init__(self, store: ObjectStore, path: str, file: fs.NativeFile) -> None:
        self._store = store
        self._path = path
        self._file = file

    def read_at(self, nbytes: int, offset: int, /) -> bytes:
        """A file that has become shorter gives fewer bytes. S3 itself refuses a range after the end."""
        with self._store.errors("read", self._path):
            data: bytes = self._file.read_at(nbytes, offset) if offset < self._file.size() else b""
            return data


def _fix_of(location: str, words: str) -> str:
    """The fix of a refusal by the location. words: of its error."""
    if location.startswith("s3://") and _NO_LOGIN.search(words):
        return (
            "Give this machine's process credentials that may list, read, write and delete below the location. On a "
            "Spark cluster the executors do not have the driver's environment: pass spark.executorEnv.AWS_ACCESS_KEY_ID"
            " and spark.executorEnv.AWS_SECRET_ACCESS_KEY, or use the machines' role."
        )
    return "Make the location reachable and writable for all workers, with free space."


def _from_uri(location: str) -> tuple[fs.FileSystem, str]:
    fix = "Give a folder that all workers reach, or a URI such as s3://bucket/folder."
    if "@" in urlsplit(location).netloc:
        raise CdcError(
            Code.CONFIG_INVALID,
            "checkpoint_location holds credentials, which logs and errors would show.",
            "Remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of the driver and the "
            "executors.",
        )
    if location.startswith("s3://") and "allow_delayed_open" not in location:  # small files in one request, not three
        location += ("&" if "?" in location else "?") + "allow_delayed_open=true"
    try:
        files, root = fs.FileSystem.from_uri(location)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        problem = f"checkpoint_location {location} cannot be used: {error}."
        raise CdcError(Code.CONFIG_INVALID, problem, fix) from error
    return files, root


def _write_durably(target: Path, data: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    _make_folder(target.parent)
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}{_TEMPORARY}")  # of this call alone
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
    sync_folder(target.parent)


def _link_durably(source: Path, target: Path) -> bool:
    _make_folder(target.parent)
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        return False
    except OSError:  # not every mounted file system supports links
        _write_durably(target, source.read_bytes())
    sync_folder(target.parent)
    return True


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)
