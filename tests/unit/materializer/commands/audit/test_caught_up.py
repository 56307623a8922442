"""How far a state has caught up, by the watermarks of the publishers."""

from __future__ import annotations

from uuid import UUID

import pytest

from materializer.commands.audit.caught_up import CaughtUp
from materializer.fold.publishers import PublisherWatermark, encode_watermark
from materializer.rows.keys import PUBLISHER, REORDER_TIMER, timer_key
from materializer.settings import MaterializerSettings
from tests.support.materializer.memory_state import MemoryState

A, B, C = (bytes([host]) * 16 for host in (1, 2, 3))
SETTINGS = MaterializerSettings()


def state_of(clocks: dict[bytes, int]) -> MemoryState:
    state = MemoryState()
    state.apply({PUBLISHER + host: encode_watermark(PublisherWatermark(1, clock)) for host, clock in clocks.items()})
    return state


@pytest.mark.parametrize(
    ("stored", "heard", "reached"),
    [
        ({}, {}, 0),
        ({A: 10}, {}, 10),
        ({A: 10}, {A: 30}, 30),
        ({A: 10, B: 20}, {A: 30, B: 40}, 30),
        ({A: 10, B: 20}, {A: 30}, 20),  # nothing is heard of one
        ({A: 10}, {A: 30, C: 5}, 5),  # and of one that the state does not know
        ({A: 50}, {A: 30}, 50),
    ],
)
def test_the_publisher_that_is_furthest_behind_counts(
    stored: dict[bytes, int], heard: dict[bytes, int], reached: int
) -> None:
    assert CaughtUp(heard).reached_us(state_of(stored), SETTINGS) == reached


def test_forgotten_publishers_do_not_count() -> None:
    settings = MaterializerSettings(forgotten_publishers=[UUID(bytes=B)])
    assert CaughtUp({A: 30}).reached_us(state_of({A: 10, B: 20}), settings) == 30


def test_a_write_in_the_reorder_buffer_is_not_folded_yet() -> None:
    state = state_of({A: 10})
    state.apply({timer_key(REORDER_TIMER, 5, b"write"): b""})
    assert CaughtUp({A: 30}).reached_us(state, SETTINGS) == 0
