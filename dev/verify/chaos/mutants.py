"""The protocol with a defect seeded into it, and the cell of the matrix that must turn red.

Each `seed_…` is called in the processes of that cell (dev/verify/chaos/child.py), before the task runs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dev.verify.chaos.matrix import Action
from stream_runtime.fault_points import FaultPoint, Point, StatelessPoint, reach
from stream_runtime.kafka import GroupPositions, PartitionProducer, producer
from stream_runtime.state import checkpoints
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.versions import sequence
from tests.support.materializer.protocol_run import BATCH

if TYPE_CHECKING:
    from collections.abc import Collection

    from materializer.records import RawPartition
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.changelog import Changelog


class Mutant(NamedTuple):
    name: str
    seed: Callable[[], None]
    point: Point
    action: Action
    scenario: str = "fresh"


def seed_position_first(method: str = "send_position", sent: Point = FaultPoint.AFTER_SEND_OFFSETS) -> None:
    """The position is committed in a transaction of its own, before the messages. `method` sends it."""
    send, send_position = PartitionProducer.send, getattr(PartitionProducer, method)
    commit, begin = PartitionProducer.commit, PartitionProducer.begin
    held: list[tuple[Any, ...]] = []

    def position_first(self: PartitionProducer, *position: object) -> None:
        send_position(self, *position)
        commit(self)
        begin(self)
        reach(sent)
        for message in held:
            send(self, *message)
        held.clear()

    _patch(PartitionProducer, send=lambda _self, *message: held.append(message), **{method: position_first})


def seed_position_last(method: str = "send_position", committed: Point = FaultPoint.AFTER_COMMIT) -> None:
    """The messages are committed in a transaction of their own, before the position. `method` sends it."""
    send_position = getattr(PartitionProducer, method)
    commit, begin = PartitionProducer.commit, PartitionProducer.begin
    held: list[tuple[object, ...]] = []

    def position_last(self: PartitionProducer) -> None:
        commit(self)
        reach(committed)
        begin(self)
        send_position(self, *held.pop())
        commit(self)

    _patch(PartitionProducer, commit=position_last, **{method: lambda _self, *position: held.append(position)})


def seed_no_fence() -> None:
    """Each producer has a transactional id of its own."""
    made = vars(producer)["Producer"]  # the child's own, which gives its settings
    _patch(producer, Producer=lambda given: made({**given, "transactional.id": uuid.uuid4().hex}))


def seed_changelog_last() -> None:
    """A changelog is stored when its version is committed already."""
    write, commit = CheckpointStore.write_changelog, PartitionProducer.commit
    held: list[tuple[CheckpointStore, Changelog]] = []

    def commit_first(self: PartitionProducer) -> None:
        commit(self)
        reach(FaultPoint.AFTER_COMMIT)
        while held:
            write(*held.pop())

    _patch(CheckpointStore, write_changelog=lambda self, entry: held.append((self, entry)))
    _patch(PartitionProducer, commit=commit_first)


def seed_changelog_ignored() -> None:
    """What a changelog says is not written when a state is restored."""
    read = CheckpointStore.read_changelog
    _patch(CheckpointStore, read_changelog=lambda *given: read(*given)._replace(writes={}))


def seed_clean_up_too_much() -> None:
    """The newest snapshot is deleted too, with all changelogs."""

    def all_of(committed: str, *_given: object) -> int:
        return sequence(committed) + 1

    _patch(checkpoints, oldest_kept_snapshot=all_of, newest_unneeded_changelog=all_of)


def seed_offsets_of_the_driver() -> None:
    """A task uses the offset that its batch begins with, not the group's."""
    read = GroupPositions.read

    def start_of_batch(
        self: GroupPositions, partitions: Collection[RawPartition]
    ) -> dict[RawPartition, Position | None]:
        found = read(self, partitions)
        return {where: at and at._replace(offset=at.offset // BATCH * BATCH) for where, at in found.items()}

    _patch(GroupPositions, read=start_of_batch)


MUTANTS = (
    Mutant("the position before the messages", seed_position_first, FaultPoint.AFTER_SEND_OFFSETS, Action.KILL),
    Mutant("the position after the messages", seed_position_last, FaultPoint.AFTER_COMMIT, Action.KILL),
    Mutant("no fence", seed_no_fence, FaultPoint.AFTER_CHANGELOG, Action.ZOMBIE),
    Mutant("the changelog after the commit", seed_changelog_last, FaultPoint.AFTER_COMMIT, Action.KILL),
    Mutant("a changelog is ignored", seed_changelog_ignored, FaultPoint.AFTER_COMMIT, Action.KILL),
    Mutant("clean-up deletes too much", seed_clean_up_too_much, FaultPoint.AFTER_CLEANUP, Action.KILL),
    Mutant("offsets of the driver", seed_offsets_of_the_driver, FaultPoint.AFTER_COMMIT, Action.KILL),
)


MOVE_MUTANTS = tuple(mutant._replace(scenario="move") for mutant in MUTANTS[:3])


TRANSFORM_MUTANTS = (
    Mutant(
        "the offset before the messages",
        partial(seed_position_first, "send_offset", StatelessPoint.OFFSET_SENT),
        StatelessPoint.OFFSET_SENT,
        Action.KILL,
    ),
    Mutant(
        "the offset after the messages",
        partial(seed_position_last, "send_offset", StatelessPoint.CHUNK_COMMITTED),
        StatelessPoint.CHUNK_COMMITTED,
        Action.KILL,
    ),
    Mutant("no fence", seed_no_fence, StatelessPoint.ALL_SENT, Action.ZOMBIE),
)


def _patch(owner: object, **replacements: object) -> None:
    for name, replacement in replacements.items():
        setattr(owner, name, replacement)
