"""The record of the snapshot that the worker takes."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publisher.snapshot.state.records import Record, Records


class TooLateError(Exception):
    """A repair whose time is over."""


class CurrentRecord:
    """The newest version of the record. Each change is in its file before the next step begins."""

    def __init__(self, records: Records, record: Record) -> None:
        self._records = records
        self.record = record

    def save(self, **changes: object) -> None:
        """Change the record."""
        self.record = self.record.moved(**changes)
        self._records.write(self.record)

    def set_problem(self, problem: str, pace: float = 1.0) -> None:
        """Record why the snapshot waits, "" if it goes on; and the share of its rate that it may use."""
        if (problem, pace) != (self.record.problem, self.record.pace):
            self.save(problem=problem, pace=pace)

    def check_time(self) -> None:
        """Raise TooLateError if this is a repair that no reader waits for any more."""
        repair = self.record.portion.repair
        if repair is not None and time() * 1000 > repair.until_ms:
            raise TooLateError("its time is over")
