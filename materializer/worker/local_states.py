"""Fetches and deletes the local states of a worker's raw partitions beside the fold.

Threads only fetch a state and delete unused ones. A state that is here is opened by the task, which fences all others,
reads the committed position, and applies the few changelogs since (stream_runtime.exactly_once.partition_task).
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from materializer.worker.wiring import delete_unused_states, restore_state
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.in_background import InBackground
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from materializer.records import RawPartition
    from materializer.settings import MaterializerSettings
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.unused import DiskUse

_logger = structlog.get_logger(__name__)
_RESTORES_AT_ONCE = 4  # of a process; they share its reads
_FIRST_WAIT_SECONDS = 0.05  # for states that are here already
_SWEEP_SECONDS = 60.0


class LocalStates:
    """restore: brings a local state to a version. delete_unused: see materializer.worker.wiring too."""

    def __init__(
        self,
        restore: Callable[[BatchPlan, RawPartition, str], None] = restore_state,
        delete_unused: Callable[[MaterializerSettings, Collection[str]], DiskUse] = delete_unused_states,
    ) -> None:
        self._restore = restore
        self._delete_unused = delete_unused
        self._restores = InBackground["RawPartition", None](_FIRST_WAIT_SECONDS, _RESTORES_AT_ONCE)
        self._awaited: set[RawPartition] = set()
        self._restored: set[RawPartition] = set()
        self._sweeps = InBackground[str, "DiskUse"](0.0)
        self._next_sweep = 0.0

    @property
    def restoring(self) -> set[RawPartition]:
        return self._restores.running

    def is_here(self, plan: BatchPlan, raw_partition: RawPartition, position: Position | None) -> bool:
        """Whether the raw partition can be folded from its committed position on. If its state has to be fetched, that
        is begun, and `finished` tells its end.
        """
        if position is None or position.version == NOTHING or raw_partition in self._restored:
            self._restored.discard(raw_partition)
            return True
        self._awaited.add(raw_partition)
        self._restores.start(raw_partition, partial(self._restore, plan, raw_partition, position.version))
        return False

    def finished(self) -> dict[RawPartition, CdcError | None]:
        """The raw partitions whose states have come since, or why they have not."""
        return {
            raw_partition: self._outcome(raw_partition, future.exception())
            for raw_partition, future in self._restores.finished().items()
        }

    def forget(self, raw_partition: RawPartition) -> None:
        """The raw partition has moved away, or has failed. A running restore continues, because it cannot be
        stopped.
        """
        self._awaited.discard(raw_partition)
        self._restored.discard(raw_partition)
        self._restores.forget(raw_partition)

    def sweep(self, plan: BatchPlan, own: Collection[RawPartition]) -> DiskUse | None:
        """Delete unused states from time to time. `own` are this worker's raw partitions. What the last time found,
        once.
        """
        found = None
        for future in self._sweeps.finished().values():
            if (error := future.exception()) is None:
                found = future.result()
            else:
                _logger.warning("unused states not deleted", error=str(error), trace=trace_of(error))
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + _SWEEP_SECONDS
            self._sweeps.start("sweep", partial(self._delete_unused, plan.materializer, frozenset(map(str, own))))
        return found

    def _outcome(self, raw_partition: RawPartition, error: BaseException | None) -> CdcError | None:
        is_awaited = raw_partition in self._awaited  # it may have moved away
        self._awaited.discard(raw_partition)
        if error is None:
            if is_awaited:
                self._restored.add(raw_partition)
            return None
        if isinstance(error, CdcError):
            return error
        _logger.error("state not restored", partition=str(raw_partition), trace=trace_of(error))
        if not isinstance(error, Exception):
            raise error
        return unexpected(str(raw_partition), error)
