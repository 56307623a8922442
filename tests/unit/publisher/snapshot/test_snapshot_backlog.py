"""A snapshot waits while the materializer is too far from the raw topic's end, by time or by bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from publisher.kafka.unread import Unread
from publisher.snapshot.connections import backlog
from publisher.snapshot.connections.backlog import ASK_SECONDS, Backlog

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES = 100.0  # of a message


class Group:
    """A clock, and what the group has committed at its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.unread: dict[int, Unread] = {}
        self.asked = 0
        self.error: CdcError | None = None
        monkeypatch.setattr(backlog, "monotonic", lambda: self.now)

    def read(self) -> Mapping[int, Unread]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.unread

    def after(self, seconds: float, of: Backlog, **unread: tuple[int, int]) -> str:
        """Return the reason after that time, with these (committed, end) of the raw partitions p0, p1, …"""
        self.now += seconds
        self.unread = {int(name[1:]): Unread(*offsets) for name, offsets in unread.items()}
        return of.reason_to_wait(BYTES)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


def test_it_waits_by_bytes_until_half_is_read(group: Group) -> None:
    of = Backlog(group.read, 0, 10_000)
    assert group.after(0, of, p0=(0, 60), p1=(0, 40)) == ""
    assert "0.0 MiB to read" in group.after(ASK_SECONDS, of, p0=(0, 60), p1=(0, 41))
    assert group.after(ASK_SECONDS, of, p0=(40, 60), p1=(0, 41))
    assert group.after(ASK_SECONDS, of, p0=(60, 60), p1=(0, 41)) == ""


def test_it_waits_by_the_time_of_the_oldest_message(group: Group) -> None:
    of = Backlog(group.read, 100, 0)
    assert group.after(0, of, p0=(0, 10), p1=(5, 5)) == ""
    assert group.after(60, of, p0=(0, 20), p1=(5, 5)) == ""
    assert "the oldest for 0:02:01" in group.after(61, of, p0=(9, 30), p1=(5, 5))
    assert group.after(ASK_SECONDS, of, p0=(10, 30), p1=(5, 5))  # what came 66 s ago is more than half of 100 s
    assert group.after(ASK_SECONDS, of, p0=(20, 30), p1=(5, 5)) == ""
    assert group.after(500, of, p0=(30, 30), p1=(5, 5)) == ""  # nothing waits


def test_without_committed_offsets_or_bounds_it_goes_on(group: Group) -> None:
    assert group.after(0, Backlog(group.read, 1, 1)) == ""
    asked = group.asked
    assert group.after(0, Backlog(group.read, 0, 0), p0=(0, 10**9)) == ""
    assert group.asked == asked


def test_it_asks_now_and_then(group: Group) -> None:
    of = Backlog(group.read, 1, 1)
    for _ in range(100):
        group.after(ASK_SECONDS / 10, of)
    assert 9 <= group.asked <= 11


def test_a_failure_leaves_what_was_known_and_a_refusal_ends_the_asking(group: Group) -> None:
    of = Backlog(group.read, 0, 10_000)
    assert group.after(0, of, p0=(0, 1000))
    group.error = CdcError(Code.KAFKA_UNREACHABLE, "away", "wait")
    assert group.after(ASK_SECONDS, of)
    group.error = CdcError(Code.KAFKA_REFUSED, "no right", "grant it")
    assert group.after(ASK_SECONDS, of) == ""
    asked = group.asked
    assert group.after(100 * ASK_SECONDS, of) == ""
    assert group.asked == asked
