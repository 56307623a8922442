"""Why a join cannot be planned."""

from __future__ import annotations


class PlanError(Exception):
    """A join that does not fit the schemas of its inputs. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
