"""The files of a snapshot: taken part by part of a large table, and given up while the disk is short."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import Span
from publisher.snapshot.connections import disk
from publisher.snapshot.state.current_record import CurrentRecord
from publisher.snapshot.state.records import Records, new_record
from publisher.snapshot.state.token_selection import TokenSelection
from publisher.snapshot.steps.worker import PausedError
from tests.support.publisher.snapshot_beside import FLUSH, NO_BOUNDS, Beside, make_records, take
from tests.support.vectors import indexed_sstables

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.vectors.indexed_sstables import IndexedVectors


@pytest.fixture(scope="module", params=["5.0-oa"])
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


def in_parts(beside: Beside, parts: int) -> None:
    """Make the snapshot have this many parts, by the size of its files."""
    size = sum(file.data_path.stat().st_size for file in beside.vectors.files())
    beside.settings = {**NO_BOUNDS, "snapshot_part_gib": size / (parts - 0.5) / (1 << 30)}


def sets_of_files(beside: Beside) -> list[list[str]]:
    """The events from each flush to the next one."""
    found: list[list[str]] = []
    for event in beside.events:
        if event == "flush":
            found.append([])
        if found:
            found[-1].append(event)
    return found


def test_a_large_table_is_sent_in_parts_each_with_files_of_its_own(beside: Beside, records: Records) -> None:
    """Each time the log is awaited after the flush and before what is sent, under one begin and one end."""
    take(beside, make_records(beside, records.folder.parent / "other"))
    whole = list(beside.rows)
    beside.rows, beside.events = [], []
    in_parts(beside, 4)
    record = take(beside, records)
    assert (record.phase, record.done, beside.rows) == ("ended", 1.0, whole)
    assert beside.events[:2] == ["asked", "running"]
    assert beside.events.count("running") == beside.events.count("ended") == 1
    sets = sets_of_files(beside)
    counts = [events.count("unit") for events in sets]
    assert len(sets) == 4
    assert min(counts) > 0
    for events, count in zip(sets[:-1], counts[:-1], strict=True):
        assert events == ["flush", "asked", *["unit"] * count, "clear", *FLUSH[:-1]]
    assert sets[-1] == ["flush", "asked", *["unit"] * counts[-1], "ended", "clear"]
    assert record.partitions == len({key for key, _ in whole})


def test_a_snapshot_in_parts_that_is_stopped_at_any_moment_goes_on(
    vectors: IndexedVectors, tmp_path: Path, beside: Beside, records: Records
) -> None:
    in_parts(beside, 3)
    take(beside, records)
    whole = beside.rows
    boundary = [at for at, event in enumerate(beside.events) if event == "clear"][1]
    for stop_at in (boundary - 1, boundary, boundary + 2, boundary + 4):
        folder = tmp_path / str(stop_at)
        again = Beside(vectors, folder)
        kept = make_records(again, folder)
        in_parts(again, 3)
        again.stop_at = stop_at
        assert not take(again, kept).is_final
        assert take(again, kept).phase == "ended"
        assert list(dict.fromkeys(again.rows)) == whole
        assert len(again.rows) - len(whole) <= 2 * 9
        assert all(events[1] == "asked" for events in sets_of_files(again) if "unit" in events)


def test_only_some_of_a_large_table_makes_fewer_parts(beside: Beside, records: Records) -> None:
    in_parts(beside, 4)
    take(beside, make_records(beside, records.folder.parent / "other"))
    tokens = sorted({decorated_token(key) for key, _ in beside.rows})
    beside.events = []
    records.write(new_record(beside.table.table, portion=TokenSelection((Span(tokens[0], tokens[5]),))))
    assert take(beside, records).partitions == 6
    assert beside.events.count("flush") == 1


def on_disk(beside: Beside, monkeypatch: pytest.MonkeyPatch, *free: float) -> list[str]:
    """The bound is 10 %; the problems that are waited with."""
    left = list(free)
    usage = type("Usage", (), {"total": 1000.0})

    def disk_usage(_folder: Path) -> object:
        usage.free = 10.0 * (left.pop(0) if len(left) > 1 else left[0])  # type: ignore[attr-defined]
        return usage

    problems: list[str] = []
    whole = CurrentRecord.set_problem

    def set_problem(run: CurrentRecord, problem: str, pace: float = 1.0) -> None:
        if problem and (not problems or problems[-1] != problem):
            problems.append(problem)
        whole(run, problem, pace)

    beside.settings = {**beside.settings, "snapshot_min_free_percent": 10.0}
    monkeypatch.setattr(disk, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    monkeypatch.setattr(CurrentRecord, "set_problem", set_problem)
    return problems


def test_files_are_given_up_while_the_disk_is_short_and_taken_again(
    beside: Beside, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(beside, make_records(beside, records.folder.parent / "other"))
    whole = list(beside.rows)
    beside.rows, beside.events = [], []
    # To begin with; after some batches; until 1 % more is free.
    problems = on_disk(beside, monkeypatch, 9.0, 10.5, 11.0, *[50.0] * 5, 9.9, 10.5, 10.9, 11.0, 50.0)
    record = take(beside, records)
    assert (record.phase, record.pinned_bytes) == ("ended", 0)
    first, second = sets_of_files(beside)
    assert first[:3] == ["flush", "asked", "unit"]
    assert first[-3:] == ["clear", "clear", "truncated_at"]  # nothing is linked while it waits
    assert second[:2] == ["flush", "asked"]
    assert list(dict.fromkeys(beside.rows)) == whole
    assert len(beside.rows) - len(whole) <= 2 * 9
    least, more = (f"less than {percent} % of the disk of {beside.data} is free" for percent in (10, 11))
    assert problems == [least, more]


def test_a_snapshot_that_is_held_gives_up_its_files_when_the_disk_is_short(
    beside: Beside, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be held for hours, while cdc_raw is full: Orders.serve does not return, and calls `while_held`."""
    on_disk(beside, monkeypatch, 50.0)
    beside.published_after = 1
    held: list[int] = []

    def serve() -> None:
        if beside.while_held is not None and len(held) < 2:
            held.append(beside.events.count("flush"))
            if len(held) == 2:
                on_disk(beside, monkeypatch, 9.0, 50.0)
            beside.while_held()

    monkeypatch.setattr(beside, "serve", serve)
    assert take(beside, records).phase == "ended"
    assert held == [1, 1]
    assert beside.events.count("flush") == 2


def test_a_paused_snapshot_links_nothing(beside: Beside, records: Records) -> None:
    beside.stop_at, beside.stop_with = 60, PausedError
    record = take(beside, records)
    assert (record.phase, beside.events[-1]) == ("announced", "clear")
    assert record.place is not None
    assert not list(beside.data.glob("*/*/snapshots/*"))
    assert take(beside, records).phase == "ended"
    assert beside.events.count("flush") == 2
