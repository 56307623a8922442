"""The index of an SSTable leads to each partition, and a damaged one is found out."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, find_partition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, TokenRange
from cassandra_storage.formats.sstable.file_name import INDEX, PARTITIONS, ROWS, SUMMARY
from tests.support.cassandra_storage.indexed_partitions import merged_keys, partition_places
from tests.support.vectors import indexed_sstables
from tests.support.vectors.indexed_sstables import IndexedVectors, entry_starts

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.sstable.partition_index import IndexEntry


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


@pytest.fixture
def copied(vectors: IndexedVectors, tmp_path: Path) -> IndexedVectors:
    shutil.copytree(vectors.data, tmp_path / "data")
    return vectors._replace(data=tmp_path / "data")


def test_the_index_finds_each_partition(vectors: IndexedVectors) -> None:
    """BTI's gives the one before, or an earlier one where the token is a prefix of several."""
    for file in vectors.files():
        if file.descriptor.format.format == "bti":
            _check_trie(file, vectors)
            continue
        places = partition_places(file, vectors)
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
    places = [(MINIMUM, b"", 0), *partition_places(file, vectors)]
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
    expected = [find_partition(file, token) for token, _, _ in partition_places(file, copied)]
    if how == "missing":
        summary.unlink()
    elif how == "damaged":
        summary.write_bytes(bytes(len(summary.read_bytes())))
    else:
        shutil.copy(other.path(SUMMARY), summary)
    assert [find_partition(file, token) for token, _, _ in partition_places(file, copied)] == expected


def test_a_summary_saves_reading(copied: IndexedVectors) -> None:
    file = _big(copied)
    token = partition_places(file, copied)[-1][0]

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
    places, sound, path = partition_places(file, copied), file.path(INDEX).read_bytes(), file.path(SUMMARY)
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
    places, sound = partition_places(file, copied), file.path(INDEX).read_bytes()
    file.path(INDEX).write_bytes(sound[: entry_starts(sound)[-2]])
    with pytest.raises(DamagedTableError, match="ends after the entry of the token") as raised:
        merged_keys(copied, [TokenRange(places[-1][0] - 1, MAXIMUM)])
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
    tokens = [token for token, _, _ in partition_places(file, copied) if is_big or _entry(file, token).key is not None]
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
    places = partition_places(file, copied)
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
    places = partition_places(second, copied)
    ranges = [TokenRange(token - 1, token) for token, _, _ in places[1::97]]
    with pytest.raises(DamagedTableError) as raised:
        merged_keys(copied, ranges)
    assert raised.value.path == first.data_path
