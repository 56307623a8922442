"""Measure how the cost of an update grows with the state: CPU seconds per million updates of random rows.

A raw partition's real task - fold, RocksDB, changelogs on disk, snapshots - with a broker that only swallows. Rows of
about 400 bytes that do not compress, 20,000 to a transaction.
"""

from __future__ import annotations

import base64
import cProfile
import pstats
import random
import statistics
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cassandra_storage.formats.rows.byte_comparable import clustering_encoder
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.tables import message_key, to_json
from cdc_common.settings import KafkaSettings
from materializer.errors import RAW_FAULTS
from materializer.fold.chunk import fold_chunk
from materializer.planning.plan import ChangeTopic, TableSchema, TopicPlan
from materializer.records import RawPartition
from materializer.rows.keys import FACTS_SECTION, PARTITION, ROWS_SECTION, partition_prefix
from materializer.rows.partition_state import decode_facts, encode_facts
from materializer.settings import MaterializerSettings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.wiring import task_settings
from stream_runtime.exactly_once.partition_task import PartitionTask
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.exactly_once.resources import Resources
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoint_location import state_settings
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import LocalStore, open_local_store
from stream_runtime.state.versions import next_version
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import TABLE, catalog_of, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from materializer.processing.raw_processor import RawProcessor
    from materializer.records import RawRecord
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import Message

RAW = RawPartition("bench.raw.shop.orders", 0)
ROUNDS = 5
CHUNK = 20_000
VALUE_BYTES = 360
FILL = 200_000  # rows of a changelog that fills the state
RANDOM = random.Random(1)  # noqa: S311 - not for secrets
START_MS = 1_700_000_000_000
_MARK = b"\xaa" * VALUE_BYTES


class Case(NamedTuple):
    """The size of a state."""

    # The number of rows.
    rows: int
    # The number of rows in each Cassandra partition.
    width: int

    def key(self, row: int) -> tuple[int, int]:
        return divmod(row, self.width)


class Ratio(NamedTuple):
    """A limit of one case's cost, as a multiple of another case's."""

    # Words for the report.
    what: str
    # The case that is limited.
    case: Case
    # The case to compare with.
    base: Case
    # The largest allowed cost, as a multiple of the base's.
    bound: float


def ratios(scale: float) -> list[Ratio]:
    small, middle, large = (Case(int(rows * scale), 1) for rows in (1e5, 1e6, 3e6))
    wide = Case(middle.rows, min(100_000, middle.rows))
    return [
        Ratio(f"{large.rows:,} rows to {small.rows:,}", large, small, 1.5),
        Ratio(f"partitions of {wide.width:,} rows to such of one", wide, middle, 1.2),
    ]


class Swallow:
    """Commits that go nowhere; the position is kept."""

    def __init__(self, position: Position) -> None:
        self.position = position

    def read(self) -> dict[RawPartition, StoredOffset | None]:
        return {RAW: self.position.stored()}

    def send(self, message: Message) -> None: ...

    def commit(self, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        stored = offsets[RAW]
        self.position = decode(stored.offset, stored.metadata, RAW, RAW_FAULTS)

    def close(self) -> None: ...


@click.command()
@click.option("--updates", default=60_000, show_default=True, help=f"Updates of each of the {ROUNDS} rounds.")
@click.option("--scale", default=1.0, show_default=True, help="Less, for a quick look: rows times this.")
@click.option("--profile", is_flag=True, help="Print where the time goes (which makes it longer).")
def main(updates: int, scale: float, profile: bool) -> None:  # noqa: FBT001 - a flag of the command
    """Exit status 1 where a bound is not met."""
    wanted = ratios(scale)
    cases = dict.fromkeys(case for ratio in wanted for case in (ratio.base, ratio.case))
    medians = {case: _measure(case, updates, profile=profile) for case in cases}
    is_met = True
    for ratio in wanted:
        found = medians[ratio.case] / medians[ratio.base]
        is_met &= found <= ratio.bound
        click.echo(f"{ratio.what}: {found:.2f} times (at most {ratio.bound})")
    raise SystemExit(0 if is_met else 1)


def _measure(case: Case, updates: int, *, profile: bool) -> float:
    rounds = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-state-") as folder,
        _task(case, Path(folder)) as (task, swallow, processor),
    ):
        for number in range(ROUNDS + 1):
            records = _updates(case, swallow.position.offset, updates)
            with _profiled() if profile and number else nullcontext():
                started = time.process_time()
                task.process(records, processor)
                spent = time.process_time() - started
            if number:  # the first warms up
                rounds.append(spent / updates * 1e6)
    median = statistics.median(rounds)
    click.echo(
        f"{case.rows:>9,} rows, partitions of {case.width:>7,}: {median:6.1f} CPU-s per million "
        f"({min(rounds):.1f} to {max(rounds):.1f})"
    )
    return median


@contextmanager
def _task(case: Case, folder: Path) -> Iterator[tuple[PartitionTask, Swallow, RawProcessor]]:
    settings = MaterializerSettings(checkpoint_location=str(folder / "checkpoint"), state_directory=folder / "state")
    schema = TableSchema(message_key(TABLE)[:16], message_key(TABLE)[16:], to_json(TABLE))
    plan = TopicPlan(1, (schema,), (ChangeTopic("bench.shop.orders", 8, 1, 2),), forms=EXACT)
    processor = BatchPlan({RAW.topic: plan}, KafkaSettings(topic_prefix="bench"), settings).processor(RAW.topic)
    local = open_local_store(settings.state_directory)
    checkpoints = CheckpointStore(ObjectStore(settings.checkpoint_location), settings.group_id, RAW)
    swallow = Swallow(_fill(local, checkpoints, case))
    state = CheckpointedState(local, checkpoints, state_settings(settings))
    task = PartitionTask(RAW, Resources(swallow, state), task_settings(settings))
    try:
        yield task, swallow, processor
    finally:
        task.close()


def _fill(local: LocalStore, checkpoints: CheckpointStore, case: Case) -> Position:
    """Make the state that folding an insert of each row leaves, without folding each: only keys and values differ."""
    template = fold_chunk(MemoryState(), [_record(0, 0, _MARK, 0)], catalog_of(TABLE)).writes
    place = len(partition_prefix(int_bytes(0)))
    [facts] = (decode_facts(value) for key, value in template.items() if key[place:] == FACTS_SECTION and value)
    [stored] = (value for key, value in template.items() if key[place : place + 1] == ROWS_SECTION and value)
    before, after = stored.split(_MARK)
    wide = encode_facts(facts._replace(visible_rows=case.width))
    clustering_key = clustering_encoder(TABLE.clustering)
    writes = {key: value for key, value in template.items() if not key.startswith(PARTITION)}
    position = Position(0, local.version, 1)
    for row in range(case.rows):
        partition, clustering = case.key(row)
        prefix = partition_prefix(int_bytes(partition))
        writes[prefix + FACTS_SECTION] = wide
        writes[prefix + ROWS_SECTION + clustering_key((int_bytes(clustering),))] = before + _value() + after
        if len(writes) >= FILL or row == case.rows - 1:
            head = Head(next_version(position.version), row + 1, START_MS, 1)
            changelog = Changelog(head, position.version, position.offset, writes)
            checkpoints.write_changelog(changelog)
            local.apply(changelog)
            position, writes = Position(row + 1, head.version, 1), {}
    return position


def _updates(case: Case, first: int, count: int) -> list[RawRecord]:
    """Random rows' updates, later than all before."""
    timestamp = START_MS * 1000 + first
    keys = (case.key(RANDOM.randrange(case.rows)) for _ in range(count))
    return [_record(*key, _value(), timestamp + at, first + at) for at, key in enumerate(keys)]


def _record(partition: int, clustering: int, value: bytes, timestamp: int, offset: int = 0) -> RawRecord:
    row = Row((int_bytes(clustering),), {"a": Cell(timestamp, value)}, LivenessInfo(timestamp))
    return raw_record(int_bytes(partition), "row", row, offset=offset, timestamp_ms=START_MS)


def _value() -> bytes:
    """Text that hardly compresses."""
    return base64.b64encode(RANDOM.randbytes(VALUE_BYTES * 3 // 4))


@contextmanager
def _profiled() -> Iterator[None]:
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
