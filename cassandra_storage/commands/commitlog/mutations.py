"""The mutations of segments, decoded with the schemas known so far. Mutations add to these schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra_storage.commands.commitlog.segments import SegmentWalk
from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.formats.rows.mutation import first_table, read_updates
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.schema.schema_keyspace import SCHEMA_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.commands.commitlog.schemas import Schemas
    from cassandra_storage.commands.commitlog.segments import SegmentFile
    from cassandra_storage.formats.commitlog.sections import Codecs
    from cassandra_storage.formats.commitlog.segment import CorruptEntry


class SizedUpdate(NamedTuple):
    """An update and its size."""

    # The update.
    update: PartitionUpdate
    # The bytes that it takes in the mutation.
    size: int


class Decoded(NamedTuple):
    """A decoded mutation."""

    # The entry that holds the mutation.
    entry: CommitLogEntry
    # Its updates, one of each Cassandra partition that it writes to.
    updates: list[SizedUpdate]


class Undecoded(NamedTuple):
    """A mutation with an unknown schema. Rows have no size field, so no part of it can be decoded."""

    # The entry that holds the mutation.
    entry: CommitLogEntry
    # The unknown table or column.
    error: UnknownTableError | UnknownColumnError


class Damaged(NamedTuple):
    """Bytes that should be an entry or a mutation, but are not."""

    # Their offset in the segment, in bytes.
    position: int
    # The first thing about them that is wrong.
    reason: str


Event: TypeAlias = Decoded | Undecoded | Damaged


def _reason(event: CorruptEntry) -> str:
    where = "" if event.section_offset is None else f" (in the section at {event.section_offset} of the file)"
    return event.reason + where


class MutationReader:
    """Reads segments in the given order, so that a CREATE precedes the mutations that need it."""

    def __init__(self, schemas: Schemas, codecs: Codecs | None = None) -> None:
        self._schemas = schemas
        self._codecs = codecs

    def walk(self, file: SegmentFile) -> SegmentWalk:
        """The segment, before anything is read."""
        return SegmentWalk(file, self._codecs)

    def events(self, walk: SegmentWalk) -> Iterator[Event]:
        """The mutations of one segment. At the first unknown schema the whole segment is searched for schemas: a
        starting node writes mutations before the schema of its own tables.
        """
        is_searched = False
        for event in walk.events():
            if not isinstance(event, CommitLogEntry):
                yield Damaged(event.position, _reason(event))
                continue
            decoded = self._decode(event, walk.messaging_version)
            if isinstance(decoded, Undecoded) and not is_searched:
                is_searched = True
                self._learn_schemas(walk.file)
                decoded = self._decode(event, walk.messaging_version)
            yield decoded

    def _decode(self, entry: CommitLogEntry, messaging_version: int) -> Event:
        try:
            read = read_updates(entry.mutation, messaging_version, self._schemas.tables)
        except (UnknownTableError, UnknownColumnError) as error:
            return Undecoded(entry, error)
        except FormatError as error:
            where = "" if error.position is None else f" at byte {error.position} of it"
            return Damaged(entry.position, f"unreadable mutation: {error.reason}{where}")
        if read[0][0].table.id.bytes in SCHEMA_TABLES:
            self._schemas.learn(update for update, _ in read)
        return Decoded(entry, [SizedUpdate(*pair) for pair in read])

    def _learn_schemas(self, file: SegmentFile) -> None:
        walk = self.walk(file)
        for event in walk.events():
            if isinstance(event, CommitLogEntry) and first_table(event.mutation) in SCHEMA_TABLES:
                self._decode(event, walk.messaging_version)
