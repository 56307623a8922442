"""SSTables of real nodes are read as Cassandra's own reader read them; damage is found, and named by file and place."""

from __future__ import annotations

import json
import random
import shutil
import zlib
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.files.sstables import SSTable, SSTableFile, find_sstables, list_sstables, verify_digest
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, CRC, DATA, DIGEST, STATISTICS, TOC
from cassandra_storage.formats.sstable.versions import known_formats
from dev.verify.oracle.sstable_oracle import judge_sstable
from tests.support.vectors import sstables

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata

COMPRESSORS = {"none", "LZ4Compressor", "SnappyCompressor", "DeflateCompressor"}
NEWER = {"ZstdCompressor", "NoopCompressor"}  # from 4.0 on


@pytest.fixture(scope="module", params=sstables.FORMS_MADE)
def vectors(request: pytest.FixtureRequest) -> sstables.SSTableVectors:
    return sstables.load(request.param)


def copy(file: SSTableFile, folder: Path) -> SSTableFile:
    for component in sstables.COMPONENTS:
        if file.path(component).exists():
            shutil.copy(file.path(component), folder)
    return SSTableFile(folder, file.descriptor)


def one(form: str, table: str, *, is_compressed: bool = True) -> tuple[SSTableFile, TableMetadata]:
    """The largest SSTable of a table."""
    found = [(file, of) for file, of, _ in sstables.load(form).files() if of.name == table]
    chosen = max(found, key=lambda pair: pair[0].data_path.stat().st_size)
    assert chosen[0].path(COMPRESSION_INFO).exists() is is_compressed
    return chosen


def plain_one() -> tuple[SSTableFile, TableMetadata]:
    """An uncompressed one."""
    return next(
        (file, of) for file, of, _ in sstables.load("5.0-bti").files() if not file.path(COMPRESSION_INFO).exists()
    )


def read(file: SSTableFile, table: TableMetadata | None) -> int:
    """The number of rows."""
    with SSTable(file, table) as sstable:
        return sum(1 for _ in sstable.partitions() for row in sstable.rows() if isinstance(row, Row))


def test_rows_are_those_that_cassandra_reads(vectors: sstables.SSTableVectors) -> None:
    compressors = set()
    for file, table, lines in vectors.files():
        tally = judge_sstable(iter(lines), file, table)
        assert not tally.differences
        compressors |= tally.compressors
    assert compressors == (COMPRESSORS if vectors.form == "3.11" else COMPRESSORS | NEWER)


@pytest.mark.parametrize("release", sstables.OLD_RELEASES)
def test_rows_of_older_versions(release: str) -> None:
    """ma, mb, mc, md and na."""
    vectors = sstables.load(release)
    compressors, versions = set(), set()
    for file, table, lines in vectors.files():
        tally = judge_sstable(iter(lines), file, table)
        assert not tally.differences
        assert tally.rows - tally.statics == 60
        compressors |= tally.compressors
        versions.add(file.descriptor.format.version)
        assert read(file, None) == 60
    assert compressors == COMPRESSORS
    assert versions == {sstables.VERSION_OF[release]}


def test_all_versions_have_vectors() -> None:
    """None is claimed that no Cassandra wrote for these tests."""
    found = {file.descriptor.format for form in sstables.FORMS_MADE for file, _, _ in sstables.load(form).files()}
    versions = {form.version for form in found} | set(sstables.VERSION_OF.values())
    assert versions == {form.version for form in known_formats()}


def test_a_planted_difference_is_found(vectors: sstables.SSTableVectors) -> None:
    """This shows that the test above can fail."""
    file, table, lines = next(vector for vector in vectors.files() if vector[1].name == "natives")
    changed = [line.replace('"deletion":[-9', '"deletion":[-8', 1) for line in lines]
    assert changed != lines
    for said in (changed, lines[:-2], [*lines[:-1], '{"marker":[null,null]}', lines[-1]]):
        assert judge_sstable(iter(said), file, table).different == 1


def test_rows_without_a_schema(vectors: sstables.SSTableVectors) -> None:
    """Statistics.db alone tells all that is needed, except user types of 3.x."""
    refused = 0
    for file, table, _ in vectors.files():
        if table.dropped_columns:
            continue
        try:
            assert read(file, None) == read(file, table)
        except UnsupportedError as error:
            assert "may be a frozen user type or not" in error.reason  # noqa: PT017
            refused += 1
    assert not refused or vectors.form == "3.11"


def test_both_kinds_of_ids() -> None:
    ids = {form: {file.descriptor.id for file, _, _ in sstables.load(form).files()} for form in ("4.0", "4.1")}
    assert all(sstable_id.isdigit() for sstable_id in ids["4.0"])
    assert all(len(sstable_id) == 28 for sstable_id in ids["4.1"])


def test_chunks_from_a_length_on_lie_as_they_are(tmp_path: Path) -> None:
    """maxCompressedLength, which min_compress_ratio gives: all chunks are longer here."""
    file, table = plain_one()
    copied = copy(file, tmp_path)
    data = copied.data_path.read_bytes()
    length = 64
    chunks = [data[start : start + length] for start in range(0, len(data), length)]
    copied.data_path.write_bytes(b"".join(chunk + zlib.crc32(chunk).to_bytes(4, "big") for chunk in chunks))
    offsets = b"".join((number * (length + 4)).to_bytes(8, "big") for number in range(len(chunks)))
    options = b"\x00\x0dLZ4Compressor" + bytes(4)
    numbers = [length.to_bytes(4, "big"), b"\0\0\0\1", len(data).to_bytes(8, "big"), len(chunks).to_bytes(4, "big")]
    copied.path(COMPRESSION_INFO).write_bytes(options + b"".join(numbers) + offsets)
    assert read(copied, table) == read(file, table)
    copied.path(COMPRESSION_INFO).write_bytes(options + b"".join([numbers[0], b"\0\0\1\0", *numbers[2:]]) + offsets)
    with pytest.raises(FormatError, match="LZ4 block"):
        read(copied, table)


@pytest.mark.parametrize("component", [DATA, STATISTICS, COMPRESSION_INFO])
def test_each_damaged_byte_is_found(component: str, tmp_path: Path) -> None:
    """All of these have checksums, but CompressionInfo.db: what is read with a damaged one is still right."""
    file, table = one("5.0-bti", "natives")
    rows = read(file, table)
    copied = copy(file, tmp_path)
    path = copied.path(component)
    good = path.read_bytes()
    rng = random.Random(7)
    used = len(good) - (16 if component == DATA else 0)  # after it is a chunk without data
    places = rng.sample(range(used), min(used, 60))
    for place in places:
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << rng.randrange(8)]) + good[place + 1 :])
        if component == COMPRESSION_INFO:
            try:
                assert read(copied, table) == rows
            except FormatError as error:
                assert error.segment  # noqa: PT017
            continue
        with pytest.raises(FormatError) as caught:
            read(copied, table)
        assert caught.value.segment == path.name
        assert caught.value.position is not None


def test_damage_tells_what_is_lost(tmp_path: Path) -> None:
    file, table = one("5.0-bti", "natives")
    copied = copy(file, tmp_path)
    data = bytearray(copied.data_path.read_bytes())
    data[5] ^= 1
    copied.data_path.write_bytes(data)
    with pytest.raises(
        FormatError, match=r"checksum of a chunk does not match: bytes \d+ to \d+ of the data cannot be read"
    ):
        read(copied, table)
    with pytest.raises(FormatError, match="has the checksum"):
        verify_digest(copied)


def test_uncompressed(tmp_path: Path) -> None:
    file, table = plain_one()
    copied = copy(file, tmp_path)
    good = copied.data_path.read_bytes()
    for place in range(0, len(good), max(len(good) // 20, 1)):
        copied.data_path.write_bytes(good[:place] + bytes([good[place] ^ 64]) + good[place + 1 :])
        with pytest.raises(FormatError, match="checksum of a chunk does not match"):
            read(copied, table)
    copied.data_path.write_bytes(good)
    crc = copied.path(CRC)
    sums = crc.read_bytes()
    assert sums[4:8] == zlib.crc32(good).to_bytes(4, "big")
    for damaged in (b"", sums[:3], sums[:4], bytes(4) + sums[4:], b"\xff" + sums[1:]):
        crc.write_bytes(damaged)
        with pytest.raises(FormatError) as caught:
            read(copied, table)
        assert caught.value.segment == crc.name
    crc.unlink()
    with pytest.raises(FormatError, match=r"lists CRC.db, which is not there"):
        read(copied, table)
    copied.path(TOC).unlink()
    assert read(copied, table) == read(file, table)


@pytest.mark.parametrize("size", [0, 1, 3, 20, 40])
@pytest.mark.parametrize("component", [DATA, STATISTICS, COMPRESSION_INFO])
def test_files_that_end_early(component: str, size: int, tmp_path: Path) -> None:
    file, table = one("5.0-bti", "natives")
    copied = copy(file, tmp_path)
    copied.path(component).write_bytes(copied.path(component).read_bytes()[:size])
    with pytest.raises(FormatError):
        read(copied, table)


def test_unknown_compressor(tmp_path: Path) -> None:
    file, table = one("5.0-bti", "natives")
    copied = copy(file, tmp_path)
    path = copied.path(COMPRESSION_INFO)
    data = path.read_bytes()
    size = int.from_bytes(data[:2], "big")
    path.write_bytes(b"\x00\x0cMyCompressor" + data[2 + size :])
    with pytest.raises(UnsupportedError, match=r"MyCompressor is not supported; run nodetool upgradesstables"):
        read(copied, table)


def test_another_table() -> None:
    file, _ = one("5.0-bti", "natives")
    _, other = one("5.0-bti", "collections")
    with pytest.raises(FormatError, match="is another table"):
        SSTable(file, other)


def test_what_is_found_and_what_is_not(tmp_path: Path) -> None:
    table = tmp_path / "data" / "ks" / "t-3f1c1e60c07511ee9c5e0b2b6d3f7c1a"
    index, snapshot = table / ".idx", table / "snapshots" / "s1"
    for folder in (table, index, snapshot, table / "backups"):
        folder.mkdir(parents=True)
        for name in ("nb-10-big-Data.db", "nb-9-big-Data.db", "nb-9-big-SAI+aa+Data.db", "nb_txn_flush_1.log"):
            (folder / name).touch()
    for path in (tmp_path, table.parent, table):
        found = list(find_sstables(path))
        assert [(file.folder, file.descriptor.id) for file in found] == [(table, "9"), (table, "10")]
    for path in (index, snapshot):
        assert [file.folder for file in find_sstables(path)] == [path, path]
        assert found[0].table_name[:2] == ("ks", "t")
    assert len(list(find_sstables(table / "nb-9-big-Data.db"))) == 1
    (table / "la-1-big-Data.db").touch()
    with pytest.raises(UnsupportedError, match="upgradesstables"):
        list_sstables(table)


def test_start_in_the_middle(vectors: sstables.SSTableVectors) -> None:
    file, table, lines = max(vectors.files(), key=lambda vector: len(vector[2]))
    with SSTable(file, table) as sstable:
        positions = [partition.position for partition in sstable.partitions()]
        keys = [json.loads(line)["key"] for line in lines if line.startswith('{"key"')]
        at = len(positions) // 2
        assert [partition.key.hex() for partition in sstable.partitions(positions[at])] == keys[at:]


def test_digest(vectors: sstables.SSTableVectors, tmp_path: Path) -> None:
    file = vectors.files()[0][0]
    verify_digest(file)
    copied = copy(file, tmp_path)
    copied.path(DIGEST).write_text("nothing")
    with pytest.raises(FormatError, match="not a checksum"):
        verify_digest(copied)
