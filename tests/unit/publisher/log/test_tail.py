"""Tails of segments that grow, finish, disappear and return, on files as Cassandra writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.files.segments import WINDOW, remove_orphaned_indexes
from cassandra_storage.formats.commitlog.descriptor import index_file_name
from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher.inflight import PendingPosition
from publisher.log import cdc_raw, tail
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails
from tests.support.cassandra_storage.files.coded import CODECS, FORMS, Form
from tests.support.cassandra_storage.segment_builder import NAME
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation

if TYPE_CHECKING:
    from pathlib import Path

FIRST = 1_700_000_000_000


def new_tails(folder: Path) -> tuple[SegmentTails, Positions]:
    positions = Positions.load(folder / "position.json", UUID(int=1))
    return SegmentTails(folder, positions), positions


def read_all(tails: SegmentTails) -> list[bytes]:
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
        [segment_tail] = tails.poll()
        assert list(segment_tail.entries()) == []
        assert segment_tail.is_at_end
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
        positions.move([PendingPosition(FIRST, positions_after[done - 1])])
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


def test_segments_without_an_index_are_left_alone_and_may_go(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    tails, _ = new_tails(tmp_path)
    assert tails.poll() == []
    segment.path.unlink()
    assert tails.poll() == []
    assert tails.take_lost() == []


def test_a_segment_that_vanishes_unread_is_lost(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync()
    tails, _ = new_tails(tmp_path)
    assert len(tails.poll()) == 1
    segment.path.unlink()
    assert tails.poll() == []
    assert tails.take_lost() == [FIRST]
    assert tails.take_lost() == []


def test_a_segment_that_vanishes_while_no_publisher_runs_is_lost_once(tmp_path: Path) -> None:
    for number in range(2):
        segment = SegmentFileBuilder(tmp_path, FIRST + number)
        segment.append(mutation(number))
        segment.sync()
    _, positions = new_tails(tmp_path)
    positions.move([PendingPosition(FIRST, 100), PendingPosition(FIRST + 1, 100)])
    positions.save()
    segment.path.unlink()
    tails, _ = new_tails(tmp_path)
    for lost in [FIRST + 1], []:
        tails.poll()
        assert tails.take_lost() == lost


def test_a_finished_segment_that_reappears_is_not_read_again(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync(complete=True)
    tails, positions = new_tails(tmp_path)
    positions.move([PendingPosition(FIRST, 99, is_end=True)])
    assert tails.poll() == []


def test_after_a_crash_the_index_is_the_files_length(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    segment.sync()
    segment.append(mutation(1))  # never synced: no marker
    segment.index_path.write_text(f"{segment.path.stat().st_size}\nCOMPLETED")
    tails, _ = new_tails(tmp_path)
    [segment_tail] = tails.poll()
    assert [entry.mutation for entry in segment_tail.entries()] == [mutation(0)]
    assert segment_tail.is_at_end


def crashed(segment: SegmentFileBuilder, offset: int) -> None:
    """The node was killed while it wrote the byte at `offset`, and has replayed the segment."""
    content = bytearray(segment.path.read_bytes())
    content[offset] ^= 1
    segment.path.write_bytes(content)
    segment.index_path.write_text(f"{len(content)}\nCOMPLETED")


@pytest.mark.parametrize("is_seen_before", [True, False])
@pytest.mark.parametrize("place", ["size", "mutation", "marker"])
def test_a_crashs_torn_end_is_the_end(
    tmp_path: Path, place: str, is_seen_before: object, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    durable = segment.sync()
    tails, _ = new_tails(tmp_path)
    read = read_all(tails) if is_seen_before else []
    segment.append(mutation(1))
    segment.sync()
    crashed(segment, durable + {"size": 8, "mutation": 20, "marker": 5}[place])
    [segment_tail] = tails.poll()
    read += [entry.mutation for entry in segment_tail.entries()]
    assert read == [mutation(0)]
    assert segment_tail.is_at_end
    assert tails.poll() == []
    assert "torn" in capsys.readouterr().out


@pytest.mark.parametrize("is_seen_before", [True, False])
def test_good_entries_behind_a_bad_one_are_no_torn_end(tmp_path: Path, is_seen_before: object) -> None:
    """Unless it is known that none of it was durable when the node crashed: then Cassandra reads on, and so do we."""
    segment = SegmentFileBuilder(tmp_path, FIRST)
    segment.append(mutation(0))
    durable = segment.sync()
    tails, _ = new_tails(tmp_path)
    read = read_all(tails) if is_seen_before else []
    segment.append(mutation(1))
    segment.append(mutation(2))
    segment.sync()
    crashed(segment, durable + 20)
    if is_seen_before:
        assert read + read_all(tails) == [mutation(0), mutation(2)]
        return
    with pytest.raises(CdcError, match=f"is damaged at position {durable + 8}"):
        read_all(tails)


def test_damage_in_what_was_durable_is_no_torn_end(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    good = segment.append(mutation(0))
    segment.append(mutation(1))
    segment.sync()
    tails, _ = new_tails(tmp_path)
    tails.poll()
    crashed(segment, good + 12)
    with pytest.raises(CdcError, match=f"is damaged at position {good}"):
        read_all(tails)


def test_a_segment_completed_without_a_crash_has_no_torn_end(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    good = segment.append(mutation(0))
    segment.append(mutation(1))
    segment.sync(complete=True)
    index = segment.index_path.read_text()
    crashed(segment, good + 12)
    segment.index_path.write_text(index)
    with pytest.raises(CdcError, match=f"is damaged at position {good}"):
        read_all(new_tails(tmp_path)[0])


def test_a_segment_that_its_node_left_behind_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flushed, then the node crashed: the index is never completed, and durable entries may follow its offset."""
    monkeypatch.setattr(tail, "ABANDONED_SECONDS", 0.0)
    first, second = SegmentFileBuilder(tmp_path, FIRST), SegmentFileBuilder(tmp_path, FIRST + 1)
    first.append(mutation(0))
    first.sync()
    index = first.index_path.read_text()
    first.append(mutation(1))
    first.sync()
    first.index_path.write_text(index)
    tails, _ = new_tails(tmp_path)
    assert read_all(tails) == [mutation(0)]
    first.let_go()
    assert read_all(tails) == []  # no later segment is in use
    second.append(mutation(2))
    second.sync()
    left, newer = tails.poll()
    assert [entry.mutation for entry in left.entries()] == [mutation(1)]
    assert left.is_at_end
    assert [entry.mutation for entry in newer.entries()] == [mutation(2)]
    assert not newer.is_at_end


@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_a_passed_segment_is_not_left_behind_while_it_may_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The commit log still has it, or has just let go of it."""
    monkeypatch.setattr(tail, "ABANDONED_SECONDS", seconds)
    first, second = SegmentFileBuilder(tmp_path, FIRST), SegmentFileBuilder(tmp_path, FIRST + 1)
    tails, _ = new_tails(tmp_path)
    for segment in (first, second):
        segment.append(mutation(0))
        segment.sync()
    if seconds:
        first.let_go()
    for _ in range(3):
        read_all(tails)
    first.append(mutation(1))
    assert read_all(tails) == []
    first.sync(complete=True)
    assert read_all(tails) == [mutation(1)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_compressed_and_encrypted_segments(tmp_path: Path, form: Form) -> None:
    """The index counts in positions, which are not the file's."""
    sections = [[mutation(0), mutation(1)], [mutation(2)], [mutation(3)]]
    path = tmp_path / NAME
    index_path = tmp_path / index_file_name(NAME)
    tails = SegmentTails(tmp_path, Positions.load(tmp_path / "position.json", UUID(int=1)), CODECS)
    offset = form.header_size
    read = []
    for count, section in enumerate(sections, start=1):
        path.write_bytes(form.segment(sections[:count]))
        assert read_all(tails) == []
        offset += 8 + sum(12 + len(one) for one in section)
        index_path.write_text(str(offset))
        read += read_all(tails)
        assert read == [one for section in sections[:count] for one in section]
    index_path.write_text(f"{offset}\nCOMPLETED")
    [segment_tail] = tails.poll()
    assert list(segment_tail.entries()) == []
    assert segment_tail.is_at_end
    assert segment_tail.position == offset


def test_a_torn_section(tmp_path: Path) -> None:
    form = FORMS[0]
    data = form.segment([[mutation(0)], [mutation(1)]])[:-3]
    (tmp_path / NAME).write_bytes(data)
    (tmp_path / index_file_name(NAME)).write_text(f"{len(data)}\nCOMPLETED")
    assert read_all(SegmentTails(tmp_path, new_tails(tmp_path)[1], CODECS)) == [mutation(0)]
    (tmp_path / index_file_name(NAME)).write_text(f"{len(data) + 9}\nCOMPLETED")
    with pytest.raises(CdcError, match=f"in the section at byte {len(form.segment([[mutation(0)]]))} of the file"):
        read_all(SegmentTails(tmp_path, new_tails(tmp_path)[1], CODECS))


def test_a_compression_that_is_not_known(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(FORMS[0].segment([[mutation(0)]]))
    (tmp_path / index_file_name(NAME)).write_text("1000")
    with pytest.raises(CdcError) as caught:
        read_all(new_tails(tmp_path)[0])
    assert caught.value.code is Code.SEGMENT_UNSUPPORTED


def test_damage_stops_with_segment_and_position(tmp_path: Path) -> None:
    segment = SegmentFileBuilder(tmp_path, FIRST)
    good = segment.append(mutation(0))
    segment.append(mutation(1))
    segment.sync()
    content = bytearray(segment.path.read_bytes())
    content[good + 12] ^= 1
    segment.path.write_bytes(content)
    tails, _ = new_tails(tmp_path)
    [segment_tail] = tails.poll()
    with pytest.raises(CdcError, match=f"{segment.path.name} is damaged at position {good}") as caught:
        list(segment_tail.entries())
    assert caught.value.code is Code.SEGMENT_CORRUPT
    assert segment_tail.position == good


def test_a_cdc_raw_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CdcError) as caught:
        cdc_raw.list_cdc_segments(tmp_path / "nowhere")
    assert caught.value.code is Code.CDC_RAW_MISSING


def test_deleting_removes_log_and_index_and_start_removes_orphans(tmp_path: Path) -> None:
    segment, other = SegmentFileBuilder(tmp_path, FIRST), SegmentFileBuilder(tmp_path, FIRST + 1)
    segment.sync()
    other.sync()
    [file, _] = cdc_raw.list_cdc_segments(tmp_path)
    file.delete()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.path.name, other.index_path.name]
    other.path.unlink()
    remove_orphaned_indexes(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_versions_without_an_index_are_complete_on_arrival(tmp_path: Path) -> None:
    (tmp_path / f"CommitLog-6-{FIRST}.log").touch()
    [file] = cdc_raw.list_cdc_segments(tmp_path)
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


@pytest.mark.parametrize("torn", ["", "1"])
def test_what_was_read_is_read_again_while_cassandra_writes_the_index(tmp_path: Path, torn: str) -> None:
    tails, _ = new_tails(tmp_path)
    segment = SegmentFileBuilder(tmp_path, FIRST)
    for number in range(3):
        segment.append(mutation(number))
    segment.sync()
    assert read_all(tails) == [mutation(number) for number in range(3)]
    segment.index_path.write_text(torn)
    again = tails.open_again(FIRST, 0)
    assert again is not None
    assert [entry.mutation for entry in again.entries()] == [mutation(number) for number in range(3)]
    rest = [entry.mutation for found, _ in tails.read_again(CommitLogPosition(FIRST, 0)) for entry in found.entries()]
    assert rest == [mutation(number) for number in range(3)]


def test_a_segment_that_is_gone_cannot_be_read_again(tmp_path: Path) -> None:
    tails, _ = new_tails(tmp_path)
    assert tails.open_again(FIRST, 0) is None


def durable(segment: SegmentFileBuilder) -> int:
    """The offset in the index of a segment that grows."""
    return int(segment.index_path.read_text().split()[0])


def test_the_lag_grows_while_nothing_is_polled(tmp_path: Path) -> None:
    """While Kafka is away, the publisher reads no further: the log that the node goes on writing is the lag."""
    tails, positions = new_tails(tmp_path)
    segments = [SegmentFileBuilder(tmp_path, FIRST + number) for number in range(3)]
    segments[0].append(mutation(0))
    segments[0].sync()
    tails.poll()
    assert tails.unacknowledged_bytes() == durable(segments[0])
    for segment in segments:
        for number in range(100):
            segment.append(mutation(number))
        segment.sync(complete=segment is not segments[2])
    sizes = [segments[0].path.stat().st_size, segments[1].path.stat().st_size, durable(segments[2])]
    assert tails.unacknowledged_bytes() == sum(sizes)
    positions.move([PendingPosition(FIRST, sizes[0], is_end=True)])
    assert tails.unacknowledged_bytes() == sum(sizes[1:])
