"""Moves the position as Kafka acknowledges messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from publisher.log.position import Positions
    from publisher.parts import KafkaParts
    from publisher.progress import Progress
    from publisher.topics.table_problems import TableProblems
    from publisher.topics.waiting import WaitingTables

log = structlog.get_logger(__name__)


class Acknowledgements:
    """A position is reached once all messages before it are acknowledged."""

    def __init__(self, kafka: KafkaParts, positions: Positions, progress: Progress, problems: TableProblems) -> None:
        self._sender = kafka.sender
        self._in_flight = kafka.in_flight
        self._positions = positions
        self._progress = progress
        self._problems = problems

    def collect(self, seconds: float) -> bool:
        """Wait up to `seconds` for acknowledgements, and move the position; True if a segment is finished."""
        self._sender.poll(seconds)
        self._problems.take_refusals()
        return self._move_position()

    def collect_last(self, seconds: float, waiting: WaitingTables) -> None:
        """Wait up to `seconds` for all acknowledgements, and save the position."""
        self._sender.flush(seconds)
        self._problems.take_refusals()
        self._move_position()
        waiting.save()
        self._positions.save()

    def _move_position(self) -> bool:
        acknowledged = self._in_flight.take_acknowledged()
        self._positions.move(acknowledged)
        self._progress.measure_filler_rows(acknowledged)
        finished = [pending for pending in acknowledged if pending.is_end]
        for end in finished:
            log.info("segment finished", segment=end.segment, size=end.position)
        return bool(finished)
