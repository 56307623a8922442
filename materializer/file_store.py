"""Files of the checkpoint location: a local folder, or a URI of a file system that pyarrow knows (s3://…).

Paths are relative to the location, with `/`. A file is there whole or not at all, and durable once `write` or `upload`
has returned.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyarrow import fs

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_TEMPORARY = ".part"


class FileStore:
    """The checkpoint location; OSError of what lies below passes through, but for missing files."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._local: Path | None = None
        if "://" in location:
            self._files, root = _from_uri(location)
            if self._files.type_name == "local":
                self._local = Path(root)
        else:
            self._files, root = fs.LocalFileSystem(), location
            self._local = Path(location)
        self._root = root.rstrip("/")

    def full_path(self, path: str) -> str:
        """The path as a message names it."""
        return f"{self.location.rstrip('/')}/{path}"

    def list(self, folder: str) -> list[str]:
        """The names of the files directly in a folder; none where there is no folder."""
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        infos = self._files.get_file_info(selector)
        return [info.base_name for info in infos if info.is_file and not info.base_name.endswith(_TEMPORARY)]

    def read(self, path: str) -> bytes | None:
        """The file's bytes, None where it is missing."""
        try:
            with self._files.open_input_stream(f"{self._root}/{path}") as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        self._put(path, lambda stream: stream.write(data))

    def upload(self, source: Path, path: str) -> None:
        with source.open("rb") as stream:
            self._put(path, lambda target: shutil.copyfileobj(stream, target, 1024 * 1024))

    def download(self, path: str, target: Path) -> bool:
        """Whether the file was there to be copied to `target`."""
        try:
            with self._files.open_input_stream(f"{self._root}/{path}") as stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file, 1024 * 1024)
        except FileNotFoundError:
            return False
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """What is not there any more counts as deleted."""
        for path in paths:
            try:
                self._files.delete_file(f"{self._root}/{path}")
            except FileNotFoundError:
                continue

    def _put(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        if self._local is not None:
            _put_durably(self._local / path, fill)
            return
        full = f"{self._root}/{path}"
        if self._files.type_name != "s3":  # which has no folders
            self._files.create_dir(full.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(full) as stream:
            fill(stream)


def _from_uri(location: str) -> tuple[fs.FileSystem, str]:
    try:
        files, root = fs.FileSystem.from_uri(location)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise CdcError(
            Code.CONFIG_INVALID,
            f"materializer.checkpoint_location {location} cannot be used: {error}.",
            "Give a folder that all workers reach, or a URI such as s3://bucket/folder.",
        ) from error
    return files, root


def _put_durably(target: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    _make_folder(target.parent)
    temporary = target.with_name(f"{target.name}.{os.getpid()}{_TEMPORARY}")
    with temporary.open("wb") as stream:
        fill(stream)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(target)
    _sync_folder(target.parent)


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
