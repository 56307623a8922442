"""Choose the number of tasks and the duration of a micro-batch, so that Spark's dynamic allocation adds and removes
executors.

Spark adds executors while tasks wait for a core, and removes one that had no task for a while. With a task for each
core neither ever happens. So while the workers are behind, there are more tasks than cores, and the micro-batch lasts
until Spark has noticed. While the job is idle, there are few tasks, and the micro-batch is longer than Spark waits.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PREFIX = "spark.dynamicAllocation."
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_MARGIN_SECONDS = 2.0
_IDLE_LOAD = 0.3  # of each remaining worker, below which the others are not needed
_UNLIMITED = 2**31 - 1  # Spark's default of maxExecutors


class Planned(NamedTuple):
    """The tasks of the next micro-batch."""

    # Their number.
    slots: int
    # How long it lasts at least, in seconds.
    seconds: float
    # As Claims.list_workers.
    is_exact: bool = False


class Slots:
    """Counts tasks. `conf`: Spark's. `cores`: how many there are now. task_seconds: how long one usually lasts."""

    def __init__(
        self,
        conf: Mapping[str, str],
        cores: Callable[[], int],
        task_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = task_seconds
        self._cores = cores
        self._clock = clock
        self._task_cpus = max(1, int(conf.get("spark.task.cpus", "1")))
        self._is_dynamic = conf.get(f"{_PREFIX}enabled", "false") == "true"
        per_executor = max(1, int(conf.get("spark.executor.cores", "1")) // self._task_cpus)
        self._least = max(1, int(conf.get(f"{_PREFIX}minExecutors", "0")) * per_executor)
        self._most = int(conf.get(f"{_PREFIX}maxExecutors", str(_UNLIMITED))) * per_executor
        self._grow_seconds = _MARGIN_SECONDS + seconds(conf.get(f"{_PREFIX}schedulerBacklogTimeout", "1s"))
        self._idle_seconds = _MARGIN_SECONDS + seconds(conf.get(f"{_PREFIX}executorIdleTimeout", "60s"))
        self._busy_at = clock()
        self.planned = Planned(1, task_seconds)

    def plan(self, shares: int, processes: int, load: float, *, is_behind: bool) -> Planned:
        """The next micro-batch. `processes`: how many fold now. load, is_behind: as those of Rounds."""
        cores = max(1, self._cores() // self._task_cpus)
        self.planned = Planned(cores, self._seconds)
        if self._is_dynamic:
            self.planned = self._plan_dynamic(max(1, shares), cores, processes, load, is_behind=is_behind)
        return self.planned

    def _plan_dynamic(self, shares: int, cores: int, processes: int, load: float, *, is_behind: bool) -> Planned:
        most = min(self._most, shares)
        if is_behind or load > _IDLE_LOAD * self._least:
            self._busy_at = self._clock()
        if is_behind and (wanted := min(most, 2 * max(1, processes))) > processes:
            return Planned(wanted, self._grow_seconds)
        is_idle = self._clock() - self._busy_at > self._idle_seconds
        if is_idle and self._least < max(processes, cores):
            return Planned(self._least, self._idle_seconds, is_exact=True)
        return Planned(max(1, min(most, processes or cores)), self._seconds)


def seconds(value: str) -> float:
    """Spark's notation of a time: `90`, `90s`, `2min`. Without a unit it is seconds."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", value.lower())
    return 0.0 if found is None else int(found[1]) * _UNITS.get(found[2] or "s", 1.0)
