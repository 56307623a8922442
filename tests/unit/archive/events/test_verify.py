"""The ledger's check finds what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from archive.events.file_event import FileEvent
from archive.events.verify import LedgerCheck
from tests.support.archive.scene import Archive, Topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    topic = Topic(2)
    for number in range(60):
        topic.send_change(number % 2, number)
    made = Archive(topic, tmp_path)
    made.cut(rows=20)
    made.chunk = 10
    made.run()
    assert len(made.events()) == 3
    return made


def problems(archive: Archive, events: list[FileEvent]) -> list[str]:
    return LedgerCheck(archive.store, read_rows=True).check(events).problems


def test_all_fits(archive: Archive) -> None:
    events = archive.events()
    assert [FileEvent.decode(event.encode()) for event in events] == events
    found = LedgerCheck(archive.store, read_rows=True).check(events)
    assert found == (3, 3, 60, 1, [])


def _change_first(events: list[FileEvent], **changes: int) -> list[FileEvent]:
    first, *others = events
    ranges = (first.ranges[0]._replace(**changes), *first.ranges[1:])
    return [first._replace(ranges=ranges), *others]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda events: [events[0], events[2]], "the offsets from 10 to 19 are missing"),
        (lambda events: [events[0], *events], "two events name it"),
        (lambda events: [events[0], *events], "are there twice"),
        (lambda events: [events[1], events[0], events[2]], "cut 2 follows cut 0"),
        (lambda events: _change_first(events, rows=9), "19 rows are planned, 20 are in files"),
        (lambda events: _change_first(events, end=9), "10 rows, 0 tombstones, 0 refused and 0 lost messages in [0, 9)"),
        (lambda events: [events[0]._replace(files=()), *events[1:]], "20 rows are planned, 0 are in files"),
        (lambda events: [events[0]._replace(missing=1), *events[1:]], "1 were compacted away"),
    ],
)
def test_events_that_do_not_fit(
    archive: Archive, change: Callable[[list[FileEvent]], list[FileEvent]], says: str
) -> None:
    assert any(says in problem for problem in problems(archive, change(archive.events())))


def test_files_that_do_not_fit(archive: Archive) -> None:
    events = archive.events()
    first, second = (archive.folder / "lake" / event.files[0].planned.path for event in events[:2])
    data = first.read_bytes()
    first.unlink()
    assert any("it is missing" in problem for problem in problems(archive, events))
    first.write_bytes(second.read_bytes())
    assert any(f"not {len(data)}" in problem or "its rows" in problem for problem in problems(archive, events))
