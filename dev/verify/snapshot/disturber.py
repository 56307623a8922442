"""Disturbs a node and its publisher while a snapshot runs: kills, compactions and flushes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import TYPE_CHECKING, Self

from cdc_common.errors.codes import CdcError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.programs import Program

LEAST_SECONDS, MOST_SECONDS = 3.0, 12.0


class Disturber:
    """Does something every few seconds in a thread of its own. `done` counts what it did."""

    def __init__(
        self,
        seed: int,
        keyspace: str,
        tables: Sequence[str],
        beside: Sequence[tuple[CassandraNode, Program]],
    ) -> None:
        """`beside`: nodes with their publishers."""
        self.done: Counter[str] = Counter()
        self._pick = random.Random(f"disturb {seed}")
        self._keyspace = keyspace
        self._tables = tables
        self._beside = beside
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._over.wait(self._pick.uniform(LEAST_SECONDS, MOST_SECONDS)):
                self._disturb()
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self._error = error

    def _disturb(self) -> None:
        node, publisher = self._pick.choice(self._beside)
        what = self._pick.choice(("publisher killed", "compaction", "flush"))
        match what:
            case "publisher killed":
                publisher.kill()
                publisher.start()
            case "compaction":
                what = self._compact(node)
            case _:
                node.nodetool("flush", self._keyspace)
        self.done[what] += 1

    def _compact(self, node: CassandraNode) -> str:
        """3.11 cannot compact static rows with some dropped columns (NullPointerException in Row.Merger). Its SSTables
        stay, and the snapshot reads them.
        """
        try:
            node.nodetool("compact", self._keyspace, self._pick.choice(self._tables))
        except CdcError as error:
            if node.version.line != "3.11" or "NullPointerException" not in error.problem:
                raise
            return "compaction failed in 3.11"
        return "compaction"
