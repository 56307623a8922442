"""The job of a scene without Spark: the planner and one worker's loop in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from joinery.catalogue import open_catalogue
from joinery.job.planner import JoinPlanner
from joinery.job.run import definitions_of
from joinery.job.worker_loop import open_loop
from stream_runtime.worker.task import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from cdc_common.errors.codes import CdcError
    from stream_runtime.worker.task import WorkerStatus
    from tests.support.joinery.scene import Scene

WAIT_SECONDS = 120.0


class LocalJob:
    """errors: the newest of each share or join that has failed, by its name."""

    def __init__(self, scene: Scene, **settings: Any) -> None:  # noqa: ANN401 - the job's settings
        self.errors: dict[str, CdcError] = {}
        definitions = definitions_of(scene.settings(**settings), scene.file)
        self._catalogue = open_catalogue(definitions.registry)
        self.planner = JoinPlanner(definitions, self._catalogue)
        self._loop = open_loop(definitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.close()
        self._catalogue.close()

    def run_batch(self) -> None:
        """Run a batch of all shares. Those that have failed are tried again."""
        self.planner.retry(set(self.planner.errors))
        plan = self.planner.plan_batch()
        self.errors |= self.planner.errors
        for result in self._loop.run_batch(plan, Assignment(plan.shares, 10_000, 0.0), _return):
            if result.error is not None:
                self.errors[str(result.share)] = result.error

    def run_until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.errors
            self.run_batch()


def _return(_status: WorkerStatus) -> bool:
    return False
