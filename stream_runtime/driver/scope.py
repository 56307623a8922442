"""Says how much an error stops: the whole job, a stream, or one share; and how soon it is worth another try.

Where an error is raised says what it concerns. An error of the driver's own requests ends the job, one of a topic's
plan stops the topic's partitions, and one of a source partition stops only that (decision 0023).
"""

from __future__ import annotations

from typing import NamedTuple

from cdc_common.errors.codes import Code

OF_THE_JOB = frozenset({Code.CONFIG_INVALID, Code.TRANSACTION_TIMEOUT})
"""Codes that end the job although a source partition has met them: settings are the same for all."""

TEMPORARY = frozenset({Code.KAFKA_UNREACHABLE})
"""Codes of the driver's own requests for which the job waits."""


class Pauses(NamedTuple):
    """The pauses between two tries."""

    # The first pause, in seconds. It doubles after each failure.
    first: float
    # The longest pause, in seconds.
    longest: float
    # Whether the next batch already tries again, without a line in the log.
    at_once: bool = False
    # How long the error is expected to heal by itself, and is only a warning.
    heals_seconds: float = 0.0

    def after(self, failures: int) -> float:
        """The pause after so many failures in a row, at least 1."""
        if self.at_once and failures == 1:
            return 0.0
        doublings = failures - 1 - self.at_once
        return min(self.longest, self.first * 2.0 ** min(doublings, 64))  # no float is beyond 2^1023


_SOON = Pauses(1.0, 10.0, heals_seconds=60.0)  # waiting helps: a server comes back
_SCHEMA = Pauses(1.0, 10.0, at_once=True)  # it may have arrived after the batch was planned
_LATE = Pauses(1.0, 300.0)  # an operator has to act
_RESUMED = Pauses(5.0, 5.0)  # a user resumes it, and expects that it continues
_BY_CODE = {
    Code.SCHEMA_UNKNOWN: _SCHEMA,
    Code.KAFKA_UNREACHABLE: _SOON,
    Code.REGISTRY_UNREACHABLE: _SOON,
    Code.CHECKPOINT_LOCATION: _SOON,
    Code.TRANSACTION_EXPIRED: _SOON,
    Code.ARCHIVE_STORE_AWAY: _SOON,
    Code.WAREHOUSE_AWAY: _SOON,
    Code.WAREHOUSE_PAUSED: _RESUMED,
}


def pauses(code: Code) -> Pauses:
    """The pauses of a source partition that has stopped with the code."""
    return _BY_CODE.get(code, _LATE)
