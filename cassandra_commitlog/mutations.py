"""The mutations of segments, decoded with what is known of the schema, which grows as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra_commitlog.segments import SegmentWalk
from cassandra_storage.commitlog import CommitLogEntry
from cassandra_storage.errors import FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.mutation import first_table, read_updates
from cassandra_storage.partition import PartitionUpdate
from cassandra_storage.schema_keyspace import SCHEMA_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_commitlog.schemas import Schemas
    from cassandra_commitlog.segments import SegmentFile
    from cassandra_storage.commitlog import CorruptEntry
    from cassandra_storage.commitlog_sections import Codecs


class SizedUpdate(NamedTuple):
    """An update and the bytes that it takes in its mutation."""

    update: PartitionUpdate
    size: int


class Decoded(NamedTuple):
    """A mutation, all of it."""

    entry: CommitLogEntry
    updates: list[SizedUpdate]


class Undecoded(NamedTuple):
    """A mutation that needs a schema that is not known: rows carry no size, so that nothing of it can be told apart."""

    entry: CommitLogEntry
    error: UnknownTableError | UnknownColumnError


class Damaged(NamedTuple):
    """What is no entry or no mutation, though it should be; `position` is an offset in the segment."""

    position: int
    reason: str


Event: TypeAlias = Decoded | Undecoded | Damaged


def _reason(event: CorruptEntry) -> str:
    where = "" if event.section_offset is None else f" (in the section at {event.section_offset} of the file)"
    return event.reason + where


class MutationReader:
    """Reads segments in the order given, so that a CREATE comes before what needs it."""

    def __init__(self, schemas: Schemas, codecs: Codecs | None = None) -> None:
        self._schemas = schemas
        self._codecs = codecs

    def walk(self, file: SegmentFile) -> SegmentWalk:
        """The segment, not yet read."""
        return SegmentWalk(file, self._codecs)

    def events(self, walk: SegmentWalk) -> Iterator[Event]:
        """The mutations of one segment. At the first one whose schema is not known, the rest of the segment is searched
        for it: what a node writes while it starts comes before the schema of its own tables.
        """
        is_searched = False
        for event in walk.events():
            if not isinstance(event, CommitLogEntry):
                yield Damaged(event.position, _reason(event))
                continue
            decoded = self._decode(event, walk.messaging_version)
            if isinstance(decoded, Undecoded) and not is_searched:
                is_searched = True
                self._search(walk.file)
                decoded = self._decode(event, walk.messaging_version)
            yield decoded

    def _decode(self, entry: CommitLogEntry, messaging_version: int) -> Event:
        try:
            read = read_updates(entry.mutation, messaging_version, self._schemas.tables)
        except (UnknownTableError, UnknownColumnError) as error:
            return Undecoded(entry, error)
        except FormatError as error:
            where = "" if error.position is None else f" at byte {error.position} of it"
            return Damaged(entry.position, f"mutation that cannot be read: {error.reason}{where}")
        if read[0][0].table.id.bytes in SCHEMA_TABLES:
            self._schemas.learn(update for update, _ in read)
        return Decoded(entry, [SizedUpdate(*pair) for pair in read])

    def _search(self, file: SegmentFile) -> None:
        walk = self.walk(file)
        for event in walk.events():
            if isinstance(event, CommitLogEntry) and first_table(event.mutation) in SCHEMA_TABLES:
                self._decode(event, walk.messaging_version)
