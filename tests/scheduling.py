"""Gives the tests to the processes of pytest-xdist: those that wait for servers, and those that only compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ONE_STACK = "tests/e2e"  # for all tests in there
WITHOUT_SERVERS = "tests/unit/"


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Gives the tests of a file to one process, and those that share a stack as well: each process starts its own.

    The last process begins with the tests that need no servers: it uses the cores while the others wait for theirs.
    """

    def _split_scope(self, nodeid: str) -> str:
        return ONE_STACK if nodeid.startswith(f"{ONE_STACK}/") else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = len(self.nodes) > 1 and node is self.nodes[-1]
        wanted = next((scope for scope in self.workqueue if scope.startswith(WITHOUT_SERVERS) == computes), None)
        if wanted is not None:
            self.workqueue.move_to_end(wanted, last=False)
        super()._assign_work_unit(node)
