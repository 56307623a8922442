"""The job of a scene without Spark: the planner and one worker's loop in this process."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

from cdc_common.clients.group_offsets import CommittedOffsets
from materializer.records import RawPartition
from stream_runtime.kafka.clients import TIMEOUT
from stream_runtime.worker.task import Assignment
from transformer.job.planner import StreamPlanner
from transformer.job.run import definitions_of
from transformer.job.worker_loop import open_loop
from transformer.routing.catalogue import open_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from cdc_common.errors.codes import CdcError
    from stream_runtime.worker.task import WorkerStatus
    from transformer.records import TransformPlan
    from transformer.settings import Settings

WAIT_SECONDS = 60.0
AT_ONCE = 10_000


class Transforming(Protocol):
    """A transformers file, its settings, and the topic that its first transformer reads; such as a Scene."""

    @property
    def topic(self) -> str: ...

    @property
    def file(self) -> Path: ...

    def settings(self, **transformer: Any) -> Settings: ...  # noqa: ANN401 - settings


class LocalJob:
    """errors: the newest of each partition or stream that has failed, by its name."""

    def __init__(self, scene: Transforming, **settings: Any) -> None:  # noqa: ANN401 - the transformer's settings
        self.errors: dict[str, CdcError] = {}
        definitions = definitions_of(scene.settings(**settings), scene.file)
        self._topic = scene.topic
        self._definitions = definitions
        self._catalogue = open_catalogue(definitions.registry)
        self.planner = StreamPlanner(definitions, self._catalogue)
        self._loop = open_loop(definitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.close()
        self._catalogue.close()

    @cached_property
    def _offsets(self) -> CommittedOffsets:
        return CommittedOffsets(self._definitions.kafka, self._definitions.group(self._definitions.transformers[0]))

    def committed(self, partition: int) -> int | None:
        """The first transformer's offset of a partition of the source."""
        place = RawPartition(self._topic, partition)
        return self._offsets.committed([place], TIMEOUT).get(place)

    @contextmanager
    def without_fetches(self) -> Iterator[None]:
        """The only transformer's consumer fetches nothing until the end."""
        (reader,) = self._loop._shares._readers.values()
        offsets = dict(reader._assigned)
        for partition in offsets:
            reader.remove(partition)
        yield
        for partition, offset in offsets.items():
            reader.add(partition, offset)

    def run_batch(self) -> None:
        """Runs a batch of all partitions, except those of streams that cannot be planned. Those that have failed are
        tried again, as if their pauses were over.
        """
        self.planner.retry(set(self.planner.errors))
        plan = self.planner.plan_batch()
        self.errors |= self.planner.errors
        self.run_plan(plan)

    def run_plan(self, plan: TransformPlan) -> None:
        """Run the workers' part of a batch."""
        planned = plan.streams.keys() - self.planner.errors.keys()
        shares = tuple(share for share in plan.shares if share.stream in planned)
        assignment = Assignment(shares, AT_ONCE, 0.0)
        for result in self._loop.run_batch(plan, assignment, _return):
            if result.error is not None:
                self.errors[str(result.share)] = result.error

    def run_until(
        self, condition: Callable[[], bool], plan: TransformPlan | None = None, seconds: float = WAIT_SECONDS
    ) -> None:
        """plan: of all batches, instead of one of its own for each."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.errors
            self.run_batch() if plan is None else self.run_plan(plan)


def _return(_status: WorkerStatus) -> bool:
    return False
