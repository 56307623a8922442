"""Segments as Cassandra's CommitLogReader and as we read them, mutation by mutation, field by field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain, repeat, takewhile
from typing import TYPE_CHECKING, Any

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.segments import OpenSegment
from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TIMESTAMP
from cassandra_storage.formats.rows.mutation import read_mutation, split_mutation
from cassandra_storage.formats.rows.row import Cell
from dev.verify.oracle.described import Described, compact, described
from tests.support.cassandra_storage.split_parts import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.tables import TableMetadata

KEPT = 20  # differences that are shown in full
LIVE_TIMES = (NO_DELETION_TIME, 2**32 - 2)  # 5.0 takes what it writes for LIVE in messaging version 12 for invalid
WRITTEN = ("mutations", "updates", "rows", "cells", "parts")
COUNTED = (*WRITTEN, "native", "damaged", "killed", "unknown", "refused", "invalid", "different")
NO_LINE = '{"nothing":"more"}'


@dataclass(slots=True)
class Tally:
    """The counts of a comparison."""

    # The number of mutations.
    mutations: int = 0
    # The number of partition updates.
    updates: int = 0
    # The number of rows.
    rows: int = 0
    # The number of cells.
    cells: int = 0
    # The number of split updates that Cassandra read and wrote again.
    parts: int = 0
    # The number of damaged segments.
    damaged: int = 0
    # The number of mutations of tables that are gone. Both pass over them.
    unknown: int = 0
    # The number of mutations that both cannot read.
    refused: int = 0
    # The number of mutations that Cassandra reads as we do and that its PartitionUpdate.validate stumbles over (3.11's
    # with a NullPointerException).
    invalid: int = 0
    # The number of damaged segments that killed Cassandra's reader.
    killed: int = 0
    # The number of mutations that the publisher's native core split as the Python code does, byte for byte.
    native: int = 0
    # The number of differences.
    different: int = 0
    # The first differences, in words.
    differences: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.differences = (self.differences + other.differences)[:KEPT]

    def differ(self, what: str) -> None:
        self.different += 1
        if len(self.differences) < KEPT:
            self.differences.append(what)

    def count(self, updates: Iterable[PartitionUpdate]) -> None:
        self.mutations += 1
        for update in updates:
            self.updates += 1
            rows = [*update.rows, *([update.static_row] if update.static_row else [])]
            self.rows += len(rows)
            self.cells += sum(map(_cells, rows))


def _cells(row: Row) -> int:
    return sum(1 if isinstance(data, Cell) else len(data.cells) for data in row.columns.values())


def judge_segment(
    said: Iterable[str], path: Path, tables: Mapping[bytes, TableMetadata], keys: Mapping[str, bytes]
) -> Tally:
    """`said`: the lines of CommitLogOracle.segment of the same file."""
    tally = Tally()
    lines = chain(said, repeat(NO_LINE))
    for event in events_of(path, keys):
        if not isinstance(event, tuple):
            _compare_refused(str(event), next(lines), tally)
            continue
        entry, version = event
        where = f"{path.name}:{entry.end_position}"
        try:
            updates = read_mutation(entry.mutation, version, tables)
        except UnknownTableError:
            tally.unknown += 1
            continue
        except FormatError as error:
            _compare_refused(f"{where}: {error}", next(lines), tally)
            continue
        tally.count(updates)
        _compare(where, entry, updates, next(lines), tally)
        _compare_split(where, entry.mutation, version, updates, tables, tally)
    _compare_end(path.name, list(takewhile(lambda line: line != NO_LINE, lines)), tally)
    return tally


def judge_made(said: Iterable[str], version: int, tables: Mapping[bytes, TableMetadata]) -> Tally:
    """`said`: the lines of CommitLogOracle.made in that messaging version."""
    tally = Tally()
    for number, line in enumerate(said):
        made = _parsed(line)
        where = f"made {number}"
        try:
            mutation = bytes.fromhex(made["hex"])
            updates = read_mutation(mutation, version, tables)
        except (KeyError, FormatError) as error:
            tally.differ(f"{where}: {error}: {line[:300]}")
            continue
        tally.count(updates)
        ours = {"updates": json.loads(compact([described(update) for update in updates]))}
        difference = first_difference(normalised(ours), normalised({"updates": made["updates"]}))
        if difference:
            tally.differ(f"{where}: {difference}")
        _compare_split(where, mutation, version, updates, tables, tally)
    return tally


def events_of(path: Path, keys: Mapping[str, bytes]) -> Iterator[tuple[CommitLogEntry, int] | str]:
    """Our entries with their messaging version, or a complaint."""
    segment = OpenSegment(path, codecs=SegmentCodecs(keys))
    for event in segment.events():
        if isinstance(event, CommitLogEntry) and segment.descriptor is not None:
            yield event, segment.descriptor.messaging_version
        else:
            yield f"{path.name}:{event.position}: {event}"


def _compare(where: str, entry: CommitLogEntry, updates: tuple[PartitionUpdate, ...], line: str, tally: Tally) -> None:
    """The texts are nearly always the same; where not, what they mean."""
    ours: Described = {
        "position": entry.end_position,
        "size": len(entry.mutation),
        "updates": [described(update) for update in updates],
    }
    text = compact(ours)
    if text == line:
        return
    theirs = _parsed(line)
    if theirs.get("updates") and "corrupt" in theirs:
        tally.invalid += 1
        theirs = {**ours, "updates": theirs["updates"]}
    try:
        difference = first_difference(normalised(json.loads(text)), normalised(theirs))
    except (KeyError, TypeError, IndexError, AttributeError):
        difference = f"no description of a mutation: {line[:500]}"
    if not theirs.get("updates"):
        tally.differ(f"{where}: Cassandra says {line[:1500]} of {text}")
    elif difference:
        tally.differ(f"{where}: {difference}")


def _parsed(line: str) -> Described:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    return said if isinstance(said, dict) else {"unreadable": line}


def normalised(said: Described) -> Described:
    """3.11 keeps a mutation's updates in no order. What deletes nothing is LIVE, and LIVE without cells is nothing:
    Cassandra keeps both where bytes had them.
    """
    updates = said.get("updates", [])
    updates.sort(key=lambda update: update["table"])
    for update in updates:
        for row in (*update["rows"], *([update["static"]] if update["static"] else [])):
            for name, data in list(row["columns"].items()):
                if isinstance(data[0], list) and data[0][0] == NO_TIMESTAMP and data[0][1] in LIVE_TIMES:
                    data[0] = [NO_TIMESTAMP, NO_DELETION_TIME]
                    if not data[1]:
                        del row["columns"][name]
    return said


def first_difference(ours: Any, theirs: Any, path: str = "") -> str | None:  # noqa: ANN401 - JSON
    """Return the place of the first difference and what it is; None if there is none."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            found = first_difference(ours.get(name, "nothing"), theirs.get(name, "nothing"), f"{path}.{name}")
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            found = first_difference(*pair, f"{path}[{index}]")
            if found:
                return found
        return None
    return None if ours == theirs else f"{path}: ours {str(ours)[:300]}, Cassandra's {str(theirs)[:300]}"


def _compare_refused(ours: str, line: str, tally: Tally) -> None:
    if line.startswith('{"corrupt":'):
        tally.refused += 1
    else:
        tally.differ(f"we refuse {ours}; Cassandra reads {line[:300]}")


def _compare_split(
    where: str,
    mutation: bytes,
    version: int,
    updates: tuple[PartitionUpdate, ...],
    tables: Mapping[bytes, TableMetadata],
    tally: Tally,
) -> None:
    """Its single-row parts make the same updates."""
    split = split_mutation(mutation, version, tables)
    for update, (table, parts) in zip(updates, split, strict=True):
        whole = joined(parts, table, update.partition_key, version)
        if whole != update:
            difference = first_difference(*(json.loads(compact(described(one))) for one in (whole, update)))
            tally.differ(f"{where}: the parts of {table.qualified_name} make another update: {difference}")


def _compare_end(name: str, rest: list[str], tally: Tally) -> None:
    """Compare the end: after our last entry, Cassandra says how many mutations it passed over, and nothing before."""
    for line in rest[:-1]:
        tally.differ(f"{name}: we miss {line[:300]}")
    if rest[-1:] != [compact({"end": True, "unknown": tally.unknown})]:
        tally.differ(f"{name}: of unknown tables we find {tally.unknown}, Cassandra ends with {rest[-1:]}")


def summary(tally: Tally) -> str:
    told = [f"{getattr(tally, name):,} {name}" for name in WRITTEN]
    told += [f"{tally.native:,} split by the native core"] if tally.native else []
    told += [f"{tally.damaged:,} damaged segments"] if tally.damaged else []
    told += [f"{tally.killed} of them killed its JVM"] if tally.killed else []
    told += [f"{tally.unknown:,} of unknown tables", f"{tally.refused:,} refused by both"]
    told += [f"{tally.invalid:,} read alike that it calls invalid"]
    return ", ".join([*told, f"{tally.different:,} differences"])
