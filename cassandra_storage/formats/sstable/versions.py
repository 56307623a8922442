"""The differences between SSTable versions, as data (io.sstable.format.big.BigFormat.BigVersion, bti.BtiFormat).

A version that is not in the table is refused by name. Making one readable means adding its line here, and vectors of a
real server for its tests. What was compared: the sources of 3.11.19, 4.0.19, 4.1.10 and 5.0.8. (`nc` was written by
5.0-alpha1 only.)

The rows are the same in all versions (UnfilteredSerializer), and so is the order of what Data.db holds: partitions,
each with its key, its deletion, its static row if the header has static columns, rows and markers, and 0x01.
"""

from __future__ import annotations

from dataclasses import dataclass

from cassandra_storage.formats.errors import UnsupportedError
from cassandra_storage.formats.versions import VERSION_40, VERSION_50, MessagingFormat, messaging_format

BIG, BTI = "big", "bti"
UPGRADE = "run nodetool upgradesstables on a node that reads it"


@dataclass(frozen=True, slots=True)
class SSTableFormat:
    """The facts of one version of a format. Flags have BigVersion's names."""

    # The two letters of the version, such as `nb`.
    version: str
    # The name of the format: `big` or `bti`.
    format: str
    # The versions of Cassandra that write it, for people.
    written_by: str
    # Statistics.db has the position in the commit log at which the data begin.
    has_commit_log_lower_bound: bool = True
    # Statistics.db has the intervals of the commit log that the data cover.
    has_commit_log_intervals: bool = True
    # Statistics.db has the id of the host that wrote it.
    has_originating_host_id: bool = True
    # Statistics.db has checksums, and tells of pending repair and transient replication.
    has_metadata_checksum: bool = True
    # Chunks of that length and more are not compressed.
    has_max_compressed_length: bool = True
    # Statistics.db has the clusterings' bounds as values, otherwise as a slice.
    has_legacy_min_max: bool = True
    # A partition's deletion is 0x80 for none, or a timestamp (8 bytes) and unsigned seconds (4); otherwise signed
    # seconds and a timestamp.
    has_uint_deletion_time: bool = False
    # A type in the header is frozen only if it says so; before 3.6 all user types were frozen and none said so
    # (SSTableHeaderFix).
    frozen_is_written: bool = True

    @property
    def rows(self) -> MessagingFormat:
        """Version.correspondingMessagingVersion: how rows hold times. VERSION_30's rows are VERSION_40's."""
        return messaging_format(VERSION_50 if self.has_uint_deletion_time else VERSION_40)


def _before_na(version: str, written_by: str, *, lower: bool, intervals: bool, host_id: bool) -> SSTableFormat:
    return SSTableFormat(
        version,
        BIG,
        written_by,
        has_commit_log_lower_bound=lower,
        has_commit_log_intervals=intervals,
        has_originating_host_id=host_id,
        has_metadata_checksum=False,
        has_max_compressed_length=False,
        frozen_is_written=False,
    )


_FORMATS = {
    (form.format, form.version): form
    for form in (
        _before_na("ma", "3.0.0 to 3.0.6", lower=False, intervals=False, host_id=False),
        _before_na("mb", "3.0.7 and 3.7", lower=True, intervals=False, host_id=False),
        _before_na("mc", "3.0.8 to 3.0.17 and 3.9 to 3.11.3", lower=True, intervals=True, host_id=False),
        _before_na("md", "3.0.18 to 3.0.24 and 3.11.4 to 3.11.10", lower=True, intervals=True, host_id=False),
        _before_na("me", "3.0.25 and later, and 3.11.11 and later", lower=True, intervals=True, host_id=True),
        SSTableFormat("na", BIG, "4.0-rc1", has_originating_host_id=False),
        SSTableFormat("nb", BIG, "4.0, 4.1, and 5.0 by default"),
        SSTableFormat(
            "oa",
            BIG,
            "5.0 with storage_compatibility_mode NONE or UPGRADING",
            has_legacy_min_max=False,
            has_uint_deletion_time=True,
        ),
        SSTableFormat("da", BTI, "5.0 with sstable: bti", has_legacy_min_max=False, has_uint_deletion_time=True),
    )
}


def sstable_format(version: str, format_name: str) -> SSTableFormat:
    """The format of a version, such as ("nb", "big"). UnsupportedError names one that cannot be read."""
    known = _FORMATS.get((format_name, version))
    if known is not None:
        return known
    if format_name not in (BIG, BTI):
        raise UnsupportedError(f"SSTable format {format_name!r} is not supported")
    advice = f"; {UPGRADE}" if format_name == BIG and version < "ma" else ""
    raise UnsupportedError(f"SSTable version {version} of the format {format_name} is not supported{advice}")


def known_formats() -> tuple[SSTableFormat, ...]:
    """All formats that can be read, older ones first."""
    return tuple(_FORMATS.values())
