"""A mutation that cannot be decoded is quarantined, and sent once it can be; the others are published."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.raw import place_id
from publisher.mutations.messages import Origin
from publisher.mutations.quarantine import Quarantine, SentGap
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import at_least, int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

ORIGIN = Origin(bytes(range(16)), 7, "CommitLog-7-7.log", 12, 1234)
GAPS = [SentGap(bytes(16), b"key"), SentGap(bytes(range(16)), b"")]
BATCHES, FIT, LARGE = 5, 3, 120_000  # each twice and kept in base64, so many of them fit into either limit


def test_a_mutation_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", 10, 1000)
    quarantine.store(ORIGIN._replace(position=9999), b"later", "other", [])
    quarantine.store(ORIGIN, b"\x00bytes", "reason", GAPS)
    quarantine.store(ORIGIN, b"\x00bytes", "reason", GAPS)  # met again after a crash
    first, second = Quarantine(tmp_path / "quarantine", 10, 1000).read_all()
    assert (first.origin, second.origin.position) == (ORIGIN, 9999)
    assert (first.mutation, first.reason, first.gaps) == (b"\x00bytes", "reason", GAPS)
    quarantine.remove(first)
    assert len(quarantine) == 1


@pytest.mark.parametrize(("most", "size"), [(1, 1000), (10, 0)])
def test_above_a_limit_it_stops_and_stores_nothing_more(tmp_path: Path, most: int, size: int) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", most, 10_000)
    quarantine.store(ORIGIN, b"a", "reason", [])
    full = Quarantine(tmp_path / "quarantine", most, size)
    with pytest.raises(CdcError, match=r"CommitLog-7-7\.log") as caught:
        full.store(ORIGIN._replace(position=9999), b"b", "reason", [])
    assert caught.value.code is Code.QUARANTINE_FULL
    assert len(full) == 1


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, 10, 1000)
    quarantine.store(ORIGIN, b"a", "reason", [])
    [file] = tmp_path.iterdir()
    file.write_text(file.read_text().replace("mutation", "mutatoin"))
    with pytest.raises(CdcError, match=file.name) as caught:
        quarantine.read_all()
    assert caught.value.code is Code.POSITION_FILE


@pytest.mark.servers
def test_a_batch_with_an_unknown_table_waits_for_its_schema(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    """Rows carry no size: what follows the unknown table's in the mutation cannot be found."""
    history = write_to_an_unknown_table(publisher, cql, fresh_keyspace, ["a"])
    kept = history.with_name("kept")
    cql.execute(f"INSERT INTO {fresh_keyspace}.stays (id, v) VALUES (2, 'b')")
    status, log = publisher.fail(publisher__quarantine_max_mutations=0)
    assert (status, "CDC-049" in log, "Traceback" in log, "CommitLog-7-" in log) == (4, True, False, True)
    publisher.start()
    found = by_key(sent(fresh_keyspace, "stays", at_least(2)))
    [gap] = found[int_value(1)]
    assert (gap.message.kind, found[int_value(2)][0].message.kind) == ("gap", "row")
    assert publisher.log().count("CDC-048") == 1
    eventually(lambda: "1 mutations: cassandra-publisher quarantine ls" in publisher.command("status")[1])
    status, shown = publisher.command("quarantine", "replay")
    assert (status, "not yet" in shown, "error CDC-048" in shown, "WITH ID = " in shown) == (4, True, True, True)
    status, shown = publisher.command("quarantine", "ls")
    assert (status, shown.splitlines()[-1]) == (0, "1 mutations quarantined")
    assert f"{gap.message.file}:{gap.message.position}" in shown
    status, shown = publisher.command("quarantine", "replay", "--schema", str(kept))
    assert (status, "1 of 1 mutations sent" in shown.splitlines()) == (0, True)  # and a warning: the table was dropped
    _, row, void = by_key(sent(fresh_keyspace, "stays", at_least(4)))[int_value(1)]
    assert (row.message.kind, row.message.position) == ("row", gap.message.position)
    assert (void.message.kind, void.message.file) == ("gap", "")
    assert void.message.update == place_id(gap.message.host_id, gap.message.segment, gap.message.position)
    [other] = rows(sent(fresh_keyspace, "gone", at_least(1)))
    assert other.key == int_value(1)
    assert publisher.command("quarantine", "ls")[1].splitlines()[-1] == "0 mutations quarantined"


@pytest.mark.servers
def test_a_discarded_mutation_is_gone_and_its_gap_withdrawn(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    write_to_an_unknown_table(publisher, cql, fresh_keyspace, ["a"])
    publisher.start()
    [gap] = by_key(sent(fresh_keyspace, "stays", at_least(1)))[int_value(1)]
    place = f"{gap.message.file}:{gap.message.position}"
    status, shown = publisher.command("quarantine", "discard", f"{place}0")
    assert (status, f"No mutation from {place}0 is quarantined." in shown) == (2, True)
    status, shown = publisher.command("quarantine", "discard", place)
    assert (status, f"{place} is discarded: repair the rows" in shown) == (0, True)
    _, void = by_key(sent(fresh_keyspace, "stays", at_least(2)))[int_value(1)]
    assert (void.message.kind, void.message.file) == ("gap", "")
    assert publisher.command("quarantine", "ls")[1].splitlines()[-1] == "0 mutations quarantined"


@pytest.mark.servers
@pytest.mark.exhaustive
@pytest.mark.parametrize(("limit", "value"), [("quarantine_max_mutations", FIT), ("quarantine_max_mib", 1)])
def test_at_its_limit_it_stops_and_goes_on_there_once_it_is_raised(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy, limit: str, value: int
) -> None:
    history = write_to_an_unknown_table(publisher, cql, fresh_keyspace, ["x" * LARGE] * BATCHES)
    cql.execute(f"INSERT INTO {fresh_keyspace}.stays (id, v) VALUES (0, 'b')")
    for _ in range(2):  # to start it again moves nothing
        status, log = publisher.fail(**{f"publisher__{limit}": value})
        assert (status, "CDC-049" in log, "Traceback" in log) == (4, True, False)
        assert publisher.command("quarantine", "ls")[1].splitlines()[-1] == f"{FIT} mutations quarantined"
    publisher.start()
    found = by_key(
        sent(fresh_keyspace, "stays", lambda found: int_value(0) in {raw_message.key for raw_message in found})
    )
    kinds = {key: {raw_message.message.kind for raw_message in found} for key, found in found.items()}
    eventually(lambda: publisher.command("quarantine", "ls")[1].splitlines()[-1] == f"{BATCHES} mutations quarantined")
    assert kinds.pop(int_value(0)) == {"row"}
    assert all(kind == {"gap"} for kind in kinds.values())
    assert publisher.stop() == 0
    shutil.move(history.with_name("kept"), history)
    assert publisher.command("quarantine", "replay")[1].splitlines()[-1] == f"{BATCHES} of {BATCHES} mutations sent"
    wanted = {int_value(number) for number in range(1, BATCHES + 1)}
    for name in ("stays", "gone"):
        sent(
            fresh_keyspace,
            name,
            lambda found: {raw_message.key for raw_message in found if raw_message.update} >= wanted,
        )


def write_to_an_unknown_table(publisher: PublisherProcess, cql: Session, keyspace: str, values: list[str]) -> Path:
    """Batches, the first under key 1, over a table that is dropped before the publisher has seen it; gives the file of
    its schema history, which has none: what another publisher would know lies beside it as `kept`.
    """
    for name in ("stays", "gone"):
        cql.execute(f"CREATE TABLE {keyspace}.{name} (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start()
    publisher.stop()
    history = Path(str(publisher.settings["publisher.state_directory"])) / "schema.json"
    shutil.move(history, history.with_name("kept"))
    for key, value in enumerate(values, start=1):
        inserts = (f"INSERT INTO {keyspace}.{name} (id, v) VALUES ({key}, '{value}')" for name in ("stays", "gone"))
        cql.execute(f"BEGIN UNLOGGED BATCH {'; '.join(inserts)}; APPLY BATCH")
    cql.execute(f"DROP TABLE {keyspace}.gone")
    return history


def by_key(found: list[Sent]) -> dict[bytes, list[Sent]]:
    result: dict[bytes, list[Sent]] = {}
    for row in rows(found):
        result.setdefault(row.key or b"", []).append(row)
    return result
