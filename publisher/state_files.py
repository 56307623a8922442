"""The publisher's files: JSON with a format version, replaced atomically, readable by its own user only."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.durable import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FORMAT_VERSION = 1
_LOCK_POLL_SECONDS = 0.05


def readable_versions(own: int) -> range:
    """This build's version and the one before; versions start at 1."""
    return range(max(own - 1, 1), own + 1)


READABLE_VERSIONS = readable_versions(FORMAT_VERSION)


def make_folder(folder: Path) -> None:
    """Create the folder (0700) if it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _error(folder, error.strerror or str(error)) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the state directory: two publishers must not share one."""
    with _opened(folder / "lock", folder) as handle:
        if not _has_locked(handle):
            raise CdcError(
                Code.POSITION_FILE,
                f"Another publisher is using the state directory {folder}.",
                "Run one publisher for each node, each with its own publisher.state_directory.",
            )
        yield


@contextmanager
def exclusive(path: Path, while_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait for this lock file, and hold it: processes change the same files, one after the other."""
    with _opened(path, path) as handle:
        while not _has_locked(handle):
            while_waiting()
            sleep(_LOCK_POLL_SECONDS)
        yield


@contextmanager
def _opened(path: Path, named: Path) -> Iterator[int]:
    """The handle of a lock file, whose closing unlocks it. CdcError, which names `named`."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise _error(named, error.strerror or str(error)) from error
    try:
        yield handle
    finally:
        os.close(handle)


def _has_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read(path: Path) -> dict[str, Any] | None:
    """The value that `write` wrote, None if there is no such file; CdcError POSITION_FILE if it cannot be used."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _error(path, f"it is not readable: {type(error).__name__}") from error
    version = value.get("format_version") if isinstance(value, dict) else None
    if version not in READABLE_VERSIONS:
        raise _error(path, f"its format version is {version}, this build reads {_readable()}")
    assert isinstance(value, dict)
    return value


def write(path: Path, value: Mapping[str, Any]) -> None:
    """Replace the file atomically and durably: a crash leaves the old content or the new."""
    content = json.dumps({"format_version": FORMAT_VERSION, **value}, separators=(",", ":"))
    temporary = path.with_name(f"{path.name}.tmp")  # another process may write a file of the same stem
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(handle, "w") as file:  # noqa: PTH123  Path.open takes no descriptor, which carries the mode
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _error(path, f"it cannot be written: {error.strerror}") from error


def _readable() -> str:
    return " and ".join(str(version) for version in READABLE_VERSIONS)


def _error(path: Path, reason: str) -> CdcError:
    return CdcError(
        Code.POSITION_FILE,
        f"The publisher's state {path} cannot be used: {reason}.",
        "Let the publisher's user own the folder (mode 0700), with room on its disk, and use a file from this build or"
        " the one before. Of all files only position.json can be removed without a loss: the publisher then starts"
        " again at the oldest segment in cdc_raw, which repeats messages.",
    )
