"""Why a case cannot be run."""

from __future__ import annotations


class CaseError(Exception):
    """A case that does not fit its join, or a change that does not fit its input."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
