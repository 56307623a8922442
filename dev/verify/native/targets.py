"""The inputs of the native core. A target runs one case, drawn from a random generator, and counts what it took.

A target compares with the Python code, and raises AssertionError where they differ. `shapes` and `offsets` give the
core what the Python code never gives it: there any Python error is right, and the sanitizers judge.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.segments import read_segment
from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.types.native_order import KEY_TYPES
from cassandra_storage.formats.versions import VERSION_40, VERSION_50, VERSION_3014
from cdc_common.errors.codes import CdcError
from cdc_common.messages import raw
from cdc_common.messages.tables import canonical, digest
from cdc_native.fold.changelog import encode_body as native_body
from cdc_native.fold.fold import Fold
from cdc_native.fold.plan import Plan
from cdc_native.fold.updates import decode, in_write_order, mutation_end, of_new_hosts
from cdc_native.formats.batches import Batch
from cdc_native.formats.mutations import MutationSplitter
from dev.verify.fuzz.mutate import mutated
from dev.verify.native.shapes import Reshaped, ReshapedState, reshaped
from materializer.fold import native_fold
from materializer.fold.chunk import fold_chunk
from materializer.rows import native_plan
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS
from stream_runtime.state.changelog import encode_body
from tests.support.cassandra_storage import segment_builder
from tests.support.cassandra_storage.merged_tables import CaseMaker
from tests.support.cdc_native.avro_checks import check_damaged, check_whole
from tests.support.joinery.join_checks import check_damaged_join, check_join_of_damaged_state
from tests.support.joinery.route_checks import JOINS, check_routes, random_value, router_of
from tests.support.materializer.both_folds import Counts, encoder_of
from tests.support.materializer.native_forms import check_any_value, check_component, check_paths
from tests.support.materializer.odd_messages import NOW_S
from tests.support.materializer.plain_messages import PlainTable, check_damaged_messages, check_plain_messages
from tests.support.materializer.raw_builder import catalog_of
from tests.support.publisher.both_images import check_same, in_memory
from tests.support.publisher.both_images import damaged as damaged_table
from tests.support.publisher.both_readers import Comparison, Read, choose, damaged
from tests.support.publisher.split_twice import SplitTwice
from tests.support.vectors.segments import keys, tables, vectors

if TYPE_CHECKING:
    from pathlib import Path

Target: TypeAlias = Callable[[random.Random, Counts], None]

MESSAGING = {"3.11": VERSION_3014, "4.0": VERSION_40, "4.1": VERSION_40, "5.0": VERSION_40, "5.0-NONE": VERSION_50}


def segments(_: Path) -> Target:
    """Recorded segments of every version and form, damaged: the publisher's walk, checksums, mutations and split."""
    recorded = [
        (vector, SegmentCodecs(keys(vector.version)), vector.log.rstrip(b"\0") + bytes(20)) for vector in vectors()
    ]
    logs = [log[:5000] for _, _, log in recorded]

    def run(rng: random.Random, counts: Counts) -> None:
        vector, codecs, log = rng.choice(recorded)
        chosen = choose(tables(vector.version), rng, all_published=rng.random() < 0.5)
        compared = Comparison(chosen, vector.name, codecs)
        changed = damaged(log, rng) if rng.random() < 0.5 else mutated(rng, log, logs)
        window = rng.choice((64, 700, 1 << 18))
        compared.check(changed, Read(window=window))
        counts.records += compared.in_batches + compared.alone
        counts.native += compared.in_batches

    return run


def _recorded_mutations(folder: Path) -> dict[str, list[bytes]]:
    """The recorded mutations of each version: one of each length."""
    found: dict[str, dict[int, bytes]] = {}
    for vector in vectors():
        for event in read_segment(vector.unpack(folder), SegmentCodecs(keys(vector.version))):
            if isinstance(event, CommitLogEntry) and len(event.mutation) < 4000:
                found.setdefault(vector.version, {})[len(event.mutation)] = event.mutation
    return {version: list(segments.values()) for version, segments in found.items()}


def mutations(folder: Path) -> Target:
    """Recorded mutations, damaged under right checksums."""
    recorded = _recorded_mutations(folder)
    twice = {version: SplitTwice(tables(version), MESSAGING[version]) for version in recorded}

    def run(rng: random.Random, counts: Counts) -> None:
        version = rng.choice(sorted(recorded))
        for _ in range(10):
            mutation = mutated(rng, rng.choice(recorded[version]), recorded[version])
            counts.records += 1
            counts.native += twice[version].check_any(mutation, rng.choice((0, 1000, 2**31 - 1)))

    return run


def offsets(folder: Path) -> Target:
    """Any offsets and prepared tables of any shape for the publisher's walk."""
    recorded = _recorded_mutations(folder)["5.0"]
    prepared = SplitTwice(tables("5.0"), VERSION_40).prepared

    def run(rng: random.Random, counts: Counts) -> None:
        numbers = (0, 0, 1, -1, 12, 500, 2**31, 2**32 + 5, 2**63 - 1, -(2**63))
        counts.records += 1
        try:
            chosen = rng.sample(prepared, 3)
            splitter = MutationSplitter(chosen if rng.random() < 0.5 else reshaped(rng, chosen))
            splitter.begin_segment(rng.choice((raw.segment_part(1, "a"), b"")))
            data = b"".join(
                segment_builder.entry(mutated(rng, choice, recorded)) for choice in rng.choices(recorded, k=4)
            )
            batch = Batch()
            at, until, most, start = (rng.choice((*numbers, len(data))) for _ in range(4))
            splitter.walk(batch, data, at, until, most, start)
            for index in range(len(batch)):
                batch.message(index)
        except PYTHON_ERRORS:
            return
        counts.native += batch.mutations > 0

    return run


def messages(_: Path) -> Target:
    """Raw messages, damaged."""

    def run(rng: random.Random, counts: Counts) -> None:
        check_damaged_messages(rng.getrandbits(64), counts)

    return run


def chunks(_: Path) -> Target:
    """Chunks of raw messages of any table and any values: rows, changes, messages, timers and keys of the state."""

    def run(rng: random.Random, counts: Counts) -> None:
        check_plain_messages(rng.getrandbits(64), counts)

    return run


def states(_: Path) -> Target:
    """Chunks over a state whose stored rows, static rows and facts are damaged."""

    def run(rng: random.Random, counts: Counts) -> None:
        check_plain_messages(rng.getrandbits(64), counts, damages_state=True)

    return run


def values(_: Path) -> Target:
    """Values of any type, clusterings and paths, damaged."""

    def run(rng: random.Random, counts: Counts) -> None:
        for _ in range(10):
            name = rng.choice(sorted(KEY_TYPES))
            column = ColumnMetadata("c", NativeType(name), ColumnKind.CLUSTERING, 0, is_reversed=rng.random() < 0.5)
            size = rng.choice((KEY_TYPES[name][1], rng.randrange(18)))
            component = rng.randbytes(size) if rng.random() < 0.9 else None
            counts.records += 3
            counts.native += check_any_value(rng) + check_component(column, component) + check_paths(rng, name)

    return run


def changelogs(_: Path) -> Target:
    """Bodies of changelogs, and what is no bytes among them."""

    def run(rng: random.Random, counts: Counts) -> None:
        writes = {
            rng.randbytes(rng.choice((0, 1, 40))): None if rng.random() < 0.3 else rng.randbytes(rng.randrange(300))
            for _ in range(rng.randrange(20))
        }
        header = rng.randbytes(rng.randrange(100))
        assert native_body(header, writes) == encode_body(header, writes)
        counts.records += 1
        counts.native += 1
        try:
            native_body(*reshaped(rng, (header, writes)))
        except PYTHON_ERRORS:
            return

    return run


def avro(_: Path) -> Target:
    """Any Avro schema: messages of it, whole and damaged, through all functions of the Avro engine and back."""

    def run(rng: random.Random, counts: Counts) -> None:
        check_whole(rng, with_unions=rng.random() < 0.3)
        for _ in range(5):
            counts.records += 1
            counts.native += check_damaged(rng)

    return run


def routes(_: Path) -> Target:
    """Changes of an input, whole and damaged, as messages of a join's internal topic."""
    routers = [router_of(join) for join in JOINS]

    def run(rng: random.Random, counts: Counts) -> None:
        values = [random_value(rng) for _ in range(rng.randrange(1, 6))]
        if rng.random() < 0.7:
            at = rng.randrange(len(values))
            values[at] = mutated(rng, values[at], values)
        counts.records += 1
        counts.native += check_routes(rng.choice(routers), values)

    return run


def joins(_: Path) -> Target:
    """Messages of a join's internal topic, whole and damaged, over a state that may be damaged."""

    def run(rng: random.Random, counts: Counts) -> None:
        records, native = rng.choice((check_damaged_join, check_join_of_damaged_state))(rng)
        counts.records += records
        counts.native += native

    return run


PYTHON_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    CdcError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""The exceptions of Python code for arguments of a wrong shape, and for values that no state holds."""


def shapes(_: Path) -> Target:
    """Plans, folds, lists of updates and values of the state of wrong shapes, and damaged messages for them."""

    def run(rng: random.Random, counts: Counts) -> None:
        made = Reshaped(rng, rng.choice((0.0, 0.02, 0.1)))
        counts.records += 1
        try:
            with (
                patch.object(native_plan, "Plan", made.wrap(Plan)),
                patch.object(native_fold, "Fold", made.wrap(Fold, "fold", "expire_rows", "fan_out", "prefetch_keys")),
                patch.object(native_fold, "decode", made.wrap(decode)),
                patch.object(native_fold, "in_write_order", made.wrap(in_write_order)),
                patch.object(native_fold, "mutation_end", made.wrap(mutation_end)),
                patch.object(native_fold, "of_new_hosts", made.wrap(of_new_hosts)),
            ):
                _fold_any(rng, counts, made)
        except PYTHON_ERRORS:
            return

    return run


def _fold_any(rng: random.Random, counts: Counts, made: Reshaped) -> None:
    """Fold any messages as check_plain_messages does, with nothing to compare."""
    table = PlainTable(rng)
    catalog = replace(catalog_of(table.table), encoders={digest(canonical(table.table)): encoder_of(table.table)})
    state = ReshapedState(made)
    now_ms = NOW_S * 1000
    for _ in range(3):
        records = []
        for offset in range(8):
            now_ms += rng.choice((0, 1, 1000, 4000))
            records.append(table.record(offset, now_ms))
        result = fold_chunk(state, made.maybe(records), catalog, DEFAULT_FOLD_SETTINGS)
        state.data.update({key: value for key, value in result.writes.items() if value is not None})
        counts.native += result.native > 0
        for change in result.changes:
            if hasattr(change, "row_change"):
                change.partition(rng.choice((1, 7, 0)))
                change.row_change()


def sstables(_: Path) -> Target:
    """Tables of several SSTables over each other, half of them with damaged data: row images, errors and places."""

    def run(rng: random.Random, counts: Counts) -> None:
        case = CaseMaker(rng).case()
        table = in_memory(case, rng)
        if rng.random() < 0.5:
            table = damaged_table(table, rng)
        batch = rng.choice((1, 200, 1 << 18)), rng.choice((1, 3, 50_000))
        _, found = check_same(table, case.purge.purger(), batch=batch)
        counts.records += len(found.messages)
        counts.native += found.native

    return run


TARGETS: dict[str, Callable[[Path], Target]] = {
    target.__name__: target
    for target in (
        segments,
        mutations,
        offsets,
        sstables,
        messages,
        chunks,
        states,
        values,
        changelogs,
        avro,
        routes,
        joins,
        shapes,
    )
}
