"""A segment read twice: by SegmentReader with the Python code, and in batches by the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.commitlog.segment import CommitLogEntry, SegmentReader
from cassandra_storage.formats.errors import FormatError
from cdc_common.messages import raw
from publisher.log.batch_reader import BatchReader, SplitEntries
from publisher.mutations.messages import Origin, split_into_messages
from tests.support.publisher.chosen_tables import HOST, SCHEMA_ID, ChosenTables, topic_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.commitlog.sections import Codecs
    from cassandra_storage.formats.commitlog.segment import Event
    from cassandra_storage.formats.schema.tables import TableMetadata


class Read(NamedTuple):
    """A way to read a segment: from which position on, how far it is durable before it is complete, and how many bytes
    at once.
    """

    resume_from: int = 0
    durable: tuple[int, ...] = ()
    window: int = 1 << 18


def events(reader: SegmentReader | BatchReader, data: bytes, read: Read) -> Iterator[Event | SplitEntries]:
    """All events, as OpenSegment asks for them."""
    for durable in (*read.durable, None):
        while not reader.is_ended:
            before = reader.position, reader.wanted
            limit = len(data) if durable is None or reader.is_coded else min(len(data), durable)
            if durable is not None and sum(before) > limit:
                break
            size = max(min(max(read.window, reader.wanted), limit - reader.position), 0)
            part = data[reader.position : reader.position + size]
            yield from reader.read(part, len(data) if durable is None else None, durable=durable)
            if (reader.position, reader.wanted) == before:
                break


def _events(reader: SegmentReader | BatchReader, data: bytes, read: Read) -> Iterator[object]:
    """Yield what `events` yields, and the text of an error last."""
    try:
        yield from events(reader, data, read)
    except FormatError as error:
        yield f"{error!r} {error}"


class Comparison:
    """Compares two readings of one segment. AssertionError where they differ."""

    def __init__(self, chosen: ChosenTables, name: str, codecs: Codecs | None = None) -> None:
        self.chosen = chosen
        self._name = name
        self._codecs = codecs
        self.in_batches = self.alone = self.messages = 0

    def check(self, data: bytes, read: Read) -> list[object]:
        """The events of SegmentReader, and its error."""
        expected = list(_events(SegmentReader(self._name, read.resume_from, codecs=self._codecs), data, read))
        reader = BatchReader(self._name, read.resume_from, codecs=self._codecs)
        reader.splitter = self.chosen.splitter()
        left = iter(expected)
        for event in _events(reader, data, read):
            if isinstance(event, SplitEntries):
                self._check_batch(event, left, reader)
            else:
                self._same("event", event, next(left, None))
                self.alone += isinstance(event, CommitLogEntry)
        self._same("events left", [], list(left))
        return expected

    def _check_batch(self, event: SplitEntries, left: Iterator[object], reader: BatchReader) -> None:
        assert reader.descriptor is not None
        batch = event.batch
        sent, excluded, here = [], 0, event.position
        for _ in range(batch.mutations):
            one = next(left, None)
            if not isinstance(one, CommitLogEntry) or one.position != here:
                raise AssertionError(f"{self._name}: BatchReader has a mutation at {here}, SegmentReader {one!r:.500}")
            here = one.end_position
            origin = Origin(HOST, reader.segment_id, self._name, reader.descriptor.messaging_version, here)
            decoded = split_into_messages(one.mutation, origin, self.chosen.schema())
            self._same("filler's write", None, decoded.filler_written_at)
            excluded += decoded.excluded_updates
            sent += [
                (topic_of(message.table.id), message.partition_key, raw.encode(message.message, SCHEMA_ID))
                for message in decoded.messages
            ]
        self._same("end", event.end_position, here)
        self._same("excluded updates", batch.excluded_updates, excluded)
        got = [batch.message(index) for index in range(len(batch))]
        self._same("messages", [(event.topics[table], key, value) for table, key, value in got], sent)
        self._same("size", batch.size, sum(len(value) for _, _, value in sent))
        self.in_batches += batch.mutations
        self.messages += len(sent)

    def _same(self, what: str, batched: object, expected: object) -> None:
        if batched != expected:
            raise AssertionError(
                f"{self._name}: {what}: by BatchReader {batched!r:.1000}, by the Python code {expected!r:.1000}"
            )


def ends(found: Iterable[object]) -> list[int]:
    return [event.end_position for event in found if isinstance(event, CommitLogEntry)]


def choose(
    known: dict[bytes, TableMetadata], rng: random.Random, segment_id: int = 0, *, all_published: bool
) -> ChosenTables:
    """Chooses which of the user's tables are published, some or all. The node's own tables never are."""
    own = sorted(table_id for table_id, table in known.items() if not table.keyspace.startswith("system"))
    if all_published:
        return ChosenTables(known, set(own))
    published = {table_id for table_id in own if rng.random() < 0.5}
    rest = [table_id for table_id in own if table_id not in published]
    filler = set(rest[:1])
    excluded = {table_id for table_id in rest[1:] if rng.random() < 0.5}
    closed = {table_id for table_id in published if rng.random() < 0.2}
    unknown = {table_id for table_id in rest[1:] if rng.random() < 0.2}
    left = {table_id: table for table_id, table in known.items() if table_id not in unknown}
    ends = {table_id: (segment_id + rng.randrange(-1, 2), rng.randrange(50_000)) for table_id in rng.sample(own, 2)}
    return ChosenTables(left, published, excluded - unknown, filler, closed, ends)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes are others, or the end is missing."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(data))] = rng.choice((0, 255, rng.randrange(256)))
    return bytes(changed[: rng.randrange(len(data))] if rng.random() < 0.3 else changed)
