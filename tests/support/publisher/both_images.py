"""The row images of a table's SSTables by the Python code alone and with the native core: they must be the same."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unittest import mock
from uuid import UUID

from cassandra_storage.files.table_sstables import DamagedTableError
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, WHOLE_RING, spans
from cassandra_storage.formats.rows.header import EncodingStats, SerializationHeader
from cassandra_storage.formats.sstable.merge import MergePosition, merge_inputs
from cassandra_storage.formats.sstable.reader import SSTableReader
from cassandra_storage.formats.sstable.versions import BIG, SSTableFormat, sstable_format
from cdc_common.messages import raw, tables
from cdc_common.program.pace import Pace
from dev.verify.fuzz.mutate import mutated
from publisher.snapshot.rows import merged_table
from publisher.snapshot.rows.merged_table import MergedTable
from publisher.snapshot.rows.messages import RowImages, SnapshotOrigin
from publisher.snapshot.rows.sending import PartitionSender
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import RawTopic
from tests.support.cassandra_storage import sstable_builder

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from cassandra_storage.files.table_sstables import TableSSTables
    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cassandra_storage.formats.sstable.reader import Partition
    from cdc_native.formats.batches import Batch
    from cdc_native.formats.sstables import SpanData
    from publisher.inflight import PendingMessages
    from publisher.mutations.messages import OutgoingMessage
    from tests.support.cassandra_storage.merged_tables import Case

ORIGIN = SnapshotOrigin(UUID(int=0x5A), b"h" * 16, 1_700_000_000_000_000)
SCHEMA_ID = 7
BATCH_BYTES, BATCH_STEPS = 1 << 18, 50_000


class Images(NamedTuple):
    """The messages of a snapshot, as they were sent, and its progress."""

    # (key, encoded message) of each
    messages: list[tuple[bytes, bytes]]
    # the number of units
    rows: int
    partitions: int
    size: int
    # how it ended
    error: str
    # the places that were recorded, with the number of messages before each
    places: list[tuple[MergePosition, int]]
    # messages that the core made
    native: int


class MemoryOutput:
    """Acknowledges all at once (publisher.snapshot.rows.sending.Output)."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, bytes]] = []
        self.native = 0

    def send(self, unit: list[OutgoingMessage], pending: PendingMessages) -> int:  # noqa: ARG002
        encoded = [(outgoing.partition_key, raw.encode(outgoing.message, SCHEMA_ID)) for outgoing in unit]
        self.messages += encoded
        return sum(len(value) for _, value in encoded)

    def send_batch(self, batch: Batch, pending: PendingMessages) -> None:  # noqa: ARG002
        self.native += len(batch)
        self.messages += [batch.message(index)[1:] for index in range(len(batch))]

    def poll(self) -> None:
        """Nothing is waited for."""

    wait = poll


def run(
    sstables: TableSSTables | MemoryTable,
    purger: Purger,
    *,
    native: bool,
    ranges: Sequence[TokenRange] = WHOLE_RING,
    after: MergePosition | None = None,
    batch: tuple[int, int] = (BATCH_BYTES, BATCH_STEPS),
) -> Images:
    """batch: bytes and steps of a batch of the core's."""
    table = PublishedTable(sstables.table, sstables.table.id.bytes, tables.digest(tables.canonical(sstables.table)))
    output = MemoryOutput()
    images = RowImages(table, ORIGIN)
    places: list[tuple[MergePosition, int]] = []

    def report(_: object) -> None:
        if sender.place is not None and sender.place != after:
            places.append((sender.place, len(output.messages)))

    sender = PartitionSender(images, output, Pace(0, lambda: None), report, after)
    error = ""
    with (
        mock.patch.dict("os.environ", CDC_NATIVE="1" if native else "0"),
        mock.patch.multiple(merged_table, BATCH_BYTES=batch[0], BATCH_STEPS=batch[1]),
    ):
        try:
            merged = MergedTable(cast("Any", sstables), purger, ranges)
            merged.send(sender, images, RawTopic(table, "topic", 1, SCHEMA_ID), ORIGIN)
        except (FormatError, DamagedTableError) as found:
            error = f"{type(found).__name__}: {found}"
    progress = sender.progress
    return Images(output.messages, progress.rows, progress.partitions, progress.bytes, error, places, output.native)


def check_same(
    sstables: TableSSTables | MemoryTable,
    purger: Purger,
    *,
    ranges: Sequence[TokenRange] = WHOLE_RING,
    after: MergePosition | None = None,
    batch: tuple[int, int] = (BATCH_BYTES, BATCH_STEPS),
) -> tuple[Images, Images]:
    """(by the Python code alone, with the core), which are the same except for the places. Of damaged SSTables the same
    was sent, and the same is said in the end.
    """
    expected = run(sstables, purger, native=False, ranges=ranges, after=after)
    found = run(sstables, purger, native=True, ranges=ranges, after=after, batch=batch)
    assert found.error == expected.error
    if batch != (BATCH_BYTES, BATCH_STEPS) and found.native < len(found.messages):
        # What the core had sent of a partition after its last place comes again.
        assert _updates(found) == _updates(expected)
        return expected, found
    assert found.messages == expected.messages
    if not expected.error:
        assert (found.rows, found.size) == (expected.rows, expected.size)
        if batch == (BATCH_BYTES, BATCH_STEPS):  # of small ones Python may end a partition, uncounted
            assert found.partitions == expected.partitions
    return expected, found


def _updates(images: Images) -> set[tuple[bytes, bytes]]:
    return {(key, raw.decode(value).update) for key, value in images.messages}


class MemorySSTable(NamedTuple):
    """`data`: uncompressed, by `header` and `form`. `chunk`: its length."""

    data: bytes
    header: SerializationHeader
    form: SSTableFormat
    chunk: int = 100
    length: int | None = None

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        return (self.data[at : at + self.chunk] for at in range(start, len(self.data), self.chunk))


class MemoryTable:
    """Like TableSSTables, for SSTables in memory."""

    def __init__(self, table: TableMetadata, sstables: Iterable[MemorySSTable]) -> None:
        self.table = table
        self.sstables = list(sstables)

    def merged(
        self, purger: Purger, ranges: Iterable[TokenRange] = WHOLE_RING, after: MergePosition | None = None
    ) -> Generator[MergedPartition, None, None]:
        yield from merge_inputs(self.table, self.inputs(ranges, after), purger, after)

    def inputs(
        self, ranges: Iterable[TokenRange] = WHOLE_RING, after: MergePosition | None = None
    ) -> list[MemorySource]:
        wanted = spans(ranges, MINIMUM if after is None else after.token)
        return [MemorySource(sstable) for sstable in self.sstables] if wanted else []


class MemorySource:
    """Like table_sstables.Source, for the whole ring."""

    first_token = MINIMUM

    def __init__(self, of: MemorySSTable) -> None:
        self._of = of
        self._reader: SSTableReader | None = None

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        one = self._of
        length = len(one.data) if one.length is None else one.length
        self._reader = SSTableReader(one.chunks(), length, one.header, one.form)
        for partition in self._reader.partitions():
            yield decorated_token(partition.key), partition

    def rows(self) -> Iterator[Unfiltered]:
        assert self._reader is not None
        return self._reader.rows()

    @staticmethod
    def error(reason: str) -> FormatError:
        return FormatError(reason)

    def open_spans(self) -> tuple[Any, Iterator[SpanData]]:
        one = self._of
        descriptor = SimpleNamespace(format=one.form)
        file = SimpleNamespace(descriptor=descriptor, data_path=Path("memory"))
        length = len(one.data) if one.length is None else one.length
        opened = SimpleNamespace(schema=SimpleNamespace(header=one.header), file=file)
        return opened, iter([(MINIMUM, MAXIMUM, None, False, length, one.chunks())])


NB, OA = sstable_format("nb", BIG), sstable_format("oa", BIG)


def in_memory(case: Case, rng: random.Random) -> MemoryTable:
    """The case as bytes of SSTables."""
    made = []
    for content in case.sources:
        form = rng.choice((NB, OA))
        stats = EncodingStats(rng.randint(-3, 3), rng.randint(60, 90), rng.randint(0, 3))
        header = SerializationHeader.of_table(case.table, stats, form.rows.version)
        data = b"".join(
            sstable_builder.partition(
                partition.key, unfiltereds, header, form, deletion=partition.deletion, static_row=partition.static_row
            )
            for partition, unfiltereds in content
        )
        made.append(MemorySSTable(data, header, form, rng.choice((7, 100, 10_000))))
    return MemoryTable(case.table, made)


def damaged(table: MemoryTable, rng: random.Random) -> MemoryTable:
    """Return the table with damage to one of its SSTables. Their headers are sound."""
    at = rng.randrange(len(table.sstables))
    others = [sstable.data for sstable in table.sstables]
    data = mutated(rng, others[at], others)
    length = rng.choice((None, None, None, max(len(data), len(others[at]))))
    return MemoryTable(
        table.table,
        [
            sstable._replace(data=data, length=length) if i == at else sstable
            for i, sstable in enumerate(table.sstables)
        ],
    )
