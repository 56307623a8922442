"""The steps of a snapshot: their order, what a stop at any moment leaves, and what is given up."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.files.sstables import read_statistics
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import WHOLE_RING, Span, TokenRange
from cassandra_storage.formats.sstable.file_name import DATA, INDEX
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import RepairRequest
from publisher.snapshot.connections import node
from publisher.snapshot.connections.node import last_flush, own_flush
from publisher.snapshot.state.records import Records, new_record
from publisher.snapshot.state.token_selection import TokenSelection, parse
from publisher.snapshot.steps.worker import CancelledError
from tests.support.publisher.snapshot_beside import FLUSH, HOST, TRUNCATED_AT, Beside, make_records, take
from tests.support.vectors import indexed_sstables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.vectors.indexed_sstables import IndexedVectors


OTHER = UUID(int=0xB)


@pytest.fixture(scope="module", params=["5.0-oa"])
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


@pytest.fixture(autouse=True, params=["python", "core"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_NATIVE", "1" if request.param == "core" else "0")


def test_the_order_of_steps(beside: Beside, records: Records) -> None:
    beside.published_after = 4
    record = take(beside, records)
    units = beside.events.count("unit")
    assert units > 100
    assert beside.events == ["asked", "running", *FLUSH, *["asked"] * 4, *["unit"] * units, "ended", "clear"]
    assert beside.epochs == {TRUNCATED_AT}  # what the node had truncated before the files were there
    assert (record.phase, record.rows, record.done, record.hosts) == ("ended", units, 1.0, (HOST,))
    assert record.flushed_to == beside.flushed_to
    assert not list(beside.data.glob("*/*/snapshots/*"))


def test_a_worker_that_is_stopped_at_any_moment_is_followed_by_one_that_goes_on(
    vectors: IndexedVectors, tmp_path: Path, beside: Beside, records: Records
) -> None:
    take(beside, records)
    whole, count = beside.rows, len(beside.events)
    moments = (*range(7), count // 2, count - 2, count - 1)
    # The Python code is five times slower, and sends the same (test_snapshot_native.py).
    for stop_at in moments if os.environ["CDC_NATIVE"] == "1" else (4, count // 2):
        folder = tmp_path / str(stop_at)
        again = Beside(vectors, folder)
        kept = make_records(again, folder)
        again.stop_at = stop_at
        stopped = take(again, kept)
        if stop_at < count:
            assert not stopped.is_final
        sent_before = len(again.rows)
        ended = take(again, kept)
        assert ended.phase == "ended"
        assert (ended.snapshot, again.events[-2:]) == (stopped.snapshot, ["ended", "clear"])
        assert list(dict.fromkeys(again.rows)) == whole
        assert len(again.rows) - len(whole) <= 2 * 9  # the batch that was not recorded
        assert ended.started > stopped.started or not sent_before
        assert again.events.index("running") < again.events.index("flush") < again.events.index("unit")


def test_links_that_are_gone_are_taken_again(beside: Beside, records: Records) -> None:
    take(beside, make_records(beside, records.folder.parent / "other"))
    whole = list(beside.rows)
    beside.rows.clear()
    beside.events.clear()
    beside.stop_at = 100
    stopped = take(beside, records)
    assert stopped.phase == "sending"
    beside.clear_snapshot("ks", stopped.tag)
    assert take(beside, records).phase == "ended"
    assert beside.events.count("flush") == 2
    assert list(dict.fromkeys(beside.rows)) == whole


def test_a_damaged_sstable_gives_up_and_names_it(beside: Beside, records: Records) -> None:
    beside.stop_at = 60
    stopped = take(beside, records)
    (data, *_) = sorted(beside.data.glob(f"*/*/snapshots/{stopped.tag}/*{DATA}"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    data.write_bytes(content)
    record = take(beside, records)
    assert record.phase == "given_up"
    assert data.name in record.problem
    assert "nodetool scrub or repair" in record.problem
    assert beside.events[-2:] == ["given_up", "clear"]


def test_an_index_that_was_cut_gives_up_and_names_it(beside: Beside, records: Records) -> None:
    """The rest of an SSTable must not be taken for nothing."""
    beside.stop_at = 1000  # past the first partition of each, which is wide
    stopped = take(beside, records)
    assert stopped.place is not None
    indexes = sorted(beside.data.glob(f"*/*/snapshots/{stopped.tag}/*{INDEX}"))
    for index in indexes:
        content = index.read_bytes()
        index.write_bytes(content[: indexed_sstables.entry_starts(content)[1]])
    record = take(beside, records)
    assert record.phase == "given_up"
    assert any(index.name in record.problem for index in indexes)
    assert "of the data on cannot be found" in record.problem


def test_files_that_cannot_be_read_are_tried_again(beside: Beside, records: Records) -> None:
    beside.stop_at = 60
    stopped = take(beside, records)
    (folder, *_) = beside.data.glob(f"*/*/snapshots/{stopped.tag}")
    (data, *_) = folder.glob(f"*{DATA}")
    hidden = data.rename(data.with_name("hidden"))
    data.mkdir()
    with pytest.raises(CdcError, match=r"The SSTables of ks\.indexed cannot be read: .*Is a directory"):
        take(beside, records)
    data.rmdir()
    hidden.rename(data)
    assert take(beside, records).phase == "ended"


def test_a_table_that_is_gone_and_one_that_is_cancelled(beside: Beside, records: Records) -> None:
    beside.stop_at, beside.stop_with = 60, CancelledError
    record = take(beside, records)
    assert (record.phase, record.problem, beside.events[-2:]) == ("given_up", "it was cancelled", ["given_up", "clear"])
    records.write(new_record(beside.table.table))
    beside.events.clear()
    beside.is_published = False
    record = take(beside, records)
    assert (record.phase, beside.events) == ("given_up", [])
    assert "It is dropped" in record.problem


def test_one_that_is_cancelled_while_its_begin_is_sent_ends_in_all_raw_partitions(
    beside: Beside, records: Records
) -> None:
    """Some may have it: they would wait for its end, and purge nothing."""
    beside.stop_at, beside.stop_with = 1, CancelledError
    record = take(beside, records)
    assert (record.phase, beside.events) == ("given_up", ["asked", "given_up"])


def test_one_that_other_hosts_have_begun_ends_here_although_it_has_not_begun(beside: Beside, records: Records) -> None:
    """Their begins name this host: the raw partitions wait for its end."""
    records.write(new_record(beside.table.table, hosts=(HOST, OTHER)))
    beside.stop_at, beside.stop_with = 0, CancelledError
    record = take(beside, records)
    assert (record.phase, beside.events) == ("given_up", ["given_up"])


def test_other_hosts_can_find_it_before_purging_waits_for_them(beside: Beside, records: Records) -> None:
    records.write(new_record(beside.table.table, hosts=(HOST, OTHER)))
    take(beside, records)
    assert beside.row_states == [("running", beside.events.index("running")), ("ended", len(beside.events))]


def test_other_hosts_can_find_one_that_is_given_up_before_it_has_begun(beside: Beside, records: Records) -> None:
    """A new one may replace it before this node's publisher looks at its record."""
    records.write(new_record(beside.table.table, hosts=(HOST, OTHER)))
    beside.stop_at, beside.stop_with = 0, CancelledError
    take(beside, records)
    assert (beside.events, beside.row_states) == (["given_up"], [("given_up", 0), ("given_up", 1)])


def test_nothing_begins_while_other_hosts_cannot_find_it(beside: Beside, records: Records) -> None:
    records.write(new_record(beside.table.table, hosts=(HOST, OTHER)))
    beside.refusal = CdcError(Code.CASSANDRA_UNREACHABLE, "no node answers", "none")
    with pytest.raises(CdcError, match="no node answers"):
        take(beside, records)
    assert beside.events == ["asked"]
    beside.refusal = CdcError(Code.CASSANDRA_QUERY, "unconfigured table", "none")  # each host is asked by hand
    assert take(beside, records).phase == "ended"


def test_one_of_a_table_that_is_excluded_meanwhile_ends(beside: Beside, records: Records) -> None:
    """It may be included again: then purging waits for all snapshots that have begun."""
    beside.stop_at = 60
    assert not take(beside, records).is_final
    beside.is_published = False
    record = take(beside, records)
    assert (record.phase, beside.events[-2:]) == ("given_up", ["given_up", "clear"])


def test_a_column_that_is_added_before_the_files_are_there_is_in_the_images(
    vectors: IndexedVectors, beside: Beside, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be days between the parts of a large table."""
    whole = beside.table
    columns = vectors.table.regular_columns[:-1]
    beside.table = whole._replace(table=replace(vectors.table, regular_columns=columns))
    take_snapshot = beside.take_snapshot

    def alter(keyspace: str, table: str, tag: str) -> None:
        beside.table = whole
        take_snapshot(keyspace, table, tag)

    monkeypatch.setattr(beside, "take_snapshot", alter)
    record = take(beside, records)
    assert (record.phase, record.problem) == ("ended", "")


def test_only_owned_ranges_are_sent(beside: Beside, records: Records) -> None:
    beside.ranges = [TokenRange(0, (1 << 63) - 1)]
    record = take(beside, records)
    some = len({key for key, _ in beside.rows})
    assert record.partitions == some
    beside.ranges = [TokenRange(-(1 << 63), 0)]
    records.write(new_record(beside.table.table))
    beside.rows.clear()
    take(beside, records)
    others = len({key for key, _ in beside.rows})
    assert min(some, others) > 0
    assert some + others == sum(1 for n in range(indexed_sstables.PARTITIONS) if n % 2 == 0 or n % 3 == 0)


def test_only_the_tokens_asked_for_are_sent(beside: Beside, records: Records) -> None:
    take(beside, records)
    tokens = {key: decorated_token(key) for key, _ in beside.rows}
    assert not beside.only_primary
    some = sorted(tokens.values())[10:13]
    portion = TokenSelection((Span(some[0], some[0]), Span(some[1], some[2])), is_primary=True)
    records.write(new_record(beside.table.table, portion=portion))
    beside.rows.clear()
    record = take(beside, records)
    assert (record.phase, record.done, record.partitions) == ("ended", 1.0, 3)
    assert sorted({tokens[key] for key, _ in beside.rows}) == some
    assert beside.only_primary


def test_the_place_of_the_flush_is_one_of_this_nodes_log() -> None:
    assert last_flush([(-1, 0), (5, 10), (7, 3), (900, 1)], newest=8) == (7, 3)
    assert last_flush([(-1, 0)], newest=8) == (0, 0)


def ask_for_repair(beside: Beside, records: Records, keys: Sequence[bytes], until_ms: int = 2**62) -> None:
    portion = parse(str(RepairRequest(until_ms, tuple(keys))))
    records.write(new_record(beside.table.table, hosts=(HOST,), portion=portion))


def test_a_repair_sends_the_partitions_that_it_is_of(beside: Beside, records: Records) -> None:
    take(beside, records)
    first, *_, last = dict.fromkeys(key for key, _ in beside.rows)
    wanted = [row for row in beside.rows if row[0] in {first, last}]
    beside.rows, beside.events, beside.files = [], [], set()
    absent = b"absent key"
    ask_for_repair(beside, records, [first, last, absent])
    record = take(beside, records)
    keys = [key.hex() for key in (first, last, absent)]
    begins, ends = [f"running {key}" for key in keys], [f"ended {key}" for key in keys]
    steps = ["asked", *begins, *FLUSH, "asked"]
    assert beside.events == [*steps, *["unit"] * len(wanted), *ends, "clear"]
    assert (record.phase, beside.rows) == ("ended", wanted)
    assert beside.files == {f"repair-{record.snapshot}"}
    assert {step.flushed_to for step in beside.steps[:3]} == {(0, 0)}
    assert {(step.hosts, step.flushed_to) for step in beside.steps[3:]} == {((HOST.bytes,), record.own_flushed_to)}


def test_of_a_partition_that_is_not_owned_an_end_says_nothing(
    beside: Beside, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "own_flush", lambda *_: (1, 2))
    own, other = b"key", b"another key"
    token = decorated_token(own)
    beside.ranges = [TokenRange(token - 1, token)]
    ask_for_repair(beside, records, [own, other])
    take(beside, records)
    assert [(step.flushed_to, step.replicas) for step in beside.steps[2:]] == [((1, 2), 3), ((0, 0), 0)]


@pytest.mark.parametrize("has_it_first", [False, True])
def test_a_repair_is_given_up_if_the_tokens_move_before_they_are_sent(
    beside: Beside, records: Records, *, has_it_first: bool
) -> None:
    """Its files are without them, or its images."""
    own, moving = b"key", b"another key"
    ranges = [[TokenRange(token - 1, token)] for token in map(decorated_token, (own, moving))]
    both, one = ranges[0] + ranges[1], ranges[0]
    beside.ranges = both if has_it_first else one
    ask_for_repair(beside, records, [own, moving])
    beside.stop_at = 6  # the files are there
    assert take(beside, records).phase == "taken"
    beside.ranges = one if has_it_first else both
    record = take(beside, records)
    assert (record.phase, beside.events[-3:]) == (
        "given_up",
        [f"given_up {own.hex()}", f"given_up {moving.hex()}", "clear"],
    )
    assert "tokens have moved" in record.problem
    assert {step.replicas for step in beside.steps[2:]} == {0}


def test_a_repair_is_given_up_if_the_tokens_move_before_its_files_are_taken_again(
    beside: Beside, records: Records
) -> None:
    """The place that was reached may be past them."""
    take(beside, records)
    keys = list(dict.fromkeys(key for key, _ in beside.rows))[:40]
    beside.events = []
    beside.ranges = [TokenRange(decorated_token(keys[0]), (1 << 63) - 1)]
    ask_for_repair(beside, records, keys)
    beside.stop_at = len(keys) + 30
    stopped = take(beside, records)
    beside.clear_snapshot("ks", stopped.tag)
    beside.ranges = list(WHOLE_RING)
    assert take(beside, records).phase == "given_up"


def test_a_repair_that_is_late_is_given_up(beside: Beside, records: Records) -> None:
    ask_for_repair(beside, records, [b"key"], until_ms=1)
    record = take(beside, records)
    assert (record.phase, record.problem, beside.events) == ("given_up", "its time is over", [])


def test_a_node_that_owns_nothing_of_a_repair_flushes_nothing(beside: Beside, records: Records) -> None:
    token = decorated_token(b"key")
    beside.ranges = [TokenRange(token, token + 1)]  # without its start
    ask_for_repair(beside, records, [b"key"])
    assert take(beside, records).phase == "ended"
    assert beside.events == ["asked", "running 6b6579", "ended 6b6579", "clear"]


def test_what_was_sent_of_older_files_says_so(
    beside: Beside, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If files are taken again, what came since the first ones is not in what was sent already."""
    take(beside, records)
    keys = list(dict.fromkeys(key for key, _ in beside.rows))[:40]
    flushes = iter([(1, 1), (2, 2)])
    monkeypatch.setattr(node, "own_flush", lambda *_: next(flushes))
    beside.events = []
    ask_for_repair(beside, records, keys)
    beside.stop_at = len(keys) + 30
    stopped = take(beside, records)
    assert stopped.place is not None
    beside.clear_snapshot("ks", stopped.tag)
    assert take(beside, records).own_flushed_to == (1, 1)
    assert beside.events.count("flush") == 2


def test_the_flush_of_this_node_is_not_that_of_a_streamed_sstable(vectors: IndexedVectors) -> None:
    stats = [read_statistics(file).stats for file in vectors.files()]
    own, other = UUID(int=1), UUID(int=2)
    bounds = [(5, 6), (9, 9), (4, 4)]
    hosts = [own, other, None]
    made = [
        stats[0]._replace(commit_log_upper_bound=bound, originating_host_id=host)
        for bound, host in zip(bounds, hosts, strict=True)
    ]
    assert own_flush(made, own) == (5, 6)
    assert own_flush(made, UUID(int=3)) == (0, 0)
