"""Work of a command, done by Spark's executors: a Spark job for each step, with a task for each item."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_program.errors import CdcError
from materializer.job.spark_errors import spark_errors
from materializer.job.spark_session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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


class Shuffle(NamedTuple):
    """How rows are brought from where they are read to where they are needed.

    schema: of the rows. order: the columns by which they are sorted where they are needed; those with the same value
    in the first one come together. parts: how many tasks need them. batch_rows: how many a task gets at a time.
    """

    schema: pa.Schema
    order: Sequence[str]
    parts: int
    batch_rows: int


_RESULT = pa.schema([("result", pa.binary())])


class _Read(Generic[T]):
    """The first step of a shuffle: reads one item, whose number it gets. An error goes to the driver in the result."""

    def __init__(self, read: Callable[[T], Iterable[pa.RecordBatch]], items: Sequence[T], schema: pa.Schema) -> None:
        self._read = read
        self._items = items
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.umask(0o077)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    for found in self._read(self._items[number]):
                        yield _with_error(found, None)
                except CdcError as error:
                    yield _with_error(pa.RecordBatch.from_pylist([{}], self._schema), pickle.dumps(error))


def _with_error(batch: pa.RecordBatch, error: bytes | None) -> pa.RecordBatch:
    return batch.append_column("error", pa.array([error] * batch.num_rows, pa.binary()))


class _Use(Generic[R]):
    """The second step: its results, or an error of either step."""

    def __init__(self, use: Callable[[Iterable[pa.RecordBatch]], Iterable[R]]) -> None:
        self._use = use

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.umask(0o077)
        try:
            for result in self._use(map(_without_error, batches)):
                yield _result(result)
        except CdcError as error:
            yield _result(error)


def _without_error(batch: pa.RecordBatch) -> pa.RecordBatch:
    """CdcError if a task of the first step has failed."""
    errors = batch.column("error")
    if errors.null_count < batch.num_rows:
        raise pickle.loads(errors.drop_null()[0].as_py())  # noqa: S301 - our own task's
    return batch.drop_columns(["error"])


def _result(result: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"result": pickle.dumps(result)}], _RESULT)


class SparkTasks:
    """materializer.commands.reshard.tasks.Tasks. CdcError(SPARK_FAILED) if Spark gives up."""

    is_here = False

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context: SparkContext = session.sparkContext

    @property
    def parallelism(self) -> int:
        """How many tasks Spark runs at a time."""
        with spark_errors(self._context):
            return max(1, self._context.defaultParallelism)

    def shuffle(
        self,
        read: Callable[[T], Iterable[pa.RecordBatch]],
        items: Sequence[T],
        use: Callable[[Iterable[pa.RecordBatch]], Iterable[R]],
        how: Shuffle,
    ) -> list[R]:
        """A task reads each item; others use what was read, sorted: their results. All of them are pickled."""
        schema = how.schema.append(pa.field("error", pa.binary()))
        with spark_errors(self._context):
            self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(how.batch_rows))
            numbers: Any = self._session.range(0, len(items), 1, len(items))
            rows = numbers.mapInArrow(_Read(read, items, how.schema), from_arrow_schema(schema))
            sorted_rows = rows.repartition(how.parts, how.order[0]).sortWithinPartitions(*how.order)
            found = sorted_rows.mapInArrow(_Use(use), from_arrow_schema(_RESULT)).collect()
        results = [pickle.loads(row["result"]) for row in found]  # noqa: S301 - our own tasks'
        for result in results:
            if isinstance(result, CdcError):
                raise result
        return results

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
def spark_tasks(settings: MaterializerSettings) -> Iterator[SparkTasks]:
    """Spark as the job starts it: the settings' master, that of spark-submit, or the session of this process."""
    with open_session(settings) as opened:
        yield SparkTasks(opened.session)
