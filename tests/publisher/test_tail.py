"""Tailing of segments that grow, finish, vanish and come back, on files as Cassandra writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_program.errors import CdcError, Code
from publisher import cdc_raw
from publisher.inflight import Mark
from publisher.position import Positions
from publisher.tail import WINDOW, Tails
from tests.publisher.segment_files import SegmentFileBuilder, mutation

if TYPE_CHECKING:
    from pathlib import Path

FIRST = 1_700_000_000_000


def new_tails(folder: Path) -> tuple[Tails, Positions]:
    positions = Positions.load(folder / "position.json", UUID(int=1))
    return Tails(folder, positions), positions


def read_all(tails: Tails) -> list[bytes]:
    return [entry.mutation for tail in tails.poll() for entry in tail.entries()]


@settings(deadline=None)  # files on a busy machine
@given(
    syncs=st.lists(st.integers(0, 4), max_size=12),
    torn=st.lists(st.sampled_from(["", "1", "2\nCOMP"]), max_size=12),
    complete=st.booleans(),
)
def test_a_growing_segment_is_read_once_and_only_as_far_as_it_is_durable(
    tmp_path_factory: pytest.TempPathFactory, syncs: list[int], torn: list[str], complete: object
) -> None:
    folder = tmp_path_factory.mktemp("cdc_raw")
    tails, _ = new_tails(folder)
    segment = SegmentFileBuilder(folder, FIRST)
    written: list[bytes] = []
    read: list[bytes] = []
    for number, count in enumerate(syncs):
        for _ in range(count):
            written.append(mutation(len(written)))
            segment.append(written[-1])
        assert read_all(tails) == []  # not synced yet
        segment.sync()
        if number < len(torn):
            whole = segment.index_path.read_text()
            segment.index_path.write_text(torn[number])
            before = read_all(tails)
            assert before == written[len(read) : len(read) + len(before)]
            read += before
            segment.index_path.write_text(whole)
        read += read_all(tails)
        assert read == written
    if complete:
        segment.sync(complete=True)
        [tail] = tails.poll()
        assert list(tail.entries()) == []
        assert tail.is_at_end
        assert tails.poll() == []


@settings(deadline=None)  # files on a busy machine
@given(count=st.integers(1, 60), resume_after=st.integers(0, 59), per_section=st.integers(1, 7))
def test_reading_goes_on_behind_what_is_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, count: int, resume_after: int, per_section: int
) -> None:
    folder = tmp_path_factory.mktemp("cdc_raw")
    segment = SegmentFileBuilder(folder, FIRST)
    positions_after = []
    for number in range(count):
        positions_after.append(segment.append(mutation(number)))
        if number % per_section == 0:
            segment.sync()
    segment.sync(complete=True)
    tails, positions = new_tails(folder)
    done = min(resume_after, count)
    if done:
        positions.move([Mark(FIRST, positions_after[done - 1])])
    assert read_all(tails) == [mutation(number) for number in range(done, count)]


def test_a_mutation_larger_than_the_window(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST, size=2_000_000)
    large = mutation(1, size=1_500_000)
    segment.append(mutation(0))
    segment.append(large)
    segment.sync()
    tails, _ = new_tails(tmp_path)
    assert read_all(tails) == [mutation(0), large]


def test_segments_are_read_in_order_and_a_passed_one_is_read_on(tmp_path: Path) -> None:
    first, second = SegmentFileBuilder(tmp_path, FIRST), SegmentFileBuilder(tmp_path, FIRST + 1)
    first.append(mutation(0))
    second.append(mutation(1))
    second.sync()
    tails, _ = new_tails(tmp_path)
    assert read_all(tails) == [mutation(1)]
    first.sync()
    assert read_all(tails) == [mutation(0)]
    first.append(mutation(2))
    first.sync(complete=True)
    second.append(mutation(3))
    second.sync()
    assert read_all(tails) == [mutation(2), mutation(3)]


def test_segments_without_an_index_are_left_alone_and_may_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    tails, _ = new_tails(tmp_path)
    assert tails.poll() == []
    segment.path.unlink()
    assert tails.poll() == []
    assert "vanished" not in capsys.readouterr().out


def test_a_segment_that_vanishes_unread_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync()
    tails, _ = new_tails(tmp_path)
    assert len(tails.poll()) == 1
    segment.path.unlink()
    assert tails.poll() == []
    assert "vanished" in capsys.readouterr().out


def test_a_finished_segment_that_reappears_is_not_read_again(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync(complete=True)
    tails, positions = new_tails(tmp_path)
    positions.move([Mark(FIRST, 99, is_end=True)])
    assert tails.poll() == []


def test_after_a_crash_the_index_is_the_files_length(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync()
    segment.append(mutation(1))  # never synced: no marker
    segment.index_path.write_text(f"{segment.path.stat().st_size}\nCOMPLETED")
    tails, _ = new_tails(tmp_path)
    [tail] = tails.poll()
    assert [entry.mutation for entry in tail.entries()] == [mutation(0)]
    assert tail.is_at_end


def test_damage_stops_with_segment_and_position(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    good = segment.append(mutation(0))
    segment.append(mutation(1))
    segment.sync()
    content = bytearray(segment.path.read_bytes())
    content[good + 12] ^= 1
    segment.path.write_bytes(content)
    tails, _ = new_tails(tmp_path)
    [tail] = tails.poll()
    with pytest.raises(CdcError, match=f"{segment.path.name} is damaged at position {good}") as caught:
        list(tail.entries())
    assert caught.value.code is Code.SEGMENT_CORRUPT
    assert tail.position == good


def test_a_cdc_raw_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CdcError) as caught:
        cdc_raw.segments(tmp_path / "nowhere")
    assert caught.value.code is Code.CDC_RAW_MISSING


def test_deleting_removes_log_and_index_and_start_removes_orphans(tmp_path: Path) -> None:
    segment, other = SegmentFileBuilder(tmp_path, FIRST), SegmentFileBuilder(tmp_path, FIRST + 1)
    segment.sync()
    other.sync()
    [file, _] = cdc_raw.segments(tmp_path)
    file.delete()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.path.name, other.index_path.name]
    other.path.unlink()
    cdc_raw.remove_orphaned_indexes(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_versions_without_an_index_are_complete_on_arrival(tmp_path: Path) -> None:
    (tmp_path / f"CommitLog-6-{FIRST}.log").touch()
    [file] = cdc_raw.segments(tmp_path)
    index = file.read_index()
    assert index is not None
    assert index.is_completed


@pytest.mark.parametrize("short_by", range(10))
def test_a_window_may_end_anywhere_in_the_head_of_an_entry_larger_than_it(tmp_path: Path, short_by: int) -> None:
    tails, _ = new_tails(tmp_path)
    segment = SegmentFileBuilder(tmp_path, FIRST, size=4 * WINDOW)
    head = segment.append(mutation(0)) + 12  # the size and the two checksums of the entry that fills the window
    small, large = mutation(1, WINDOW - head - short_by), mutation(2, WINDOW + 1)
    segment.append(small)
    segment.append(large)
    segment.sync(complete=True)
    assert read_all(tails) == [mutation(0), small, large]
