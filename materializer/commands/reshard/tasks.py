"""Run the tasks of `state reshard` in this process, or in Spark's executors (job.spark_tasks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
R = TypeVar("R")


class Tasks(Protocol):
    """is_here: whether all of them run in this process, on this machine."""

    is_here: bool

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """A task for each item: the results, in their order. `work` and the items are pickled if they leave."""
        ...

    def groups(self, items: Sequence[T]) -> list[Sequence[T]]:
        """The items in as many groups as there are places to work."""
        ...


class LocalTasks:
    """One after another."""

    is_here = True

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        return map(work, items)

    def groups(self, items: Sequence[T]) -> list[Sequence[T]]:
        return [items]
