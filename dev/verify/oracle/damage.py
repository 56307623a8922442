"""Damaged segments as Cassandra's CommitLogReader and as we read them.

Of a plain one exactly the same mutations must come out. Of a compressed or encrypted one none may come that the
whole segment does not have, and none be missing that Cassandra reads, but from sections that we complain of: there it
may get further (the LZ4 decoder of 3.11 goes on over bad offsets, an encrypted block may reach past its section).
Elsewhere it may not get so far: it loses count of places, or gives up. How damage is reported is not compared.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import closing, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.segments import OpenSegment, read_descriptor_of
from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.mutation import read_mutation
from dev.local_stack.process.paths import run_folder
from dev.verify.fuzz.mutate import mutated
from dev.verify.oracle.described import Described, compact, described
from dev.verify.oracle.java_child import JvmDiedError
from dev.verify.oracle.judge import Tally, first_difference, normalised

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata
    from dev.verify.oracle.commitlog_oracle import CommitLogOracle

KEPT = run_folder() / "damaged"
HEAD = 16_384  # of a segment is damaged, so that little is read again and again
MARKER = 8
AROUND = 16  # bytes of a sync marker or an entry's head
MOST_KILLED = 5  # at most one in so many may kill the JVM


class DamageJudge:
    """Damages the head of one segment; copies that are read otherwise, or kill the JVM, are kept in .run/damaged."""

    def __init__(
        self, oracle: CommitLogOracle, path: Path, tables: Mapping[bytes, TableMetadata], keys: Mapping[str, bytes]
    ) -> None:
        descriptor = read_descriptor_of(path)
        assert descriptor is not None
        self._oracle = oracle
        self._tables = tables
        self._codecs = SegmentCodecs(keys)
        self._version = descriptor.messaging_version
        self._is_plain = descriptor.compression is None and descriptor.encryption is None
        self._head, self._places = _head(path.read_bytes(), descriptor.size, is_plain=self._is_plain)
        self._copy = path.parent / "damaged" / path.name
        self._copy.parent.mkdir(exist_ok=True)
        self._copy.write_bytes(self._head)
        self._sections: dict[str, set[int]] = {}
        self._whole = Counter(self._ours(self._sections))

    def judge(self, rng: random.Random, copies: int) -> Tally:
        tally = Tally()
        for number in range(copies):
            self._copy.write_bytes(_damaged(rng, self._head, self._places))
            tally.damaged += 1
            try:
                difference = self._difference()
            except JvmDiedError:  # a Cassandra ends itself where an error seems to leave it no choice
                self._store(f"killed-{number}")
                if tally.killed * MOST_KILLED > copies:
                    raise
                tally.killed += 1
                self._oracle.restart()
                continue
            if difference:
                tally.differ(f"{self._store(str(number))}: {difference}")
        return tally

    def _store(self, prefix: str) -> str:
        """The copy's name in .run/damaged."""
        KEPT.mkdir(parents=True, exist_ok=True)
        kept = KEPT / f"{prefix}-{self._copy.name}"
        shutil.copy(self._copy, kept)
        return kept.name

    def _difference(self) -> str | None:
        ours, (theirs, has_failed) = list(self._ours()), self._theirs()
        if self._is_plain:
            return _first_difference(ours[: len(theirs)] if has_failed else ours, theirs)
        if not Counter(ours) <= self._whole:
            return "we read what the whole segment does not have"
        # An encrypted block whose length has become 0 is for Cassandra what its buffer still holds, the block before,
        # once more (EncryptionUtils.decrypt): no more copies of a mutation count than the whole segment has.
        for said in (Counter(theirs) & self._whole) - Counter(ours):
            if not self._sections.get(said, set()) & self._complaints:
                return f"we miss {said[:200]}, and complain of the sections {self._complaints}"
        return None

    def _ours(self, sections: dict[str, set[int]] | None = None) -> Iterator[str]:
        """Nothing if the descriptor is damaged. `sections` collects the sections of each mutation."""
        segment = OpenSegment(self._copy, codecs=self._codecs)
        self._complaints: set[int] = set()
        with suppress(FormatError), closing(segment):
            for event in segment.events():
                if not isinstance(event, CommitLogEntry):
                    self._complaints.add(segment.sections)
                    continue
                with suppress(FormatError):  # of unknown tables
                    said = self._said(event)
                    if sections is not None:
                        sections.setdefault(said, set()).add(segment.sections)
                    yield said

    def _said(self, entry: CommitLogEntry) -> str:
        updates = read_mutation(entry.mutation, self._version, self._tables)
        place = {"position": entry.end_position} if self._is_plain else {}
        said = {**place, "size": len(entry.mutation), "updates": list(map(described, updates))}
        return _text(said)

    def _theirs(self) -> tuple[list[str], bool]:
        """Return what it reads, and whether the reader itself failed before the end. (3.11's never ends at a bad
        marker.)
        """
        found: list[str] = []
        for line in self._oracle.segment(self._copy):
            if line.startswith('{"position":'):
                said = json.loads(line)
                if not self._is_plain:
                    del said["position"]
                found.append(_text(said))
            elif line.startswith('{"error":'):
                return found, "complains without end" not in line
        return found, False


def _text(said: Described) -> str:
    """The same for what means the same."""
    return compact(normalised(json.loads(compact(said))))


def _head(segment: bytes, start: int, *, is_plain: bool) -> tuple[bytes, list[int]]:
    """The first whole sections, as a segment of its own, and where their markers and entries begin."""
    places, at = [0], start
    while (end := int.from_bytes(segment[at : at + 4], "big")) and (end <= HEAD or at == start):
        places.append(at)
        if is_plain:
            entry = at + MARKER
            while entry < end:
                places.append(entry)
                entry += 12 + int.from_bytes(segment[entry : entry + 4], "big")
        at = end
    return segment[:at] + bytes(HEAD if is_plain else 0), places


def _damaged(rng: random.Random, head: bytes, places: list[int]) -> bytes:
    if rng.random() < 0.5:
        return mutated(rng, head, [head])
    at = rng.choice(places)
    return head[:at] + mutated(rng, head[at : at + AROUND], [head]) + head[at + AROUND :]


def _first_difference(ours: list[str], theirs: list[str]) -> str | None:
    for number, (one, other) in enumerate(zip_longest(ours, theirs)):
        if one is None or other is None:
            return f"of {len(theirs)} mutations that Cassandra reads we read {len(ours)}"
        if one != other:
            return f"mutation {number}: {first_difference(json.loads(one), json.loads(other))}"
    return None
