"""Store how far each segment has been published, in memory and in `position.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher import state_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from publisher.inflight import PendingPosition

FINISHED_KEPT = 1000  # a node that crashed may link a finished segment again


class Positions:
    """The positions that Kafka has acknowledged: one in each segment that is begun, and the segments that are finished.

    published_up_to: the newest of these positions. clock: Kafka has acknowledged all data that was durable at this
    time, in µs.
    """

    def __init__(self, file: Path, host_id: UUID) -> None:
        self._file = file
        self._host_id = host_id
        self._begun: dict[int, int] = {}
        self._finished: dict[int, None] = {}  # in the order in which they were finished
        self._is_saved = True
        self.published_up_to = CommitLogPosition(0, 0)
        self.clock = 0

    @classmethod
    def load(cls, file: Path, host_id: UUID) -> Positions:
        """The positions in the file, none if there is no file; CdcError if they are another node's."""
        positions = cls(file, host_id)
        stored = state_files.read(file)
        if stored is None:
            return positions
        try:
            owner = UUID(stored["host_id"])
            positions._begun = {int(segment): int(position) for segment, position in stored["begun"].items()}
            positions._finished = {int(segment): None for segment in stored["finished"]}
            positions.published_up_to = CommitLogPosition(*map(int, stored["published_up_to"]))
            positions.clock = int(stored["clock"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The position file {file} is damaged.",
                "Restore it or remove it: without it the publisher starts again at the oldest segment in cdc_raw,"
                " which repeats messages and loses none.",
            ) from error
        if owner != host_id:
            raise _wrong_node(file, owner, host_id)
        return positions

    def check_node(self, host_id: UUID) -> None:
        """Raise CdcError if another node answers now than at the start."""
        if host_id != self._host_id:
            raise _wrong_node(self._file, self._host_id, host_id)

    def resume_at(self, segment: int) -> int:
        """The position in the segment up to which all is acknowledged; 0 if it is not begun."""
        return self._begun.get(segment, 0)

    def begun(self) -> list[int]:
        """The segments that are acknowledged in part."""
        return list(self._begun)

    def is_finished(self, segment: int) -> bool:
        return segment in self._finished

    def finished_from(self, segment: int) -> list[int]:
        """The finished segments from this one on, as far as they are remembered."""
        return [finished for finished in self._finished if finished >= segment]

    def move(self, acknowledged: Iterable[PendingPosition]) -> None:
        """Move to these positions, whose messages are all acknowledged, oldest first."""
        for reached in acknowledged:
            self._is_saved = False
            self._begun[reached.segment] = reached.position
            self.published_up_to = max(self.published_up_to, CommitLogPosition(reached.segment, reached.position))
            self.clock = reached.clock or self.clock
            if reached.is_end:
                del self._begun[reached.segment]
                self._finished[reached.segment] = None

    def forget_missing(self, present: Collection[int]) -> None:
        """Drop segments that are no longer in cdc_raw or the spool, except the newest finished ones."""
        gone = [segment for segment in self._begun if segment not in present]
        for segment in gone:
            del self._begun[segment]
        surplus = len(self._finished) - FINISHED_KEPT
        old = [segment for segment in list(self._finished)[: max(surplus, 0)] if segment not in present]
        for segment in old:
            del self._finished[segment]
        self._is_saved = self._is_saved and not gone and not old

    def save(self) -> None:
        """Make the positions durable if they have changed."""
        if self._is_saved:
            return
        state_files.write(
            self._file,
            {
                "host_id": str(self._host_id),
                "begun": {str(segment): position for segment, position in self._begun.items()},
                "finished": list(self._finished),
                "published_up_to": list(self.published_up_to),
                "clock": self.clock,
            },
        )
        self._is_saved = True


def _wrong_node(file: Path, owner: UUID, host_id: UUID) -> CdcError:
    return CdcError(
        Code.POSITION_FILE,
        f"The position file {file} belongs to the node {owner}; this one is {host_id}.",
        f"Set publisher.state_directory to a new folder for this node. Keep {file.parent}: it may hold segments in its"
        " spool, and quarantined mutations.",
    )
