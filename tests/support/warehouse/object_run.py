"""A topic on a real broker that is written as objects, and loaded by signals, as Spark's workers do it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from dev.local_stack.servers.s3 import ENVIRONMENT
from tests.support.materializer.protocol_run import read_topic
from tests.support.warehouse.warehouse_run import END_SECONDS, PARTITIONS, WarehouseSetup, run_batch
from warehouse.job.plan import signals_of
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.job.worker_loop import open_loop
from warehouse.names import table_name
from warehouse.signals import Signal
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.settings import Settings


class ObjectSetup(NamedTuple):
    """It is pickled."""

    setup: WarehouseSetup
    # The location of the objects.
    location: str

    @property
    def folder(self) -> str:
        """Of the processes' output."""
        return self.setup.folder

    def settings(self, **warehouse: Any) -> Settings:  # noqa: ANN401 - settings
        own = {"location": self.location, "load_signal_seconds": 0.2, "load_signals": 4, **warehouse}
        return self.setup.settings(**own)

    def run(self, until: int | None = None, **settings: object) -> None:  # noqa: ARG002 - always to the end
        """Write all, and load it, in this process. Raise what a task fails with."""
        os.environ.update(ENVIRONMENT)
        self._run(self._is_written, writes=True, **settings)
        self._run(self._is_loaded, writes=False, **settings)

    def write(self, **settings: object) -> None:
        os.environ.update(ENVIRONMENT)
        self._run(self._is_written, writes=True, **settings)

    def _run(self, is_done: Callable[[dict[int, int]], bool], *, writes: bool, **settings: object) -> None:
        planner = TopicPlanner(job_of(self.settings(**settings), writes=writes))
        planner.check_settings()
        loop = open_loop(planner.plan_batch().job)
        ends = self.setup._ends()
        deadline = time.monotonic() + END_SECONDS
        try:
            while not is_done(ends):
                assert time.monotonic() < deadline, f"it does not come to the end: {planner.errors}"
                run_batch(loop, planner.plan_batch())
        finally:
            loop.close()

    def signals(self) -> list[Signal]:
        """All committed signals, by partition and in their order."""
        topic = signals_of(self.setup.topic, self.settings().warehouse)
        found = read_topic(self.setup.bootstrap, topic, PARTITIONS)
        ordered = sorted(found, key=lambda message: (message.partition() or 0, message.offset() or 0))
        return [Signal.decode(message.value() or b"") for message in ordered]

    def check(self, end: int) -> None:
        """The ranges of the signals follow each other, and the table equals the fold of all messages up to `end`."""
        ends: dict[int, int] = {}
        for signal in self.signals():
            assert signal.start == ends.get(signal.partition, 0), "ranges follow each other"
            ends[signal.partition] = signal.end
        self.setup.check(end, location=self.location)

    def _is_written(self, ends: dict[int, int]) -> bool:
        written = {signal.partition: signal.end for signal in self.signals()}
        return all(written.get(partition, 0) >= end for partition, end in ends.items())

    def _is_loaded(self, ends: dict[int, int]) -> bool:
        loader = open_loader(self.settings().warehouse)
        state = loader.read_state(table_name(self.setup.topic, "topics"))
        loader.connection.close()
        return state is not None and all(state.offsets.get(partition, 0) >= end for partition, end in ends.items())
