"""Redistributed states behave as if the raw topic had had so many partitions from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.topics import partition_for
from materializer.commands.reshard.redistribute import (
    TICK_HOST,
    Times,
    is_settled,
    make_tick,
    plan_redistribution,
    read_facts,
    redistribute,
)
from materializer.fold.truncations import Boundary
from materializer.records import RawRecord
from materializer.rows.catalog import SchemaId
from materializer.rows.keys import FLOOR, HELD, INCOMPLETE, PUBLISHER, REPAIR, SHOWN
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE, PASSING, TIMESTAMPS, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import (
    HOSTS,
    SNAPSHOT,
    WRITER,
    as_image,
    int_bytes,
    raw_record,
    repair_step,
    rows_end,
    snapshot_step,
)
from tests.support.materializer.raw_builder import REPAIR as ID
from tests.support.materializer.redistribution import redistribute_states
from tests.support.materializer.reshard_run import KEY_PREFIXES
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, WRITERS, Stamp, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.changes import RowChange
    from tests.support.materializer.raw_builder import TableWriter

KEYS = [int_bytes(number) for number in range(12)]
HELD_BACK = NEVER_PURGE._replace(reorder_ms=2000)
PURGING = FoldSettings(purge_margin_seconds=0)


class Topic:
    """A raw topic's partitions, each folded by itself; a key's chain goes on wherever it is folded."""

    def __init__(self, writer: TableWriter, rules: FoldSettings, partitions: int) -> None:
        forgetful = rules._replace(forgotten_publishers=frozenset({TICK_HOST}))
        self.runs = [FoldRun(writer, forgetful) for _ in range(partitions)]

    def write(self, message: RawRecord) -> list[RowChange]:
        return list(self.runs[partition_for(message.key, len(self.runs))].chunk(message).changes)

    def time(self, ms: int, clock: int = 0) -> list[RowChange]:
        return [change for run in self.runs for change in run.heartbeat(ms, clock=clock).changes]

    def settle(self, now_ms: int) -> list[RowChange]:
        changes = []
        for run in self.runs:
            changes += run.chunk(make_tick(schema_of(run.writer), now_ms)).changes
            assert is_settled(run.state)
        return changes

    def redistribute(self, partitions: int, times: Times) -> Topic:
        writer, rules = self.runs[0].writer, self.runs[0].fold_settings
        after = Topic(writer, rules, partitions)
        states = redistribute_states([run.state for run in self.runs], partitions, times)
        for run, state in zip(after.runs, states, strict=True):
            run.state = state
            run.continue_chains(self.runs)
        return after


def schema_of(writer: TableWriter) -> SchemaId:
    return SchemaId(writer.table.id.bytes, writer.digest)


def of_keys(run: FoldRun) -> dict[bytes, bytes]:
    return {key: value for key, value in run.state.data.items() if key.startswith(KEY_PREFIXES)}


def by_key(changes: Sequence[RowChange]) -> dict[bytes, list[RowChange]]:
    return {key: [change for change in changes if change.partition_key == key] for key in KEYS}


def check(writer: TableWriter, data: st.DataObject, rules: FoldSettings, *, is_exact: bool) -> None:
    before, after = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    old, reference = Topic(writer, rules, before), Topic(writer, rules, after)
    now = BASE_S
    for offset, topics in enumerate(data.draw(st.lists(st.just((old, reference)), min_size=1, max_size=15))):
        now += data.draw(PASSING)
        key = data.draw(st.sampled_from(KEYS))
        write = data.draw(writes(writer.table, Stamp(data.draw(TIMESTAMPS), now)))
        message = record(writer, write._replace(partition_key=key), now, offset)
        for topic in topics:
            topic.time(now * 1000, clock=now * 1_000_000)
            topic.write(message)
    now += data.draw(PASSING)
    assert by_key(old.settle(now * 1000)) == by_key(reference.settle(now * 1000)) or not is_exact
    new = old.redistribute(after, Times(now * 1000, now * 1000 - rules.reorder_ms))
    if is_exact:
        assert [of_keys(run) for run in new.runs] == [of_keys(run) for run in reference.runs]
    for offset in range(data.draw(st.integers(1, 10))):
        now += data.draw(PASSING)
        key = data.draw(st.sampled_from(KEYS))
        write = data.draw(writes(writer.table, Stamp(data.draw(TIMESTAMPS), now)))
        message = record(writer, write._replace(partition_key=key), now, 100 + offset)
        made, expected = ([*topic.time(now * 1000), *topic.write(message)] for topic in (new, reference))
        assert not is_exact or by_key(made) == by_key(expected)
    for topic in (new, reference):
        topic.time((now + 20) * 1000)
    for key in KEYS:
        number = partition_for(key, after)
        assert new.runs[number].visible(key) == reference.runs[number].visible(key)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.table.name)
@settings(max_examples=max(3, EXAMPLES // 4))
@given(st.data(), st.sampled_from([NEVER_PURGE, HELD_BACK]))
def test_later_changes_are_the_same(writer: TableWriter, data: st.DataObject, rules: FoldSettings) -> None:
    check(writer, data, rules, is_exact=True)


@settings(max_examples=max(3, EXAMPLES // 4))
@given(st.data())
def test_with_purges_the_chains_continue_and_the_rows_are_the_same(data: st.DataObject) -> None:
    check(FORWARD, data, PURGING, is_exact=False)


def test_schema_numbers_are_unified() -> None:
    """Two states that number a schema differently: one has stored rows of an older schema."""
    states = [MemoryState(), MemoryState()]
    run = FoldRun(FORWARD)
    key = KEYS[0]
    run.chunk(
        raw_record(key, "row", Row((int_bytes(1),), {"a": Cell(BASE_US, b"x")}, LivenessInfo(BASE_US)), writer=FORWARD)
    )
    states[1].apply(run.state.data)
    other = b"\x01" + bytes(16)
    states[0].apply({b"s" + bytes(4): other, SHOWN: run.state.data[SHOWN]})
    (after,) = redistribute_states(states, 1, Times(0, 0))
    own = run.state.data[b"s" + bytes(4)]
    assert [after.data[b"s" + number.to_bytes(4, "big")] for number in (0, 1)] == [other, own]
    redistributed = FoldRun(FORWARD)
    redistributed.state = after
    assert redistributed.merged() == run.merged()


def test_facts_of_the_whole_state_are_merged() -> None:
    """The floor is the highest, so that no number is used twice. A publisher's watermark is unknown in the target."""
    runs = [FoldRun(FORWARD), FoldRun(FORWARD)]
    for number, run in enumerate(runs):
        run.heartbeat(BASE_S * 1000 + number, clock=BASE_US)
        run.chunk(raw_record(KEYS[0], "row", Row((int_bytes(1),), {"a": Cell(BASE_US, b"x")}), writer=FORWARD))
        run.state.apply({FLOOR: (7 + number).to_bytes(8, "big")})
    after = redistribute_states([run.state for run in runs], 3, Times(5000, 4000))
    for state in after:
        facts = read_facts(state)
        assert (facts.floor, facts.times, facts.table_id) == (8, Times(5000, 4000), FORWARD.table.id.bytes)
        (host,) = facts.publishers.values()
        assert (host.heard_ms, host.clock_us) == (BASE_S * 1000 + 1, 0)


def test_incomplete_entries_without_a_key_go_to_all_targets() -> None:
    run = FoldRun(FORWARD)
    run.chunk(RawRecord(b"", b"unreadable", 0, 1000), RawRecord(KEYS[0], b"unreadable", 1, 1000))
    run.heartbeat(2000)
    marks = [key for key in run.state.data if key.startswith(INCOMPLETE)]
    after = redistribute_states([run.state], 4, Times(2000, 2000))
    found = [[key for key in state.data if key.startswith(INCOMPLETE)] for state in after]
    everywhere, of_key = sorted(marks)
    for number, here in enumerate(found):
        assert sorted(here) == [everywhere, *([of_key] if number == partition_for(KEYS[0], 4) else [])]


def test_each_target_waits_for_what_any_source_waits_for() -> None:
    """A target gets rows of several sources: an image for one of them may still be unread in its partition."""
    runs = [FoldRun(FORWARD), FoldRun(FORWARD), FoldRun(FORWARD)]
    steps = [snapshot_step("running", ms=1000, hosts=(1, 2), writer=FORWARD)]
    steps += [snapshot_step("ended", ms=1000, host=host, hosts=(1, 2), writer=FORWARD) for host in (1, 2)]
    for known, run in enumerate(runs):
        run.chunk(raw_record(b"", "heartbeat", None, timestamp_ms=1000, writer=FORWARD), *steps[: known + 1])
    hosts = [[dict(facts.snapshots[SNAPSHOT].hosts) for facts in (read_facts(run.state),)] for run in runs]
    assert [len({*of_hosts.values()}) for (of_hosts,) in hosts] == [1, 2, 1]
    for state in redistribute_states([run.state for run in runs], 4, Times(2000, 2000)):
        (progress,) = read_facts(state).snapshots.values()
        assert progress.hosts == dict.fromkeys(HOSTS, "running")


def test_an_open_repair_changes_nothing() -> None:
    run = FoldRun(WRITER)
    written = raw_record(KEYS[0], "row", Row((int_bytes(1),), {}, LivenessInfo(1)), timestamp_ms=1000)
    run.chunk(repair_step(KEYS[0], "running", ms=1000), as_image(written, repair=ID))
    assert any(key.startswith(HELD) for key in run.state.data)
    for state in redistribute_states([run.state], 2, Times(2000, 2000)):
        assert not list(state.scan(REPAIR, REPAIR + b"\xff"))
        assert not list(state.scan(HELD, HELD + b"\xff"))


def test_each_target_knows_what_was_truncated_in_all_sources() -> None:
    """A truncation that one source has not seen comes to all targets: it deletes all rows once more."""
    runs = [FoldRun(FORWARD), FoldRun(FORWARD)]
    ends = [rows_end(at, position=at, host=host, ms=2000, writer=FORWARD) for at, host in ((1000, 1), (1001, 2))]
    for count, run in enumerate(runs, start=1):
        for host in (1, 2):
            run.heartbeat(1000, host=host)
        run.chunk(*ends[:count])
    for states, lost in ((runs[1:], False), (runs, True)):
        for state in redistribute_states([run.state for run in states], 3, Times(3000, 3000)):
            known = read_facts(state).truncations
            assert known is not None
            assert known.boundaries == {
                HOSTS[0]: Boundary(1, 1000, 1000),
                **({} if lost else {HOSTS[1]: Boundary(1, 1001, 1001)}),
            }
            assert (bool(known.waits), set(known.lost)) == (lost, set(HOSTS) if lost else set())


def test_states_with_different_schemas_are_refused() -> None:
    states = [MemoryState(), MemoryState()]
    for number, state in enumerate(states):
        run = FoldRun(WRITERS[number])
        run.heartbeat(1000)
        state.apply({SHOWN: run.state.data[SHOWN]})
    with pytest.raises(ValueError, match="several schemas"):
        plan_redistribution([read_facts(state) for state in states], 2, Times(0, 0))


def test_an_unknown_kind_of_entry_is_refused() -> None:
    state = MemoryState()
    state.apply({b"z": b""})
    with pytest.raises(ValueError, match="belong nowhere"):
        list(redistribute(state, {}, 2))


def test_a_tick_leaves_no_publisher() -> None:
    run = FoldRun(FORWARD, NEVER_PURGE._replace(forgotten_publishers=frozenset({TICK_HOST})))
    run.chunk(make_tick(schema_of(FORWARD), BASE_S * 1000))
    assert read_facts(run.state).times == Times(BASE_S * 1000, BASE_S * 1000)
    assert not any(key.startswith(PUBLISHER) for key in run.state.data)
