"""The local store: the state of one source partition in a RocksDB on this machine. It can be lost at any time.

    <state_directory>/<group>/<topic>-<partition>/slot-<n>/    lock, db, incoming, outgoing-<random>

A process that finds slot 0 in use by another one (an attempt that still runs, or hangs) uses the next one. What
`apply` wrote survives the death of the process. After a power loss the state is that of an earlier version.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from rocksdict import (
    BlockBasedOptions,
    Checkpoint,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
)

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.state.changelog import Changelog, Head, decode_head, encode_head
from stream_runtime.state.checkpoints import with_digests
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SLOT = "slot-"
LOCK = "lock"
_INCOMING = "incoming"
_OUTGOING = "outgoing-"
_HEAD_KEY = b"\x00head"  # the fold's keys never begin with 0x00
_MAX_SLOTS = 16
_WRITE_BUFFER_BYTES = 16 * 1024 * 1024
_MEMTABLE_FILTER = 0.01  # of the write buffer's size, for a Bloom filter of its keys


class DamagedLocalStoreError(Exception):
    """RocksDB cannot read back what it has stored on this machine."""


class LocalCopy(NamedTuple):
    """A copy of a local store at one version. It outlives the store, and may be read by another thread."""

    # The folder of its files.
    folder: Path
    # The known digests of files, by their names.
    digests: dict[str, str]

    def files(self) -> Iterator[tuple[Path, str]]:
        """The files with the digests of their contents."""
        return with_digests(sorted(self.folder.iterdir()), self.digests)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class LocalStore:
    """The open RocksDB of a slot, for one process. It is the fold's StateReader."""

    def __init__(self, slot: Path, lock: int, old_value_seconds: float | None = None) -> None:
        self._slot = slot
        self._lock = lock
        self._old_value_seconds = old_value_seconds
        self._digests: dict[str, str] = {}
        _remove_left_over(slot)
        self._origin: str | None = None
        self._is_damaged = False
        self._db, self.head = self._open()

    @property
    def version(self) -> str:
        return NOTHING if self.head is None else self.head.version

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:  # noqa: BLE001 - rocksdict raises nothing narrower
            self._fail(error)
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Fastest if the keys are sorted."""
        try:
            return cast("list[bytes | None]", self._db.get(list(keys))) if keys else []
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries from `start` to before `end`. It does not use Rdict.items, which takes a damaged block for
        the end.
        """
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        rows = self._db.iter(options)
        rows.seek(start)
        while rows.valid():
            yield rows.key(), rows.value()
            rows.next()
        self._check(rows)

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        rows = self._db.iter()
        rows.seek_for_prev(end)
        while rows.valid() and (key := rows.key()) >= start:
            if key != end:
                yield key, rows.value()
            rows.prev()
        self._check(rows)

    def _check(self, rows: RdictIter) -> None:
        try:
            rows.status()
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)

    def apply(self, changelog: Changelog) -> None:
        """Bring this store, which must be at the changelog's parent, to its version, in one atomic write."""
        if self.version != changelog.parent:
            raise AssertionError(f"{changelog.head.version} follows {changelog.parent}, this is {self.version}")
        batch = WriteBatch(raw_mode=True)
        writes = changelog.writes
        for key in sorted(writes):  # in order, RocksDB finds each place beside the one before
            value = writes[key]
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(_HEAD_KEY, encode_head(changelog.head))
        self._db.write(batch)
        self.head = changelog.head

    def replace(self, fill: Callable[[Path], None], origin: str | None = None) -> None:
        """Replace the RocksDB by one whose files `fill` writes to the folder it is given; by an empty one if none.

        origin: where the files come from, for error messages.
        """
        incoming = self._slot / _INCOMING
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        fill(incoming)
        reach(FaultPoint.BEFORE_RESTORE_SWAP)
        self._db.close()
        shutil.rmtree(self._slot / "db")
        reach(FaultPoint.IN_RESTORE_SWAP)
        incoming.rename(self._slot / "db")
        self._digests = {}  # copies keep theirs
        self._db, self.head = self._open()
        self._origin = origin

    def copy(self) -> LocalCopy:
        """A copy of this store as it is now. It takes no disk space until files of the store are deleted."""
        folder = self._slot / f"{_OUTGOING}{secrets.token_hex(4)}"
        Checkpoint(self._db).create_checkpoint(str(folder))
        reach(FaultPoint.BEFORE_UPLOAD)
        return LocalCopy(folder, self._digests)

    def size(self) -> int:
        """Bytes of the store's files, without what is only in memory."""
        return folder_size(self._slot / "db")

    def close(self) -> None:
        """Deletes a damaged store: the next task restores it from the checkpoint location."""
        try:
            with suppress(DbClosedError):  # a restore has failed
                self._db.close()
            if self._is_damaged:
                shutil.rmtree(self._slot / "db", ignore_errors=True)  # part of it may be gone
        finally:
            os.utime(self._lock)  # when it was last used
            os.close(self._lock)

    def _fail(self, error: Exception) -> NoReturn:
        """Raise the error for a failed read of RocksDB. A task that runs again restores the store."""
        self._is_damaged = True
        if self._origin is None:
            raise DamagedLocalStoreError(f"{self._slot}: {error}") from error
        raise CdcError(
            Code.STATE_DAMAGED,
            f"{self._origin} cannot be used: the state restored from it is damaged: {error}.",
            "Delete this file: the previous snapshot and its changelogs are used then, if they are still kept.",
        ) from error

    def _open(self) -> tuple[Rdict, Head | None]:
        """RocksDB moves what is older than its `ttl` to the last level, where it replaces the old values. The time is
        in the files, so it goes on after a restore.
        """
        db, head = self._open_any()
        if self._old_value_seconds is not None:
            db.set_options({"ttl": str(max(1, round(self._old_value_seconds)))})
        return db, head

    def _open_any(self) -> tuple[Rdict, Head | None]:
        """Opens a damaged store as an empty one: it is restored from the checkpoint location."""
        path = self._slot / "db"
        try:
            return _open_db(path)
        except CdcError:
            raise
        except Exception:  # noqa: BLE001 - rocksdict raises nothing narrower
            shutil.rmtree(path, ignore_errors=True)
            return _open_db(path)


def _open_db(path: Path) -> tuple[Rdict, Head | None]:
    db = Rdict(str(path), _options())
    try:
        data = db.get(_HEAD_KEY)
        return db, None if data is None else decode_head(data)
    except Exception:
        db.close()
        raise


def open_local_store(folder: Path, old_value_seconds: float | None = None) -> LocalStore:
    """The local store in the first slot of the source partition's folder that no other process uses.

    old_value_seconds: when its files no longer hold values that a later one has replaced; by default RocksDB's 30 days.
    """
    for number in range(_MAX_SLOTS):
        slot = folder / f"{SLOT}{number}"
        lock = lock_slot(slot)
        if lock is None:
            continue
        try:
            return LocalStore(slot, lock, old_value_seconds)
        except BaseException:
            os.close(lock)  # this process will try again
            raise
    raise RuntimeError(f"all {_MAX_SLOTS} slots of {folder} are in use by other processes")


def lock_slot(slot: Path) -> int | None:
    """The locked file of a slot, which is made if it does not exist; None if it is in use."""
    while True:
        try:
            slot.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(slot / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except (FileNotFoundError, FileExistsError):  # deleted just now, as unused
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink:
                os.utime(lock)
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        os.close(lock)  # deleted just now, as unused


def is_in_use(slot: Path) -> bool:
    """Whether a process has the state of a slot open. Another one that opens it at this moment takes another slot."""
    try:
        lock = os.open(slot / LOCK, os.O_RDWR)
    except FileNotFoundError:  # deleted just now, as unused
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def clear_slot(slot: Path) -> None:
    """Delete the state of a locked slot. After a crash there is all of it, or none."""
    _remove_left_over(slot)
    with suppress(FileNotFoundError):
        (slot / "db").rename(slot / _INCOMING)
    _remove_left_over(slot)


def _remove_left_over(slot: Path) -> None:
    """The state that an earlier process has left in a locked slot."""
    for folder in (slot / _INCOMING, *slot.glob(f"{_OUTGOING}*")):
        shutil.rmtree(folder, ignore_errors=True)


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder, at any depth. Files that are deleted during the walk may count or not."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(where, name)).st_size  # noqa: PTH118 - many files
    return size


def _options() -> Options:
    """Measured fastest with an open handle: reads without a block cache of our own, all files open, no compression.

    Mapped files are as fast, but count as the worker's memory (decision 0029).
    """
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_allow_mmap_reads(False)
    options.set_compression_type(DBCompressionType.none())
    options.set_max_open_files(-1)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_keep_log_file_num(2)
    options.set_memtable_whole_key_filtering(True)  # new rows are looked up too
    options.set_memtable_prefix_bloom_ratio(_MEMTABLE_FILTER)
    table = BlockBasedOptions()
    table.disable_cache()
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    return options
