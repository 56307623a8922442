"""Which times of a raw partition are taken for a broker's wrong clock, and which for quiet days."""

from __future__ import annotations

import pytest

from cdc_program.errors import CdcError, Code
from materializer.exactly_once.partition_task import check_clock
from materializer.records import RawPartition
from materializer.store.changelog import Head

RAW = RawPartition("cdc.raw.shop.orders", 0)
HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def check(ahead_ms: int, before_ms: int | None) -> None:
    """A chunk that moves the time from `before_ms` to `ahead_ms`, both from this host's clock."""
    before = None if before_ms is None else Head("0000000007-00000000", 100, NOW_MS + before_ms, 4)
    check_clock(RAW, before, NOW_MS + ahead_ms, HOUR_MS, lambda: NOW_MS / 1000)


@pytest.mark.parametrize("quiet_hours", [25, 8 * 24, 400 * 24])
def test_quiet_days_pass(quiet_hours: int) -> None:
    check(0, -quiet_hours * HOUR_MS)


def test_a_backlog_passes() -> None:
    check(-72 * HOUR_MS, -144 * HOUR_MS)


def test_a_small_difference_of_the_clocks_passes() -> None:
    check(HOUR_MS, 0)


@pytest.mark.parametrize("before_ms", [None, -8 * 24 * HOUR_MS, 0, HOUR_MS + 1])
def test_a_broker_ahead_stops(before_ms: int | None) -> None:
    with pytest.raises(CdcError, match=r"72\.0 h ahead of this host's clock, 2027-01-15 08:00:00 UTC") as raised:
        check(72 * HOUR_MS, before_ms)
    assert raised.value.code is Code.CLOCK_AHEAD


def test_a_time_that_was_accepted_does_not_stop_again() -> None:
    check(72 * HOUR_MS, 72 * HOUR_MS)
