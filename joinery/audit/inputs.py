"""Loads the messages of the inputs before a frontier, as a join that begins does."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from joinery.internal.codec import decode
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from stream_runtime.records import Record, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from joinery.audit.cut import Cut
    from joinery.audit.reading import PartitionReader
    from joinery.audit.scratch import Scratch
    from joinery.catalogue import Catalogue
    from joinery.records import Stage
    from stream_runtime.records import Message, SourceRecord

_MOST_BYTES = 1 << 30  # of joined changes: there are none
_AT_ONCE = 10_000


class InputLoader:
    """Loads the scratch states of a join, by the numbers of their partitions."""

    def __init__(
        self, stage: Stage, catalogue: Catalogue, cuts: Mapping[int, Cut], scratches: Mapping[int, Scratch]
    ) -> None:
        self._stage = stage
        self._catalogue = catalogue
        self._cuts = cuts
        self._scratches = scratches
        self._loaders = {
            number: JoinProcessor(stage, SourcePartition(stage.internal, number), _MOST_BYTES) for number in scratches
        }
        self._next = 0  # a number for each message, in place of its offset

    def load(self, reader: PartitionReader) -> int:
        """Load all inputs. The number of their messages before the frontiers. CdcError."""
        count = 0
        for topic, shape in self._stage.sources.items():
            partitions = [SourcePartition(topic, number) for number in range(shape.partitions)]
            routers = {partition: Router(self._stage, partition, self._catalogue) for partition in partitions}
            for partition, records in reader.read(shape, {partition: self._end(partition) for partition in partitions}):
                self._route(routers[partition], records)
                count += len(records)
        return count

    def _end(self, partition: SourcePartition) -> int:
        """The offset before which all messages of a partition are that any cut has."""
        numbers = self._stage.numbers_of(partition.topic)
        found = (cut.frontier.get((of, partition.partition), 0) for cut in self._cuts.values() for of in numbers)
        return max(found, default=0)

    def _route(self, router: Router, records: Sequence[SourceRecord]) -> None:
        made = router.route_chunk(records)
        if made.error is not None:
            raise made.error
        by_partition: defaultdict[int, list[Record]] = defaultdict(list)
        for message in self._of_cuts(made.messages):
            self._next += 1
            by_partition[message.partition].append(Record(message.key, message.value or b"", self._next, 0))
        for number, found in by_partition.items():
            for first in range(0, len(found), _AT_ONCE):
                self._join(number, found[first : first + _AT_ONCE])

    def _of_cuts(self, messages: Iterable[Message]) -> Iterable[Message]:
        """Those of the messages that are in the cuts of their partitions."""
        for message in messages:
            if message.partition in self._cuts:
                origin = decode(message.key, message.value or b"").origin
                frontier = self._cuts[message.partition].frontier
                if origin.offset < frontier.get((origin.input, origin.partition), 0):
                    yield message

    def _join(self, number: int, records: list[Record]) -> None:
        scratch = self._scratches[number]
        while records:
            made = self._loaders[number].fold(scratch.state, records)
            scratch.apply(made.writes)
            records = records[len(records) - made.left :]
