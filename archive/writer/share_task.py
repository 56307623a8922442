"""The protocol of an archived share: each message is in exactly one committed file event.

The committed offsets are those before or those after a cut, whatever is killed, because of the order of the steps:

1. open the commit protocol, which fences an older task; only then read the committed offsets; then look for an intent
   that begins there. If there is one, the task finishes it;
2. read messages and spill their rows, until the cut ends;
3. store the intent, only once; whoever comes second gives up, and begins with the intent of the first;
4. make and store the files that the store does not have yet;
5. commit the file event together with the offsets.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING

from archive.events.file_event import FileEvent
from archive.fault_points import ArchivePoint
from archive.faults import ARCHIVE_FAULTS, intent_differs, share_size_changed
from archive.records import Range, ShareName
from archive.writer.cut import CutClock
from archive.writer.intent import Intent, intents_folder, plan_files, read_intent, store_intent
from archive.writer.parquet import describe, write_parquet
from archive.writer.positions import CutPosition, decode
from archive.writer.refused import RefusedMessages
from archive.writer.report import CutReport
from archive.writer.rows import FileKey, RowMaker
from archive.writer.spill import Spill
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.fault_points import reach
from stream_runtime.records import Message, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from archive.records import MadeFile, PlannedFile, Refused
    from archive.writer.share_parts import ShareParts, ShareSettings
    from stream_runtime.records import Share, TopicShape
    from stream_runtime.source_batch import SourceBatch


class IntentTakenError(NotOwnerError):
    """Another task has stored the intent of the cut: a new task finishes that one."""


class ShareTask:
    """The open task of a share in a process. After any exception it must be closed, and a new one opened."""

    def __init__(
        self,
        share: Share,
        shape: TopicShape,
        parts: ShareParts,
        settings: ShareSettings,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1: `parts.commits` has fenced older tasks. CdcError."""
        reach(ArchivePoint.SHARE_FENCED)
        self._parts = parts
        self._settings = settings
        self._shape = shape
        self._share = share
        self._wall_clock = wall_clock
        self._name = ShareName(share.stream, shape.topic_id, share.id)
        self._positions = self._read_positions()
        self._cut = max(position.cut for position in self._positions.values())
        self._intent = self._read_intent()
        self._lost = self._find_lost()
        self._clock = CutClock(settings.cut)
        self._rows: RowMaker
        self._report: CutReport
        shutil.rmtree(parts.folder, ignore_errors=True)
        self.spill = Spill(parts.folder / "rows.arrow", parts.spill_bytes)
        self._refused = RefusedMessages(share.stream, parts.folder / "refused.arrow")
        self._begin_cut()

    @property
    def offsets(self) -> dict[SourcePartition, int]:
        """The offset from which each partition is read: the committed one, or the first after lost messages."""
        return {partition: start + self._lost[partition] for partition, start in self._starts().items()}

    @property
    def open_files(self) -> int:
        """How many files the open cut will have."""
        return len(self.spill.counts)

    def take(self, partition: SourcePartition, batch: SourceBatch | None, following: int) -> None:
        """Step 2: spill the rows of messages, which are the next ones of the partition. following: the offset after
        them, or the partition's end.
        """
        limit = self._ends.get(partition.partition)
        if limit is not None:
            batch = None if batch is None else batch.before(limit)
            following = min(following, limit)
        if batch is not None and len(batch):
            made = self._rows.make(partition, batch)
            for rows in made.batches:
                self.spill.add(partition.partition, rows)
                self._counts[partition.partition] += len(rows.rows)
            self._tombstones[partition.partition] += made.tombstones
            for refused in made.refused:
                self._refused.add(partition, refused, keep=self._definition.on_error == "dead_letter")
            self._report = self._report.with_batch(made, len(batch))
            self._clock.add(len(batch), batch.size, set(self._rows.used))
            reach(ArchivePoint.BATCH_SPILLED)
        self._next[partition] = max(following, self._next[partition])

    def commit_due(self) -> CutReport | None:
        """Steps 3 to 5 if the cut ends now. CdcError, IntentTakenError, or what a commit raises: then it is not known
        whether it was done, which the next task sees.
        """
        if self._intent is None and self._is_over():
            self._intent = self._store_intent()
        if self._intent is None or not self._is_read(self._intent):
            return None
        files = self._store_files(self._intent)
        reach(ArchivePoint.ALL_FILES_STORED)
        report = self._commit(self._intent, files)
        self._intent = None
        self._lost.clear()
        self._begin_cut()
        return report

    @property
    def is_retry(self) -> bool:
        """Whether the cut was begun by an earlier task, whose end may lie before what was read."""
        return bool(self._ends)

    def close(self) -> None:
        """Forget what is not committed."""
        self.spill.clear()
        self._refused.clear()
        self._parts.commits.close()

    def _starts(self) -> dict[SourcePartition, int]:
        """The committed offset of each partition. An intent may have some of the partitions."""
        if self._intent is None:
            return {partition: position.offset for partition, position in self._positions.items()}
        return {SourcePartition(self._share.stream, one.partition): one.start for one in self._intent.ranges}

    @property
    def _accepts_loss(self) -> bool:
        return self._settings.definition.lost == "accept"

    def _find_lost(self) -> Counter[SourcePartition]:
        """The number of offsets of each partition whose messages were deleted, if the settings accept that."""
        if not self._accepts_loss:
            return Counter()
        starts = self._starts()
        bounds = self._parts.bounds(list(starts))
        return Counter({partition: max(bounds[partition][0] - start, 0) for partition, start in starts.items()})

    def _begin_cut(self) -> None:
        """Begin with what an intent says, or with the settings."""
        self.spill.clear()
        self._refused.clear()
        self._clock.restart()
        self._next = dict(self.offsets)
        self._counts: Counter[int] = Counter()
        self._tombstones: Counter[int] = Counter()
        self._report = CutReport()
        if self._intent is None:
            self._ends: dict[int, int] = {}
            self._definition = self._settings.definition
            self._rows = RowMaker(self._parts.plans, self._definition)
        else:
            self._ends = {one.partition: one.end for one in self._intent.ranges}
            self._definition = self._intent.definition
            pinned = {plan.schema_id: plan for plan in self._intent.schemas}
            self._rows = RowMaker(self._parts.plans, self._definition, pinned)

    def _read_positions(self) -> dict[SourcePartition, CutPosition]:
        """The committed offsets. New partitions get their first one. A share with intents and without an offset has
        lost it. Intents are listed first: a task that has taken over since may have stored some.
        """
        has_intents = bool(self._parts.store.list(intents_folder(self._name)))
        found = self._parts.commits.read()
        reach(ArchivePoint.POSITIONS_READ)
        known = {
            partition: decode(partition, stored, self._shape, ARCHIVE_FAULTS)
            for partition, stored in found.items()
            if stored is not None
        }
        self._check(known)
        new = [partition for partition in self._share.partitions if partition not in known]
        if self._share.partitions[0] in new and has_intents:
            raise ARCHIVE_FAULTS.offset_lost(self._share.partitions[0], self._settings.group)
        if new:
            first = self._parts.bounds(new)
            made = {partition: self._position(first[partition][0], 0) for partition in new}
            self._parts.commits.commit({at: made[at].stored(self._shape.topic_id) for at in new})
            known |= made
            reach(ArchivePoint.FIRST_OFFSETS_COMMITTED)
        self._check_added(known)
        return known

    def _position(self, offset: int, cut: int) -> CutPosition:
        return CutPosition(offset, cut, self._settings.partitions_per_share, self._wall_clock())

    def _check(self, known: Mapping[SourcePartition, CutPosition]) -> None:
        """All partitions of a share end with one cut, except those that were added since."""
        size = self._settings.partitions_per_share
        for position in known.values():
            if position.group != size:
                raise share_size_changed(self._share.id, position.group, size)
        cuts = {position.cut for position in known.values() if position.cut}
        if len(cuts) > 1:
            partition, position = min(known.items(), key=lambda item: item[1].cut)
            raise ARCHIVE_FAULTS.offset_foreign(
                partition, position.offset, f"ends the cut {position.cut}, not {max(cuts)}"
            )

    def _check_added(self, known: Mapping[SourcePartition, CutPosition]) -> None:
        """Partitions that were added to an archived topic begin at 0."""
        if self._accepts_loss or not any(position.cut for position in known.values()):
            return
        for partition, position in known.items():
            if position.cut == 0 and position.offset > 0:
                raise ARCHIVE_FAULTS.messages_skipped(partition, 0, position.offset)

    def _read_intent(self) -> Intent | None:
        """The intent of the next cut. CdcError if it does not begin at the committed offsets."""
        try:
            intent = read_intent(self._parts.store, self._name, self._cut + 1)
        except (ValueError, KeyError, TypeError) as error:
            raise intent_differs(self._share.id, f"its intent {self._cut + 1} is damaged") from error
        if intent is None:
            return None
        reach(ArchivePoint.INTENT_READ)
        partitions = {SourcePartition(self._share.stream, one.partition): one for one in intent.ranges}
        ends = self._parts.bounds(list(partitions))
        for partition, one in partitions.items():
            position = self._positions.get(partition)
            if position is None or position.offset != one.start:
                raise intent_differs(
                    self._share.id, f"its intent begins at {one.start} of {partition}, not at {position}"
                )
            if ends[partition][1] < one.end:
                raise ARCHIVE_FAULTS.offset_beyond_end(partition, one.end, ends[partition][1])
        return intent

    def _is_over(self) -> bool:
        """Whether the open cut ends. Without messages, offsets that markers have moved or that would expire end it."""
        if self._clock.is_over(self.open_files):
            return True
        if self._report.messages:
            return False
        age = self._wall_clock() - min(position.at for position in self._positions.values())
        has_moved = any(self._next[at] > position.offset for at, position in self._positions.items())
        return age > self._settings.refresh_seconds or (has_moved and age > self._settings.idle_seconds)

    def _is_read(self, intent: Intent) -> bool:
        return all(self._next[SourcePartition(self._share.stream, one.partition)] >= one.end for one in intent.ranges)

    def _store_intent(self) -> Intent:
        """Step 3."""
        ranges = tuple(
            Range(
                at.partition,
                position.offset,
                self._next[at],
                self._counts[at.partition],
                self._tombstones[at.partition],
                self._refused.counts[at.partition],
                self._lost[at],
            )
            for at, position in self._positions.items()
        )
        files = plan_files(self._name, self._definition, ranges, self.spill.counts)
        schemas = tuple(sorted(self._rows.used.values()))
        mine = Intent(self._name, self._cut + 1, ranges, self._definition, schemas, files)
        reach(ArchivePoint.CUT_DECIDED)
        stored = store_intent(self._parts.store, mine)
        reach(ArchivePoint.INTENT_STORED)
        if stored != mine:
            raise IntentTakenError(mine.path)
        return mine

    def _store_files(self, intent: Intent) -> list[MadeFile]:
        """Step 4. The files of the intent that have rows."""
        keys = {_key_of(file) for file in intent.files}
        for key in self.spill.counts:
            if key not in keys:
                raise intent_differs(self._share.id, f"it has rows for a file that its intent does not name ({key})")
        made: list[MadeFile] = []
        for planned in intent.files:
            file = self._store_file(intent, planned)
            rows = 0 if file is None else file.rows
            may_miss = self._settings.is_compacted or self._accepts_loss
            if rows > planned.rows or (rows < planned.rows and not may_miss):
                raise intent_differs(self._share.id, f"{planned.path} has {rows} rows, and the intent {planned.rows}")
            if file is not None:
                made.append(file)
        return made

    def _store_file(self, intent: Intent, planned: PlannedFile) -> MadeFile | None:
        """Make a file unless the store has it. None for a file without rows."""
        store = self._parts.store
        if store.size(planned.path) is None:
            local = self._parts.folder / "file.parquet"
            local.parent.mkdir(parents=True, exist_ok=True)
            rows = write_parquet(local, self.spill.read(_key_of(planned)), intent.definition.row_group_rows)
            if not rows:
                return None
            reach(ArchivePoint.FILE_MADE)
            store.put_new(planned.path, local)
            local.unlink()
        reach(ArchivePoint.FILE_STORED)
        return describe(store, planned)

    def _commit(self, intent: Intent, files: list[MadeFile]) -> CutReport:
        """Step 5."""
        event = _event_of(intent, files, self._refused.named)
        where = self._parts.events
        for letter in self._refused.letters(self._parts.dead_letter_topic):
            self._parts.commits.send(letter)
        reach(ArchivePoint.DEAD_LETTERS_SENT)
        self._parts.commits.send(Message(where.topic, where.partition, event.key, event.encode()))
        reach(ArchivePoint.EVENT_SENT)
        after = {
            SourcePartition(self._share.stream, one.partition): self._position(one.end, intent.cut)
            for one in intent.ranges
        }
        self._parts.commits.commit({at: position.stored(self._shape.topic_id) for at, position in after.items()})
        self._positions |= after
        self._cut = intent.cut
        reach(ArchivePoint.CUT_COMMITTED)
        self._refused.log()
        report = self._report._replace(new_versions=self._parts.plans.take_new_versions())
        return report.with_files(event)


def _key_of(planned: PlannedFile) -> FileKey:
    return FileKey(planned.form, planned.schema_id, planned.version, planned.bucket)


def _event_of(intent: Intent, files: Sequence[MadeFile], refused: Sequence[Refused]) -> FileEvent:
    planned = sum(file.rows for file in intent.files)
    own = intent.definition
    missing = planned - sum(file.rows for file in files)
    return FileEvent(
        intent.name, intent.cut, intent.ranges, own.table, own.layout, own.bucket, tuple(files), missing, tuple(refused)
    )
