"""The SSTables of a table as one stream: found in directories and snapshots, read by ranges of tokens through their
indexes, refused where they are damaged.
"""

from __future__ import annotations

import contextlib
import gc
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock
from uuid import UUID

import pytest

from cassandra_storage.files import table_sstables
from cassandra_storage.files.sstables import SSTable, SSTableFile, read_statistics
from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, table_files
from cassandra_storage.formats.errors import UnsupportedError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, TokenRange, spans
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, DeletionTime
from cassandra_storage.formats.schema.tables import BINARY_NAMES
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, INDEX, PARTITIONS, STATISTICS
from cassandra_storage.formats.sstable.merge import MergePosition
from tests.support.cassandra_storage.indexed_partitions import NOW, merged_keys
from tests.support.vectors import indexed_sstables
from tests.support.vectors.indexed_sstables import PARTITIONS as MADE
from tests.support.vectors.indexed_sstables import ROWS as WIDE_ROWS
from tests.support.vectors.indexed_sstables import IndexedVectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.schema.tables import TableMetadata


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


@pytest.fixture
def copied(vectors: IndexedVectors, tmp_path: Path) -> IndexedVectors:
    shutil.copytree(vectors.data, tmp_path / "data")
    return vectors._replace(data=tmp_path / "data")


def test_all_partitions_are_merged(vectors: IndexedVectors) -> None:
    found = merged_keys(vectors)
    assert [partition[:2] for partition in found] == sorted(partition[:2] for partition in found)
    ids = [int.from_bytes(key, "big") for _, key, _ in found]
    assert sorted(ids) == [id_ for id_ in range(MADE) if id_ % 2 == 0 or id_ % 3 == 0]
    assert {rows for _, _, rows in found} == {1, WIDE_ROWS}


def test_ranges_are_read_through_the_index(vectors: IndexedVectors) -> None:
    whole = merged_keys(vectors)
    rng = random.Random(1)
    tokens = [MINIMUM, MAXIMUM, 0, *(token for token, _, _ in whole)]
    for _ in range(30):
        ranges = [TokenRange(rng.choice(tokens), rng.choice(tokens)) for _ in range(rng.randint(1, 3))]
        expected = [partition for partition in whole if any(_is_in(partition[0], one) for one in ranges)]
        assert merged_keys(vectors, ranges) == expected


def _is_in(token: int, of: TokenRange) -> bool:
    return of.start < token <= of.end or (of.start >= of.end and (token > of.start or token <= of.end))


def test_a_merge_goes_on_after_a_place(vectors: IndexedVectors) -> None:
    whole = merged_keys(vectors)
    token, key, rows = next(partition for partition in whole if partition[2] == WIDE_ROWS)
    number = whole.index((token, key, rows))
    assert merged_keys(vectors, after=MergePosition(token, key)) == whole[number + 1 :]
    clustering = ((99).to_bytes(4, "big"),)
    assert merged_keys(vectors, after=MergePosition(token, key, clustering)) == [
        (token, key, WIDE_ROWS - 100),
        *whole[number + 1 :],
    ]


def _tokens_as_read(sstables: TableSSTables) -> Iterator[int]:
    """The token of each partition, after its rows were read."""
    for partition in sstables.merged(sstables.purger(NOW)):
        list(partition.unfiltereds)
        yield partition.token


def test_damage_names_the_file_the_place_and_what_is_lost(copied: IndexedVectors) -> None:
    file = copied.files()[1]
    data = bytearray(file.data_path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.data_path.write_bytes(data)
    sstables = TableSSTables(copied.table, copied.files())
    given: list[int] = []
    with pytest.raises(DamagedTableError) as raised:
        given.extend(_tokens_as_read(sstables))
    error = raised.value
    assert (error.path, error.table) == (file.data_path, "ks.indexed")
    assert error.position is not None
    assert error.after == (given[-1] - 1 if given else None)
    assert "bytes " in error.reason
    assert f"{file.data_path}:{error.position}: " in str(error)
    lost = "none of it can be merged" if not given else f"what has tokens above {error.after} cannot be merged"
    assert lost in str(error)


@pytest.mark.parametrize("component", [STATISTICS, INDEX, PARTITIONS])
def test_a_missing_component_is_damage(copied: IndexedVectors, component: str) -> None:
    file = copied.files()[0]
    if not file.path(component).exists():
        pytest.skip("another format")
    file.path(component).unlink()
    with pytest.raises(DamagedTableError, match="the file is not there") as raised:
        merged_keys(copied, [TokenRange(0, MAXIMUM)])
    assert raised.value.path == file.path(component)


def test_a_removed_sstable_is_no_damage(copied: IndexedVectors) -> None:
    """A snapshot may be cleared while it is read."""
    sstables = TableSSTables(copied.table, copied.files())
    for path in sstables.files[0].folder.iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError):
        list(sstables.merged(sstables.purger(NOW)))


def test_what_is_not_supported_is_no_damage(vectors: IndexedVectors) -> None:
    sstables = TableSSTables(vectors.table, vectors.files())
    sstables.table = replace(vectors.table, flags=vectors.table.flags | {BINARY_NAMES})
    with pytest.raises(UnsupportedError, match="column names that are no text"):
        list(sstables.merged(sstables.purger(NOW)))


def test_damage_found_at_the_start(copied: IndexedVectors) -> None:
    file = copied.files()[0]
    file.path(STATISTICS).write_bytes(b"")
    with pytest.raises(DamagedTableError, match="none of it can be merged") as raised:
        TableSSTables(copied.table, copied.files())
    assert (raised.value.path, raised.value.after) == (file.path(STATISTICS), None)


def test_what_is_out_of_order_is_damage(copied: IndexedVectors) -> None:
    first = copied.files()[0]
    with (
        mock.patch.object(table_sstables, "decorated_token", lambda key: -decorated_token(key)),
        pytest.raises(DamagedTableError, match="a partition that is out of order") as raised,
    ):
        merged_keys(copied)
    assert raised.value.path in (first.data_path, copied.files()[1].data_path)


def test_other_partitioners_are_refused(vectors: IndexedVectors) -> None:
    def read(file: SSTableFile) -> object:
        return read_statistics(file)._replace(partitioner="org.apache.cassandra.dht.RandomPartitioner")

    with (
        mock.patch.object(table_sstables, "read_statistics", read),
        pytest.raises(UnsupportedError, match="RandomPartitioner is not supported"),
    ):
        TableSSTables(vectors.table, vectors.files())


def _open_files(folder: Path) -> int:
    """Return how many files of the folder this process has open."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since by another thread
            found += descriptor.readlink().is_relative_to(folder)
    return found


def test_files_are_closed(vectors: IndexedVectors) -> None:
    sstables = TableSSTables(vectors.table, vectors.files())
    merged = sstables.merged(sstables.purger(NOW))
    next(merged)
    assert _open_files(vectors.data)
    merged.close()
    assert not _open_files(vectors.data)
    list(sstables.merged(sstables.purger(NOW)))
    assert not _open_files(vectors.data)


def test_files_of_a_damaged_sstable_are_closed(copied: IndexedVectors) -> None:
    file = copied.files()[0]
    file.path(COMPRESSION_INFO).write_bytes(b"")
    sstables = TableSSTables(copied.table, copied.files())
    with pytest.raises(DamagedTableError):
        list(sstables.merged(sstables.purger(NOW)))
    gc.collect()
    assert not _open_files(copied.data)


def test_sstables_are_open_only_while_the_merge_is_in_them(vectors: IndexedVectors) -> None:
    """Only partitions after those of the first SSTable are read from the second one."""
    sstables = TableSSTables(vectors.table, vectors.files())
    whole = merged_keys(vectors)
    half = whole[len(whole) // 2][0]
    opened: list[str] = []

    class Recorded(SSTable):
        def __init__(self, file: SSTableFile, table: TableMetadata) -> None:
            opened.append(file.descriptor.id)
            super().__init__(file, table)

    first = sstables.files[0].descriptor.id
    with mock.patch.object(table_sstables, "SSTable", Recorded):
        source = table_sstables.TokenSpansInput(sstables, sstables.files[0], spans([TokenRange(half, MAXIMUM)]))
        assert source.find_first()
    assert opened == [first]
    assert source.first_token > half


def test_directories_and_snapshots(vectors: IndexedVectors, tmp_path: Path) -> None:
    table = vectors.table
    (folder,) = (vectors.data / "ks").iterdir()
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = vectors.files()
    for data, file in ((one, first), (two, second)):
        for path in file.folder.glob(f"{file.descriptor.base}-*"):
            for target in (data / "ks" / folder.name, data / "ks" / folder.name / "snapshots" / "tag"):
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    other = one / "ks" / f"indexed-{UUID(int=7).hex}"  # dropped before
    other.mkdir()
    shutil.copy(first.data_path, other)
    found = table_files([one, two, tmp_path / "none"], table)
    assert [file.folder for file in found] == [one / "ks" / folder.name, two / "ks" / folder.name]
    tagged = table_files([one, two], table, "tag")
    assert [file.folder.name for file in tagged] == ["tag", "tag"]
    with pytest.raises(FileNotFoundError, match="has no snapshot 'nope'"):
        table_files([one, two], table, "nope")
    assert table_files([one], replace(table, id=UUID(int=9))) == []


def test_the_purger_of_repaired_and_unrepaired_sstables(vectors: IndexedVectors) -> None:
    def read(file: SSTableFile) -> object:
        statistics = read_statistics(file)
        is_first = file == vectors.files()[0]
        stats = statistics.stats._replace(repaired_at=int(is_first), min_local_deletion_time=5 if is_first else 1000)
        return statistics._replace(stats=stats)

    with mock.patch.object(table_sstables, "read_statistics", read):
        sstables = TableSSTables(vectors.table, vectors.files())
    old, new = DeletionTime(1, 999), DeletionTime(1, 1000)
    purger = sstables.purger(NOW, only_repaired=True)
    assert (purger.deletion(old).is_live, purger.deletion(new).is_live) == (True, False)
    assert sstables.purger(NOW).deletion(new).is_live
    kept = DeletionTime(1, NOW - vectors.table.gc_grace_seconds)
    assert sstables.purger(NOW).deletion(kept) == kept
    assert NO_DELETION_TIME > NOW
