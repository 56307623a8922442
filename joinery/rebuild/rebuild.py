"""Makes the states of a join again from its inputs, and sends the changes that bring the target to them.

1. Stop all partitions by their positions, with fenced producers, and put a mark into each partition of the internal
   topic. What is routed is all messages of the inputs before the offsets of the routing group.
2. Load these into scratch states under the definition as it is now, and fold the whole target into them.
3. Send a change for each joined row that differs. Its `row_sequence` follows that of all messages before it.
4. Store the scratch states as states of the partitions, at the ends of the internal topic's partitions.
5. Commit the positions.

A run after a crash does all of it again. What was sent is in the target then, and does not differ any more.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.messages.avro.encoding import encode_long
from joinery.audit.compare import Comparison
from joinery.audit.cut import Cut
from joinery.audit.inputs import InputLoader
from joinery.audit.output import TargetFold
from joinery.audit.reading import PartitionReader
from joinery.audit.scratch import Scratch
from joinery.fault_points import JoinRebuildPoint
from joinery.faults import JOIN_FAULTS, another_key, job_runs
from joinery.internal.codec import encode
from joinery.joining.layout import BEGUN, DEFINITION, PHASE, marked_key
from joinery.joining.records import Group, Joined, Kind, Origin, Routed, Row
from joinery.output.messages import JoinedWriter
from joinery.rebuild.positions import REBUILDING, fenced_partitions, routed_offsets
from stream_runtime.fault_points import reach
from stream_runtime.kafka import Topics
from stream_runtime.records import Message, SourcePartition
from stream_runtime.state.changelog import Head
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.versions import next_version, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from joinery.audit.compare import Difference
    from joinery.catalogue import Catalogue
    from joinery.definition import Join
    from joinery.job.planner import JoinPlanner
    from joinery.rebuild.positions import JoinPartition
    from joinery.records import Definitions, Stage

CAUSE = "rebuild"
_ALL = 1 << 62
_AT_ONCE = 10_000  # changes of a transaction


class Rebuild:
    """Rebuilds of the joins of a job that does not run. `say` prints progress. CdcError or KafkaException."""

    def __init__(
        self, definitions: Definitions, catalogue: Catalogue, planner: JoinPlanner, say: Callable[[str], None]
    ) -> None:
        self._definitions = definitions
        self._catalogue = catalogue
        self._planner = planner
        self._say = say
        self._topics = Topics(definitions.kafka)
        self._reader = PartitionReader(definitions.kafka, f"{definitions.settings.group_id}-rebuild", self._topics)

    def rebuild(self, join: Join) -> int:
        """Rebuild a join, and return how many joined rows have changed."""
        stage = self._stage(join)
        routed = routed_offsets(self._definitions, stage, fences=True)
        with ExitStack() as stack:
            partitions = fenced_partitions(self._definitions, stage)
            for partition in partitions:
                stack.callback(partition.commits.close)
            marked = [self._mark(stage, partition) for partition in partitions]
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="joinery-rebuild-")))
            scratches = {
                partition.internal.partition: stack.enter_context(
                    closing(Scratch(folder / str(partition.internal.partition)))
                )
                for partition in marked
            }
            self._load(stage, routed, marked, scratches)
            changed = sum([self._send(stage, partition, scratches) for partition in marked])
            done = [self._store(stage, partition, scratches) for partition in marked]
            if routed_offsets(self._definitions, stage, fences=False) != routed:
                raise job_runs(join)
            for partition in done:
                partition.send((), partition.position)
                reach(JoinRebuildPoint.PARTITION_CONTINUES)
        return changed

    def _stage(self, join: Join) -> Stage:
        """The stage under the definition as it is now. CdcError JOIN_REBUILD if the target cannot stay."""
        before = self._catalogue.input_schema(join.target)
        stage = self._planner.make_stage(join)
        keys = () if stage is None else tuple(field["name"] for field in stage.plan.key_fields)
        if before is None or stage is None or before.keys != keys or stage.target != before.topic:
            raise another_key(join)
        return stage

    def _mark(self, stage: Stage, partition: JoinPartition) -> JoinPartition:
        """Step 1 for a partition: its position is at the end of the internal topic's partition."""
        now = time.time_ns() // 1000
        count = stage.sources[stage.plan.inputs[0].schema.topic].partitions
        mark = Routed(Kind.MARK, Row(Group(b""), b"", encode_long(count)), Origin(0, 0, 0, 0, now, CAUSE))
        stopped = partition.position._replace(in_progress=REBUILDING)
        message = Message(stage.internal, partition.internal.partition, *encode(mark))
        partition.send([message], stopped)
        reach(JoinRebuildPoint.PARTITION_MARKED)
        _, end = self._topics.bounds([partition.internal])[partition.internal]
        return partition._replace(position=stopped._replace(offset=end, refreshes=stopped.refreshes + 1))

    def _load(
        self,
        stage: Stage,
        routed: Mapping[SourcePartition, int],
        partitions: list[JoinPartition],
        scratches: Mapping[int, Scratch],
    ) -> None:
        """Step 2."""
        frontier = {
            (number, partition.partition): offset
            for partition, offset in routed.items()
            for number in stage.numbers_of(partition.topic)
        }
        cuts = {
            partition.internal.partition: Cut(partition.position.offset, frontier, has_begun=True)
            for partition in partitions
        }
        read = InputLoader(stage, self._catalogue, cuts, scratches).load(self._reader)
        self._say(f"{stage.plan.join.name}: {read:,} messages of the inputs")
        shape = self._topics.shapes([stage.target])[stage.target]
        folds = {
            SourcePartition(stage.target, number): TargetFold(stage.plan, self._catalogue, _ALL, scratch)
            for number, scratch in scratches.items()
        }
        for partition, records in self._reader.read(shape, self._topics.ends(list(folds))):
            folds[partition].take(records)
        reach(JoinRebuildPoint.INPUTS_LOADED)

    def _send(self, stage: Stage, partition: JoinPartition, scratches: Mapping[int, Scratch]) -> int:
        """Step 3 for a partition: how many joined rows have changed."""
        number = partition.internal.partition
        writer = JoinedWriter(stage.plan, stage.target, stage.key_id, stage.value_id)
        comparison = Comparison(stage.plan.rule, scratches[number])
        origin = Origin(0, 0, 0, 0, time.time_ns() // 1000, CAUSE)
        changes = (_change(stage, found, partition, origin) for found in comparison.differences())
        stopped = partition.position._replace(offset=self._committed(partition))
        count = 0
        while part := list(islice(changes, _AT_ONCE)):
            count += len(part)
            stopped = stopped._replace(refreshes=stopped.refreshes + 1)
            partition.send(writer.messages(part, number), stopped)
            reach(JoinRebuildPoint.CHANGES_SENT)
        self._say(f"{stage.target}-{number}: {comparison.rows:,} joined rows, {count:,} of them changed")
        return count

    def _committed(self, partition: JoinPartition) -> int:
        """The offset of a partition's committed position, which stays until its state is stored."""
        stored = partition.commits.read()[partition.internal]
        return 0 if stored is None else stored.offset

    def _store(self, stage: Stage, partition: JoinPartition, scratches: Mapping[int, Scratch]) -> JoinPartition:
        """Step 4 for a partition: its position names the new state."""
        internal, position = partition.internal, partition.position
        scratch = scratches[internal.partition]
        store = object_store(self._definitions.settings)
        checkpoints = CheckpointStore(store, self._definitions.settings.group_id, internal, JOIN_FAULTS)
        known = (position.version, scratch.state.version, checkpoints.newest_version())
        version = next_version(max(known, key=sequence))
        scratch.finish(_begun(stage), Head(version, position.offset, 0, stage.internal_shape.partitions))
        copy = scratch.state.copy()
        checkpoints.write_snapshot(version, copy.files(), None, is_own=True)
        reach(JoinRebuildPoint.STATE_STORED)
        return partition._replace(position=position._replace(version=version, in_progress=None))


def _begun(stage: Stage) -> dict[bytes, bytes | None]:
    """The keys of a state that has loaded all inputs."""
    made: dict[bytes, bytes | None] = {PHASE: BEGUN, DEFINITION: encode_long(stage.plan.rule.definition)}
    for topic, shape in stage.sources.items():
        for of in stage.numbers_of(topic):
            made |= {marked_key(of, number): encode_long(shape.partitions) for number in range(shape.partitions)}
    return made


def _change(stage: Stage, difference: Difference, partition: JoinPartition, origin: Origin) -> Joined:
    """The change that makes the target's row the expected one. The position ends with a marker's offset."""
    key, expected, found = difference
    return Joined(
        key,
        None if found is None else found.row,
        None if expected is None else expected.row,
        (None,) * len(stage.plan.inputs) if expected is None else expected.sequences,
        partition.position.offset - 1,
        origin,
    )
