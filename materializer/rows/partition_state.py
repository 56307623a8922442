"""The stored state of one Cassandra partition, as a chunk reads and changes it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from cdc_common.errors.codes import CdcError, Code
from materializer.rows.expiry import deletion_second, row_timers
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import FACTS_SECTION, FLOOR, ROWS_SECTION, STATIC_SECTION, partition_prefix
from materializer.rows.overlay import StoredRow
from materializer.rows.range_tombstones import PartitionRanges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.row import Row
    from materializer.rows.expiry import NowInSeconds
    from materializer.rows.overlay import Overlay
    from materializer.rows.row_codec import RowCodec
    from materializer.rows.timers import Timers

_FACTS = struct.Struct(">BqqQQ?")


class PartitionFacts(NamedTuple):
    """The values that are stored once for a Cassandra partition.

    visible_rows: how many rows are visible; static_sequence: the row_sequence of the row that stands for the partition
    when no row is visible. Both are kept only for tables with clustering columns. has_ranges: whether the partition has
    range tombstones.
    """

    # The deletion of the whole Cassandra partition.
    deletion: DeletionTime = LIVE
    # How many rows are visible. Only kept for tables with clustering columns.
    visible_rows: int = 0
    # The row_sequence of the row that stands for the partition when no row is visible. Only kept for tables with
    # clustering columns.
    static_sequence: int = 0
    # Whether the partition has range tombstones.
    has_ranges: bool = False


_NO_FACTS = PartitionFacts()


class SequenceFloor:
    """The largest row_sequence of any purged row: the numbers of rows that are new to the state begin above it."""

    __slots__ = ("_overlay", "value")

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self.value = int.from_bytes(overlay.get(FLOOR) or b"", "big")

    def raise_to(self, row_sequence: int) -> None:
        if row_sequence > self.value:
            self.value = row_sequence
            self._overlay.put(FLOOR, row_sequence.to_bytes(8, "big"))


class PartitionState:
    """The facts and the static row of one Cassandra partition.

    Its rows and range tombstones are not kept here: each is read and written by itself, so that the cost of an update
    does not grow with the partition.
    """

    __slots__ = ("_codec", "_overlay", "_timers", "facts", "prefix", "ranges", "static", "static_key")

    def __init__(self, overlay: Overlay, codec: RowCodec, timers: Timers, partition_key: bytes) -> None:
        self._overlay = overlay
        self._codec = codec
        self._timers = timers
        self.prefix = partition_prefix(partition_key)
        self.facts: PartitionFacts
        self.reload_facts()
        self.static_key = self.prefix + STATIC_SECTION
        static = overlay.get(self.static_key)
        self.static = None if static is None else codec.decode(static, is_static=True).row
        self.ranges = PartitionRanges(overlay, timers, self.prefix)

    def ranged_deletion(self, clustering_key: bytes) -> DeletionTime:
        """The deletion of the range tombstone that covers a row; LIVE if there is none."""
        return self.ranges.covering(clustering_key) if self.facts.has_ranges else LIVE

    def put_facts(self, facts: PartitionFacts) -> None:
        """Facts that equal the defaults are not stored."""
        if facts == self.facts:
            return
        key = self.prefix + FACTS_SECTION
        self._timers.update_purge_timer(key, deletion_second(self.facts.deletion), deletion_second(facts.deletion))
        self._overlay.put(key, None if facts == _NO_FACTS else encode_facts(facts))
        self.facts = facts

    def reload_facts(self) -> None:
        """Read the facts again after the native core has changed them."""
        facts = self._overlay.get(self.prefix + FACTS_SECTION)
        self.facts = PartitionFacts() if facts is None else decode_facts(facts)

    def put_static(self, row: Row | None, now: NowInSeconds) -> None:
        """Replace the static row; an empty one is deleted."""
        if row is not None and row.is_empty:
            row = None
        if row != self.static:
            value = None if row is None else self._codec.encode(StoredRow(row, 0), is_static=True)
            self._overlay.put(self.static_key, value)
        elif now.before == now.after:
            return
        self._timers.update_timers(self.static_key, row_timers(self.static, now.before), row_timers(row, now.after))
        self.static = row

    def put_row(self, key: bytes, before: StoredRow | None, after: StoredRow | None, now: NowInSeconds) -> None:
        """Replace the row at `key`, which was `before`."""
        if before != after:
            self._overlay.put_row(key, after)
        elif now.before == now.after:
            return
        self._timers.update_timers(
            key,
            row_timers(None if before is None else before.row, now.before),
            row_timers(None if after is None else after.row, now.after),
        )

    def put_row_sequences(self, sequences: Mapping[bytes | None, int]) -> None:
        """Give rows other row_sequences, by their clustering keys; None is the row that stands for the partition."""
        for clustering_key, row_sequence in sequences.items():
            if clustering_key is None:
                self.put_facts(self.facts._replace(static_sequence=row_sequence))
                continue
            key = self.prefix + ROWS_SECTION + clustering_key
            value = self._overlay.get_row(key)
            assert value is not None  # a row that has just changed
            stored = self._codec.decode(value, is_static=False)
            self._overlay.put_row(key, stored._replace(row_sequence=row_sequence))


def encode_facts(facts: PartitionFacts) -> bytes:
    return _FACTS.pack(FORMAT_VERSION, *facts.deletion, *facts[1:])


def decode_facts(value: bytes) -> PartitionFacts:
    """Decode the facts. CdcError(STATE_DAMAGED) if no partition can have them."""
    check_version(value)
    if len(value) == _FACTS.size:
        _, marked, local, *rest = _FACTS.unpack(value)
        deletion = DeletionTime(marked, local)
        if deletion == LIVE or _is_deletion_second(local):
            return PartitionFacts(deletion, *rest)
    raise CdcError(
        Code.STATE_DAMAGED,
        f"What is stored of a Cassandra partition can't be read: 0x{value.hex()}.",
        "Delete the local state of this raw partition: it is restored from the checkpoint location.",
    )


def _is_deletion_second(local_deletion_time: int) -> bool:
    """Cassandra stores 32 bits: signed ones before 5.0, unsigned ones since."""
    return -(2**31) <= local_deletion_time < 2**32
