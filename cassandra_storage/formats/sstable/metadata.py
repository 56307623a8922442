"""Statistics.db (org.apache.cassandra.io.sstable.metadata: MetadataSerializer, StatsMetadata, ValidationMetadata; its
fourth component is SerializationHeader.Component).

Layout: the number of components, for each its type and position, the components; from `na` on a CRC32 after the number,
after the list and after each component.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.java_input import JavaInput
from cassandra_storage.formats.rows.clustering_prefix import VARIABLE, read_bound
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME
from cassandra_storage.formats.rows.header import EncodingStats, read_stats
from cassandra_storage.formats.types.marshal import fixed_length
from cassandra_storage.formats.types.type_names import NamedType, parse_type_name

if TYPE_CHECKING:
    from cassandra_storage.formats.sstable.versions import SSTableFormat
    from cassandra_storage.formats.types.marshal import CqlType

_VALIDATION, _COMPACTION, _STATS, _HEADER = range(4)  # MetadataType
_CHECKSUM_SIZE = 4
_NO_DELETION_TIMES = (2**31 - 1, 2**32 - 1)  # signed before oa, unsigned from then on


class HeaderColumn(NamedTuple):
    """A column of the header."""

    # Its name, as stored.
    name: bytes
    # Its type as it was when the SSTable was written.
    type: NamedType


class HeaderComponent(NamedTuple):
    """SerializationHeader.Component: the types and bases with which the rows of the SSTable were written."""

    # The bases of times and TTLs.
    stats: EncodingStats
    # The type of the partition key.
    key_type: NamedType
    # The types of the clustering columns.
    clustering_types: tuple[NamedType, ...]
    # The static columns, in the order in which rows have them.
    static_columns: tuple[HeaderColumn, ...]
    # The regular columns, in the order in which rows have them.
    regular_columns: tuple[HeaderColumn, ...]

    @property
    def column_names(self) -> list[bytes]:
        """The names of the static and regular columns."""
        return [column.name for column in self.static_columns + self.regular_columns]

    @property
    def types(self) -> list[CqlType]:
        """The types of all columns, with those of the key."""
        columns = [column.type.type for column in self.static_columns + self.regular_columns]
        return [*columns, *self.key_type.key_types, *(clustering.type for clustering in self.clustering_types)]


class StatsMetadata(NamedTuple):
    """StatsMetadata, without its histograms and bounds."""

    # The smallest timestamp, in µs.
    min_timestamp: int
    # The largest timestamp, in µs.
    max_timestamp: int
    # The smallest local deletion time, in s since the epoch; NO_DELETION_TIME for none.
    min_local_deletion_time: int
    # The largest local deletion time, in s since the epoch; NO_DELETION_TIME for none.
    max_local_deletion_time: int
    # The smallest TTL, in s.
    min_ttl: int
    # The largest TTL, in s.
    max_ttl: int
    # The compressed size divided by the size of the data; negative if it is not compressed.
    compression_ratio: float
    # The level of LeveledCompactionStrategy.
    level: int
    # The time of the repair, in ms since the epoch; 0 if it is not repaired.
    repaired_at: int
    # Whether it may have counters with local or remote shards.
    has_legacy_counter_shards: bool
    # The number of cells, as they were written.
    cells: int
    # The number of rows and static rows, as they were written.
    rows: int
    # The position in the commit log (segment id, offset) up to which it has the data; (-1, 0) if none.
    commit_log_upper_bound: tuple[int, int]
    # The number of Cassandra partitions, as estimated when they were written.
    partitions: int
    # The session of an incremental repair that is not finished; None if there is none.
    pending_repair: UUID | None = None
    # Whether it has only transient replicas' data.
    is_transient: bool = False
    # The host that wrote it; None if the version does not say it.
    originating_host_id: UUID | None = None
    # The first partition key, serialized; None if the version does not say it.
    first_key: bytes | None = None
    # The last partition key, serialized; None if the version does not say it.
    last_key: bytes | None = None


class Statistics(NamedTuple):
    """The content of Statistics.db, without the CompactionMetadata."""

    # The class name of the partitioner.
    partitioner: str
    # The statistics.
    stats: StatsMetadata
    # The header of the rows.
    header: HeaderComponent


def parse_statistics(data: bytes, form: SSTableFormat) -> Statistics:
    """The content of Statistics.db; FormatError with the position in it."""
    components = _components(data, form)
    missing = [kind for kind in (_VALIDATION, _STATS, _HEADER) if kind not in components]
    if missing:
        raise FormatError(f"Statistics.db has no component of type {missing[0]}", position=0)
    partitioner = components[_VALIDATION].read_utf()
    return Statistics(partitioner, _stats(components[_STATS], form), _header(components[_HEADER]))


def _components(data: bytes, form: SSTableFormat) -> dict[int, JavaInput]:
    """MetadataSerializer.deserialize: each component's bytes by its type."""
    checksum = _CHECKSUM_SIZE if form.has_metadata_checksum else 0
    source = JavaInput(data)
    count = source.read_count(8)
    if checksum:
        _check(data, 4, zlib.crc32(data[:4]))
        source.read_bytes(checksum)
    places = [(source.read_int(), source.read_int()) for _ in range(count)]
    if checksum:
        _check(data, source.pos, zlib.crc32(data[8 : source.pos], zlib.crc32(data[:4])))
        source.read_bytes(checksum)
    ends = [*(place for _, place in places), len(data)]
    if any(start > end for start, end in pairwise([source.pos, *ends])):
        raise FormatError("components that are out of order or beyond the end", position=source.pos)
    found = {}
    for (kind, start), (_, end) in zip(places, pairwise(ends), strict=True):
        if end - start < checksum:
            raise FormatError(f"component {kind} of {end - start} bytes", position=start)
        if checksum:
            _check(data, end - checksum, zlib.crc32(data[start : end - checksum]))
        found[kind] = JavaInput(data[start : end - checksum], base=start)
    return found


def _check(data: bytes, position: int, found: int) -> None:
    stored = data[position : position + _CHECKSUM_SIZE]
    if len(stored) != _CHECKSUM_SIZE or found != int.from_bytes(stored, "big"):
        raise FormatError("checksum does not match", position=position)


def _stats(source: JavaInput, form: SSTableFormat) -> StatsMetadata:
    """StatsMetadata.StatsMetadataSerializer.deserialize."""
    partitions = _histogram(source)
    _histogram(source)
    upper_bound = source.read_long(), source.read_int()
    min_timestamp, max_timestamp = source.read_long(), source.read_long()
    read_time = source.read_unsigned_int if form.has_uint_deletion_time else source.read_int
    no_time = _NO_DELETION_TIMES[form.has_uint_deletion_time]
    min_time, max_time = (NO_DELETION_TIME if time == no_time else time for time in (read_time(), read_time()))
    min_ttl, max_ttl = source.read_int(), source.read_int()
    compression_ratio = source.read_double()
    source.read_int()  # the tombstone histogram's bins
    bin_size = 12 if form.has_uint_deletion_time else 16  # (seconds, count): (long, int), before oa (double, long)
    source.read_bytes(source.read_count(bin_size) * bin_size)
    level, repaired_at = source.read_int(), source.read_long()
    _skip_covered_clustering(source, form)
    has_legacy_counter_shards = source.read_boolean()
    cells, rows = source.read_long(), source.read_long()
    if form.has_commit_log_lower_bound:
        source.read_bytes(12)
    if form.has_commit_log_intervals:
        source.read_bytes(source.read_count(24) * 24)
    pending_repair = is_transient = None
    if form.has_metadata_checksum:
        pending_repair = source.read_uuid() if source.read_boolean() else None
        is_transient = source.read_boolean()
    host = source.read_uuid() if form.has_originating_host_id and source.read_boolean() else None
    first = last = None
    if not form.has_legacy_min_max:
        source.read_boolean()  # whether there are partition deletions
        first, last = source.read_vint_sized(), source.read_vint_sized()
    return StatsMetadata(
        min_timestamp,
        max_timestamp,
        min_time,
        max_time,
        min_ttl,
        max_ttl,
        compression_ratio,
        level,
        repaired_at,
        has_legacy_counter_shards,
        cells,
        rows,
        upper_bound,
        partitions,
        pending_repair,
        bool(is_transient),
        host,
        first,
        last,
    )


def _histogram(source: JavaInput) -> int:
    """EstimatedHistogram: the sum of its buckets. Each is written after its offset."""
    count = source.read_count(16)
    total = 0
    for _ in range(count):
        source.read_long()
        total += source.read_long()
    return total


def _skip_covered_clustering(source: JavaInput, form: SSTableFormat) -> None:
    """The least and greatest clustering: values before oa, then their types and a Slice."""
    if form.has_legacy_min_max:
        for _ in range(2):
            for _ in range(source.read_count(2)):
                source.read_short_sized()
        return
    types = [_type(source) for _ in range(_vint_count(source))]
    lengths = tuple(VARIABLE if (length := fixed_length(type_.type)) is None else length for type_ in types)
    for _ in range(2):
        try:
            _, _, source.pos = read_bound(source.buf, source.pos, lengths)
        except IndexError:
            raise source.error("ends inside a bound") from None
        except FormatError as error:
            raise source.error(error.reason) from None


def _header(source: JavaInput) -> HeaderComponent:
    """SerializationHeader.Serializer.deserialize for SSTables."""
    try:
        stats, source.pos = read_stats(source.buf, source.pos)
    except FormatError as error:
        raise source.error(error.reason) from None
    key_type = _type(source)
    clustering_types = tuple(_type(source) for _ in range(_vint_count(source)))
    columns = [tuple(_column(source) for _ in range(_vint_count(source))) for _ in range(2)]
    for of_kind in columns:
        if len({column.name for column in of_kind}) != len(of_kind):
            raise source.error("a column that is there twice")
    return HeaderComponent(stats, key_type, clustering_types, *columns)


def _column(source: JavaInput) -> HeaderColumn:
    return HeaderColumn(source.read_vint_sized(), _type(source))


def _vint_count(source: JavaInput) -> int:
    count = source.read_vint_int()
    if not 0 <= count <= source.left:
        raise source.error(f"a count of {count} reaches past the end")
    return count


def _type(source: JavaInput) -> NamedType:
    """AbstractTypeSerializer.deserialize."""
    text = source.read_vint_text()
    try:
        return parse_type_name(text)
    except FormatError as error:
        raise source.error(error.reason) from None
