"""Why a message of an input cannot be routed."""

from __future__ import annotations


class RouteError(Exception):
    """A message that does not fit its schema or the join. `reason` holds no value of a row."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
