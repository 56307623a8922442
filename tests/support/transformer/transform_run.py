"""A run of one partition of a transformer, as Spark's workers do it, for the chaos matrix."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.errors.codes import Code
from materializer.records import RawPartition
from stream_runtime import fault_points
from stream_runtime.fault_points import InjectedFaultError
from stream_runtime.kafka.clients import TIMEOUT
from stream_runtime.worker.task import Assignment
from tests.support.materializer.protocol_run import read_topic
from tests.support.transformer.scene import PARTITIONS, Scene
from transformer.job.planner import StreamPlanner
from transformer.job.run import definitions_of
from transformer.job.worker_loop import open_loop
from transformer.routing.catalogue import open_catalogue

if TYPE_CHECKING:
    from stream_runtime.records import Share
    from stream_runtime.worker.loop import WorkerLoop
    from stream_runtime.worker.task import TaskResult, WorkerStatus
    from transformer.records import Definitions, TransformPlan

PARTITION = 0
END_SECONDS = 60.0
AT_ONCE = 60


class TransformSetup(NamedTuple):
    """A Scene that is pickled; its partition 0 is transformed."""

    bootstrap: str
    registry: str
    prefix: str
    folder: str

    @property
    def scene(self) -> Scene:
        return Scene(self.bootstrap, self.registry, self.prefix, Path(self.folder))

    def run(self, until: int | None = None, **settings: object) -> None:
        """Run in this process until the group's offset is there, by default at the end. Raise what a
        task fails with.
        """
        definitions = definitions_of(self.scene.settings(**settings), self.scene.file)
        with closing(open_catalogue(definitions.registry)) as catalogue:
            plan = _plan(StreamPlanner(definitions, catalogue))
        (share,) = (share for share in plan.shares if share.partition.partition == PARTITION)
        loop = open_loop(definitions)
        try:
            _run(loop, plan, share, _Progress(definitions, RawPartition(self.scene.topic, PARTITION), until))
        finally:
            loop.close()

    def check(self, count: int) -> None:
        """Check that `count` messages came out, each once, in order."""
        expected = self.scene.expected(range(count))[PARTITION]
        received = self.scene.received(self.scene.targets[0])[PARTITION]
        assert received == expected, f"{len(received)} messages came out of {len(expected)}, or others"


class _Progress:
    """Whether the group's offset is where it has to be. Without `until`, after the last message."""

    def __init__(self, definitions: Definitions, source: RawPartition, until: int | None) -> None:
        group = definitions.group(definitions.transformers[0])
        self._offsets = CommittedOffsets(definitions.kafka, group)
        self._source = source

        messages = read_topic(definitions.kafka.bootstrap_servers, source.topic, PARTITIONS)
        self._end = until or 1 + max(message.offset() or 0 for message in messages if message.partition() == PARTITION)

    def is_done(self) -> bool:
        return self._offsets.committed([self._source], TIMEOUT).get(self._source, -1) >= self._end


def _plan(planner: StreamPlanner) -> TransformPlan:
    deadline = time.monotonic() + END_SECONDS
    while not (plan := planner.plan_batch()).streams:
        assert time.monotonic() < deadline, planner.errors
        planner.retry([])
        time.sleep(0.1)
    return plan


def _run(loop: WorkerLoop[TransformPlan], plan: TransformPlan, share: Share, progress: _Progress) -> None:
    deadline = time.monotonic() + END_SECONDS

    def may_go_on(_status: WorkerStatus) -> bool:
        return False

    while not progress.is_done():
        assert time.monotonic() < deadline, "it does not come to the end"
        for result in loop.run_batch(plan, Assignment((share,), AT_ONCE, 0.0), may_go_on):
            _raise_error(result)


def _raise_error(result: TaskResult) -> None:
    """A fault that was raised in a task, and is reported as any other exception of it."""
    if result.error is None:
        return
    if result.error.code is Code.UNEXPECTED and "InjectedFaultError" in result.error.problem:
        assert fault_points.armed is not None
        raise InjectedFaultError(fault_points.armed.name)
    raise result.error
