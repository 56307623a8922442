"""Work of a command, done by Spark's executors: a Spark job for each step, with a task for each item."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from cdc_program.errors import CdcError
from materializer.job.spark_errors import spark_errors
from materializer.job.spark_session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import SparkContext

    from cdc_program.settings import MaterializerSettings

T = TypeVar("T")
R = TypeVar("R")


class _Work(Generic[T, R]):
    """What a task runs. Spark would run a task again that ends with an error of ours, and lose its code."""

    def __init__(self, work: Callable[[T], R]) -> None:
        self._work = work

    def __call__(self, item: T) -> R | CdcError:
        os.umask(0o077)
        try:
            return self._work(item)
        except CdcError as error:
            return error


class SparkTasks:
    """materializer.commands.reshard.tasks.Tasks. CdcError(SPARK_FAILED) if Spark gives up."""

    is_here = False

    def __init__(self, context: SparkContext) -> None:
        self._context = context

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
        with spark_errors(self._context):
            count = max(1, self._context.defaultParallelism)
        return [items[number::count] for number in range(min(count, len(items)))]


@contextmanager
def spark_tasks(settings: MaterializerSettings) -> Iterator[SparkTasks]:
    """Spark as the job starts it: the settings' master, that of spark-submit, or the session of this process."""
    with open_session(settings) as opened:
        yield SparkTasks(opened.session.sparkContext)
