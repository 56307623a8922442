"""The garbage collector of a worker: off while a chunk is folded, and what is left in cycles goes before the next."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from stream_runtime.worker import collector

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Node:
    """Part of a cycle with itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def worker() -> Iterator[None]:
    """This process as a worker's, until the test ends."""
    collector.take_over()
    yield
    gc.enable()


@pytest.mark.usefixtures("worker")
def test_a_cycle_goes_with_the_next_collection_and_not_earlier() -> None:
    lost = [weakref.ref(_Node()) for _ in range(2000)]  # more than the collector's first threshold
    assert all(node() is not None for node in lost)
    collector.collect()
    assert all(node() is None for node in lost)


@pytest.mark.usefixtures("worker")
def test_what_has_grown_old_is_collected_from_time_to_time() -> None:
    node = _Node()
    collector.collect()  # it is old now
    lost = weakref.ref(node)
    del node
    for _ in range(collector._FULL_EVERY):
        collector.collect()
    assert lost() is None


def test_nothing_is_done_where_python_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", pytest.fail)
    collector.collect()
