"""Segments that move to the spool: every mutation is read, at whatever moment a move is interrupted."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

import pytest

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher.inflight import PendingPosition
from publisher.log import segment_disposal
from publisher.log.cdc_raw import list_cdc_segments
from publisher.log.position import Positions
from publisher.log.segment_disposal import SegmentDisposal, open_segment_disposal
from publisher.log.space import Space
from publisher.log.spool import SEGMENTS_PER_CALL, Spool, open_spool, spool_above
from publisher.log.tail import SegmentTails
from publisher.progress import Progress
from publisher.settings import PublisherSettings
from publisher.topics.waiting import WaitingTables
from publisher.upkeep.segment_cleanup import SegmentCleanup
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation
from tests.support.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.files.segments import SegmentFile

FIRST = 1_700_000_000_000
PER_SEGMENT = 5
MIB = 1 << 20
HOST = UUID(int=1)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class Killed(BaseException):
    """Raised in place of SIGKILL: nothing is cleaned up."""


@pytest.fixture
def cdc_raw(tmp_path: Path) -> Path:
    folder = tmp_path / "cdc_raw"
    folder.mkdir()
    return folder


def fill(folder: Path, count: int, *, size: int = 20_000) -> list[bytes]:
    """So many complete segments and the one in use."""
    written: list[bytes] = []
    for number in range(count + 1):
        segment = SegmentFileBuilder(folder, FIRST + number, size=size)
        for _ in range(PER_SEGMENT):
            written.append(mutation(len(written)))
            segment.append(written[-1])
        segment.sync(complete=number < count)
    return written


def opened(folder: Path, *, max_mib: int = 100) -> Spool:
    return Spool(folder / "spool", max_mib * MIB, is_on=True)


def read(cdc_raw: Path, spool: Spool) -> list[bytes]:
    """Read as a publisher that starts does."""
    tails = SegmentTails(cdc_raw, Positions.load(cdc_raw / "position.json", HOST), spool=spool)
    return [entry.mutation for tail in tails.poll() for entry in tail.entries()]


def another_filesystem(monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.parent != target.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)


def die_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise before call number `step` of those that change something on the disk."""
    count = 0

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count > step:
                raise Killed
            return function(*arguments, **named)

        return call

    for owner, name in ((Path, "rename"), (Path, "unlink"), (os, "fsync"), (shutil, "copyfileobj")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.parametrize("is_same_filesystem", [True, False])
def test_a_move_cut_short_anywhere_loses_nothing_and_doubles_nothing(
    tmp_path: Path, cdc_raw: Path, *, is_same_filesystem: bool
) -> None:
    written = fill(cdc_raw, 2)
    for step in range(100):
        with pytest.MonkeyPatch.context() as patch:
            if not is_same_filesystem:
                another_filesystem(patch)
            die_at(step, patch)
            try:
                done = list(opened(tmp_path).take_oldest(list_cdc_segments(cdc_raw), 1))
            except Killed:
                done = []
        again = opened(tmp_path)
        assert read(cdc_raw, again) == written
        if done:
            break
        for file in again.files():  # as far as it got counts: the next try begins with it here
            if file.id not in {segment.id for segment in list_cdc_segments(cdc_raw)}:
                segment_disposal.move_segment(file, cdc_raw)
            else:
                file.delete()
    assert step > (5 if is_same_filesystem else 8)
    assert [file.id for file in again.files()] == [FIRST]


def test_the_oldest_that_are_complete_go_and_are_read_first(tmp_path: Path, cdc_raw: Path) -> None:
    written = fill(cdc_raw, SEGMENTS_PER_CALL + 2)
    there = opened(tmp_path)
    size = list_cdc_segments(cdc_raw)[0].path.stat().st_size
    moved = list(there.take_oldest(list_cdc_segments(cdc_raw), 2 * size + 1))
    assert [file.id for file in moved] == [FIRST, FIRST + 1, FIRST + 2]
    assert (
        len(list(there.take_oldest(list_cdc_segments(cdc_raw), 100 * size))) == SEGMENTS_PER_CALL - 1
    )  # the one in use stays
    assert len(list_cdc_segments(cdc_raw)) == 1
    assert there.bytes == sum(file.path.stat().st_size for file in there.files())
    assert there.moved == SEGMENTS_PER_CALL + 2
    assert list(there.take_oldest(list_cdc_segments(cdc_raw), 0)) == []
    assert read(cdc_raw, opened(tmp_path)) == written


def test_a_segment_is_read_on_where_it_was_while_it_moves(tmp_path: Path, cdc_raw: Path) -> None:
    written = fill(cdc_raw, 2)
    there = opened(tmp_path)
    positions = Positions.load(tmp_path / "position.json", HOST)
    tails = SegmentTails(cdc_raw, positions, spool=there)
    first, second, last = tails.poll()
    entries = first.entries()
    found = [next(entries).mutation]
    for moved in there.take_oldest(list_cdc_segments(cdc_raw), 1 << 30):
        tails.relocate(moved)
    found += [entry.mutation for tail in (entries, second.entries(), last.entries()) for entry in tail]
    assert found == written
    assert tails.unacknowledged_bytes() > 0
    positions.move([PendingPosition(tail.file.id, tail.position, is_end=tail.is_at_end) for tail in (first, second)])
    for tail in (first, second):
        tail.file.delete()
        there.forget(tail.file)
    assert tails.poll() == []
    assert (there.files(), there.bytes) == ([], 0)


def test_a_full_spool_and_a_short_disk_take_nothing_more(
    tmp_path: Path, cdc_raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = fill(cdc_raw, 3, size=MIB * 3 // 4)
    there = opened(tmp_path, max_mib=1)
    assert len(list(there.take_oldest(list_cdc_segments(cdc_raw), 1 << 30))) == 1
    assert "spool_max_mib" in there.problem
    there.max_bytes = 100 * MIB
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1000, 901, 99))
    assert list(there.take_oldest(list_cdc_segments(cdc_raw), 1 << 30)) == []
    assert "10 %" in there.problem
    monkeypatch.undo()
    assert len(list(there.take_oldest(list_cdc_segments(cdc_raw), 1 << 30))) == 2
    assert there.problem == ""
    assert read(cdc_raw, there) == written


def test_a_tenth_of_a_real_disk_stays_free(tmp_path: Path, cdc_raw: Path) -> None:
    written = fill(cdc_raw, 5, size=MIB)
    with small_disk(tmp_path / "disk", 4) as disk:
        there = Spool(disk / "spool", 100 * MIB, is_on=True)
        assert len(list(there.take_oldest(list_cdc_segments(cdc_raw), 1 << 30))) == 3
        assert "10 %" in there.problem
        assert shutil.disk_usage(disk).free >= 4 * MIB // 10
        assert read(cdc_raw, there) == written


def test_what_cannot_be_moved_stays_and_is_reported(tmp_path: Path, cdc_raw: Path) -> None:
    written = fill(cdc_raw, 2)
    there = opened(tmp_path)
    (there.folder).rmdir()
    there.folder.write_text("no folder")
    with pytest.raises(NotADirectoryError):
        there.folder.joinpath("x").stat()
    assert list(there.take_oldest(list_cdc_segments(cdc_raw), 1)) == []
    assert "cannot be moved" in there.problem
    assert read(cdc_raw, there) == written


def test_nothing_moves_unless_it_is_asked_for(tmp_path: Path, cdc_raw: Path) -> None:
    fill(cdc_raw, 2)
    off = Spool(tmp_path / "spool", 100 * MIB, is_on=False)
    assert list(off.take_oldest(list_cdc_segments(cdc_raw), 1 << 30)) == []
    assert not off.folder.exists()


def test_a_spool_that_is_set_elsewhere_is_not_forgotten(tmp_path: Path, cdc_raw: Path) -> None:
    fill(cdc_raw, 1)
    own: dict[str, Any] = {"state_directory": tmp_path, "on_full": "spool"}
    here = open_spool(PublisherSettings(**own, spool_directory=tmp_path / "one"), HOST)
    [moved] = here.take_oldest(list_cdc_segments(cdc_raw), 1)
    assert moved.path.parent == tmp_path / "one" / str(HOST)
    with pytest.raises(CdcError) as caught:
        open_spool(PublisherSettings(state_directory=tmp_path), HOST)
    assert caught.value.code is Code.SEGMENTS_STUCK
    assert str(here.folder) in caught.value.problem
    moved.delete()
    here.forget(moved)
    assert open_spool(PublisherSettings(state_directory=tmp_path), HOST).files() == []


def test_a_spool_whose_disk_is_not_mounted_is_not_taken_for_empty(tmp_path: Path, cdc_raw: Path) -> None:
    """Its segments would come much later, after tombstones that they need are purged, or never."""
    written = fill(cdc_raw, 3)
    own = PublisherSettings(state_directory=tmp_path, on_full="spool", spool_directory=tmp_path / "disk")
    positions = Positions.load(tmp_path / "position.json", HOST)

    def opened_again(more: PublisherSettings = own) -> Spool:
        return open_spool(more, HOST, positions.is_finished)

    size = list_cdc_segments(cdc_raw)[0].path.stat().st_size
    first, second = opened_again().take_oldest(list_cdc_segments(cdc_raw), size + 1)
    (tmp_path / "disk").rename(tmp_path / "away")
    for settings in (own, PublisherSettings(state_directory=tmp_path, on_full="spool")):
        for _ in range(2):
            with pytest.raises(CdcError, match=f"2 segments .* such as {FIRST}") as caught:
                opened_again(settings)
            assert caught.value.code is Code.SEGMENTS_STUCK
            assert str(tmp_path / "spool.json") in caught.value.fix
    (tmp_path / "away").rename(tmp_path / "spool")  # as CDC-019 says for another setting
    assert opened_again(PublisherSettings(state_directory=tmp_path, on_full="spool")).files() == [
        file._replace(path=tmp_path / "spool" / str(HOST) / file.path.name) for file in (first, second)
    ]
    (tmp_path / "spool").rename(tmp_path / "disk")
    spool = opened_again()
    assert read(cdc_raw, spool) == written
    positions.move([PendingPosition(FIRST, 1, is_end=True)])
    first.delete()  # and killed before it was forgotten
    spool = opened_again()
    assert spool.files() == [second]
    second.delete()
    spool.forget(second)
    shutil.rmtree(tmp_path / "disk")
    assert opened_again().files() == []


def test_moving_begins_early_enough_for_small_and_large_allowances() -> None:
    def above(segments: int, size: int = 32 * MIB) -> int:
        return spool_above(Space(0, (segments - 1) * size, 0, 0, None, None, size)) // size

    assert above(128) == 76
    assert above(10) == 5  # four are free
    assert above(4) == 0


def test_a_published_segment_that_cannot_be_deleted_stays(cdc_raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    fill(cdc_raw, 1)
    [file, _] = list_cdc_segments(cdc_raw)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(CdcError, match="cannot be deleted: Permission denied") as caught:
        open_segment_disposal(PublisherSettings()).dispose(file)
    assert caught.value.code is Code.SEGMENTS_STUCK


def test_a_copy_of_a_spooled_segment_that_cannot_be_deleted_is_reported(
    tmp_path: Path, cdc_raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that crashed has linked it again."""

    def refuse(_path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    fill(cdc_raw, 1)
    spool = opened(tmp_path)
    [moved] = spool.take_oldest(list_cdc_segments(cdc_raw), 1)
    shutil.copy(moved.path, cdc_raw)
    schema = SimpleNamespace(row_ends=SimpleNamespace(first_needed_segment=None))
    positions = Positions.load(tmp_path / "position.json", HOST)
    waiting = WaitingTables(tmp_path / "waiting.json")
    node = SimpleNamespace(spool=spool, positions=positions, schema=schema, waiting=waiting)
    progress = Progress(0)
    monkeypatch.setattr(Path, "unlink", refuse)
    cleanup = SegmentCleanup(cdc_raw, cast("Any", node), progress, 25)
    cleanup.relieve_cdc_raw(Space(0, 60 * MIB, 0, 0, None, None, MIB))
    assert "cannot be deleted: Permission denied" in progress.current_problem(monotonic())


@pytest.mark.parametrize("choice", ["delete", "keep", "folder"])
def test_a_published_segment_goes_where_the_settings_say(tmp_path: Path, cdc_raw: Path, choice: str) -> None:
    fill(cdc_raw, 1)
    [file, _] = list_cdc_segments(cdc_raw)
    content = file.path.read_bytes()
    disposal: SegmentDisposal = open_segment_disposal(
        PublisherSettings(processed_segments=choice if choice != "folder" else str(tmp_path / "old"))
    )
    assert disposal.dispose(file) == (choice != "keep")
    assert file.path.exists() == file.index_path.exists() == (choice == "keep")
    if choice == "folder":
        kept: list[SegmentFile] = list_cdc_segments(tmp_path / "old")
        assert [file.path.read_bytes() for file in kept] == [content]
        assert kept[0].index_path.exists()


def test_a_segment_is_not_moved_to_where_it_is(tmp_path: Path, cdc_raw: Path) -> None:
    fill(cdc_raw, 1)
    file = list_cdc_segments(cdc_raw)[0]
    (tmp_path / "link").symlink_to(cdc_raw)
    with pytest.raises(CdcError) as caught:
        open_segment_disposal(PublisherSettings(processed_segments=str(tmp_path / "link"))).dispose(file)
    assert caught.value.code is Code.SEGMENTS_STUCK
    assert all(path.exists() for path in (file.path, file.index_path))


def test_a_published_segment_that_the_node_links_again_goes_again(tmp_path: Path, cdc_raw: Path) -> None:
    """The node has crashed before it flushed the segment: the commit log still had its own link."""
    fill(cdc_raw, 1)
    [file, active] = list_cdc_segments(cdc_raw)
    os.link(file.path, tmp_path / file.path.name)
    disposal = open_segment_disposal(PublisherSettings(processed_segments=str(tmp_path / "old")))
    disposal.dispose(file)
    os.link(tmp_path / file.path.name, file.path)
    file.index_path.write_text("20000\nCOMPLETED\n")
    assert disposal.dispose(file)
    assert list_cdc_segments(cdc_raw) == [active]
    assert [segment.id for segment in list_cdc_segments(tmp_path / "old")] == [FIRST]


@pytest.mark.parametrize("is_on", [False, True])
def test_segments_that_a_truncation_holds_go_before_the_node_refuses_writes(
    tmp_path: Path, cdc_raw: Path, capsys: pytest.CaptureFixture[str], *, is_on: bool
) -> None:
    """There is no spool, or it is full."""
    fill(cdc_raw, 3)
    positions = Positions.load(tmp_path / "position.json", HOST)
    positions.move(PendingPosition(FIRST + number, 1, is_end=True) for number in range(3))
    spool = Spool(tmp_path / "spool", 0, is_on=is_on)
    tails = SegmentTails(cdc_raw, positions, spool=spool)
    schema = SimpleNamespace(row_ends=SimpleNamespace(first_needed_segment=FIRST + 1))
    node = SimpleNamespace(
        spool=spool,
        tails=tails,
        positions=positions,
        schema=schema,
        disposal=SegmentDisposal("delete", None),
        waiting=WaitingTables(tmp_path / "waiting.json"),
    )
    cleanup = SegmentCleanup(cdc_raw, cast("Any", node), Progress(0), 25)
    for used, left in ((0, 3), (53, 3), (54, 1)):
        for _ in range(2):
            cleanup.relieve_cdc_raw(Space(used * MIB, 60 * MIB, 0, 0, None, None, MIB))
            cleanup.dispose_of_finished(1)
        assert len(list_cdc_segments(cdc_raw)) == left
        assert tails.has_lost(FIRST + 1) == (left == 1)
    assert capsys.readouterr().out.count("segments that a TRUNCATE has held are removed") == 1


def test_segments_that_a_truncation_holds_make_room_too(tmp_path: Path, cdc_raw: Path) -> None:
    """They are finished, and may have to be read again: they may not fill cdc_raw."""
    written = fill(cdc_raw, 3)
    positions = Positions.load(tmp_path / "position.json", HOST)
    positions.move(PendingPosition(FIRST + number, 1, is_end=True) for number in range(3))
    spool = opened(tmp_path)
    tails = SegmentTails(cdc_raw, positions, spool=spool)
    schema = SimpleNamespace(row_ends=SimpleNamespace(first_needed_segment=FIRST + 1))
    node = SimpleNamespace(
        spool=spool,
        tails=tails,
        positions=positions,
        schema=schema,
        disposal=SegmentDisposal("delete", None),
        waiting=WaitingTables(tmp_path / "waiting.json"),
    )
    cleanup = SegmentCleanup(cdc_raw, cast("Any", node), Progress(0), 25)
    cleanup.dispose_of_finished(1)
    assert [file.id for file in list_cdc_segments(cdc_raw)] == [FIRST + 1, FIRST + 2, FIRST + 3]
    cleanup.relieve_cdc_raw(Space(50 * MIB, 60 * MIB, 0, 0, None, None, MIB))
    assert [file.id for file in list_cdc_segments(cdc_raw)] == [FIRST + 3]
    again = [
        entry.mutation for tail, _ in tails.read_again(CommitLogPosition(FIRST + 1, 0)) for entry in tail.entries()
    ]
    assert again == written[PER_SEGMENT : 3 * PER_SEGMENT]
    schema.row_ends.first_needed_segment = None
    cleanup.dispose_of_finished(2)
    assert spool.files() == []
