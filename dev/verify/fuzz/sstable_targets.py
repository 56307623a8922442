"""SSTables as fuzz targets: the rows, each component, and whole files of a directory."""

from __future__ import annotations

import zlib
from functools import cache
from typing import NamedTuple

from cassandra_storage.files.sstables import SSTable, SSTableFile
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.cql_schema import parse_schema
from cassandra_storage.formats.schema.tables import TableMetadata
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, CRC, DATA, STATISTICS, parse_name
from cassandra_storage.formats.sstable.header import SSTableSchema
from cassandra_storage.formats.sstable.metadata import parse_statistics
from cassandra_storage.formats.sstable.reader import SSTableReader
from cassandra_storage.formats.sstable.versions import SSTableFormat
from cassandra_storage.formats.types.type_names import parse_type_name
from dev.verify.fuzz.target import SEED_BYTES, Target, folder, is_read
from tests.support.vectors import sstables
from tests.support.workload.tables import create_types, tables

_FORMS = ("3.11", "4.0", "5.0-oa", "5.0-bti")
_PARTS = (DATA, COMPRESSION_INFO, CRC, STATISTICS)
_LEAST = 20  # bytes, of data that are worth a seed


class _Small(NamedTuple):
    """A small SSTable: its uncompressed data, its components in the order of _PARTS, and how to read it."""

    file: SSTableFile
    table: TableMetadata
    form: SSTableFormat
    schema: SSTableSchema
    data: bytes
    parts: list[bytes]


@cache
def _small() -> list[_Small]:
    found = []
    for form in _FORMS:
        for file, table, _ in sstables.load(form).files():
            with SSTable(file, table) as sstable:
                data = b"".join(sstable.data.chunks())
                if _LEAST < len(data) < SEED_BYTES:
                    paths = [file.path(component) for component in _PARTS]
                    parts = [path.read_bytes() if path.exists() else b"" for path in paths]
                    found.append(_Small(file, table, file.descriptor.format, sstable.schema, data, parts))
    return found[:256]


def sstable_rows() -> Target:
    """The first byte chooses the table and the version. In one piece and in small ones the same is read."""
    small = _small()

    def run(data: bytes) -> bool:
        one = small[data[0] % len(small)] if data else small[0]
        return _read(data[1:], one, 1 << 16) == _read(data[1:], one, 7) != ""

    return Target(run, [bytes((number,)) + one.data for number, one in enumerate(small)])


def _read(data: bytes, one: _Small, size: int) -> str:
    """All partitions and rows as text; nothing if they cannot be read."""
    chunks = (data[start : start + size] for start in range(0, len(data), size))
    reader = SSTableReader(chunks, len(data), one.schema.header, one.form)
    try:
        return repr([(partition, list(reader.rows())) for partition in reader.partitions()])
    except FormatError as error:
        problem = error
    assert problem.position is not None
    assert problem.position <= len(data)
    return ""


def statistics() -> Target:
    """Read Statistics.db with the checksums of the input, and with correct ones over the damage."""
    small = _small()

    def run(data: bytes) -> bool:
        one = small[data[0] % len(small)] if data else small[0]
        content = data[1:]
        if one.form.has_metadata_checksum and len(data) % 2:
            content = sealed_statistics(content)
        return is_read(lambda: parse_statistics(content, one.form))

    return Target(run, [bytes((number,)) + one.parts[-1] for number, one in enumerate(small)])


def sealed_statistics(data: bytes) -> bytes:
    """Return the data with correct checksums of whatever the bytes say that they hold."""
    fixed = bytearray(data)
    count = int.from_bytes(fixed[:4], "big")
    toc_end = 8 + 8 * count
    if not count or toc_end > len(fixed):
        return data
    fixed[4:8] = zlib.crc32(fixed[:4]).to_bytes(4, "big")
    fixed[toc_end : toc_end + 4] = zlib.crc32(fixed[8:toc_end], zlib.crc32(fixed[:4])).to_bytes(4, "big")
    starts = [int.from_bytes(fixed[at + 4 : at + 8], "big") for at in range(8, toc_end, 8)]
    for start, end in zip(starts, [*starts[1:], len(fixed)], strict=True):
        if start + 4 <= end <= len(fixed):
            fixed[end - 4 : end] = zlib.crc32(fixed[start : end - 4]).to_bytes(4, "big")
    return bytes(fixed)


def sstable_files() -> Target:
    """The components, each after its length, written to files."""
    small = _small()
    place = folder("sstable")

    def run(data: bytes) -> bool:
        one = small[data[0] % len(small)] if data else small[0]
        file = SSTableFile(place, one.file.descriptor)
        position = 1
        for component in _PARTS:
            size = int.from_bytes(data[position : position + 2], "big")
            path = file.path(component)
            path.unlink(missing_ok=True)
            if size or component in (DATA, STATISTICS):
                path.write_bytes(data[position + 2 : position + 2 + size])
            position += 2 + size
        try:
            with SSTable(file, one.table) as sstable:
                for _ in sstable.partitions():
                    for _ in sstable.rows():
                        pass
        except FormatError as error:
            problem = error
        else:
            return True
        assert problem.segment is not None
        return False

    seeds = []
    for number, one in enumerate(small):
        if all(len(part) < 1 << 16 for part in one.parts):
            seeds.append(bytes((number,)) + b"".join(len(part).to_bytes(2, "big") + part for part in one.parts))
    return Target(run, seeds)


def type_name() -> Target:
    def run(data: bytes) -> bool:
        return is_read(lambda: parse_type_name(data.decode(errors="replace")))

    header = [one.parts[-1] for one in _small()]
    names = {name for data in header for name in data.split(b"org.apache.cassandra.db.marshal.")[1:]}
    return Target(run, sorted(b"org.apache.cassandra.db.marshal." + _text(name) for name in names))


def _text(name: bytes) -> bytes:
    """Return the name up to the first byte that cannot be part of a type's name."""
    end = next((place for place, byte in enumerate(name) if not 0x20 < byte < 0x7F), len(name))
    return name[:end]


def cql_schema() -> Target:
    def run(data: bytes) -> bool:
        return is_read(lambda: parse_schema(data.decode(errors="replace"), "ks"))

    types = ";\n".join(create_types())
    return Target(run, [f"{types};\n{table.create()};".encode() for table in tables("5.0", 1)])


def sstable_name() -> Target:
    def run(data: bytes) -> bool:
        return is_read(lambda: parse_name(data.decode(errors="replace")))

    return Target(run, [one.file.data_path.name.encode() for one in _small()])
