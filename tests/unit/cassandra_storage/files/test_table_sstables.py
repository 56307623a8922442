"""The SSTables of a table as one stream: found in directories and snapshots, read by ranges of tokens through their
indexes, refused where they are damaged.
"""

from __future__ import annotations

import contextlib
import gc
import random
import shutil
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock
from uuid import UUID

import pytest

from cassandra_storage.files import table_sstables
from cassandra_storage.files.sstables import SSTable, SSTableFile, read_statistics
from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, find_partition, table_files
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, TokenRange, spans
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, DeletionTime
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.tables import BINARY_NAMES
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, INDEX, PARTITIONS, ROWS, STATISTICS, SUMMARY
from cassandra_storage.formats.sstable.merge import MergePosition
from tests.support.vectors import indexed_sstables
from tests.support.vectors.indexed_sstables import PARTITIONS as MADE
from tests.support.vectors.indexed_sstables import ROWS as WIDE_ROWS
from tests.support.vectors.indexed_sstables import IndexedVectors, entry_starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.partition_index import IndexEntry

NOW = 2_000_000_000


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


@pytest.fixture
def copied(vectors: IndexedVectors, tmp_path: Path) -> IndexedVectors:
    shutil.copytree(vectors.data, tmp_path / "data")
    return vectors._replace(data=tmp_path / "data")


def _keys(
    vectors: IndexedVectors,
    ranges: Iterable[TokenRange] = (TokenRange(MINIMUM, MINIMUM),),
    after: MergePosition | None = None,
) -> list[tuple[int, bytes, int]]:
    """(token, key, rows) of each merged partition."""
    sstables = TableSSTables(vectors.table, vectors.files())
    merged = sstables.merged(sstables.purger(NOW), ranges, after)
    return [
        (partition.token, partition.key, sum(isinstance(one, Row) for one in partition.unfiltereds))
        for partition in merged
    ]


def test_all_partitions_are_merged(vectors: IndexedVectors) -> None:
    found = _keys(vectors)
    assert [partition[:2] for partition in found] == sorted(partition[:2] for partition in found)
    ids = [int.from_bytes(key, "big") for _, key, _ in found]
    assert sorted(ids) == [id_ for id_ in range(MADE) if id_ % 2 == 0 or id_ % 3 == 0]
    assert {rows for _, _, rows in found} == {1, WIDE_ROWS}


def test_ranges_are_read_through_the_index(vectors: IndexedVectors) -> None:
    whole = _keys(vectors)
    rng = random.Random(1)
    tokens = [MINIMUM, MAXIMUM, 0, *(token for token, _, _ in whole)]
    for _ in range(30):
        ranges = [TokenRange(rng.choice(tokens), rng.choice(tokens)) for _ in range(rng.randint(1, 3))]
        expected = [partition for partition in whole if any(_is_in(partition[0], one) for one in ranges)]
        assert _keys(vectors, ranges) == expected


def _is_in(token: int, of: TokenRange) -> bool:
    return of.start < token <= of.end or (of.start >= of.end and (token > of.start or token <= of.end))


def test_a_merge_goes_on_after_a_place(vectors: IndexedVectors) -> None:
    whole = _keys(vectors)
    token, key, rows = next(partition for partition in whole if partition[2] == WIDE_ROWS)
    number = whole.index((token, key, rows))
    assert _keys(vectors, after=MergePosition(token, key)) == whole[number + 1 :]
    clustering = ((99).to_bytes(4, "big"),)
    assert _keys(vectors, after=MergePosition(token, key, clustering)) == [
        (token, key, WIDE_ROWS - 100),
        *whole[number + 1 :],
    ]


def _places(file: SSTableFile, vectors: IndexedVectors) -> list[tuple[int, bytes, int]]:
    """(token, key, position) of each partition, read one by one."""
    with SSTable(file, vectors.table) as sstable:
        return [
            (decorated_token(partition.key), partition.key, partition.position) for partition in sstable.partitions()
        ]


def test_the_index_finds_each_partition(vectors: IndexedVectors) -> None:
    """BTI's gives the one before, or an earlier one where the token is a prefix of several."""
    for file in vectors.files():
        if file.descriptor.format.format == "bti":
            _check_trie(file, vectors)
            continue
        places = _places(file, vectors)
        positions = [position for _, _, position in places]
        for number, (token, key, position) in enumerate(places):
            entry = find_partition(file, token)
            assert entry is not None
            assert (entry.position, entry.key or key) == (position, key)
            after = find_partition(file, token + 1)
            if number + 1 < len(places):
                assert after is not None
                assert after.position == positions[number + 1]
            else:
                assert after is None
        first = find_partition(file, MINIMUM)
        assert first is not None
        assert first.position == 0


def _check_trie(file: SSTableFile, vectors: IndexedVectors) -> None:
    places = [(MINIMUM, b"", 0), *_places(file, vectors)]
    keys = set()
    for (_, key, position), (token, _, _) in pairwise(places):
        entry = find_partition(file, token)
        assert entry is not None
        assert (entry.position, entry.key or key) == (position, key)
        keys.add(entry.key is not None)
    assert keys == {True, False}


def _big(copied: IndexedVectors) -> SSTableFile:
    file = copied.files()[0]
    if file.descriptor.format.format == "bti":
        pytest.skip("BTI has no summary")
    return file


@pytest.mark.parametrize("how", ["missing", "damaged", "of another"])
def test_a_summary_is_not_trusted(copied: IndexedVectors, how: str) -> None:
    file = _big(copied)
    other = copied.files()[1]
    summary = file.path(SUMMARY)
    expected = [find_partition(file, token) for token, _, _ in _places(file, copied)]
    if how == "missing":
        summary.unlink()
    elif how == "damaged":
        summary.write_bytes(bytes(len(summary.read_bytes())))
    else:
        shutil.copy(other.path(SUMMARY), summary)
    assert [find_partition(file, token) for token, _, _ in _places(file, copied)] == expected


def test_a_summary_saves_reading(copied: IndexedVectors) -> None:
    file = _big(copied)
    token = _places(file, copied)[-1][0]

    def entries() -> int:
        with mock.patch(
            "cassandra_storage.formats.sstable.partition_index.decorated_token", wraps=decorated_token
        ) as called:
            find_partition(file, token)
        return called.call_count

    with_summary = entries()
    file.path(SUMMARY).unlink()
    assert with_summary < 200 < entries()


@pytest.mark.parametrize("summary", ["whole", "missing", "cut", "of another"])
def test_an_index_that_is_cut_between_two_entries_is_found_out(copied: IndexedVectors, summary: str) -> None:
    """Partitions before the cut are found, and those after it are not taken for absent."""
    file = _big(copied)
    places, sound, path = _places(file, copied), file.path(INDEX).read_bytes(), file.path(SUMMARY)
    cuts = entry_starts(sound)
    assert len(cuts) == len(places)
    if summary == "missing":
        path.unlink()
    elif summary == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif summary == "of another":
        shutil.copy(copied.files()[1].path(SUMMARY), path)
    assert find_partition(file, places[-1][0] + 1) is None
    for number in (0, 1, 2, len(cuts) // 2, len(cuts) - 1):
        file.path(INDEX).write_bytes(sound[: cuts[number]])
        for token, key, _ in places[:number:50]:
            assert _entry(file, token).key == key
        for token in (places[number][0], places[-1][0], MAXIMUM):
            with pytest.raises(FormatError) as raised:
                find_partition(file, token)
            error = raised.value
            assert (error.segment, error.position) == (file.path(INDEX).name, cuts[number])
            if number:
                assert f"ends after the entry of the token {places[number - 1][0]}: " in error.reason
                assert f"from byte {places[number][2]} of the data on cannot be found" in error.reason
            else:
                assert "no partition of the data can be found" in error.reason


def test_a_range_after_a_cut_index_is_damage(copied: IndexedVectors) -> None:
    file = _big(copied)
    places, sound = _places(file, copied), file.path(INDEX).read_bytes()
    file.path(INDEX).write_bytes(sound[: entry_starts(sound)[-2]])
    with pytest.raises(DamagedTableError, match="ends after the entry of the token") as raised:
        _keys(copied, [TokenRange(places[-1][0] - 1, MAXIMUM)])
    assert raised.value.path == file.path(INDEX)


def test_an_index_that_leads_elsewhere_is_found_out_at_its_end(copied: IndexedVectors) -> None:
    file = _big(copied)
    other = copied.files()[1]
    file.path(SUMMARY).unlink()
    shutil.copy(other.path(INDEX), file.path(INDEX))
    with pytest.raises(FormatError) as raised:
        find_partition(file, MAXIMUM)
    assert raised.value.segment == file.data_path.name


def _entry(file: SSTableFile, token: int) -> IndexEntry:
    entry = find_partition(file, token)
    assert entry is not None
    return entry


def _refusal(file: SSTableFile, token: int) -> str | None:
    """The file that a refusal to find the token names."""
    try:
        find_partition(file, token)
    except FormatError as error:
        assert error.segment is not None  # noqa: PT017  most are found
        return error.segment
    return None


@pytest.mark.parametrize("component", [INDEX, SUMMARY, PARTITIONS, ROWS])
def test_a_damaged_index_gives_errors_and_nothing_else(copied: IndexedVectors, component: str) -> None:
    file = copied.files()[0]
    path = file.path(component)
    if not path.exists():
        pytest.skip("another format")
    sound = path.read_bytes()
    rng = random.Random(2)
    is_big = file.descriptor.format.format == "big"
    tokens = [token for token, _, _ in _places(file, copied) if is_big or _entry(file, token).key is not None]
    refused = 0
    for _ in range(300):
        data = bytearray(sound)
        for _ in range(rng.randint(1, 4)):
            start = rng.choice((0, max(len(data) - 24, 0), rng.randrange(len(data))))
            data[min(start + rng.randrange(24), len(data) - 1)] = rng.randrange(256)
        path.write_bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))])
        named = _refusal(file, rng.choice((rng.choice(tokens), rng.randint(MINIMUM, MAXIMUM))))
        refused += named is not None
        assert named in (None, path.name, file.path(PARTITIONS).name, file.path(ROWS).name)
    assert refused > 10 or component == SUMMARY


@pytest.mark.parametrize("component", [INDEX, PARTITIONS])
def test_a_flipped_bit_of_an_index_loses_nothing_silently(copied: IndexedVectors, component: str) -> None:
    """The index has no checksum: what is read from a token on is right, or there is an error."""
    file = copied.files()[0]
    path = file.path(component)
    if not path.exists():
        pytest.skip("another format")
    sound, rng = path.read_bytes(), random.Random(4)
    places = _places(file, copied)
    only = TableSSTables(copied.table, [file])
    refused = 0
    for _ in range(200):
        data = bytearray(sound)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        token, key, _ = rng.choice(places)
        with closing(only.merged(only.purger(0), [TokenRange(token - 1, MAXIMUM)])) as merged:
            try:
                first = next(merged)
            except DamagedTableError:
                refused += 1
            else:
                assert (first.token, first.key) == (token, key)
    assert refused > 0


def test_an_index_of_another_sstable_is_found_out(copied: IndexedVectors) -> None:
    first, second = copied.files()
    for component in (INDEX, SUMMARY, PARTITIONS, ROWS):
        if first.path(component).exists():
            shutil.copy(second.path(component), first.path(component))
    places = _places(second, copied)
    ranges = [TokenRange(token - 1, token) for token, _, _ in places[1::97]]
    with pytest.raises(DamagedTableError) as raised:
        _keys(copied, ranges)
    assert raised.value.path == first.data_path


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
        _keys(copied, [TokenRange(0, MAXIMUM)])
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
        _keys(copied)
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
    whole = _keys(vectors)
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
