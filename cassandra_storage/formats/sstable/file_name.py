"""The names of SSTables' files (org.apache.cassandra.io.sstable.Descriptor, Component, SSTableId).

`nb-12-big-Data.db`: version, id, format, component. An id is a number, or from 4.1 on a UUID in 28 characters. The
directory names the table: `<keyspace>/<table>-<id, 32 hexadecimal digits>/`.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.sstable.versions import UPGRADE, SSTableFormat, sstable_format

DATA = "Data.db"
STATISTICS = "Statistics.db"
COMPRESSION_INFO = "CompressionInfo.db"
CRC = "CRC.db"
DIGEST = "Digest.crc32"
TOC = "TOC.txt"
INDEX = "Index.db"  # of BIG
SUMMARY = "Summary.db"  # of BIG
PARTITIONS = "Partitions.db"  # of BTI
ROWS = "Rows.db"  # of BTI

_NAME = re.compile(r"(?P<version>[a-z]{2})-(?P<id>[0-9a-z_]+)-(?P<format>[a-z]+)-(?P<component>[\w+-]+\.\w+)")
_OLD_NAME = re.compile(r".+-(?:tmp-)?(?P<version>[a-z]{2})-[0-9]+-[\w-]+\.\w+")
_ATTACHED = re.compile(r"SAI\+[a-z]+(?:\+(?P<sai>.+))?\+\w+\.db|SI_(?P<sasi>.+)\.db")
_NUMBER = re.compile(r"[0-9]{1,10}")
_UUID = re.compile(r"([0-9a-z]{4})_([0-9a-z]{4})_([0-9a-z]{5})([0-9a-z]{13})")
_TABLE = re.compile(r"(?P<name>\w+)-(?P<id>[0-9a-f]{32})")
_DAY = 86_400
_TICKS = 10_000_000  # of 100 ns in a second
_LOW_BITS = 1 << 64


class Descriptor(NamedTuple):
    """Descriptor: the content of a file's name."""

    # The format and its version.
    format: SSTableFormat
    # The id of the SSTable, as written.
    id: str

    @property
    def base(self) -> str:
        """The beginning that the names of all its files share."""
        return f"{self.format.version}-{self.id}-{self.format.format}"

    def file_name(self, component: str) -> str:
        return f"{self.base}-{component}"

    @property
    def order(self) -> tuple[bool, int]:
        """SSTableIdFactory.COMPARATOR: numbers before UUIDs, older ones first."""
        if _NUMBER.fullmatch(self.id):
            return False, int(self.id)
        uuid = id_uuid(self.id)
        return True, uuid.time << 64 | (uuid.int & (_LOW_BITS - 1))


def parse_name(name: str) -> tuple[Descriptor, str]:
    """(the SSTable, the component) of a file's name. FormatError for other names, UnsupportedError for other versions;
    the error has the name as its segment.
    """
    old = _OLD_NAME.fullmatch(name)
    if old is not None:
        raise UnsupportedError(f"SSTable version {old['version']} is not supported; {UPGRADE}", segment=name)
    match = _NAME.fullmatch(name)
    if match is None:
        raise FormatError("not the name of an SSTable's file (<version>-<id>-<format>-Data.db)", segment=name)
    if not _NUMBER.fullmatch(match["id"]):
        id_uuid(match["id"], name)
    try:
        return Descriptor(sstable_format(match["version"], match["format"]), match["id"]), match["component"]
    except UnsupportedError as error:
        raise UnsupportedError(error.reason, segment=name) from None


def id_uuid(text: str, name: str | None = None) -> UUID:
    """UUIDBasedSSTableId.Builder.fromString: days, seconds, ticks of 100 ns and the lower 64 bits, in base 36."""
    match = _UUID.fullmatch(text)
    if match is None:
        raise FormatError(f"{text!r} is no id of an SSTable", segment=name)
    days, seconds, ticks, low = (int(part, 36) for part in match.groups())
    time = (days * _DAY + seconds) * _TICKS + ticks
    if time >= 1 << 60 or low >= _LOW_BITS:
        raise FormatError(f"{text!r} is no id of an SSTable", segment=name)
    high = (time & 0xFFFFFFFF) << 32 | (time >> 32 & 0xFFFF) << 16 | 0x1000 | time >> 48
    return UUID(int=high << 64 | low)


def parse_table_folder(name: str) -> tuple[str, UUID] | None:
    """(the table's name, its id) of a directory of SSTables; None for another directory."""
    match = _TABLE.fullmatch(name)
    return None if match is None else (match["name"], UUID(match["id"]))


def attached_index(component: str) -> str | None:
    """The index that the component of a table's own SSTable belongs to: a storage-attached index or a SASI index; None
    for another component. Components that all storage-attached indexes share have no name.
    """
    match = _ATTACHED.fullmatch(component)
    return None if match is None else match["sai"] or match["sasi"] or "(storage-attached)"
