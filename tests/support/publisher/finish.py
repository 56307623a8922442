"""Runs work that waits, as the publisher's loop does, without the upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from publisher.waits import Waits

T = TypeVar("T")


def finish(work: Waits[T]) -> T:
    """The result of the work. It never sleeps."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
