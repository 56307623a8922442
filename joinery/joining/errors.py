"""Why a message of the internal topic cannot be joined."""

from __future__ import annotations


class JoinError(Exception):
    """A message that stops its partition. `reason` holds no value of a row."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LostHistoryError(JoinError):
    """A change of a row that the state does not have: an earlier message was deleted before it was read."""


class FanOutError(JoinError):
    """A change of an input would change more joined rows than the limit."""
