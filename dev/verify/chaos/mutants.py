"""The protocol with a defect seeded into it, and the cell of the matrix that must turn red.

Each `seed_…` is called in the processes of that cell (dev/verify/chaos/child.py), before the task runs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.fault_points import ArchivePoint
from archive.writer import intent, share_task
from archive.writer.share_task import ShareTask
from dev.verify.chaos.matrix import Action
from materializer.errors import RAW_FAULTS
from stream_runtime.exactly_once.position import decode
from stream_runtime.fault_points import FaultPoint, Point, StatelessPoint, reach
from stream_runtime.kafka import FencingProducer, GroupPositions, commits, producer
from stream_runtime.state import checkpoints
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.versions import sequence
from tests.support.materializer.protocol_run import BATCH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from archive.records import Range, ShareName
    from archive.writer.intent import Intent
    from materializer.records import RawPartition
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.state.changelog import Changelog


class Mutant(NamedTuple):
    """A defect."""

    # The name of the defect.
    name: str
    # Makes the defect in the process that calls it.
    seed: Callable[[], None]
    # The fault point of the cell that must turn red.
    point: Point
    # The action of that cell.
    action: Action
    # The scenario of that cell.
    scenario: str = "fresh"


def seed_position_first(sent: Point = FaultPoint.AFTER_SEND_OFFSETS) -> None:
    """The position is committed in a transaction of its own, before the messages."""
    send, send_position = FencingProducer.send, FencingProducer.send_offsets
    commit, begin = FencingProducer.commit, FencingProducer.begin
    held: list[tuple[Any, ...]] = []

    def position_first(self: FencingProducer, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        send_position(self, offsets)
        commit(self)
        begin(self)
        reach(sent)
        for message in held:
            send(self, *message)
        held.clear()

    _patch(FencingProducer, send=lambda _self, *message: held.append(message), send_offsets=position_first)


def seed_position_last(committed: Point = FaultPoint.AFTER_COMMIT) -> None:
    """The messages are committed in a transaction of their own, before the position."""
    send_position = FencingProducer.send_offsets
    commit, begin = FencingProducer.commit, FencingProducer.begin
    held: list[tuple[Any, ...]] = []

    def position_last(self: FencingProducer) -> None:
        commit(self)
        reach(committed)
        begin(self)
        send_position(self, *held.pop())
        commit(self)

    _patch(FencingProducer, commit=position_last, send_offsets=lambda _self, *position: held.append(position))


def seed_no_fence() -> None:
    """Each producer has a transactional id of its own."""
    made = vars(producer)["_open_producer"]  # the child's own, which gives its settings

    def with_an_id_of_its_own(kafka: object, given: Mapping[str, object], **form: object) -> object:
        return made(kafka, {**given, "transactional.id": uuid.uuid4().hex}, **form)

    _patch(producer, _open_producer=with_an_id_of_its_own)


def seed_changelog_last() -> None:
    """A changelog is stored when its version is committed already."""
    write, commit = CheckpointStore.write_changelog, FencingProducer.commit
    held: list[tuple[CheckpointStore, Changelog]] = []

    def commit_first(self: FencingProducer) -> None:
        commit(self)
        reach(FaultPoint.AFTER_COMMIT)
        while held:
            write(*held.pop())

    _patch(CheckpointStore, write_changelog=lambda self, entry: held.append((self, entry)))
    _patch(FencingProducer, commit=commit_first)


def seed_changelog_ignored() -> None:
    """The content of a changelog is not written when a state is restored."""
    read = CheckpointStore.read_changelog
    _patch(CheckpointStore, read_changelog=lambda *given: read(*given)._replace(writes={}))


def seed_clean_up_too_much() -> None:
    """The newest snapshot is deleted too, with all changelogs."""

    def all_of(committed: str, *_given: object) -> int:
        return sequence(committed) + 1

    _patch(checkpoints, oldest_kept_snapshot=all_of, newest_unneeded_changelog=all_of)


def seed_offsets_of_the_driver() -> None:
    """A task uses the offset that its batch begins with, not the group's."""
    read = GroupPositions.stored

    def start_of_batch(
        self: GroupPositions, partitions: Collection[RawPartition]
    ) -> dict[RawPartition, StoredOffset | None]:
        found = read(self, partitions)
        return {where: at and _at_batch_start(where, at) for where, at in found.items()}

    _patch(GroupPositions, stored=start_of_batch)


def _at_batch_start(where: RawPartition, stored: StoredOffset) -> StoredOffset:
    position = decode(stored.offset, stored.metadata, where, RAW_FAULTS)
    return position._replace(offset=position.offset // BATCH * BATCH).stored()


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
        partial(seed_position_first, StatelessPoint.OFFSET_SENT),
        StatelessPoint.OFFSET_SENT,
        Action.KILL,
    ),
    Mutant(
        "the offset after the messages",
        partial(seed_position_last, StatelessPoint.CHUNK_COMMITTED),
        StatelessPoint.CHUNK_COMMITTED,
        Action.KILL,
    ),
    Mutant("no fence", seed_no_fence, StatelessPoint.ALL_SENT, Action.ZOMBIE),
)


def seed_nothing_taken_over() -> None:
    """A share commits partitions that another one owns."""
    _patch(commits, _of_others=lambda *_: {})


SHARE_MUTANTS = (
    Mutant("no fence", seed_no_fence, StatelessPoint.ALL_SENT, Action.ZOMBIE, "same"),
    Mutant("nothing is taken over", seed_nothing_taken_over, StatelessPoint.ALL_SENT, Action.ZOMBIE, "changed"),
)


def seed_no_intent() -> None:
    """A cut has no intent before its files are stored: a successor may cut elsewhere."""
    _patch(share_task, store_intent=lambda _store, planned: planned)


def seed_names_from_the_start() -> None:
    """Files are named after the first offsets alone, and a cut has no intent."""
    seed_no_intent()
    _patch(intent, _ranges_in_name=_start_in_name)


def _start_in_name(name: ShareName, ranges: tuple[Range, ...]) -> str:
    return f"{name.topic}-{'-'.join(f'{one.partition}.{one.start}' for one in ranges)}"


def seed_definition_of_the_settings() -> None:
    """An intent is finished with the definition of the settings, which has changed since."""
    read = ShareTask._read_intent

    def with_the_settings(self: ShareTask) -> Intent | None:
        found = read(self)
        return None if found is None else found._replace(definition=self._settings.definition)

    _patch(ShareTask, _read_intent=with_the_settings)


ARCHIVE_MUTANTS = (
    Mutant("no intent", seed_no_intent, ArchivePoint.FILE_STORED, Action.KILL),
    Mutant("names from the start", seed_names_from_the_start, ArchivePoint.FILE_STORED, Action.KILL),
    Mutant("another definition", seed_definition_of_the_settings, ArchivePoint.INTENT_STORED, Action.KILL),
    Mutant("no fence", seed_no_fence, ArchivePoint.ALL_FILES_STORED, Action.ZOMBIE),
)


def _patch(owner: object, **replacements: object) -> None:
    for name, replacement in replacements.items():
        setattr(owner, name, replacement)
