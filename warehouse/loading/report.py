"""The part of a task's report that tells of loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LoadReport(NamedTuple):
    """Committed loads of a table."""

    # The number of loads.
    loads: int
    # The number of messages.
    messages: int
    # The number of row versions that were staged.
    rows: int
    # The number of values that became null because the warehouse cannot hold them.
    nulled: int
    # The number of loads that changed the table's columns.
    migrations: int
    # How long they took, in seconds.
    seconds: float
    # The next offset of each partition.
    offsets: Mapping[int, int]

    def and_then(self, later: LoadReport) -> LoadReport:
        """Both, one after the other."""
        return LoadReport(
            self.loads + later.loads,
            self.messages + later.messages,
            self.rows + later.rows,
            self.nulled + later.nulled,
            self.migrations + later.migrations,
            self.seconds + later.seconds,
            {**self.offsets, **later.offsets},
        )
