"""Checks of the fold against the model that keeps all writes, in any batches and order."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, get_args

from hypothesis import strategies as st

from cdc_common.messages.raw import LogKind, decode
from cdc_common.messages.snapshots import HOST_STATES
from materializer.rows.settings import FoldSettings
from tests.support.examples import examples
from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_run import FoldRun, events, in_any_order
from tests.support.materializer.raw_builder import as_image, raw_record, snapshot_step
from tests.support.materializer.table_writes import BASE_S, BASE_US, PARTITIONS, Stamp, writes

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowChange
    from materializer.records import RawRecord
    from tests.support.materializer.raw_builder import TableWriter

EXAMPLES = int(os.environ.get("FOLD_EXAMPLES", examples(10)))
NEVER_PURGE = FoldSettings(purge_margin_seconds=10**9)
TIMESTAMPS = st.one_of(
    st.integers(0, 4).map(lambda number: BASE_US + number),  # ties and near ties
    st.sampled_from([0, -(10**15), BASE_US - 3_600_000_000, BASE_US + 3_600_000_000, 2**62]),
)
PASSING = st.sampled_from([0, 0, 0, 1, 1, 2, 7])


def record(writer: TableWriter, write: Write, second: int, offset: int, host: int = 1) -> RawRecord:
    return raw_record(
        write.partition_key,
        write.kind,
        write.what,
        offset=offset,
        timestamp_ms=second * 1000,
        host=host,
        writer=writer,
    )


def check_step_by_step(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> None:
    model, run = BruteModel(writer.table), FoldRun(writer, fold_settings)
    now, steps = BASE_S, data.draw(st.integers(1, 20))
    run.heartbeat(now * 1000)
    for offset in range(steps):
        passed = now + data.draw(PASSING)
        result = run.heartbeat(passed * 1000)
        check_expiry(model, run, result.changes, now, passed)
        now = passed
        write = data.draw(writes(writer.table, Stamp(data.draw(TIMESTAMPS), now)))
        before = model.visible(write.partition_key, now)
        model.writes.append(write)
        after = model.visible(write.partition_key, now)
        emitted = len(run.changes)
        arrived = record(writer, write, now, offset)
        is_snapshot = data.draw(st.sampled_from([False, False, True]))
        run.chunk(as_image(arrived) if is_snapshot else arrived)
        changes = run.changes[emitted:]
        assert all(change.source.snapshot is is_snapshot for change in changes)
        expected = model.expected(write.partition_key, before, after)
        assert in_any_order(events(changes)) == in_any_order(expected)
        assert run.visible(write.partition_key) == after
        # The row that stands for a partition goes before the rows come, and comes after they have gone.
        places = [place for place, change in enumerate(changes) if change.clustering is None]
        assert all(place in ({0} if changes[place].op == "d" else {len(changes) - 1}) for place in places)


def check_expiry(model: BruteModel, run: FoldRun, changes: list[RowChange], first: int, last: int) -> None:
    """Check that all changes between two seconds are expiries, each at its second."""
    expected = [
        (second * 1_000_000, event)
        for second in model.ends(first, last)
        for key in PARTITIONS
        for event in model.expected(key, model.visible(key, second - 1), model.visible(key, second))
    ]
    emitted = [(change.source.ts_us, event) for change, event in zip(changes, events(changes), strict=True)]
    assert sorted(emitted, key=repr) == sorted(expected, key=repr)
    assert all(change.source.cause == "expiry" for change in changes)
    for key in PARTITIONS:
        assert run.visible(key) == model.visible(key, last)


def snapshot_steps(writer: TableWriter, second: int) -> st.SearchStrategy[RawRecord]:
    """A begin or an end of a snapshot of two hosts."""
    return st.builds(
        lambda state, host: snapshot_step(state, ms=second * 1000, host=host, hosts=(1, 2), writer=writer),
        st.sampled_from(HOST_STATES),
        st.integers(1, 2),
    )


@st.composite
def timed_writes(draw: st.DrawFn, of: TableMetadata, *, rising: bool) -> list[tuple[int, Write]]:
    """Writes and the seconds at which they were made."""
    now, made = BASE_S, []
    for number in range(draw(st.integers(1, 16))):
        now += draw(PASSING)
        timestamp = now * 1_000_000 + number * 10 if rising else draw(TIMESTAMPS)
        made.append((now, draw(writes(of, Stamp(timestamp, now)))))
    return made


def in_batches(data: st.DataObject, records: list[RawRecord]) -> list[list[RawRecord]]:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(records) - 1)), max_size=4)))
    bounds = [0, *(cut for cut in cuts if cut < len(records)), len(records)]
    return [records[first:last] for first, last in itertools.pairwise(bounds)]


def check_batches(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> None:
    """Check that writes in order of their timestamps come out the same in any batches, each expiry at its second among
    them.
    """
    made = data.draw(timed_writes(writer.table, rising=True))
    records = [record(writer, write, second, offset) for offset, (second, write) in enumerate(made)]
    one_by_one, batched = FoldRun(writer, NEVER_PURGE), FoldRun(writer, fold_settings)
    for message in records:
        one_by_one.chunk(message)
    for batch in in_batches(data, records):
        batched.chunk(*batch)
    for run in (one_by_one, batched):
        run.heartbeat((made[-1][0] + 10) * 1000)
    for key in PARTITIONS:
        assert [change for change in batched.changes if change.partition_key == key] == [
            change for change in one_by_one.changes if change.partition_key == key
        ]


def check_order_independence(writer: TableWriter, data: st.DataObject) -> None:
    """Permuted, duplicated, of any replicas, in any batches, from the log or only or also from a snapshot: the same
    merged data, and what `SELECT` shows.
    """
    made = data.draw(timed_writes(writer.table, rising=False))
    end = made[-1][0] + data.draw(st.integers(0, 3))
    model = BruteModel(writer.table)
    model.writes = [write for _, write in made]
    merged = []
    for _ in range(2):
        hosts = [data.draw(st.sets(st.integers(1, 3), min_size=1)) for _ in made]
        copies = [
            record(writer, write, end, offset, host)
            for offset, ((_, write), of) in enumerate(zip(made, hosts, strict=True))
            for host in of
        ]
        copies = [as_image(copy) if data.draw(st.integers(0, 2)) == 0 else copy for copy in copies]
        others = [as_image(copy) for copy in copies if decode(copy.value).kind in get_args(LogKind)]
        more = data.draw(st.lists(st.sampled_from(copies + others), max_size=4))
        steps = data.draw(st.lists(snapshot_steps(writer, end), max_size=4))
        arrival = data.draw(st.permutations(copies + more + steps))
        run = FoldRun(writer, NEVER_PURGE)
        for batch in in_batches(data, list(arrival)):
            run.chunk(*batch)
        merged.append(run.merged())
        for key in PARTITIONS:
            assert run.visible(key) == model.visible(key, end)
    assert merged[0] == merged[1]
