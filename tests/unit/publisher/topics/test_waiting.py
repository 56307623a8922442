"""A table whose topic cannot be used waits, all others go on, and nothing of it is lost."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

import pytest

import cdc_native
from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher.log import cdc_raw
from publisher.monitoring.status import metrics, text
from publisher.topics.waiting import WaitingTables
from tests.support.publisher.publisher_beside_fakes import FIRST, FakeKafka, PublisherBesideFakes
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = CdcError(Code.KAFKA_REFUSED, "Kafka refuses.", "Grant the right.")
TOPIC = "cdc.raw.ks.bad"


@pytest.fixture(params=[pytest.param(True, id="native"), pytest.param(False, id="python")])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PublisherBesideFakes]:
    """Makes a publisher of the tables ks.good and ks.bad."""
    if request.param and not cdc_native.is_compiled():
        pytest.skip("not compiled: test_compiled says so")
    if not request.param:
        monkeypatch.setattr(cdc_native, "is_enabled", lambda: False)
    rows = SchemaRows()
    rows.create("ks", "good", cdc=True)
    rows.create("ks", "bad", cdc=True)
    return lambda **settings: PublisherBesideFakes(tmp_path, rows, FakeKafka(), **settings)


def test_refused_messages_are_sent_again_in_order(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.open()
    publisher.write("bad", 1)
    publisher.write("good", 1)
    publisher.run(lambda: publisher.is_sent("good") and publisher.is_sent("bad"))
    publisher.kafka.refused[TOPIC] = REFUSED
    for number in range(2, 40):
        publisher.write("bad", number)
        publisher.write("good", number)
        if number % 10 == 0:
            publisher.next_segment()
        publisher.round()
    publisher.run(lambda: publisher.is_sent("good"))
    assert publisher.waits() == {"ks.bad": "CDC-021"}
    assert len(publisher.kafka.places(TOPIC)) == 1
    publisher.run(lambda: publisher.positions.is_finished(publisher._segments[-2].segment))
    assert publisher.segments() == [0, 1, 2, 3]
    publisher.kafka.refused.clear()
    publisher.write("bad", 40)
    publisher.retry()
    publisher.run(lambda: not publisher.waiting.tables)
    assert publisher.is_sent("bad")
    assert publisher.kafka.places(TOPIC) == publisher.written[TOPIC]  # in the order of the log
    assert len(publisher.kafka.delivered[TOPIC]) <= 45  # at most what was in flight is repeated
    publisher.next_segment()
    publisher.write("bad", 41)
    publisher.run(lambda: publisher.is_sent("bad") and publisher.segments() == [4])


def begin(publisher: PublisherBesideFakes) -> PublisherBesideFakes:
    """Both tables have been published, each with one row."""
    publisher.open()
    for name in ("good", "bad"):
        publisher.write(name, 1)
    publisher.run(lambda: publisher.is_sent("good") and publisher.is_sent("bad"))
    return publisher


def test_a_crash_at_any_time_loses_nothing(made: Callable[..., PublisherBesideFakes]) -> None:
    """The publisher is killed after each round, with messages in flight, refused, held and being caught up."""
    publisher = begin(made())
    for number in range(2, 60):
        if number == 8:
            publisher.kafka.refused[TOPIC] = REFUSED
        if number == 40:
            publisher.kafka.refused.clear()
        publisher.write("bad", number)
        publisher.write("good", number)
        if number % 12 == 0:
            publisher.next_segment()
        publisher.retry()
        publisher.round()
        if number % 3 == 0:
            publisher.kafka._queue.clear()
            publisher.kafka._refusals.clear()
            publisher.restart()
            publisher.open()
    publisher.retry()
    publisher.run(lambda: publisher.is_sent("good") and publisher.is_sent("bad") and not publisher.waiting.tables)


def test_only_the_segments_with_its_mutations_are_kept(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    for number in range(6):
        publisher.write("good", number)
        if number == 2:
            publisher.write("bad", number)
        publisher.next_segment()
    publisher.run(lambda: publisher.is_sent("good") and publisher.segments() == [2, 6])
    publisher.kafka.unusable.clear()
    publisher.retry()
    publisher.run(lambda: publisher.is_sent("bad") and publisher.segments() == [6])
    assert not publisher.waiting.tables


@pytest.mark.parametrize("drops", [False, True])
def test_without_cdc_or_dropped_it_frees_its_segments(
    made: Callable[..., PublisherBesideFakes], capsys: pytest.CaptureFixture[str], *, drops: bool
) -> None:
    """The fix that errors name; the log still has rows of the table, also after a restart."""
    publisher = made()
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    for number in range(3):
        publisher.write("good", number)
        publisher.write("bad", number)
        publisher.next_segment()
    publisher.run(lambda: publisher.is_sent("good") and publisher.segments() == [0, 1, 2, 3])
    publisher.write("bad", 3)
    if drops:
        publisher.rows.drop("ks", "bad")
    else:
        publisher.rows.alter("ks", "bad", cdc=False)
    publisher.run(lambda: publisher.segments() == [3])
    publisher.write("good", 4)
    publisher.run(lambda: publisher.is_sent("good"))
    publisher.restart()
    publisher.open()
    publisher.next_segment()
    publisher.run(lambda: publisher.segments() == [4])
    assert publisher.waits() == {}
    assert not publisher.kafka.delivered.get(TOPIC)
    assert "skipping what the log still has of a table" in capsys.readouterr().out


def test_a_drop_that_the_log_shows_first(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    publisher.write("bad", 1)
    publisher.run(lambda: publisher.waits() == {"ks.bad": "CDC-021"})
    table_id = publisher.rows.tables["ks", "bad"]["id"].bytes
    publisher.schema.row_ends._drop(publisher.schema.tables[table_id], CommitLogPosition(FIRST, 10), time_ns() // 1000)
    publisher.rows.drop("ks", "bad")
    publisher.run(lambda: not publisher.waiting.tables)


def test_cdc_on_again_needs_a_snapshot(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    publisher.write("bad", 1)
    publisher.run(lambda: publisher.waits() == {"ks.bad": "CDC-021"})
    publisher.rows.alter("ks", "bad", cdc=False)
    publisher.run(lambda: not publisher.waiting.tables)
    publisher.kafka.unusable.clear()
    publisher.rows.alter("ks", "bad", cdc=True)
    publisher.run(lambda: publisher.schema.names_needing_snapshot() == ["ks.bad"])
    publisher.next_segment()
    publisher.write("bad", 2)
    publisher.run(lambda: publisher.kafka.places(TOPIC)[-1:] == publisher.written[TOPIC][-1:])


def test_beyond_the_bound_its_segments_go_and_it_needs_a_snapshot(
    made: Callable[..., PublisherBesideFakes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """cdc_raw has room for 23 segments of 1 MiB: 2 of them are a tenth."""
    monkeypatch.setattr("publisher.upkeep.housekeeping.STATUS_SECONDS", 0.0)
    publisher = made(waiting_max_percent=10)
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    for number in range(2):
        publisher.write("bad", number)
        publisher.next_segment()
    publisher.run(lambda: publisher.positions.is_finished(publisher._segments[-2].segment))
    for _ in range(20):
        publisher.round()
    assert publisher.segments() == [0, 1, 2]
    assert publisher.schema.names_needing_snapshot() == []
    for number in range(2):
        publisher.write("bad", 2 + number)
        publisher.next_segment()
    publisher.run(lambda: publisher.segments() == [4])
    assert publisher.schema.names_needing_snapshot() == ["ks.bad"]
    assert "needs a snapshot" in publisher.waiting.shown()[0].text
    [since] = [table.needs_snapshot_since for table in publisher.schema.current_tables() if table.needs_snapshot_since]
    publisher.kafka.unusable.clear()
    publisher.retry()
    publisher.run(lambda: not publisher.waiting.tables)
    [later] = [table.needs_snapshot_since for table in publisher.schema.current_tables() if table.needs_snapshot_since]
    assert later > since  # what came until now is lost, too
    publisher.write("bad", 9)
    publisher.run(lambda: publisher.kafka.places(TOPIC) == publisher.written[TOPIC][-1:])


def test_a_held_segment_that_somebody_removes_is_a_loss(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.kafka.unusable[TOPIC] = REFUSED
    publisher.open()
    publisher.write("bad", 1)
    publisher.next_segment()
    publisher.write("bad", 2)
    publisher.next_segment()
    publisher.run(lambda: publisher.positions.is_finished(publisher._segments[1].segment))
    cdc_raw.list_cdc_segments(publisher.cdc_raw)[0].delete()
    publisher.kafka.unusable.clear()
    publisher.retry()
    publisher.run(lambda: not publisher.waiting.tables)
    assert publisher.schema.names_needing_snapshot() == ["ks.bad"]


def test_a_table_that_cannot_be_read_waits_until_it_can(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = made()
    publisher.rows.columns = [row for row in publisher.rows.columns if row["table_name"] != "bad"]
    publisher.open()
    assert publisher.waits() == {"ks.bad": "CDC-063"}
    publisher.rows.add_column("ks", "bad", "id", "int", "partition_key")
    publisher.rows.columns, known = publisher.rows.columns[:-1], publisher.rows.columns
    for number in range(3):
        publisher.rows.columns, hidden = known, publisher.rows.columns
        publisher.write("bad", number)
        publisher.rows.columns = hidden
        publisher.write("good", number)
        publisher.next_segment()
    publisher.run(lambda: publisher.is_sent("good") and publisher.segments() == [0, 1, 2, 3])
    publisher.rows.columns = known
    publisher.retry()
    publisher.run(lambda: publisher.is_sent("bad") and publisher.segments() == [3])
    assert publisher.schema.names_needing_snapshot() == []


def test_a_registry_that_does_not_answer_keeps_no_other_table_waiting(
    made: Callable[..., PublisherBesideFakes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("publisher.topics.table_follower.OPEN_SECONDS", 0.2)
    publisher = begin(made())
    publisher.registry.pause = 3.0
    publisher.rows.create("ks", "new", cdc=True)
    publisher.rows.create("ks", "newer", cdc=True)
    publisher.write("new", 1)
    publisher.write("good", 2)
    publisher.run(lambda: publisher.is_sent("good"))
    assert publisher.waits() == {"ks.new": "CDC-061", "ks.newer": "CDC-061"}
    publisher.registry.pause = 0.0
    publisher.run(lambda: publisher.is_sent("new") and not publisher.waiting.tables)


def test_a_deleted_topic_is_created_again_and_said(made: Callable[..., PublisherBesideFakes]) -> None:
    publisher = begin(made())
    publisher.kafka.refused[TOPIC] = CdcError(Code.KAFKA_REFUSED, "UNKNOWN_TOPIC_OR_PART", "None.")
    del publisher.kafka.topics[TOPIC]
    publisher.write("bad", 2)
    publisher.run(lambda: bool(publisher.waits()))
    publisher.kafka.refused.clear()
    publisher.retry()
    publisher.run(lambda: publisher.is_sent("bad"))
    assert publisher.kafka.created.count(TOPIC) == 2
    assert publisher.schema.names_needing_snapshot() == ["ks.bad"]


def test_a_truncation_of_a_waiting_table_is_sent_where_it_belongs(made: Callable[..., PublisherBesideFakes]) -> None:
    from cdc_common.messages import raw  # noqa: PLC0415 - only here

    publisher = begin(made())
    publisher.kafka.refused[TOPIC] = REFUSED
    publisher.write("bad", 2)
    publisher.run(lambda: bool(publisher.waits()))
    segment, position = publisher.written[TOPIC][-1]
    table_id = publisher.rows.tables["ks", "bad"]["id"].bytes
    publisher.rows.truncate(table_id, segment, position, 1_800_000_000_000)
    publisher.write("bad", 3)
    for _ in range(20):
        publisher.round()
    publisher.kafka.refused.clear()
    publisher.retry()
    publisher.run(lambda: not publisher.waiting.tables and not publisher.schema.row_ends.pending)
    sent = [raw.decode(value) for value in publisher.kafka.delivered[TOPIC]]
    kinds = [(message.kind, message.position) for message in sent if message.kind != "heartbeat"]
    last = publisher.written[TOPIC][-1][1]
    assert kinds.index(("row", position)) < kinds.index(("truncate", position)) < kinds.index(("row", last))
    assert kinds[-1] == ("row", last)  # it is sent again after the last truncation
    assert ("truncated", position) in kinds


def test_status_metric_and_file_name_the_table(made: Callable[..., PublisherBesideFakes], tmp_path: Path) -> None:
    publisher = begin(made())
    publisher.kafka.refused[TOPIC] = REFUSED
    publisher.write("bad", 2)
    publisher.run(lambda: bool(publisher.waits()))
    publisher.status.collect(0.0)
    status = publisher.status.newest()
    assert type(status).from_json(status.to_json()) == status
    assert "ks.bad: CDC-021 Kafka refuses. Fix: Grant the right." in text(status)
    samples = [sample for metric in metrics(status) for sample in metric.samples]
    assert ({"table": "ks.bad", "code": "CDC-021"}, 1) in [(sample.labels, sample.value) for sample in samples]
    assert [sample.value for sample in samples if sample.name == "cdc_publisher_waiting_tables"] == [1]
    publisher.waiting.save()
    again = WaitingTables.load(tmp_path / "waiting.json", publisher.positions)
    assert again.shown() == publisher.waiting.shown()
    (tmp_path / "waiting.json").write_text('{"format_version": 1, "tables": {"00": 1}}')
    with pytest.raises(CdcError) as caught:
        WaitingTables.load(tmp_path / "waiting.json", publisher.positions)
    assert caught.value.code is Code.POSITION_FILE


def test_pauses_grow_up_to_a_minute() -> None:
    from pathlib import Path  # noqa: PLC0415 - only here

    waiting, table_id = WaitingTables(Path("waiting.json")), bytes(16)
    now, pauses = 100.0, []
    for _ in range(9):
        waiting.begin(table_id, "ks.bad", REFUSED, now)
        before = now
        while waiting.next_due(now) is None:
            now += 0.5
        pauses.append(now - before)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
