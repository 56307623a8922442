"""Incomplete Cassandra partitions: their state lacks a raw message that could not be read, or part of a node's log.

The state stores each of these gaps until the missing content has arrived after all (decision 0013). A gap under
the empty key affects every Cassandra partition: it is unknown which one the message was for.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.changes import RowChange
from cdc_common.messages.raw import place_id
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import INCOMPLETE, INCOMPLETE_END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.messages.raw import RawMessage
    from cdc_native.fold.updates import PlainUpdate
    from materializer.records import Change, RawRecord, RowUpdate, UnreadableError
    from materializer.rows.overlay import Overlay

_VALUE = struct.Struct(">BBqq")
_ID_SIZE = 16
_LENGTH = struct.Struct(">I")
_DEAD, _GAP = 0, 1


class DeadLetter(NamedTuple):
    """A raw message for the dead-letter topic, or the mark that a dead letter is resolved."""

    # The dead letter's id.
    id: bytes
    # The raw message's key.
    key: bytes
    # The raw message's value; None resolves the dead letter.
    value: bytes | None
    # The raw message's offset.
    offset: int
    # The broker's time of the raw message, in ms.
    timestamp_ms: int
    # The error's code, such as CDC-052.
    code: str = ""
    # Why the raw message cannot be folded.
    reason: str = ""


class IncompletePartitions:
    """The gaps in one raw partition's state; `dead_letters` are to be sent to the dead-letter topic."""

    def __init__(self, overlay: Overlay, max_dead_letters: int) -> None:
        self.dead_letters: list[DeadLetter] = []
        self._overlay = overlay
        self._max = max_dead_letters
        self._kinds: dict[tuple[bytes, bytes], int] = {}
        for key, value in overlay.scan(INCOMPLETE, INCOMPLETE_END):
            check_version(value)
            self._kinds[_split_gap_key(key)] = _VALUE.unpack(value)[1]
        self._partitions = {key for key, _ in self._kinds}

    def dead_letter(self, record: RawRecord, problem: UnreadableError) -> None:
        """Dead-letter an unreadable message, once for all its copies.

        CdcError(TOO_MANY_DEAD_LETTERS) if there are too many already.
        """
        gap = record.key, dead_letter_id(record.key, record.value)
        if gap in self._kinds:
            return
        if sum(kind == _DEAD for kind in self._kinds.values()) >= self._max:
            raise _too_many_dead_letters(self._max, record, problem)
        self._put(gap, _DEAD, record)
        self.dead_letters.append(DeadLetter(gap[1], *record, Code.DEAD_LETTERED.text, problem.reason))

    def apply_gap_message(self, record: RawRecord, message: RawMessage) -> None:
        """Store the gap of a mutation that a publisher could not decode; a message without a file deletes a gap."""
        if not message.file:
            self._remove((record.key, message.update), record.offset, record.timestamp_ms)
        else:
            place = place_id(message.host_id, message.segment, message.position)
            if (record.key, place) not in self._kinds:
                self._put((record.key, place), _GAP, record)

    @property
    def partitions(self) -> set[bytes]:
        """The keys of all Cassandra partitions that had a gap at any time of this chunk."""
        return self._partitions

    def resolve(self, updates: Iterable[RowUpdate | PlainUpdate]) -> None:
        """Delete the gaps that these updates fill."""
        if not self._kinds:
            return
        affects_all = any(not key for key, _ in self._kinds)
        for update in updates:
            key = update.partition_key
            if key in self._partitions or affects_all:
                _, host, segment, position, _ = update.order
                place = None if update.is_snapshot else place_id(host, segment, position)
                self._resolve(key, update.raw, place, update.arrival_ms)

    def resolve_message(self, record: RawRecord, message: RawMessage, arrival_ms: int) -> None:
        """Delete the gaps that this message fills. It is not merged, because everything it writes is truncated."""
        if self._kinds:
            place = place_id(message.host_id, message.segment, message.position)
            self._resolve(record.key, record.value, place, arrival_ms)

    def _resolve(self, key: bytes, value: bytes, place: bytes | None, arrival_ms: int) -> None:
        """place: of the mutation; None if it is in no log, but a snapshot's."""
        self._remove((key, dead_letter_id(key, value)), -1, arrival_ms)
        if place is not None:
            self._remove((key, place), -1, arrival_ms)
            self._remove((b"", place), -1, arrival_ms)

    def resolve_all(self) -> None:
        """Delete all gaps: the table was dropped, and another one has its name."""
        for key, place in list(self._kinds):
            self._remove((key, place), -1, 0)
        self._partitions.clear()

    def mark_changes(self, changes: list[Change], *, is_in_snapshot: bool) -> list[Change]:
        """The changes, marked as incomplete if their Cassandra partition had a gap at any time of this chunk.

        is_in_snapshot: a snapshot was running, so that all changes but its own are incomplete. Those of the native core
        are marked already, and none is of a partition with a gap.
        """
        if not self._partitions and not is_in_snapshot:
            return changes
        affects_all = b"" in self._partitions

        def is_incomplete(change: RowChange) -> bool:
            is_of_gap = affects_all or change.partition_key in self._partitions
            return is_of_gap or (is_in_snapshot and not change.source.snapshot)

        return [
            change._replace(source=change.source._replace(incomplete=True))
            if isinstance(change, RowChange) and is_incomplete(change)
            else change
            for change in changes
        ]

    def _put(self, gap: tuple[bytes, bytes], kind: int, record: RawRecord) -> None:
        self._kinds[gap] = kind
        self._partitions.add(gap[0])
        self._overlay.put(_gap_key(*gap), _VALUE.pack(FORMAT_VERSION, kind, record.offset, record.timestamp_ms))

    def _remove(self, gap: tuple[bytes, bytes], offset: int, timestamp_ms: int) -> None:
        kind = self._kinds.pop(gap, None)
        if kind is None:
            return
        self._overlay.put(_gap_key(*gap), None)
        if kind == _DEAD:
            self.dead_letters.append(DeadLetter(gap[1], gap[0], None, offset, timestamp_ms))


def dead_letter_id(key: bytes, value: bytes) -> bytes:
    """The id of a dead letter: the same for each copy of a raw message."""
    return blake2b(_LENGTH.pack(len(key)) + key + value, digest_size=_ID_SIZE).digest()


def _too_many_dead_letters(limit: int, record: RawRecord, problem: UnreadableError) -> CdcError:
    """Return the CdcError(TOO_MANY_DEAD_LETTERS) for one more unreadable message."""
    return CdcError(
        Code.TOO_MANY_DEAD_LETTERS,
        f"The raw message at offset {record.offset} can't be read: {problem.reason}. Its raw partition already has "
        f"{limit} dead letters, the limit of materializer.max_dead_letters.",
        "See who else writes to the raw topic. A publisher's messages are readable by a materializer of its version: "
        "after an upgrade `cassandra-materializer dead-letters replay` sends them again. To pass messages that stay "
        "unreadable, raise the limit; then discard them.",
    )


def _gap_key(partition_key: bytes, gap_id: bytes) -> bytes:
    return INCOMPLETE + _LENGTH.pack(len(partition_key)) + partition_key + gap_id


def _split_gap_key(key: bytes) -> tuple[bytes, bytes]:
    start = 1 + _LENGTH.size
    end = start + _LENGTH.unpack_from(key, 1)[0]
    return key[start:end], key[end:]
