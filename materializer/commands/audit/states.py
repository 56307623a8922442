"""Reads the committed states of raw partitions, while the job runs on, without its locks and its local stores."""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from cassandra_storage.formats.rows.row import Row
from cdc_common.errors.codes import CdcError, Code
from materializer.commands.stored_partitions import read_positions
from materializer.errors import RAW_FAULTS
from materializer.rows.keys import (
    FACTS_SECTION,
    INCOMPLETE,
    PARTITION,
    PARTITION_END,
    RANGES_SECTION,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
    schema_key,
    split_data_key,
)
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import decode_facts
from materializer.rows.range_tombstones import decode_range
from materializer.rows.row_codec import RowCodec
from stream_runtime.exactly_once.position import check_no_command
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.unused import UnusedLimits, delete_unused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from materializer.records import RawPartition
    from materializer.rows.catalog import TableCatalog
    from materializer.settings import MaterializerSettings, Settings
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.reader import StateReader
    from stream_runtime.state.rocksdb import LocalStore

_TRIES = 3  # while the job deletes what an attempt to restore was about to read
_ANY_SIZE = 2**63
_LATER_SECONDS = 86_400.0  # so that all that are closed count as unused


class StoredUnit(NamedTuple):
    """A unit of the state, with the deletions that cover it."""

    # The stored row; None if the state has nothing of it.
    row: Row | None
    # The newest deletion that covers the row.
    deletion: DeletionTime
    # Whether the state knows that something of the Cassandra partition is missing.
    has_gap: bool


@contextmanager
def open_committed(
    settings: Settings, raw_partition: RawPartition, *, may_be_empty: bool = False
) -> Iterator[LocalStore | None]:
    """The state at a committed version, in a local store of the audit's own; None if nothing is committed, or an empty
    one if it may be empty.

    The version is pinned while it is restored, and no longer: the local store has all of it. CdcError if a command is
    changing the state, or if it cannot be restored.
    """
    os.umask(0o077)
    own = settings.materializer
    folder = audit_folder(own)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    delete_unused(folder, [str(raw_partition)], UnusedLimits(own.unused_state_seconds, _ANY_SIZE), time.time())
    with closing(open_local_store(folder / str(raw_partition))) as local:
        is_restored = _restore(settings, raw_partition, local)
        if not is_restored and may_be_empty and local.head is not None:
            local.replace(lambda _folder: None)
        yield local if is_restored or may_be_empty else None


def _restore(settings: Settings, raw_partition: RawPartition, local: LocalStore) -> bool:
    checkpoints = CheckpointStore(
        object_store(settings.materializer), settings.materializer.group_id, raw_partition, RAW_FAULTS
    )
    position: Position | None = None
    tries_left = _TRIES
    while True:
        before, position = position, read_positions(settings, [raw_partition])[raw_partition]
        if position is None:
            return False
        check_no_command(position, raw_partition, RAW_FAULTS)
        tries_left -= 1
        try:
            with checkpoints.pinned(position.version):
                restore(local, checkpoints, position.version)
        except CdcError as error:
            if error.code is not Code.STATE_DAMAGED or position == before or not tries_left:
                raise
        else:
            return True


def audit_folder(settings: MaterializerSettings) -> Path:
    """The folder of the audit's local stores, beside that of the job's."""
    return settings.state_directory / f"{settings.group_id}.audit"


def delete_local_stores(settings: MaterializerSettings) -> None:
    """Delete the local stores of this machine that no other audit has open."""
    folder = audit_folder(settings)
    if folder.exists():
        delete_unused(folder, [], UnusedLimits(0.0, 0), time.time() + _LATER_SECONDS)
        with suppress(OSError):  # another audit has a store there
            folder.rmdir()


class ScannedUnit(NamedTuple):
    """A row or static row of the state."""

    # The serialized key of its Cassandra partition.
    partition_key: bytes
    # Whether it is the static row.
    is_static: bool
    # The key of the unit's section.
    clustering_key: bytes
    # The row as Cassandra serializes it, after its row_sequence and the number of its schema.
    value: bytes


def scan_units(state: StateReader) -> Iterator[ScannedUnit]:
    """All units, each Cassandra partition's together."""
    for key, value in state.scan(PARTITION, PARTITION_END):
        partition_key, section = split_data_key(key)
        if section == ROWS_SECTION:
            yield ScannedUnit(partition_key, False, key[6 + len(partition_key) :], value)
        elif section == STATIC_SECTION:
            yield ScannedUnit(partition_key, True, b"", value)


def schema_digests(state: StateReader) -> dict[int, bytes]:
    """The digests of the schemas to which stored rows refer, by their numbers."""
    found: dict[int, bytes] = {}
    while (stored := state.get(schema_key(len(found)))) is not None:
        found[len(found)] = stored[1:]
    return found


class UnitReader:
    """Reads single units of a state."""

    def __init__(self, state: StateReader, catalog: TableCatalog, table_id: bytes) -> None:
        self._state = state
        self._codec = RowCodec(Overlay(state), catalog, table_id)

    def read(self, partition_key: bytes, clustering_key: bytes | None) -> StoredUnit:
        """clustering_key: None for the static row."""
        prefix = partition_prefix(partition_key)
        key = prefix + (STATIC_SECTION if clustering_key is None else ROWS_SECTION + clustering_key)
        value = self._state.get(key)
        row = None if value is None else self._codec.decode(value, is_static=clustering_key is None).row
        return StoredUnit(row, self._deletion(prefix, clustering_key), self._has_gap(partition_key))

    def _deletion(self, prefix: bytes, clustering_key: bytes | None) -> DeletionTime:
        """The newest deletion of the Cassandra partition or of a range that covers the unit."""
        facts = self._state.get(prefix + FACTS_SECTION)
        deletion = LIVE if facts is None else decode_facts(facts).deletion
        if clustering_key is None:
            return deletion
        start = prefix + RANGES_SECTION
        found = next(self._state.scan_back(start, start + clustering_key + b"\x00"), None)
        if found is None:
            return deletion
        piece = decode_range(found[0][len(start) :], found[1])
        is_covered = clustering_key < piece.last and piece.deletion.supersedes(deletion)
        return piece.deletion if is_covered else deletion

    def _has_gap(self, partition_key: bytes) -> bool:
        """A gap with an empty partition key may concern any Cassandra partition."""
        for key in (partition_key, b""):
            prefix = INCOMPLETE + len(key).to_bytes(4, "big") + key
            if next(self._state.scan(prefix, prefix + b"\xff" * 17), None) is not None:
                return True
        return False
