"""A folder: of this machine, or one that all workers share, on a file system with hard links."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cdc_common.program.durable import sync_folder
from stream_runtime.fault_points import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stream_runtime.fault_points import Point
    from stream_runtime.stores.faults import StoreFaults

_HIDDEN = "_part."  # readers of Hive tables ignore names that begin with an underscore


class LocalStore:
    """stream_runtime.stores.store.Store. A second name for a complete file is given only if nothing has it: link(2)."""

    def __init__(self, location: str, faults: StoreFaults, in_store: Point) -> None:
        """in_store: the fault point at which a file has a temporary name only."""
        self._root = Path(location).absolute()
        self._faults = faults
        self._in_store = in_store

    def put_new(self, path: str, source: Path) -> bool:
        with self._errors("write", path):
            return self._link_new(path, lambda target: shutil.copyfile(source, target))

    def put_new_bytes(self, path: str, data: bytes) -> bool:
        with self._errors("write", path):
            return self._link_new(path, lambda target: target.write_bytes(data))

    def put(self, path: str, data: bytes) -> None:
        target = self._root / path
        with self._errors("write", path):
            _make_folder(target.parent)
            part = target.with_name(f"{_HIDDEN}{secrets.token_hex(4)}.{target.name}")
            part.write_bytes(data)
            _sync(part)
            part.replace(target)
            sync_folder(target.parent)

    def read(self, path: str) -> bytes | None:
        with self._errors("read", path):
            try:
                return (self._root / path).read_bytes()
            except FileNotFoundError:
                return None

    def size(self, path: str) -> int | None:
        with self._errors("read", path):
            try:
                return (self._root / path).stat().st_size
            except FileNotFoundError:
                return None

    def open(self, path: str) -> pa.NativeFile:
        with self._errors("read", path):
            return pa.OSFile(str(self._root / path))

    def list(self, folder: str) -> Sequence[str]:
        with self._errors("list", folder):
            try:
                names = [path.name for path in (self._root / folder).iterdir()]
            except FileNotFoundError:
                return []
            return sorted(name for name in names if not name.startswith(_HIDDEN))

    def uri(self, path: str) -> str:
        return f"file://{self._root / path}"  # readers of Iceberg decode no escapes

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            (self._root / path).unlink(missing_ok=True)

    def catalog_properties(self) -> dict[str, str]:
        return {}

    def _link_new(self, path: str, write: Callable[[Path], object]) -> bool:
        target = self._root / path
        if target.exists():
            return False
        _make_folder(target.parent)
        part = target.with_name(f"{_HIDDEN}{secrets.token_hex(4)}.{target.name}")
        try:
            write(part)
            _sync(part)
            reach(self._in_store)
            target.hardlink_to(part)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        sync_folder(target.parent)
        return True

    @contextmanager
    def _errors(self, doing: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._faults.location_refused(f"{self._root}/{path}", f"it refuses to {doing}: {error}") from error


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably. Readers of the tables may be other users."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
