"""When cdc_raw will be full at this pace, and the alerts on the way."""

from __future__ import annotations

import json

import pytest

from cdc_common.node.sizes import MIB
from publisher.log.space import FullSpan, Space, SpaceAlerts, SpaceWatch
from publisher.monitoring.status import Status, text, verdict

SEGMENT = 32 * MIB


def filled(watch: SpaceWatch, count: int, *, every: float, first: int = 0, size: int = SEGMENT) -> Space:
    """A node that begins a segment every so many seconds, and deletes none."""
    space = watch.update(first * every, dict.fromkeys(range(first), size))
    for number in range(first + 1, count + 1):
        space = watch.update(number * every, dict.fromkeys(range(number), size))
    return space


def test_the_forecast_is_when_the_next_segment_would_not_fit() -> None:
    space = filled(SpaceWatch(20 * SEGMENT, SEGMENT), 10, every=7.0)
    assert space.arriving == pytest.approx(SEGMENT / 7)
    assert space.seconds_to_full == pytest.approx((20 - 10 + 2) * 7.0)  # two more are made ahead
    assert not space.is_full


def test_beside_the_index_files_one_segment_fewer_fits() -> None:
    space = filled(SpaceWatch(20 * SEGMENT, SEGMENT), 10, every=7.0, size=SEGMENT + 12)
    assert space.seconds_to_full == pytest.approx((20 - 10 - 1 + 2) * 7.0, rel=0.01)


def test_a_day_that_is_over_a_month_away_is_not_in_sight() -> None:
    watch, wider = SpaceWatch(8_000 * SEGMENT, SEGMENT), SpaceWatch(10_000 * SEGMENT, SEGMENT)
    assert filled(watch, 4, every=290.0).seconds_to_full == pytest.approx((8_000 - 4 + 2) * 290.0)
    assert filled(wider, 4, every=290.0).seconds_to_full is None


def test_what_was_there_at_first_is_no_growth() -> None:
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    space = watch.update(0.0, dict.fromkeys(range(12), SEGMENT))
    assert (space.arriving, space.seconds_to_full, space.used) == (0.0, None, 12 * SEGMENT)


def test_time_within_a_step_counts_down() -> None:
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    at_step = filled(watch, 10, every=10.0)
    later = watch.update(104.0, dict.fromkeys(range(10), SEGMENT))
    assert at_step.seconds_to_full is not None
    assert later.seconds_to_full == pytest.approx(at_step.seconds_to_full - 4.0, abs=0.5)


def test_a_node_that_stops_writing_fills_more_and_more_slowly() -> None:
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    busy = filled(watch, 10, every=2.0)
    idle = watch.update(220.0, dict.fromkeys(range(10), SEGMENT))
    assert idle.arriving < busy.arriving / 5


def test_deleting_at_the_rate_of_arrival_is_never_full_but_would_be_without_a_publisher() -> None:
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    for number in range(200):
        space = watch.update(number * 2.0, dict.fromkeys(range(max(number - 2, 0), number + 1), SEGMENT))
    assert space.leaving == pytest.approx(space.arriving, rel=0.1)
    assert space.seconds_without_drain == pytest.approx((20 - 3 + 2) * 2.0, rel=0.1)
    assert space.seconds_to_full is None or space.seconds_to_full > 300


def test_after_a_load_has_ended_a_publisher_that_keeps_up_sees_no_end_of_the_room() -> None:
    """Departures are counted for a minute and arrivals for ten: what is left looks like growth."""
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    watch.update(0.0, {0: SEGMENT})
    for number in range(40):  # after a pause of a minute, a segment in 4 s; each is deleted once the next is there
        watch.update(60.0 + 4 * number, dict.fromkeys(range(number, number + 2), SEGMENT))
    ended = 60.0 + 4 * 39
    left = dict.fromkeys((39, 40), SEGMENT)  # the active segment and the one ahead
    for seconds in range(1, 110):
        space = watch.update(ended + seconds, left)
        assert space.seconds_to_full is None
        assert space.seconds_without_drain is not None
    waiting = watch.update(ended + 110, left, is_waiting=True)
    assert waiting.seconds_to_full is not None, "while Kafka is away nothing keeps up"


def drained(watch: SpaceWatch, until: int) -> None:
    """A segment a second, each deleted a second later."""
    for second in range(until):
        watch.update(second, dict.fromkeys(range(max(second - 1, 0), second + 1), SEGMENT))


def test_space_freed_before_the_wait_does_not_count() -> None:
    watch = SpaceWatch(100 * SEGMENT, SEGMENT)
    drained(watch, 200)
    for second in range(200, 220):  # from here on nothing is deleted, and soon it is known why
        space = watch.update(second, dict.fromkeys(range(199, second + 1), SEGMENT), is_waiting=second > 210)
    assert space.leaving == 0.0
    assert space.seconds_to_full == pytest.approx(100 - 21 + 2)


def test_what_goes_while_it_waits_counts() -> None:
    watch = SpaceWatch(100 * SEGMENT, SEGMENT)
    drained(watch, 200)
    for second in range(200, 300):  # to the spool
        space = watch.update(second, dict.fromkeys(range(second - 1, second + 1), SEGMENT), is_waiting=True)
    assert space.leaving == pytest.approx(SEGMENT, rel=0.1)


def test_clients_that_have_left_do_not_count() -> None:
    watch = SpaceWatch(100 * SEGMENT, SEGMENT)
    drained(watch, 200)
    for second in range(200, 241):
        space = watch.update(second, {199: SEGMENT})
    assert space.seconds_to_full is None or space.seconds_to_full > 1000


def test_full_is_full() -> None:
    space = filled(SpaceWatch(10 * SEGMENT, SEGMENT), 10, every=1.0)
    assert space.is_full
    assert space.seconds_to_full == 0.0
    assert verdict(of(space)).startswith("not safe to stop: cdc_raw is full")


def test_each_threshold_is_reported_once_and_again_after_it_was_left() -> None:
    alerts = SpaceAlerts()
    crossed = [alerts.find_crossed(Space(used, 100, 0, 0, None, None)) for used in (10, 50, 60, 92, 95, 40, 55)]
    assert crossed == [None, 50, None, 90, None, None, 50]


def test_a_full_span_is_reported_when_it_is_over() -> None:
    alerts = SpaceAlerts()
    full, free = Space(101, 100, 0, 0, None, None), Space(90, 100, 0, 0, None, None)
    spans = [alerts.find_full_span(space, clock) for space, clock in ((free, 1.0), (full, 2.0), (full, 3.0))]
    assert spans == [None] * 3
    assert alerts.find_full_span(free, 4.0) == FullSpan(2.0, 4.0, began_before=False)
    assert alerts.find_full_span(free, 5.0) is None


def test_what_was_full_at_the_start_was_so_before() -> None:
    alerts, free, full = SpaceAlerts(), Space(10, 100, 0, 0, None, None), Space(101, 100, 0, 0, 0, 0)
    for began_before in (True, False):
        assert alerts.find_full_span(full, 2.0) is None
        assert alerts.find_full_span(free, 3.0) == FullSpan(2.0, 3.0, began_before)


def test_a_person_reads_whether_to_stop() -> None:
    watch = SpaceWatch(20 * SEGMENT, SEGMENT)
    fast, slow = filled(watch, 10, every=1.0), filled(SpaceWatch(200 * SEGMENT, SEGMENT), 10, every=10.0)
    assert verdict(of(fast)) == (
        "not safe to stop: without a publisher cdc_raw is full in 12.0 s, and CDC writes are refused"
    )
    assert verdict(of(slow)._replace(in_flight=3)) == (
        "safe to stop: nothing is lost, cdc_raw has room for 0:32:00; 3 messages in flight are sent again"
    )
    shown = text(of(slow)._replace(waiting="CDC-020 Kafka does not answer", losses=("durable_writes is off",)))
    assert "waiting   CDC-020 Kafka does not answer" in shown
    assert "losing    durable_writes is off" in shown
    assert shown.splitlines()[-1] == verdict(of(slow))


def test_a_status_goes_through_json() -> None:
    status = of(Space(1, 2, 3.0, 4.0, None, 5.0))._replace(losses=("a", "b"))
    assert Status.from_json(json.loads(json.dumps(status._asdict()))) == status


def of(space: Space) -> Status:
    used, full_at, arriving, leaving, to_full, if_stopped, _ = space
    return Status(
        "host",
        "cluster",
        "5.0.8",
        is_compiled=False,
        used=used,
        full_at=full_at,
        arriving=arriving,
        leaving=leaving,
        seconds_to_full=to_full,
        seconds_to_full_if_stopped=if_stopped,
    )
