"""Why a message or a schema cannot be transformed."""

from __future__ import annotations


class TransformError(Exception):
    """A message that does not fit its schema, or a value that a step refuses. `reason` holds no value of a row."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StepError(Exception):
    """A step that does not fit the schema of its source. `step`: its number, from 1; 0 for the source itself."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(step, reason)
        self.step = step
        self.reason = reason
