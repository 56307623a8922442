"""Give each worker process its assignment of a round.

Spark starts a round's tasks in any of its Python processes, and starts a failed task again in another one. A process
therefore asks for its assignment. It has a worker's name, and keeps it while it lives, so that it gets the shares that
it has open. Nothing depends on this for correctness: whoever opens a share fences its earlier owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from stream_runtime.worker.task import Assignment

_PATIENCE = 2  # rounds in which a worker may be missing before its shares move


class Claims:
    """The workers and their processes. A process is known by any hashable value. Not thread-safe."""

    def __init__(self) -> None:
        self._processes: dict[str, Hashable | None] = {}  # of each worker; None: there is none yet, or it is gone
        self._missed: dict[str, int] = {}
        self._assignments: Mapping[str, Assignment] = {}
        self._asked: set[Hashable] = set()
        self._finished: set[Hashable] = set()
        self._claimed: set[str] = set()
        self._newcomers: set[Hashable] = set()
        self._made = 0
        self._is_exact = False
        self._has_spare_task = False

    def list_workers(self, slots: int, *, exactly: bool = False) -> list[str]:
        """The names to assign shares to; at least one. `slots`: how many processes there may be.

        A process that was left over in the last round gets a name of its own. exactly: not more than `slots` names.
        They then belong to whichever processes come first, since Spark chooses where its tasks run.
        """
        self._is_exact = exactly
        if exactly and len(self._processes) + len(self._newcomers) > slots:
            self._processes.clear()
            self._missed.clear()
            self._newcomers.clear()
        for process in self._newcomers:
            self._add(process)
        self._newcomers.clear()
        if not self._processes:
            for _ in range(max(1, slots)):
                self._add(None)
        return list(self._processes)

    @property
    def processes(self) -> int:
        """How many workers have a process."""
        return sum(process is not None for process in self._processes.values())

    def begin(self, assignments: Mapping[str, Assignment]) -> None:
        """A round begins. Workers without an assignment have nothing to do in it."""
        self._assignments = assignments
        self._asked.clear()
        self._finished.clear()
        self._claimed.clear()
        self._has_spare_task = False

    @property
    def is_settled(self) -> bool:
        """Whether each worker with an assignment has a process, and each process a worker."""
        return not self._newcomers and all(self._processes.get(worker) is not None for worker in self._assignments)

    def claim(self, process: Hashable) -> Assignment | None:
        """The work of the process in this round. None if it has asked before, or if nothing is left."""
        if process in self._asked:
            self._has_spare_task = True  # there are fewer processes than tasks
            return None
        self._asked.add(process)
        worker = self._worker_of(process)
        if worker is None:
            self._newcomers.add(process)
            return None
        self._claimed.add(worker)
        return self._assignments.get(worker)

    def finish(self, process: Hashable) -> None:
        """The time of its assignment is over."""
        self._finished.add(process)

    @property
    def all_finished(self) -> bool:
        """Whether this is so for all processes with an assignment."""
        busy = self._claimed & self._assignments.keys()
        return all(self._processes.get(worker) in self._finished for worker in busy)

    def release(self, process: Hashable) -> None:
        """Free the assignment of a process whose task has failed. Spark runs the task again, there or elsewhere."""
        self._asked.discard(process)
        self._claimed -= {worker for worker, owner in self._processes.items() if owner == process}

    def leave(self, process: Hashable) -> None:
        """The process has ended. Another one may take its place, in this round still."""
        self._asked.discard(process)
        self._newcomers.discard(process)
        for worker, owner in self._processes.items():
            if owner == process:
                self._processes[worker] = None
                self._claimed.discard(worker)

    def end(self) -> None:
        """The round is over: workers without a task go, after some patience, or at once if no task will come."""
        for worker in list(self._processes):
            if self._has_spare_task and self._processes[worker] is None:
                self._missed[worker] = _PATIENCE
            missed = 0 if worker in self._claimed else self._missed.get(worker, 0) + 1
            self._missed[worker] = missed
            if missed >= _PATIENCE:
                del self._processes[worker], self._missed[worker]

    def _worker_of(self, process: Hashable) -> str | None:
        """Return the process's own worker, or one without a process, first of those that have an assignment.

        Where there are as many tasks as workers, it may be one whose process has not come: it will get another.
        """
        for worker, owner in self._processes.items():
            if owner == process:
                return worker
        free = [worker for worker, owner in self._processes.items() if owner is None]
        if not free and self._is_exact:
            free = [worker for worker in self._processes if worker not in self._claimed]
        if not free:
            return None
        worker = min(free, key=lambda name: name not in self._assignments)
        self._processes[worker] = process
        return worker

    def _add(self, process: Hashable | None) -> None:
        self._made += 1
        self._processes[f"worker-{self._made}"] = process
