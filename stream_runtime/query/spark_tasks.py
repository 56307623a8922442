"""Work of a command, done by Spark's executors: a Spark job for each step, with a task for each item."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from cdc_common.errors.codes import CdcError
from stream_runtime.query.spark_errors import spark_errors
from stream_runtime.query.spark_session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from stream_runtime.settings import JobSettings

T = TypeVar("T")
R = TypeVar("R")
# What is shuffled: a key, which begins with a number, and a value.
Entry: TypeAlias = "tuple[tuple[Any, ...], Any]"
_FIRST = (0,)  # a key before all others of the part 0


class _Work(Generic[T, R]):
    """The function of a task. Spark would run a task again that ends with a CdcError, and lose its code."""

    def __init__(self, work: Callable[[T], R]) -> None:
        self._work = work

    def __call__(self, item: T) -> R | CdcError:
        os.umask(0o077)
        try:
            return self._work(item)
        except CdcError as error:
            return error


class _Read(Generic[T]):
    """The first step of a shuffle: the entries of an item, or the error that reading it ended with, as an entry."""

    def __init__(self, read: Callable[[T], Iterable[Entry]]) -> None:
        self._read = read

    def __call__(self, item: T) -> Iterator[tuple[tuple[Any, ...], object]]:
        os.umask(0o077)
        try:
            yield from self._read(item)
        except CdcError as error:
            yield _FIRST, error


class _Use(Generic[R]):
    """The second step: its results, or an error of either step as the last result."""

    def __init__(self, use: Callable[[Iterable[Entry]], Iterable[R]]) -> None:
        self._use = use

    def __call__(self, entries: Iterable[Entry]) -> Iterator[R | CdcError]:
        os.umask(0o077)
        try:
            yield from self._use(map(_without_error, entries))
        except CdcError as error:
            yield error


def _without_error(entry: Entry) -> Entry:
    if isinstance(entry[1], CdcError):
        raise entry[1]
    return entry


def _part_of(key: tuple[Any, ...]) -> int:
    """The part of an entry, before the modulo."""
    return int(key[0])


class SparkTasks:
    """Tasks on Spark's executors. CdcError(SPARK_FAILED) if Spark gives up."""

    is_here = False

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    @property
    def parallelism(self) -> int:
        """How many tasks Spark runs at a time."""
        with spark_errors(self._context):
            return max(1, self._context.defaultParallelism)

    def shuffle(
        self,
        read: Callable[[T], Iterable[Entry]],
        items: Sequence[T],
        use: Callable[[Iterable[Entry]], Iterable[R]],
        parts: int,
    ) -> list[R]:
        """A task reads the entries of each item. `parts` tasks use them: entries whose keys begin with the same number
        come together, and all of a task in the order of their keys. The results. All of this is pickled.
        """
        with spark_errors(self._context):
            entries: Any = self._context.parallelize(items, len(items)).flatMap(_Read(read))
            in_order = entries.repartitionAndSortWithinPartitions(parts, _part_of)
            results: list[R | CdcError] = in_order.mapPartitions(_Use(use)).collect()
        found: list[R] = []
        for result in results:
            if isinstance(result, CdcError):
                raise result
            found.append(result)
        return found

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        if not items:
            return
        with spark_errors(self._context):
            results = self._context.parallelize(items, len(items)).map(_Work(work)).collect()
        for result in results:
            if isinstance(result, CdcError):
                raise result
            yield result

    def groups(self, items: Sequence[T]) -> list[Sequence[T]]:
        count = self.parallelism
        return [items[number::count] for number in range(min(count, len(items)))]


@contextmanager
def spark_tasks(settings: JobSettings) -> Iterator[SparkTasks]:
    """Spark as the job starts it: the settings' master, that of spark-submit, or the session of this process."""
    with open_session(settings) as opened:
        yield SparkTasks(opened.session.sparkContext)
