"""The files of snapshots: what was written is read, and what is damaged is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from cassandra_storage.formats.sstable.merge import MergePosition
from cdc_common.errors.codes import CdcError
from publisher import state_files
from publisher.snapshot.state.records import Record, Records
from publisher.snapshot.state.token_selection import TokenSelection

if TYPE_CHECKING:
    from pathlib import Path

RECORD = Record(UUID(int=1), "ks", "t", "aa" * 16, (UUID(int=2), UUID(int=3)))


@pytest.fixture
def records(tmp_path: Path) -> Records:
    made = Records(tmp_path)
    made.make_folder()
    return made


@pytest.mark.parametrize(
    "place", [None, MergePosition(-5, b"k"), MergePosition(5, b"", (b"a", None, b"")), MergePosition(5, b"k", ())]
)
def test_a_record_is_read_as_it_was_written(records: Records, place: MergePosition | None) -> None:
    portion = TokenSelection((Span(-5, 7), Span(9, 9)), is_primary=True)
    record = replace(RECORD, phase="sending", place=place, flushed_to=(7, 8), rows=3, problem="none", portion=portion)
    records.write(record)
    assert records.read("ks.t") == record
    assert list(records.all()) == [record]
    assert records.read("ks.other") is None


def test_the_version_before_reads_what_a_repair_does_not_need(records: Records) -> None:
    """It refuses a name that it does not know, and a record stays when its snapshot is over."""
    repaired = replace(RECORD, phase="sending", replicas=(2, 0))
    for record, is_stored in ((RECORD, False), (repaired, True), (replace(repaired, phase="ended"), False)):
        records.write(record)
        stored = state_files.read(records.folder / "ks.t.json")
        assert stored is not None
        assert ("replicas" in stored) == is_stored
        read = records.read("ks.t")
        assert read == (record if is_stored else replace(record, replicas=()))


def test_what_is_wanted_is_to_run_unless_it_was_said(records: Records) -> None:
    assert records.wanted("ks.t") == "run"
    records.want("ks.t", "pause")
    assert records.wanted("ks.t") == "pause"
    assert records.wanted("ks.other") == "run"


def test_one_that_is_not_over_is_not_replaced(records: Records) -> None:
    """The publisher takes part in one while the command still looks at the table: its end would never come."""
    other = replace(RECORD, snapshot=UUID(int=9))
    assert records.begin(RECORD)
    assert not records.begin(other)
    records.want("ks.t", "pause")
    assert not records.begin(other)
    assert records.read("ks.t") == RECORD
    recreated = replace(other, table_id="bb" * 16)
    assert records.begin(recreated)
    assert records.wanted("ks.t") == "run"
    assert not records.begin(RECORD)  # its worker may run
    records.write(replace(recreated, phase="given_up"))
    assert records.begin(RECORD)


@pytest.mark.parametrize(
    "change",
    [
        {"snapshot": "x"},
        {"hosts": ["x"]},
        {"place": {"token": 1, "key": "x", "clustering": None}},
        {"phase": "unknown"},
        {"portion": "all"},
        {"flushed_to": [1]},
        {"more": 1},
    ],
)
def test_a_damaged_record_is_refused(records: Records, change: dict[str, object]) -> None:
    records.write(RECORD)
    path = records.folder / "ks.t.json"
    stored = state_files.read(path)
    assert stored is not None
    state_files.write(path, {**stored, **change})
    with pytest.raises(CdcError, match=r"ks\.t\.json is damaged"):
        records.read("ks.t")
    state_files.write(records.folder / "ks.t.wanted", {"wanted": "fly"})
    with pytest.raises(CdcError, match=r"ks\.t\.wanted is damaged"):
        records.wanted("ks.t")
